"""What a cleanup run did, as a value and as text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ..base import metrics as m
from ..base.text_table import counted
from ..cold.answers import PurgedTopic, Vacuumed
from ..engines.engine import Choice
from ..errors import LakelogError
from ..values.topic_partition import OffsetRange, TopicPartition
from .compaction import PartitionCompacted
from .retention import PartitionRetention


class PartitionOptimized(Struct, frozen=True):
    """One partition's share of an optimize commit."""

    topic_partition: TopicPartition
    segments: int
    files_before: int
    files_after: int
    records: int
    bytes_before: int
    bytes_after: int
    seconds: float  # from the plan to the commit, which partitions share


class LeftToCatalog(Struct, frozen=True):
    """A step that a catalog keeps to itself, and the files that it did not get to yet."""

    step: str  # optimize or vacuum
    files: int

    def __str__(self) -> str:
        if self.step == "optimize":
            what = "of newest segments are not merged until these are closed"
        else:
            what = "could be deleted"
        return f"{self.step} is left to the catalog: {counted(self.files, 'file')} {what}"


class Failure(Struct, frozen=True, eq=False):
    """Something that could not be done; the rest was."""

    step: str
    topic_partition: TopicPartition | None  # None: the whole topic
    error: LakelogError

    def __str__(self) -> str:
        where = "" if self.topic_partition is None else f"{self.topic_partition}: "
        return f"{where}{self.step} failed: {self.error}"


class CleanupReport(Struct, frozen=True, eq=False):
    """One run over one topic. False when it found nothing to do."""

    topic: str
    retained: tuple[PartitionRetention, ...] = ()  # those that dropped something
    compacted: tuple[PartitionCompacted, ...] = ()
    optimized: tuple[PartitionOptimized, ...] = ()
    vacuumed: Vacuumed | None = None  # None: that step was not asked for, or failed
    orphans_removed: int = 0  # files that a failed run had left
    warnings: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    trimmed: Mapping[int, OffsetRange] = field(default_factory=dict)  # hot records that went after
    seconds: float = 0.0
    purged: PurgedTopic | None = None  # a deleted topic that was kept no longer
    left: tuple[LeftToCatalog, ...] = ()
    engines: tuple[Choice, ...] = ()  # what files were read and written by, and why

    def __bool__(self) -> bool:
        vacuumed = self.vacuumed is not None and self.vacuumed.files
        return bool(
            self.retained
            or self.compacted
            or self.optimized
            or vacuumed
            or self.orphans_removed
            or self.purged
        )

    def __str__(self) -> str:
        lines = [
            f"{one.topic_partition}: retain: {counted(len(one.dropped), 'segment')}, "
            f"{counted(one.records, 'record')}, {one.size_bytes:,} bytes deleted; "
            f"the log starts at {one.log_start}"
            for one in self.retained
        ]
        lines += [
            f"{one.topic_partition}: compact: dirty {one.dirty_ratio_before:.0%}, "
            f"{counted(one.records_read, 'record')} → {one.records_kept:,}, "
            f"{one.bytes_read:,} bytes → {one.bytes_kept:,} ({one.recopy_percent:.0f} % recopied), "
            f"{counted(one.segments_before, 'segment')} → {one.segments_after:,}, "
            f"{one.seconds:.2f} s"
            for one in self.compacted
        ]
        lines += [
            f"{one.topic_partition}: optimize: {counted(one.files_before, 'file')} → "
            f"{one.files_after:,}, {one.bytes_before:,} bytes → {one.bytes_after:,}, "
            f"{one.seconds:.2f} s"
            for one in self.optimized
        ]
        if self.vacuumed is not None and self.vacuumed.files:
            size_bytes = self.vacuumed.size_bytes
            size = "" if size_bytes is None else f", {size_bytes:,} bytes"
            lines.append(f"{self.topic}: vacuum: {counted(self.vacuumed.files, 'file')}{size}")
        if self.orphans_removed:
            lines.append(
                f"{self.topic}: {counted(self.orphans_removed, 'file')} of failed runs removed"
            )
        if self.purged is not None:
            lines.append(str(self.purged))
        if not lines and not self.failures:
            lines.append(f"{self.topic}: nothing to clean up")
        lines += [
            f"{self.topic}-{partition}: [{gone.start}, {gone.end}) is no longer kept in Redis"
            for partition, gone in sorted(self.trimmed.items())
        ]
        lines += [f"{self.topic}: {one}" for one in self.left]
        lines += [f"{self.topic}: engine {choice}" for choice in self.engines]
        return "\n".join([*lines, *self.warnings, *map(str, self.failures)])


class Figures(Struct, frozen=True):
    """Of one topic."""

    more: Mapping[m.Metric, int]  # so much more was counted
    now: Mapping[m.Metric, float]  # how it is since
    seconds: float


def figures_of(report: CleanupReport) -> Figures:
    """The figures of one run."""
    failed = {failure.topic_partition for failure in report.failures}
    now: dict[m.Metric, float] = {m.CLEANER_FAILED: len(failed)}
    if report.compacted:
        read = sum(one.bytes_read for one in report.compacted)
        kept = sum(one.bytes_kept for one in report.compacted)
        now[m.RECOPY_RATIO] = kept / read if read else 0.0
        now[m.MAX_CLEAN_SECONDS] = max(one.seconds for one in report.compacted)
    more = {m.CLEANER_RUNS: 1, m.CLEANER_FAILURES: len(report.failures)}
    return Figures(more, now, report.seconds)
