"""What those get who ask again and again: an answer in time, whatever the log does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from ...base.metrics import of_log as m
from ...base.metrics.counts import COUNTS
from ...base.metrics.metric import Measured
from ...engines.threads import Workers

#: How long an answer may take: Prometheus gives up after 10 s.
WITHIN_S = 8.0

#: Of these, how long tables are waited for; what comes later is in the next answer.
COLD_WITHIN_S = 5.0

#: Who asks so soon after another gets the same answer.
LASTS_S = 2.0


class Scrapes:
    """Looks at a log for whoever asks, in a thread that may hang; one look at a time. Thread-safe.

    Args:
        look: gives what there is to measure; told how long to wait for tables.
        tell: called with what a look failed with, when that changes; with "" when it went well
            again.
        within_s, lasts_s: see `WITHIN_S` and `LASTS_S`.
    """

    def __init__(
        self,
        look: Callable[[float], list[Measured]],
        tell: Callable[[str], None] = lambda error: None,
        *,
        within_s: float = WITHIN_S,
        lasts_s: float = LASTS_S,
    ) -> None:
        self._look = look
        self._tell = tell
        self._within_s = within_s
        self._lasts_s = lasts_s
        self._workers = Workers("lakelog-scrape")
        self._lock = threading.Lock()
        self._under_way: Future[list[Measured]] | None = None
        self._began_s = 0.0
        self._error = ""

    def measured(self) -> list[Measured]:
        """What there is to measure, and what this process has counted. Raises nothing of a log's.

        If the log cannot be looked at in time, ``lakelog_up`` is 0.
        """
        with self._lock:
            asked = self._under_way
            is_old = time.monotonic() - self._began_s >= self._lasts_s
            if asked is None or (asked.done() and is_old):
                self._began_s = time.monotonic()
                asked = self._under_way = self._workers.ask(self._look_once)
        try:
            found = asked.result(self._within_s)
            self._say("")
        except FutureTimeoutError:
            found = self._down("TimeoutError", f"no answer within {self._within_s:g} s")
        except Exception as error:
            found = self._down(type(error).__name__, str(error))
        return COUNTS.beside(found)

    def _look_once(self) -> list[Measured]:
        return self._look(min(COLD_WITHIN_S, self._within_s / 2))

    def _down(self, kind: str, why: str) -> list[Measured]:
        self._say(f"{kind}: {why}")
        return [Measured(m.UP, [((), 0)]), Measured(m.LAST_ERROR, [((kind,), 1)])]

    def _say(self, error: str) -> None:
        with self._lock:
            before, self._error = self._error, error
        if before != error:
            self._tell(error)
