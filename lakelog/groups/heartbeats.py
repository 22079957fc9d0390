"""A thread that calls again and again while somebody holds what it calls."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import cast


class Heartbeats:
    """Calls a method from a thread of its own, each time after as long as the last call said.

    The thread ends with `stop`, and when nobody but it holds the method's object: a consumer that
    was dropped without `close` must not seem alive.

    Args:
        beat: a bound method; returns the seconds until its next call.
        name: of the thread.
    """

    def __init__(self, beat: Callable[[], float], name: str) -> None:
        self._stopped = threading.Event()
        self._hurried = threading.Event()
        self._thread = threading.Thread(
            target=_run,
            args=(weakref.WeakMethod(cast("MethodType", beat)), self._stopped, self._hurried),
            name=name,
            daemon=True,
        )
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it does not in a process that was forked since."""
        return self._thread.is_alive()

    def hurry(self) -> None:
        """The next call begins now."""
        self._hurried.set()

    def stop(self) -> None:
        """No call begins after this; one may be under way."""
        self._stopped.set()
        self._hurried.set()


def _run(
    method: weakref.WeakMethod[Callable[[], float]],
    stopped: threading.Event,
    hurried: threading.Event,
) -> None:
    pause_s = 0.0
    while True:
        hurried.wait(pause_s)
        hurried.clear()
        if stopped.is_set():
            return
        beat = method()
        if beat is None:
            return
        pause_s = beat()
        del beat
