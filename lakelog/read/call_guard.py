"""One call at a time in a consumer, which closing from elsewhere ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import InvalidArgumentError
from ..hot.waits import Waker

#: How long a close from another thread waits for the call under way; that call closes in any case.
_CLOSE_WAIT_S = 30.0


class CallGuard:
    """Tells calls that read from a close that comes amid one, from a handler or another thread.

    The call under way gives nothing out, and closes the consumer at its end.
    """

    def __init__(self) -> None:
        self.waker = Waker()  # ends the wait of the call under way
        self._lock = threading.RLock()  # a signal handler runs in the thread that it interrupts
        self._depth = 0
        self._reader: int | None = None  # the thread of the call under way
        self._close: Callable[[], None] | None = None  # asked for while a call was under way
        self._done = threading.Event()

    @property
    def is_closing(self) -> bool:
        return self._close is not None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call that reads.

        Raises:
            InvalidArgumentError: another thread is in one.
        """
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """See `call`."""
        if not self._lock.acquire(blocking=False):
            raise InvalidArgumentError(
                "another thread is reading with this consumer; use one consumer for each thread "
                "(only close() may be called from any)"
            )
        self._depth += 1
        self._reader = threading.get_ident()

    def leave(self) -> None:
        """See `call`."""
        self._depth -= 1
        if not self._depth:
            self._reader = None
        self._lock.release()
        if self._close is not None:
            self._close_now()

    def close(self, close: Callable[[], None]) -> None:
        """Call it, now or at the end of the call under way; waits for one of another thread."""
        self._done.clear()
        self._close = close
        if not self._close_now():
            self.waker.set()
            if self._reader != threading.get_ident():
                self._done.wait(_CLOSE_WAIT_S)

    def _close_now(self) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._depth:
                return False
            close, self._close = self._close, None
            if close is not None:
                try:
                    close()
                finally:
                    self._done.set()
            return True
        finally:
            self._lock.release()
