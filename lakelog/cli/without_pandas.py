"""Arrow without pandas, in the process of a command."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from .entry import quiet_start


@contextmanager
def starting() -> Iterator[None]:
    """A `quiet_start` for imports of what makes arrays, without pandas from here on."""
    with quiet_start():
        leave_out_pandas()
        yield


def leave_out_pandas() -> None:
    """Has Arrow do without pandas, which it else imports with its first array.

    That takes a third of a second, more than all else that most commands do, and numpy.random,
    which comes along, loses an interrupt. Who asks Arrow for a frame still gets one. But for as
    long as the process lives, Arrow takes pandas' own mark of what is missing for no null: so this
    is for a process that hands it nothing of pandas, and not for a notebook.

    Before pyarrow 20 its next array imports pandas all the same.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas:
    """Says that there is none, to the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> None:
        if name == "pandas" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("a command does without pandas", name=name)
