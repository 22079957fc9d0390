"""What a cleanup run would do to each partition, and why; decided without reading any data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..base.text_table import counted
from ..cold.answers import Vacuumed
from ..cold.change import Rewrite
from ..cold.registers import LogStart
from ..cold.segment import Segment
from ..cold.table import ColdSnapshot
from ..values.config import INT64_MAX, TopicConfig
from ..values.offsets import HotSegments
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .optimize import plan_optimize, size_bytes
from .retention import RETENTION_BYTES, RETENTION_MS, PartitionRetention, plan_retention

logger = logging.getLogger(__name__)


class Planned(Struct, frozen=True):
    """One thing that would be done to one partition, or to the whole topic."""

    topic_partition: TopicPartition | None  # None: the whole topic
    step: str  # retain, compact, optimize, vacuum or purge
    action: str  # what becomes of them: "delete", "clean", "merge", "sort"; "keep"
    segments: int | None
    files: int
    records: int | None
    size_bytes: int | None  # None: the platform does not say
    why: str

    def __str__(self) -> str:
        where = "" if self.topic_partition is None else f"{self.topic_partition}: "
        what = counted(self.files, "file")
        if self.segments is not None:
            what = f"{counted(self.segments, 'segment')} in {what}"
            if self.records is not None:
                what += f", {counted(self.records, 'record')}"
        if self.size_bytes is not None:
            what = f"{what}, {self.size_bytes:,} bytes"
        return f"{where}{self.step}: {self.action} {what}: {self.why}"


class CleanupPlan(Struct, frozen=True, eq=False):
    """What a run would do to one topic, as of one snapshot."""

    topic: str
    retention: tuple[PartitionRetention, ...]
    compaction: tuple[Cleanable, ...]
    optimize: tuple[Rewrite, ...]
    limits: Mapping[str, int]  # retention.bytes and retention.ms as they were
    vacuum: Vacuumed | None = None  # what it would delete now; None: the table was not asked
    purge: Planned | None = None  # of a deleted topic that is kept no longer

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(warning for one in self.retention for warning in one.warnings)

    @property
    def steps(self) -> tuple[Planned, ...]:
        """What would be done, by partition, and why a compacted partition or a vacuum is not."""
        found = [*self._retention(), *self._compaction(), *self._optimize()]
        found.sort(key=lambda one: one.topic_partition.partition if one.topic_partition else -1)
        return (*found, *self._vacuum(), *filter(None, [self.purge]))

    def __bool__(self) -> bool:
        return any(one.action != "keep" for one in self.steps)

    def __str__(self) -> str:
        lines = list(map(str, self.steps))
        return "\n".join([*(lines or [f"{self.topic}: nothing to clean up"]), *self.warnings])

    def _retention(self) -> Iterator[Planned]:
        for one in self.retention:
            by_reason: dict[str, list[int]] = {}
            for at, dropped in enumerate(one.dropped):
                by_reason.setdefault(dropped.reason, []).append(at)
            for reason, places in by_reason.items():
                segments = [one.dropped[at].segment for at in places]
                yield Planned(
                    one.topic_partition,
                    "retain",
                    "delete",
                    len(segments),
                    sum(len(segment.files) for segment in segments),
                    sum(segment.records for segment in segments),
                    sum(segment.size_bytes for segment in segments),
                    self._why(one, reason),
                )

    def _why(self, one: PartitionRetention, reason: str) -> str:
        if reason not in self.limits:
            return reason
        why = f"{reason}={self.limits[reason]}"
        if reason == RETENTION_BYTES and one.hot_only_bytes:
            why = f"{why}, counting {one.hot_only_bytes:,} bytes that only Redis holds"
        return why

    def _vacuum(self) -> Iterator[Planned]:
        if self.vacuum is not None and self.vacuum.left_files is not None:
            why = "the catalog keeps VACUUM to itself"
            yield Planned(None, "vacuum", "keep", None, self.vacuum.left_files, None, None, why)
        if self.vacuum is not None and self.vacuum.files:
            yield Planned(
                None,
                "vacuum",
                "delete",
                None,
                self.vacuum.files,
                None,
                self.vacuum.size_bytes,
                f"removed more than {self.vacuum.retention_ms} ms ago (file.delete.delay.ms)",
            )

    def _compaction(self) -> Iterator[Planned]:
        for one in self.compaction:
            segments = (*one.clean, *one.dirty)
            yield Planned(
                one.topic_partition,
                "compact",
                "clean" if one.eligible else "keep",
                len(segments),
                sum(len(segment.files) for segment in segments),
                sum(segment.records for segment in segments),
                sum(segment.size_bytes for segment in segments),
                one.why,
            )

    def _optimize(self) -> Iterator[Planned]:
        by_partition: dict[TopicPartition, list[Rewrite]] = {}
        for rewrite in self.optimize:
            by_partition.setdefault(rewrite.topic_partition, []).append(rewrite)
        for topic_partition, rewrites in by_partition.items():
            several = any(len(rewrite.files) > 1 for rewrite in rewrites)
            yield Planned(
                topic_partition,
                "optimize",
                "merge" if several else "sort",
                len(rewrites),
                sum(len(rewrite.files) for rewrite in rewrites),
                sum(file.records for rewrite in rewrites for file in rewrite.files),
                sum(map(size_bytes, rewrites)),
                "a segment that lies in several files becomes one"
                if several
                else "somebody else wrote the file, maybe not sorted by offset",
            )


def plan_cleanup(
    topic: Topic,
    cold: ColdSnapshot,
    now_ms: int,
    hot: Mapping[int, HotSegments] | None = None,
) -> CleanupPlan:
    """What cleanup would do as things are. Pure; pass a topic with other settings to ask "what if".

    Compaction and optimize are planned without what retention would delete. Only a run finds out
    which records compaction would drop, and so which files there would be to merge.
    """
    retention = plan_retention(topic, cold, now_ms, hot)
    rest = _without(cold, retention)
    return CleanupPlan(
        topic.name,
        tuple(retention),
        tuple(cleanables(topic, rest, now_ms)) if topic.config.compacted else (),
        tuple(plan_optimize(topic, rest)),
        {name: topic.config[name] for name in (RETENTION_BYTES, RETENTION_MS)},
    )


def plan_purge(deleted: Topic, cold: ColdSnapshot) -> CleanupPlan:
    """What cleanup would do to a deleted topic that is kept no longer. Pure.

    Args:
        cold: of its table; one without files if it is untiered.
    """
    partitions = cold.files.partitions
    files = [file for number in partitions for file in cold.files.of_partition(number)]
    planned = Planned(
        None,
        "purge",
        "delete",
        None,
        len(files),
        sum(file.records for file in files),
        sum(file.size_bytes for file in files),
        f"deleted longer than {deleted.config['file.delete.delay.ms']} ms ago "
        f"(file.delete.delay.ms); id {deleted.topic_id}",
    )
    return CleanupPlan(deleted.name, (), (), (), {}, purge=planned)


def _without(cold: ColdSnapshot, retention: Iterable[PartitionRetention]) -> ColdSnapshot:
    """The snapshot as it would be after retention."""
    paths = {file.path for plan in retention for file in plan.removes}
    registers = dict(cold.registers)
    for plan in retention:
        registers[LogStart(plan.topic_partition.partition)] = plan.log_start
    return replace(cold, files=cold.files.without(paths), registers=registers)


def cleanables(topic: Topic, cold: ColdSnapshot, now_ms: int) -> list[Cleanable]:
    """What compaction could clean, for every partition with files."""
    return [cleanable(topic, cold, partition, now_ms) for partition in cold.files.partitions]


# -- compaction --------------------------------------------------------------------------------

# Source: Kafka ``LogCleanerManager`` and ``LogToClean``: clean, cleanable and uncleanable segments,
# the ratio of the first two in bytes, and the two lags.


class Cleanable(Struct, frozen=True):
    """One partition as compaction sees it. Segments above `first_uncleanable` are not in it."""

    topic_partition: TopicPartition
    first_dirty: int  # offset: below it, no key occurs twice
    first_uncleanable: int  # offset
    clean: tuple[Segment, ...]
    dirty: tuple[Segment, ...]  # [first_dirty, first_uncleanable)
    overdue_ms: int  # how far the oldest dirty record lies beyond max.compaction.lag.ms
    eligible: bool
    why: str  # why it is eligible, or not

    @property
    def clean_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.clean)

    @property
    def dirty_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.dirty)

    @property
    def dirty_ratio(self) -> float:
        """Dirty bytes of clean and dirty ones, in 0..1."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(topic: Topic, cold: ColdSnapshot, partition: int, now_ms: int) -> Cleanable:
    """What compaction could clean now. Pure.

    The newest segment may still be open and is left alone, and so is everything from the first
    dirty segment on that holds a record younger than ``min.compaction.lag.ms``. A partition is
    eligible when its dirty ratio exceeds ``min.cleanable.dirty.ratio``, or a dirty record is older
    than ``max.compaction.lag.ms``.
    """
    config = topic.config
    log_start = cold.log_start(partition)
    first_dirty = _first_dirty(topic, cold, partition)
    segments = cold.files.segments(partition)
    closed = [segment for segment in segments[:-1] if segment.end_offset > log_start]
    clean = [segment for segment in closed if segment.end_offset <= first_dirty]
    dirty: list[Segment] = []
    for segment in closed[len(clean) :]:
        if _too_young(segment, config["min.compaction.lag.ms"], now_ms):
            break
        dirty.append(segment)
    first_uncleanable = max(first_dirty, dirty[-1].end_offset if dirty else 0)
    overdue_ms = _overdue_ms(dirty, config["max.compaction.lag.ms"], now_ms)
    found = Cleanable(
        topic.partition(partition),
        first_dirty,
        first_uncleanable,
        tuple(clean),
        tuple(dirty),
        overdue_ms,
        eligible=False,
        why="",
    )
    eligible, why = _judge(config, found)
    if cold.files.stand_ins(partition):
        # It is not known which keys it holds; and after a merge, nothing would say it is missing.
        eligible, why = False, "a file was skipped: delete the records up to there"
    return Cleanable(
        found.topic_partition,
        first_dirty,
        first_uncleanable,
        found.clean,
        found.dirty,
        overdue_ms,
        eligible,
        why,
    )


