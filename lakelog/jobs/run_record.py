"""What a run leaves in the status table about itself: that it goes on, and how it ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

import pyarrow as pa

from ..operate.log_figures import LogFigures
from .in_time import in_time
from .status_rows import RUNNING, RunKey, RunOf, status_rows
from .status_table import StatusTable

logger = logging.getLogger(__name__)

#: A run that left no row for three times as long counts as dead, see `runs.SILENT`.
ROWS_INTERVAL_S = 60.0

#: A run that is over sooner leaves one row instead of two.
FIRST_ROW_S = 1.0

#: How long the last row of an interrupted run may take, which holds up whoever interrupted it.
STOP_TIMEOUT_S = 0.5


class RunRecord:
    """Writes a row when a run has gone on for a second, and one a minute from then on.

    A row that cannot be written is logged, the first of several in a row: it keeps nobody from the
    work. Thread-safe.

    Args:
        look: makes the rows while the run goes on; default: one that tells of the run alone.
        written: called when rows that `look` made are in the table.
        interval_s: 0: only the first one, as the run writes rows of its own.
    """

    def __init__(
        self,
        table: Callable[[], StatusTable | None],
        key: RunKey,
        run: RunOf,
        *,
        look: Callable[[], pa.Table] | None = None,
        written: Callable[[], None] = lambda: None,
        interval_s: float = ROWS_INTERVAL_S,
    ) -> None:
        self._table = table
        self.key = key
        self.run = run
        self._look = look or (lambda: self.rows(RUNNING))
        self._written = written
        self._interval_s = interval_s
        self._began_s = time.monotonic()
        self._over = threading.Event()
        self._fails = False  # as the last row did
        self._thread = threading.Thread(target=self._go_on, name="lakelog-run", daemon=True)

    def begin(self) -> RunRecord:
        """The run begins."""
        self._began_s = time.monotonic()
        self._thread.start()
        return self

    def close(self) -> None:
        """No more rows of a run that goes on; its last ones are written by the run, or `end`."""
        self._over.set()
        self._thread.join(ROWS_INTERVAL_S)

    def __enter__(self) -> RunRecord:
        return self.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None or issubclass(kind, Exception):
            self.close()
        else:  # Ctrl-C waits for nobody
            self._over.set()

    @property
    def duration_s(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began_s

    def rows(
        self, result: str, error: str | None = None, *, duration_s: float | None = None
    ) -> pa.Table:
        """The one row that tells of the run alone.

        Args:
            duration_s: since the run began; default: until now. 0: it begins.
        """
        if duration_s is None:
            duration_s = self.duration_s
        figures = LogFigures((), None, time.time_ns() // 1_000_000)
        return status_rows(
            self.key, figures, {}, duration_s, error=error, run=self.run, result=result
        )

    def end(
        self, result: str, error: str | None = None, *, timeout_s: float = ROWS_INTERVAL_S
    ) -> None:
        """Write the last row of a run that has none of partitions."""
        self._over.set()
        self.write(self.rows(result, error), timeout_s)

    def write(self, rows: pa.Table, timeout_s: float = ROWS_INTERVAL_S) -> bool:
        """Write rows of the run; what fails is logged, and is False."""
        return self.write_in_time(lambda: rows, timeout_s)

    def write_in_time(
        self, look: Callable[[], pa.Table], timeout_s: float = ROWS_INTERVAL_S
    ) -> bool:
        """Make rows and write them, in that time; what fails is logged, and is False."""
        try:
            in_time(lambda: self._append(look()), timeout_s, "writing the rows of a run")
        except Exception as failure:
            level = logging.DEBUG if self._fails else logging.WARNING
            logger.log(level, "the run of %s is not in the list of runs: %s", self.key.job, failure)
            self._fails = True
            return False
        self._fails = False
        return True

    def _append(self, rows: pa.Table) -> None:
        table = self._table()
        if table is not None:
            table.append(rows)

    def _go_on(self) -> None:
        wait_s = FIRST_ROW_S
        while not self._over.wait(wait_s):
            if self.write_in_time(self._look):
                self._written()
            if not self._interval_s:
                return
            wait_s = self._interval_s
