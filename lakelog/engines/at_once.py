"""A few values worked on at once, in threads that delay no exit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from ..base.back_off import POLL, wait_until
from .at_exit import watch
from .workers import Workers

T = TypeVar("T")

#: How long an interrupted caller waits for calls to return; then it leaves those that hang. A
#: process that is told to stop ends within three seconds.
STOP_TIMEOUT_S = 2.2

#: A signal that comes right before a wait does not end it: it is noticed once the wait is over.
INTERRUPT_S = 0.2


def each_at_once(
    values: Sequence[T],
    work: Callable[[T], None],
    count: int,
    cancel: Callable[[], None] | None = None,
) -> None:
    """Call `work` with each value, in their order, with up to `count` of them at a time.

    If a call raises, no more begin; those under way return first. One at a time is done in the
    caller's own thread. Else the caller's thread waits, and if it is interrupted, no more calls
    begin, and those under way have `STOP_TIMEOUT_S` to return.

    Args:
        cancel: ends what calls wait for elsewhere; called if the caller's thread is interrupted.

    Raises:
        BaseException: what a call raised: that of the first such value.
    """
    if count == 1 or len(values) <= 1:
        for value in values:
            work(value)
        return
    crew = _Crew(values, work)
    watch(crew)
    workers = Workers("lakelog-at-once")
    try:
        for _ in range(min(count, len(values))):
            workers.run(partial(copy_context().run, crew.run))  # spans stay within the caller's
        crew.wait()
    except BaseException:
        crew.end()
        if cancel is not None:
            cancel()
        wait_until("calls to return", lambda: not crew.is_in_call(), POLL.within(STOP_TIMEOUT_S))
        raise
    finally:
        workers.end()


class _Crew(Generic[T]):
    """The values that are left, and the threads that take them."""

    def __init__(self, values: Sequence[T], work: Callable[[T], None]) -> None:
        self._values = values
        self._work = work
        self._lock = threading.Lock()
        self._next = 0
        self._in_call = 0
        self._is_ended = False
        self._errors: dict[int, BaseException] = {}  # by the place of the value
        self._over = threading.Event()

    def run(self) -> None:
        """Take value after value; in a worker."""
        while (place := self._begin()) is not None:
            try:
                self._work(self._values[place])
            except BaseException as error:  # raised where the caller waits
                self._errors[place] = error
                self.end()
            finally:
                self._done()

    def wait(self) -> None:
        """Return when all is done.

        Raises:
            BaseException: see `each_at_once`.
        """
        while not self._over.wait(INTERRUPT_S):
            pass
        for _, error in sorted(self._errors.items(), key=lambda item: item[0]):
            raise error

    def end(self) -> None:
        """Begin nothing more."""
        self._is_ended = True

    def is_in_call(self) -> bool:
        """Whether a call has not returned yet."""
        return self._in_call > 0

    def _begin(self) -> int | None:
        with self._lock:
            if self._is_ended or self._next == len(self._values):
                return None
            self._next += 1
            self._in_call += 1
            return self._next - 1

    def _done(self) -> None:
        with self._lock:
            self._in_call -= 1
            nothing_left = self._is_ended or self._next == len(self._values)
            if nothing_left and not self._in_call:
                self._over.set()
