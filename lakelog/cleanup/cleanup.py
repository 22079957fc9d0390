"""One cleanup run over one topic: retain, compact, optimize, vacuum.

Each step plans on the newest snapshot and ends in commits. A commit that somebody overtook fails,
and the step plans again. So archivers, readers and other cleanups may run at the same time,
and no one holds a lease. Redis is not asked for anything: what the new log starts mean for the hot
tier follows separately.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..base import metrics as m
from ..base.clock import Clock, SystemClock
from ..base.failpoints import failpoint
from ..cold.answers import Vacuumed
from ..cold.catalogue import Untold
from ..cold.change import Rewrite
from ..cold.table import Applied, ColdSnapshot, ColdTable
from ..engines.engine import Choices
from ..errors import (
    ColdTierError,
    CommitConflictError,
    ContradictionError,
    CorruptRecordError,
    ForeignTableError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
    PartlyFailedError,
)
from ..values.arguments import some_of
from ..values.offsets import HotSegments
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from . import STEPS
from .compaction import PartitionCompacted, compact, partition_of
from .optimize import optimize_change, plan_optimize, rounds, size_bytes
from .plan import CleanupPlan, cleanables, plan_cleanup
from .report import CleanupReport, Failure, LeftToCatalog, PartitionOptimized, figures_of
from .retention import PartitionRetention, plan_retention, retention_change

logger = logging.getLogger(__name__)

#: Plans in a row that others may overtake. Each time, the other process got something done, so this
#: many in a row mean that something rewrites the same files all the time.
ATTEMPTS = 10


class Cleanup:
    """Cleans up one topic's cold tier. Any number may run at once, beside anything else.

    A crash anywhere leaves the table as before or as after a step's commit; the next run goes on
    from there and removes what was left.

    Args:
        topic: a tiered one.
        clock: ages are counted from its time.
        hot: the partitions as the hot tier has them, asked at each plan. Only with it can the
            newest segment expire (nothing else says that all of it is archived), and only with it
            does ``retention.bytes`` count what is not archived.
        current_topic: looks the topic up again, at each plan; a commit that a policy asks for is
            refused once the settings have changed. Default: the table's properties tell.
        check_own: refuses if another table is the topic's; asked before anything is planned.
    """

    def __init__(
        self,
        topic: Topic,
        table: ColdTable,
        clock: Clock | None = None,
        *,
        hot: Callable[[], Mapping[int, HotSegments]] | None = None,
        current_topic: Callable[[], Topic] | None = None,
        check_own: Callable[[], None] = lambda: None,
    ) -> None:
        self._subject = _Subject(topic, table, clock or SystemClock(), hot, current_topic)
        self._check_own = check_own

    @property
    def topic(self) -> Topic:
        """The topic as last looked up."""
        return self._subject.topic

    def plan(self, settings: Mapping[str, object | None] | None = None) -> CleanupPlan:
        """What a run would do now.

        Args:
            settings: plan as if they were changed to these; None means a setting's default.

        Raises:
            InvalidConfigError: the settings are not legal.
        """
        self._check_own()
        subject = self._subject
        current = subject.reload_topic()
        hot, cold = subject.hot_and_snapshot()
        topic = replace(current, config=current.config.replace(settings or {}))
        planned = plan_cleanup(topic, cold, subject.clock.now_ms(), hot)
        return replace(planned, vacuum=subject.table.vacuum(dry_run=True))

    def run(self, steps: Sequence[str] = STEPS) -> CleanupReport:
        """Does the steps, in their fixed order. Running it again does nothing more.

        What fails (a damaged file, a store that is away for a step) is among the report's failures
        and the rest goes on.

        Args:
            steps: some of `STEPS`.

        Raises:
            InvalidArgumentError: not a step.
            ContradictionError, ForeignTableError: the table must not be touched.
            ArchivedElsewhereError: another one is the topic's, and may be away.
        """
        steps = some_of("a step of cleanup", steps, STEPS)
        started_s = time.monotonic()
        self._check_own()
        self._subject.reload_topic()
        run = _Run(self._subject)
        choices = Choices()
        with choices.watched():
            run.do("mirror")
            for step in STEPS:
                if step in steps:
                    run.do(step)
        report = replace(run.report(time.monotonic() - started_s), engines=choices.made)
        _count(report)
        return report


class Removal(Struct, frozen=True):
    """What goes of a topic that is not cleaned up: it is deleted, or archived no more."""

    topic: Topic
    run: Callable[[Topic], CleanupReport | None]  # None: there is nothing that could go
    step: str = "purge"


def vacuumed(topic: Topic, table: ColdTable) -> CleanupReport:
    """Deletes what is left of the files of a topic that is archived no more."""
    found = table.vacuum()
    removed = len(table.remove_orphans().old)
    return CleanupReport(topic.name, vacuumed=found, orphans_removed=removed)


def clean_all(
    cleanups: Iterable[Cleanup],
    steps: Sequence[str] = STEPS,
    after: Callable[[Topic, CleanupReport], Mapping[int, OffsetRange]] | None = None,
    broken: Iterable[Untold] = (),
    removals: Iterable[Removal] = (),
    tell: Callable[[Topic, CleanupReport], None] = lambda topic, report: None,
) -> list[CleanupReport]:
    """Runs the cleanups one after the other, and returns a report for each.

    Args:
        after: trims the hot tier by what the cold tier dropped; returns the records that went
            there, by partition.
        broken: tables whose topic could not be told; they count as failures in any case.
        removals: what else goes, with ``vacuum``.
        tell: called with what came of each cleanup.

    Raises:
        PartlyFailedError: something failed; the rest was done, and its reports are in the error.
    """
    reports = [
        CleanupReport(str(error.path), failures=(Failure("open", None, error),)) for error in broken
    ]
    for cleanup in cleanups:
        topic = cleanup.topic
        try:
            report = cleanup.run(steps)
            if after is not None:
                report = replace(report, trimmed=after(topic, report))
        except InvalidArgumentError:
            raise
        except LakelogError as error:
            report = CleanupReport(topic.name, failures=(Failure("cleanup", None, error),))
            _count(report)
        tell(cleanup.topic, report)
        reports.append(report)
    for removal in removals if "vacuum" in steps else ():
        try:
            removed = removal.run(removal.topic)
        except LakelogError as error:
            failure = Failure(removal.step, None, error)
            removed = CleanupReport(removal.topic.name, failures=(failure,))
        if removed is not None:
            reports.append(removed)
    failures = [failure for report in reports for failure in report.failures]
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise PartlyFailedError(
            f"cleanup did what it could, but {failures[0]}{more}",
            reports=reports,
            failures=failures,
        )
    return reports


def _count(report: CleanupReport) -> None:
    figures = figures_of(report)
    for metric, amount in figures.more.items():
        m.COUNTS.add(metric, amount, report.topic)
    for metric, value in figures.now.items():
        m.COUNTS.set(metric, value, report.topic)
    m.COUNTS.observe(m.CLEANER_SECONDS, figures.seconds)


class _Subject(Struct, eq=False):
    """The topic and the table that are cleaned up, looked up for each plan; see `Cleanup`."""

    topic: Topic  # as last looked up
    table: ColdTable
    clock: Clock
    hot: Callable[[], Mapping[int, HotSegments]] | None
    current_topic: Callable[[], Topic] | None

    def reload_topic(self) -> Topic:
        """Take up changed settings."""
        if self.current_topic is not None:
            self.topic = self.current_topic()
        elif self.table.snapshot().config_version > self.topic.config_version:
            self.topic = self.table.mirrored() or self.topic
        return self.topic

    def hot_and_snapshot(self) -> tuple[Mapping[int, HotSegments] | None, ColdSnapshot]:
        """Hot first: the snapshot after it holds all that it says is archived."""
        hot = None if self.hot is None else self.hot()
        return hot, self.table.snapshot()


class _Run(Struct, eq=False):
    """The steps of one run and what came of them."""

    subject: _Subject
    retained: list[PartitionRetention] = field(default_factory=list)
    compacted: list[PartitionCompacted] = field(default_factory=list)
    optimized: list[PartitionOptimized] = field(default_factory=list)
    vacuumed: Vacuumed | None = None
    orphans_removed: int = 0
    warnings: dict[str, None] = field(default_factory=dict)  # in order, each once
    failures: list[Failure] = field(default_factory=list)
    left: set[str] = field(default_factory=set)  # paths of files that the catalog alone may merge

    @property
    def topic(self) -> Topic:
        return self.subject.topic

    @property
    def table(self) -> ColdTable:
        return self.subject.table

    def do(self, step: str) -> None:
        try:
            getattr(self, step)()
        except (ContradictionError, ForeignTableError):
            raise
        except (CorruptRecordError, ColdTierError) as error:
            # The steps after it go on: on a full disk it is vacuum that makes room.
            self._failed(step, None, error)

    def report(self, seconds: float) -> CleanupReport:
        return CleanupReport(
            self.topic.name,
            tuple(self.retained),
            tuple(self.compacted),
            tuple(self.optimized),
            self.vacuumed,
            self.orphans_removed,
            tuple(self.warnings),
            tuple(self.failures),
            seconds=seconds,
            left=tuple(self._left()),
        )

    # -- the steps ---------------------------------------------------------------------------------

    def mirror(self) -> None:
        """Write the topic's settings into the table."""
        self.table.mirror(self.topic)

    def retain(self) -> None:
        """Drop whole segments by Kafka's three passes; new log start and removals in one commit."""
        for _ in self._attempts("retain"):
            self.subject.reload_topic()
            hot, cold = self.subject.hot_and_snapshot()
            plans = plan_retention(self.topic, cold, self.subject.clock.now_ms(), hot)
            for plan in plans:
                self.warnings.update(dict.fromkeys(plan.warnings))
            dropping = [plan for plan in plans if plan.dropped]
            if not dropping:
                return
            failpoint("cleanup.after_plan")
            change = retention_change(dropping)
            change = replace(change, config_version=self.topic.config_version)
            applied = self.table.apply(change, cold)
            self.retained += [
                plan
                for plan in dropping
                if plan.topic_partition.partition not in applied.superseded
            ]
            if not applied.superseded:
                return

    def compact(self) -> None:
        """Clean the partitions whose dirty part is worth it."""
        failed: set[int] = set()
        cleaned: set[int] = set()
        for _ in self._attempts("compact"):
            self.subject.reload_topic()
            cold = self.table.snapshot()
            now_ms = self.subject.clock.now_ms()
            chosen = [
                one
                for one in cleanables(self.topic, cold, now_ms)
                if one.eligible and one.topic_partition.partition not in failed | cleaned
            ]
            if not chosen:
                return
            failpoint("cleanup.after_plan")
            done = compact(self.topic, self.table, cold, chosen, now_ms)
            self.compacted += done.done
            for one in done.done:
                self.warnings.update(dict.fromkeys(one.warnings))
            cleaned |= {one.topic_partition.partition for one in done.done}
            overtaken = bool(done.superseded)
            for number, error in done.failed.items():
                if self._still_there(error, number, cold):
                    failed.add(number)
                    self._failed("compact", self.topic.partition(number), error)
                else:
                    overtaken = True
            if not overtaken:
                return

    def optimize(self) -> None:
        """Merge the files of segments."""
        failed: set[int] = set()
        for _ in self._attempts("optimize"):
            cold = self.table.snapshot()
            rewrites = [
                rewrite
                for rewrite in plan_optimize(self.topic, cold)
                if rewrite.topic_partition.partition not in failed
            ]
            if not rewrites:
                return
            failpoint("cleanup.after_plan")
            overtaken = False
            for together in rounds(rewrites):
                together = [r for r in together if r.topic_partition.partition not in failed]
                started_s = time.monotonic()
                try:
                    applied = self.table.apply(optimize_change(together), cold)
                except (CorruptRecordError, MissingFileError) as error:
                    number = partition_of(error)
                    if number is None:
                        raise
                    overtaken = True
                    if self._still_there(error, number, cold):
                        failed.add(number)
                        self._failed("optimize", self.topic.partition(number), error)
                    continue
                overtaken |= bool(applied.superseded)
                self._optimized(together, applied, time.monotonic() - started_s)
            if not overtaken:
                return

    def vacuum(self) -> None:
        """Delete files that no reader should need any more, and what failed runs left."""
        failpoint("cleanup.before_vacuum")
        self.vacuumed = self.table.vacuum()
        self.orphans_removed += len(self.table.remove_orphans().old)

    # -- how ---------------------------------------------------------------------------------------

    def _attempts(self, step: str) -> Iterator[int]:
        yield from range(ATTEMPTS)
        raise CommitConflictError(
            f"{step} of topic {self.topic.name!r} was overtaken {ATTEMPTS} times: something else "
            "rewrites the same files all the time. What was committed stays; run it again later",
            topic=self.topic.name,
        )

    def _still_there(self, error: LakelogError, partition: int, cold: ColdSnapshot) -> bool:
        """Whether the table still names the file that could not be read.

        If not, it was rewritten and vacuumed meanwhile: the next plan will not name it.
        """
        path = str(error.fields.get("path", ""))
        now = self.table.snapshot(cold)
        return any(path.endswith(file.path) for file in now.files.of_partition(partition))

    def _failed(
        self, step: str, topic_partition: TopicPartition | None, error: LakelogError
    ) -> None:
        self.failures.append(Failure(step, topic_partition, error))
        logger.error("%s of %s failed: %s", step, topic_partition or self.topic.name, error)

    def _left(self) -> Iterator[LeftToCatalog]:
        if self.left:
            yield LeftToCatalog("optimize", len(self.left))
        if self.vacuumed is not None and self.vacuumed.left_files is not None:
            yield LeftToCatalog("vacuum", self.vacuumed.left_files)

    def _optimized(self, rewrites: Sequence[Rewrite], applied: Applied, seconds: float) -> None:
        left = {file.path for file in applied.left}
        self.left |= left
        rewrites = [one for one in rewrites if one.files[0].path not in left]
        for number in sorted({one.topic_partition.partition for one in rewrites}):
            if number in applied.superseded:
                continue
            mine = [one for one in rewrites if one.topic_partition.partition == number]
            written = [file for file in applied.files if file.partition == number]
            self.optimized.append(
                PartitionOptimized(
                    mine[0].topic_partition,
                    len(mine),
                    sum(len(one.files) for one in mine),
                    len(written),
                    sum(file.records for file in written),
                    sum(map(size_bytes, mine)),
                    sum(file.size_bytes for file in written),
                    seconds,
                )
            )
