"""Imports that nothing disturbs: an interrupt ends the process, and Arrow comes without pandas."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def quiet_start() -> Iterator[None]:
    """For imports: an interrupt within ends the process at once, as nothing is under way yet.

    As an exception it would come up in the middle of an import, where libraries make something
    else of it, and print it. Nobody looks for garbage meanwhile either: what imports make stays.
    """
    with _uncollected():
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield  # who hears of it in another way goes on to
            return
        try:
            before = signal.signal(signal.SIGINT, signal.SIG_DFL)
        except ValueError:  # only the main thread may, and only it is interrupted
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _uncollected() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# -- Arrow without pandas --------------------------------------------------------------------------


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
