"""A package's public names, whose modules are imported when a name is first asked for."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

#: Threads that import packages whose modules import each other get one that is half made, when
#: each begins at another: Python rather does that than wait forever. So one at a time. Nothing that
#: lakelog imports takes this lock meanwhile: its modules name the module that a name is in.
_ONE_AT_A_TIME = threading.RLock()


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package. Any number of threads may ask at once.

    A name must not be that of a module in the package: once something imports that, it is the
    module.

    Args:
        package: its full name.
        homes: of each name the module, relative to the package (``.archiver``).
    """

    def found(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        with _ONE_AT_A_TIME:
            value = getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, value)  # the next time it is simply there
        return value

    return found
