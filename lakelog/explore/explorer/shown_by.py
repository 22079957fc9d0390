"""Which thread shows what others have found: any, or the main one alone."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

#: How long the main thread waits for something to show before it looks whether it may go on.
_LOOK_S = 0.02


class ShownBy(Protocol):
    """Runs what draws on widgets, so sends messages to the page."""

    def __call__(self, do: Callable[[], None]) -> None:
        """Calls `do`; returns when it has run, and raises what it raised."""
        ...

    def wait(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        """Waits for an event that may take others' calls; False if the time is over."""
        ...


class AnyThread:
    """Whoever has something to show does it."""

    def __call__(self, do: Callable[[], None]) -> None:
        """See `ShownBy`."""
        do()

    def wait(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        """See `ShownBy.wait`."""
        return event.wait(timeout_s)


class MainThread:
    """The thread that made this shows everything: between cells, and while it waits itself.

    For a frontend that takes messages of widgets from no other thread. Without an event loop in
    that thread, such as in a script, things are shown only while it waits.
    """

    def __init__(self) -> None:
        self._thread = threading.current_thread()
        self._calls: queue.SimpleQueue[tuple[Callable[[], None], Future[None]]] = (
            queue.SimpleQueue()
        )
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def __call__(self, do: Callable[[], None]) -> None:
        """See `ShownBy`."""
        if threading.current_thread() is self._thread:
            do()
            return
        shown: Future[None] = Future()
        self._calls.put((do, shown))
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._show, 0.0)
            except RuntimeError:  # it is closed: nobody looks any more
                return
        shown.result()

    def wait(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        """See `ShownBy.wait`."""
        if threading.current_thread() is not self._thread:
            return event.wait(timeout_s)
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not event.is_set():
            left_s = _LOOK_S if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                return False
            self._show(min(left_s, _LOOK_S))
        return True

    def _show(self, wait_s: float) -> None:
        """Runs one call, if one is there or comes in time."""
        try:
            do, shown = self._calls.get(timeout=wait_s) if wait_s else self._calls.get_nowait()
        except queue.Empty:  # it ran while this thread waited
            return
        try:
            do()
        except BaseException as error:
            shown.set_exception(error)
            if not isinstance(error, Exception):  # such as an interrupt, which is this thread's
                raise
        else:
            shown.set_result(None)
