"""A thread that calls again and again while somebody holds what it calls."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any, cast


class Heartbeats:
    """Calls a method from a thread of its own, each time after as long as the last call said.

    The thread ends with `stop`, and when nobody but it holds the methods' object: a consumer that
    was dropped without `close` must not seem alive.

    Args:
        beat: a bound method; returns the seconds until its next call.
        listen: another one, which may wait in the place of the thread, for as many seconds; False:
            it has nothing to wait for.
        first_s: the seconds until the first call.
        name: of the thread.
    """

    def __init__(
        self,
        beat: Callable[[], float],
        listen: Callable[[float], bool],
        first_s: float,
        name: str,
    ) -> None:
        self._stopped = threading.Event()
        self._hurried = threading.Event()
        methods = [weakref.WeakMethod(cast("MethodType", one)) for one in (beat, listen)]
        self._thread = threading.Thread(
            target=_run,
            args=(*methods, first_s, self._stopped, self._hurried),
            name=name,
            daemon=True,
        )
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; it does not in a process that was forked since."""
        return self._thread.is_alive()

    def hurry(self) -> None:
        """The next call begins now, unless `listen` waits."""
        self._hurried.set()

    def stop(self) -> None:
        """No call begins after this; one may be under way."""
        self._stopped.set()
        self._hurried.set()


def _run(
    beating: weakref.WeakMethod[Any],
    listening: weakref.WeakMethod[Any],
    pause_s: float,
    stopped: threading.Event,
    hurried: threading.Event,
) -> None:
    while True:
        hurried.wait(pause_s)
        hurried.clear()
        beat, listen = beating(), listening()
        if stopped.is_set() or beat is None or listen is None:
            return
        pause_s = beat()
        if listen(pause_s):
            pause_s = 0.0
        del beat, listen
