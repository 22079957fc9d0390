"""One run of a job: its work, once, and its rows in the status table."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import pyarrow as pa

from ..archive.report import NOT_ARCHIVED, ArchiveReport, Trouble
from ..base.back_off import ASK_AGAIN, patiently
from ..base.failpoints import failpoint
from ..cleanup import STEPS
from ..errors import (
    ArchiveUnfinishedError,
    InvalidArgumentError,
    PartlyFailedError,
)
from ..lakelog import Lakelog
from ..operate.group_lag import GroupLag
from ..operate.status import Status
from ..operate.who import who
from .looks import JobResult
from .partition_rows import PartitionRows
from .run_record import ROWS_INTERVAL_S, STOP_TIMEOUT_S, GroupRows, RunRecord, in_time, nothing_told
from .status_rows import (
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    Report,
    RunKey,
    RunOf,
    effects_of,
    of_partitions,
    status_rows,
    troubles_of,
    unnamed_id,
)
from .status_table import StatusTable, open_status_table

logger = logging.getLogger(__name__)

#: How long recording a look may take while archiving goes on. The look itself has a limit for each
#: table, since the calls of a topic that hangs hold its own.
CALL_TIMEOUT_S = 120.0

#: How long a topic may make no progress before a continuous run fails: long enough for an outage
#: that others mend, short enough that Redis has room for what waits.
MAX_STALL_HOURS = 1.0


class JobRun:
    """A run of a job over some topics, known by its id.

    A run that ended well is never done again: asking for it returns its result. A run that failed
    or was cut off is done again, since doing its work twice leaves no trace. Without a run id every
    call is a run of its own; its result stays the same as long as nothing changes.

    Args:
        log: the log it works on.
        job: the job's name.
        run_id: the id that repairs and retries of a run share; "" for none.
        topics: those whose partitions get rows; None for all.
        steps: the steps of cleanup that are done. A run with other topics or steps is another run,
            even under the same id, which the tasks of one job run share.
        table: where the rows go; default: the status table of the log's cold root.
        rows_interval_s: how often a run that goes on writes rows.
        what: what is run, in words, for the list of runs; default: the job and its topics.
    """

    def __init__(
        self,
        log: Lakelog,
        job: str,
        run_id: str = "",
        *,
        topics: Sequence[str] | None = None,
        steps: Sequence[str] = STEPS,
        table: StatusTable | None = None,
        rows_interval_s: float = ROWS_INTERVAL_S,
        what: str | None = None,
    ) -> None:
        self._log = log
        self._topics = topics
        self._table = table or open_status_table(log.place.cold, log.place.naming_status)
        self._rows_interval_s = rows_interval_s
        self._group_rows, self._partition_rows = GroupRows(), PartitionRows()
        self._is_repeatable = bool(run_id)
        parts = ["" if set(steps) == set(STEPS) else "+".join(steps), ",".join(topics or ())]
        name = "/".join(filter(None, [run_id or unnamed_id(), *parts]))
        self.key = RunKey(job, name)
        said = [job, *parts[1].split(","), *(f"--step {one}" for one in parts[0].split("+") if one)]
        self._run = RunOf(who(), what or " ".join(filter(None, said)))

    def once(self, work: Callable[[], Iterable[Report] | None]) -> JobResult:
        """Does the work and writes the run's rows, unless the run was done before.

        Args:
            work: safe to repeat; returns the reports of what it did, if any.

        Returns:
            The job's result: where each partition stood when the run ended.

        Raises:
            Exception: the work's, or that of a topic whose state cannot be told, after rows that
                say so; or the rows could not be written.
        """
        return self._unless_done(lambda started_s: list(work() or ()))

    def continuously(
        self,
        max_hours: float,
        *,
        max_stall_hours: float = MAX_STALL_HOURS,
        stop: threading.Event | None = None,
    ) -> JobResult:
        """Archives by the topics' flush policies for `max_hours`, then what is left, and ends.

        Rows are written every `ROWS_INTERVAL_S`, even while nothing can be archived, so that a
        growing lag is seen; and at the end. What fails is tried again, and a row says so.

        Args:
            max_hours: > 0.
            max_stall_hours: the run fails if a topic, or Redis, makes no progress for this long;
                0: never.
            stop: set it to end the run earlier, in the same way.

        Returns: see `once`.

        Raises:
            ArchiveUnfinishedError: a topic made no progress for too long; the others were archived.
            Exception: see `once`.
        """
        log = self._log
        if log.redis is None:
            raise InvalidArgumentError("archiving needs Redis, and this is a cold root alone")
        if max_hours <= 0:
            raise InvalidArgumentError(
                f"max_hours={max_hours}: a continuous run lasts longer than that; to archive once, "
                "use once()"
            )
        stop = stop or threading.Event()

        def work(started_s: float) -> list[Report]:
            archive = log.archive_continuously(
                self._topics, stop=stop, max_duration=timedelta(hours=max_hours)
            )
            stalls = _Stalls(archive.troubles, max_stall_hours)
            untold: list[Report] = []
            reports = _InBackground(archive)
            try:
                while not reports.wait(self._rows_interval_s):
                    untold += reports.taken()
                    if self._tell(untold, started_s, troubles=archive.troubles()):
                        untold = []
                    if stalls.found():
                        stop.set()
            except BaseException:  # a cancelled cell: end what it began in order
                stop.set()
                reports.wait(None)
                raise
            try:
                untold += reports.result()
            except ArchiveUnfinishedError as unfinished:
                # It did not stall for too long yet: the next run goes on with it.
                untold += reports.taken()
                logger.warning("%s", unfinished)
                self._tell((), started_s, troubles=unfinished.troubles)
            stalls.check()
            return untold

        def stand() -> Status:
            # A run whose time is over does not fail only because Redis is away just then.
            patience_s = 0.0 if stop.is_set() else 3600 * (max_stall_hours or max_hours)
            found = patiently(
                "looking at where things stand", self._status, ASK_AGAIN.within(patience_s)
            )
            for failure in found.failures:  # what it archived is archived
                logger.warning("the state of %s cannot be told: %s", failure.topic, failure.error)
            return found

        return self._unless_done(work, stand)

    def rows(self) -> pa.Table:
        """The run's rows so far but for those of groups, oldest first, as `STATUS`."""
        return of_partitions(self._table.rows_of(self.key))

    def __repr__(self) -> str:
        return f"JobRun({self.key.job!r}, {self.key.run_id!r}, {self._log})"

    # -- how -----------------------------------------------------------------------------------

    def _unless_done(
        self,
        work: Callable[[float], list[Report]],
        stand_after: Callable[[], Status] | None = None,
    ) -> JobResult:
        if self._is_repeatable:
            rows = self._table.done_rows(self.key)
            if rows.num_rows:
                logger.info("run %s of %s was done before", self.key.run_id, self.key.job)
                return JobResult.of(self.key.job, rows)
        started_s = time.monotonic()
        # A continuous run writes rows of partitions while it goes on.
        interval_s = self._rows_interval_s if stand_after is None else 0.0
        record = RunRecord(lambda: self._table, self.key, self._run, interval_s=interval_s)
        with record:
            if self._is_repeatable:  # a repeat must know that there was this try, however short
                record.write(record.rows(RUNNING, duration_s=0.0))
            try:
                reports = work(started_s)
                status = (stand_after or self._checked_status)()
            except Exception as error:  # the rows must show Spark's errors, too
                self._tell_failure(error, started_s)
                raise
            except KeyboardInterrupt:
                record.end(STOPPED, timeout_s=STOP_TIMEOUT_S)
                raise
        failpoint("jobs.before_rows")
        troubles = troubles_of(reports, self._log.group_troubles())
        rows = self._rows(status, reports, troubles, started_s, DONE)
        rows = self._table.append(rows, self.key if self._is_repeatable else None)
        return JobResult.of(self.key.job, rows)

    def _checked_status(self) -> Status:
        found = self._status()
        found.check()
        return found

    def _status(self) -> Status:
        return self._log.status(self._topics)

    def _rows(
        self,
        status: Status,
        reports: Iterable[Report],
        troubles: Sequence[Trouble],
        started_s: float,
        result: str,
        error: str | None = None,
    ) -> pa.Table:
        groups: list[GroupLag] = []
        effects = effects_of(reports)
        if result == RUNNING:
            odd = [one.topic for one in troubles if one.topic]
            status = self._partition_rows.choose(status, effects, odd)
        if status.servers:
            groups = self._group_rows.look(self._log, self._topics)
        return status_rows(
            self.key,
            status,
            effects,
            time.monotonic() - started_s,
            done=result == DONE,
            error=error,
            troubles=troubles,
            groups=groups,
            run=self._run,
            result=result,
        )

    def _tell(
        self,
        reports: Sequence[Report],
        started_s: float,
        error: str | None = None,
        troubles: Sequence[Trouble] = (),
    ) -> bool:
        """Writes rows of a run that goes on, or failed; whether all could be written.

        Args:
            troubles: those of now, of a run that goes on; else the reports have them.
        """
        is_whole = True
        try:
            status = self._status()
        except Exception as failure:  # archiving goes on, whatever cannot be told
            if error is None:
                logger.warning("where things stand cannot be told now: %s", failure)
                is_whole = False
            status = nothing_told()
        try:
            done = reports if is_whole else ()
            troubles = troubles or troubles_of(reports, self._log.group_troubles())
            result = RUNNING if error is None else FAILED
            rows = self._rows(status, done, troubles, started_s, result, error)
            in_time(lambda: self._table.append(rows), CALL_TIMEOUT_S, "writing the run's rows")
            self._group_rows.confirm()
            self._partition_rows.confirm()
        except Exception as failure:
            logger.warning("where things stand was not written down: %s", failure)
            return False
        return is_whole

    def _tell_failure(self, error: Exception, started_s: float) -> None:
        # What could be done was done, and is reported.
        reports: Sequence[Report] = ()
        if isinstance(error, PartlyFailedError):
            reports = error.reports
        self._tell(reports, started_s, f"{type(error).__name__}: {error}")


