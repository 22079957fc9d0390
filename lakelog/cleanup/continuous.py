"""Cleans up again and again until it is told to stop, whatever fails meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from math import inf

from ..base.back_off import BackOff, Tries
from ..engines.threads import Workers, watch
from ..errors import LakelogError, PartlyFailedError
from .report import CleanupReport

logger = logging.getLogger(__name__)

#: How long a stop waits for a round. One that is left behind loses nothing: the next run goes on.
STOP_TIMEOUT_S = 2.2

#: How soon a stop, and the end of a round, are noticed.
POLL_S = 0.02

#: Between the tries of a round that failed as a whole: Redis or the store is away.
AGAIN = BackOff(0.5, 30.0)


def clean_continuously(
    clean: Callable[[], Sequence[CleanupReport]],
    interval_ms: Callable[[], int],
    *,
    stop: threading.Event | None = None,
    max_duration: timedelta | None = None,
) -> Iterator[CleanupReport]:
    """A round at once, and one so long after each; gives the reports that have something to tell.

    An outage ends nothing: a round that fails as a whole is tried again with growing pauses.

    Args:
        clean: one round; called in a thread of its own.
        interval_ms: asked after each round.
        stop: set it to end; a round that takes longer is left behind.
        max_duration: no round begins later.

    Raises (while iterating):
        LakelogError: the first round is refused, and would be each time; or the last one failed.
        PartlyFailedError: something could not be done in the last round.
    """
    stop = stop or threading.Event()
    until_s = inf if max_duration is None else time.monotonic() + max_duration.total_seconds()
    rounds, tries = _Rounds(), Tries("cleanup", AGAIN)
    is_first = True
    while True:
        failed: LakelogError | None = None
        found = rounds.one(clean, stop)
        if found is None:
            return
        try:
            try:
                reports = found.result()
            except PartlyFailedError as error:
                reports, failed = error.reports, error
            yield from (one for one in reports if one or one.failures or one.trimmed)
            pause_s = interval_ms() / 1000
            tries.succeeded()
        except LakelogError as error:
            if is_first and not error.retriable:
                raise
            failed = error
            pause_s = tries.failed(error) or AGAIN.longest_s
        is_first = False
        next_s = time.monotonic() + pause_s
        if stop.wait(max(0.0, min(next_s, until_s) - time.monotonic())) or next_s >= until_s:
            if failed is not None:
                raise failed
            return


class _Rounds:
    """Rounds in a thread that may be left behind."""

    def __init__(self) -> None:
        self._workers = Workers("lakelog-cleanup")
        self._running: Future[Sequence[CleanupReport]] | None = None
        watch(self)

    def one(
        self, clean: Callable[[], Sequence[CleanupReport]], stop: threading.Event
    ) -> Future[Sequence[CleanupReport]] | None:
        """A round, once it is over; None if a stop did not wait for it."""
        self._running = running = self._workers.ask(clean)
        stopped_s: float | None = None
        while not running.done():
            if stop.is_set():
                stopped_s = stopped_s or time.monotonic()
                if time.monotonic() - stopped_s >= STOP_TIMEOUT_S:
                    logger.warning("a cleanup was left behind by a stop; the next run goes on")
                    return None
            time.sleep(POLL_S)
        return running

    def end(self) -> None:
        """See `threads.Crew`."""
        self._workers.end()

    def is_in_call(self) -> bool:
        """See `threads.Crew`."""
        return self._running is not None and not self._running.done()
