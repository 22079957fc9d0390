"""``pyarrow.compute``, imported when one of its functions is first called.

It makes a Python function of each of Arrow's as it is imported, which takes as long as half of
lakelog's own modules, and much of lakelog does without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # who looks at modules asks for their `__path__` and the like
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = getattr(import_module("pyarrow.compute"), name)
    globals()[name] = value  # the next time it is simply there
    return value