class _Stalls:
    """Topics that made no progress for too long."""

    def __init__(self, troubles: Callable[[], Sequence[Trouble]], max_hours: float) -> None:
        self._troubles = troubles
        self._max_hours = max_hours
        self._found: list[Trouble] = []

    def found(self) -> bool:
        """Whether there are any by now."""
        if self._max_hours > 0 and not self._found:
            before_ms = time.time_ns() // 1_000_000 - int(self._max_hours * 3_600_000)
            self._found = [
                one
                for one in self._troubles()
                if one.since_ms <= before_ms and one.state == NOT_ARCHIVED
            ]
        return bool(self._found)

    def check(self) -> None:
        """Raises ArchiveUnfinishedError if there were any."""
        if not self._found:
            return
        shown = "; ".join(f"{one.topic or 'Redis'}: {one}" for one in self._found[:3])
        more = f" (and {len(self._found) - 3} more)" if len(self._found) > 3 else ""
        raise ArchiveUnfinishedError(
            f"no progress for more than max_stall_hours={self._max_hours:g}: {shown}{more}. The "
            "other topics were archived; mend that, or set a longer time",
            troubles=tuple(self._found),
        )


class _InBackground:
    """Goes through an iterator of reports in a thread of its own."""

    def __init__(self, reports_of: Iterable[ArchiveReport]) -> None:
        self._reports_of = reports_of
        self._reports: queue.SimpleQueue[ArchiveReport] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lakelog-archive", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float | None) -> bool:
        """Waits for the end; False if the time is over first."""
        return self._ended.wait(timeout_s)

    def taken(self) -> list[Report]:
        """The reports that came since the last call."""
        found: list[Report] = []
        while not self._reports.empty():
            found.append(self._reports.get())
        return found

    def result(self) -> list[Report]:
        """The rest of the reports.

        Raises:
            BaseException: the error that ended it.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.taken()

    def _run(self) -> None:
        try:
            for report in self._reports_of:
                self._reports.put(report)
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()