def _first_dirty(topic: Topic, cold: ColdSnapshot, partition: int) -> int:
    """Where the last compaction ended; where the log starts if that cannot be, as Kafka resets it.

    Source: Kafka ``LogCleanerManager.cleanableOffsets``.
    """
    cleaned_end, log_start = cold.cleaned_end(partition), cold.log_start(partition)
    end = cold.archive_start(partition)
    if cleaned_end > end:
        logger.warning(
            "%s says it is compacted up to offset %d, but is archived up to %d: all of it is "
            "compacted again, from its log start %d on",
            topic.partition(partition),
            cleaned_end,
            end,
            log_start,
        )
        return log_start
    return max(cleaned_end, log_start)


def _judge(config: TopicConfig, found: Cleanable) -> tuple[bool, str]:
    if not config.compacted:
        return False, f"cleanup.policy={config.text('cleanup.policy')} has no compact"
    if not config.cleaner_enabled:
        return False, "compaction is paused: log.cleaner.enable=false"
    if not found.dirty:
        return False, "nothing is dirty below the open segment"
    ratio, limit = found.dirty_ratio, config["min.cleanable.dirty.ratio"]
    if found.overdue_ms > 0:
        lag_ms = config["max.compaction.lag.ms"]
        return True, f"a dirty record is older than max.compaction.lag.ms={lag_ms}"
    if ratio > limit:
        return True, f"dirty ratio {ratio:.2f} > min.cleanable.dirty.ratio={limit:g}"
    return False, f"dirty ratio {ratio:.2f} ≤ min.cleanable.dirty.ratio={limit:g}"


def _too_young(segment: Segment, min_lag_ms: int, now_ms: int) -> bool:
    newest_ms = segment.max_timestamp_ms
    if newest_ms < 0:  # no record says when it was made: Kafka goes by the file
        newest_ms = segment.modified_ms
    return min_lag_ms > 0 and newest_ms > now_ms - min_lag_ms


def _overdue_ms(dirty: list[Segment], max_lag_ms: int, now_ms: int) -> int:
    """Kafka goes by the first batch of each segment; the smallest timestamp is no later."""
    if max_lag_ms == INT64_MAX:
        return 0
    times_ms = [
        file.min_timestamp_ms
        for segment in dirty
        for file in segment.files
        if file.min_timestamp_ms > 0
    ]
    return max(0, now_ms - max_lag_ms - min(times_ms)) if times_ms else 0
