"""What a consumer and a share consumer poll by: one call at a time, which closing from elsewhere
ends, and a tier that does not answer is asked again, and told in the log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeGuard, TypeVar

from ..base.back_off import BackOff, Tries
from ..errors import (
    ColdTierUnavailableError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
)
from ..hot.waits import Waker
from ..tracing.switch import tracer

Found = TypeVar("Found")

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


#: How often a tier that is away is asked. Source: Kafka's ``reconnect.backoff.ms`` and
#: ``reconnect.backoff.max.ms``.
ASK_AGAIN = BackOff(0.05, 1.0)


def is_outage(error: object) -> TypeGuard[LakelogError]:
    """Whether it says that a tier does not answer."""
    return isinstance(error, (HotTierUnavailableError, ColdTierUnavailableError))


class Outage:
    """One consumer's, over all its polls: it ends when one of them comes through."""

    def __init__(self) -> None:
        self.error: LakelogError | None = None  # of the last try; None: the tiers answer
        self._tries: Tries | None = None

    def began(self, error: LakelogError, what: str) -> None:
        """Note that the tiers do not answer, or still do not.

        Args:
            what: was tried, for the log; see `Telling.failed`.

        Raises:
            LakelogError: the error, if asking again is of no use.
        """
        if not is_outage(error):
            raise error
        self._tries = self._tries or Tries(what, ASK_AGAIN)
        self._tries.failed(error)
        self.error = error

    def ended(self) -> None:
        """The tiers have answered."""
        if self._tries is not None:
            self._tries.succeeded()
            self._tries = self.error = None

    @property
    def is_due(self) -> bool:
        """Whether to ask: the tiers answer, or the pause after the last failure is over."""
        return self._tries is None or self._tries.next_s <= time.monotonic()

    def wait(self, until_s: float) -> bool:
        """Until it is due; False if that is after `until_s` (monotonic), when it returns."""
        due_s = 0.0 if self._tries is None else self._tries.next_s
        time.sleep(max(0.0, min(due_s, until_s) - time.monotonic()))
        return due_s <= until_s


class Polling(Generic[Found]):
    """A consumer of either kind: `_look` until there is something, through outages.

    Attributes:
        _tracer: None: nothing is traced.
        _is_closed: and nothing is to be read any more.
    """

    def __init__(self) -> None:
        self._outage = Outage()
        self._guard = CallGuard()
        self._tracer = tracer()
        self._is_closed = False

    def _await(self, until_s: float) -> Found | None:
        """The first thing found; None when the time (monotonic) is over, or the consumer closes.

        While a tier does not answer, it is asked again until then.

        Raises:
            LakelogError: of `_look`, if asking again is of no use.
        """
        while not self._guard.is_closing:
            if not self._outage.is_due:
                found = self._ready()
                if found is not None or not self._outage.wait(until_s):
                    return found
            self._begin()
            try:
                found, away = self._look(until_s), self._away()
            except LakelogError as error:
                if self._is_own(error):
                    raise
                found, away = None, error
            if away is None:
                self._outage.ended()
            else:  # what other stores hold is given meanwhile
                self._outage.began(away, self._what())
                found = self._ready() if found is None else found
            if found is not None or time.monotonic() >= until_s:
                return found
        return None

    def _look(self, until_s: float) -> Found | None:
        """Looks once; None, too, when there is something to do before the time is over."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Before each look: what this raises is no outage."""

    def _what(self) -> str:
        """What it does, for the log: "reading orders"."""
        raise NotImplementedError

    def _ready(self) -> Found | None:
        """What is there without asking a tier that is away."""
        return None

    def _away(self) -> LakelogError | None:
        """Why some of what is read cannot go on for now."""
        return None

    def _is_own(self, error: LakelogError) -> bool:
        """Whether it comes from what the caller gave, such as a listener, and is no outage."""
        return False
