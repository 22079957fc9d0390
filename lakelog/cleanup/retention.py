"""Which whole segments the cold tier drops: Kafka's three passes over one snapshot; reads no data.

A pass walks from the oldest segment and stops at the first that does not qualify, so a young
segment shields every later one. What one pass leaves is what the next one sees.

===================  ============================================================================
log start            all of the segment lies below the log start offset
``retention.bytes``  without the segment the partition is still at least as large as the limit,
                     with what only the hot tier holds
``retention.ms``     the segment's largest timestamp is longer ago than that
===================  ============================================================================

If the log start lies inside a segment, the segment stays whole: readers see no record below the log
start, and its bytes go with the rest of the segment.

Source: Kafka ``UnifiedLog.deleteOldSegments`` and the passes it calls; for a tiered topic
``RemoteLogManager.cleanupExpiredRemoteLogSegments`` and ``buildRetentionSizeData``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta, timezone

from msgspec import Struct

from ..cold.change import Change
from ..cold.registers import LogStart
from ..cold.segment import UNKNOWN_TIMESTAMP_MS, Segment, SegmentFile, is_ours
from ..cold.table import ColdSnapshot
from ..values.config import HOUR_MS, TopicConfig
from ..values.offsets import HotSegment, HotSegments
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition

LOG_START = "log start"
RETENTION_BYTES = "retention.bytes"
RETENTION_MS = "retention.ms"


class Dropped(Struct, frozen=True):
    """A segment that goes, and the pass that says so."""

    segment: Segment
    reason: str  # LOG_START, RETENTION_BYTES or RETENTION_MS


class PartitionRetention(Struct, frozen=True):
    """What retention does to one partition."""

    topic_partition: TopicPartition
    log_start_before: int
    log_start: int  # at or above the end of all that goes; only grows
    dropped: tuple[Dropped, ...] = ()  # oldest first, without a segment left out
    hot_only_bytes: int | None = None  # counted beside the files'; None: the hot tier was not asked
    warnings: tuple[str, ...] = ()  # sentences: what keeps segments from expiring, and the way out

    @property
    def removes(self) -> tuple[SegmentFile, ...]:
        return tuple(file for dropped in self.dropped for file in dropped.segment.files)

    @property
    def expired(self) -> bool:
        """Whether age or size was a reason, and not the log start alone."""
        return any(dropped.reason != LOG_START for dropped in self.dropped)

    @property
    def size_bytes(self) -> int:
        """The bytes of the files that go."""
        return sum(dropped.segment.size_bytes for dropped in self.dropped)

    @property
    def records(self) -> int:
        """The records in the files that go, even those that were below the log start before."""
        return sum(dropped.segment.records for dropped in self.dropped)


def plan_retention(
    topic: Topic,
    cold: ColdSnapshot,
    now_ms: int,
    hot: Mapping[int, HotSegments] | None = None,
) -> list[PartitionRetention]:
    """What each partition that has files drops now.

    A policy without ``delete`` (``compact``, or the empty one, which keeps forever) leaves only the
    log-start pass. The newest segment may still grow: it goes when all of the partition is
    archived, or when the log start has passed it.

    As in Kafka, the size is that of both tiers: the Parquet files, and the stored bytes of what is
    not archived. Only what is archived goes.

    Args:
        now_ms: by the clock that the records' timestamps are compared with.
        hot: the hot tier by partition, read before `cold`. A partition that is not in it, or None
            for all, counts its Parquet files alone and keeps its newest segment whatever its age.
    """
    seen = {} if hot is None else hot
    return [
        _plan_partition(topic, cold, partition, now_ms, seen.get(partition))
        for partition in cold.files.partitions
    ]


def retention_change(plans: Iterable[PartitionRetention]) -> Change:
    """The one commit of the plans: removals, and the log starts that make them legal."""
    plans = list(plans)
    return Change(
        removes=tuple(file for plan in plans for file in plan.removes),
        # A log start that does not move is left out: delete-records may raise it meanwhile, and
        # what was below it stays below it.
        registers={
            LogStart(plan.topic_partition.partition): plan.log_start
            for plan in plans
            if plan.log_start > plan.log_start_before
        },
    )


def _plan_partition(
    topic: Topic, cold: ColdSnapshot, partition: int, now_ms: int, hot: HotSegments | None
) -> PartitionRetention:
    config = topic.config
    topic_partition = TopicPartition(topic.name, partition)
    segments = cold.files.segments(partition)
    log_start = cold.log_start(partition)
    archived_end = cold.archived_end(partition)
    all_archived = hot is not None and not hot.appended_from(cold.archive_start(partition))
    hot_only_bytes = None if hot is None else hot.bytes_from(archived_end)
    expirable = len(segments) if all_archived else len(segments) - 1

    first = 0  # of those that stay
    while first < len(segments) and segments[first].end_offset <= log_start:
        first += 1
    by_log_start = by_size = first

    limit_bytes, limit_ms = _limits(config)
    if limit_bytes >= 0:
        cold_bytes = sum(segment.size_bytes for segment in segments[first:])
        excess_bytes = cold_bytes + (hot_only_bytes or 0) - limit_bytes
        while first < expirable and excess_bytes >= segments[first].size_bytes:
            excess_bytes -= segments[first].size_bytes
            first += 1
        by_size = first
    if limit_ms >= 0:
        while first < expirable and _expired(segments[first], limit_ms, now_ms):
            first += 1

    reasons = [LOG_START] * by_log_start + [RETENTION_BYTES] * (by_size - by_log_start)
    reasons += [RETENTION_MS] * (first - by_size)
    return PartitionRetention(
        topic_partition,
        log_start,
        max(log_start, _start_of_rest(segments, first, archived_end)),
        tuple(map(Dropped, segments, reasons)),
        hot_only_bytes,
        tuple(_warnings(topic_partition, config, segments[first:], now_ms)),
    )


def _limits(config: TopicConfig) -> tuple[int, int]:
    """``retention.bytes`` and ``retention.ms`` as they count: -1 is no limit."""
    if "delete" not in config["cleanup.policy"]:
        return -1, -1
    return int(config["retention.bytes"]), int(config["retention.ms"])


def _expired(segment: Segment, limit_ms: int, now_ms: int) -> bool:
    newest_ms = segment.max_timestamp_ms  # an unknown one is later than now, and does not expire
    return now_ms - (newest_ms if newest_ms >= 0 else segment.modified_ms) > limit_ms


def _start_of_rest(segments: list[Segment], first: int, archived_end: int) -> int:
    """Where the log can start at the earliest when the segments before `first` are gone."""
    if first == 0:
        return 0
    if first == len(segments):
        return archived_end
    # The range, not the base: it begins with the gap before the first record, if there is one, and
    # a reader that waits at the end of what goes must not fall out of the log. The two differ only
    # if a foreign OPTIMIZE shortened a compacted segment.
    return max(segments[first - 1].end_offset, segments[first].start_offset)


# -- warnings --------------------------------------------------------------------------------------


def future_warning(
    topic_partition: TopicPartition,
    config: TopicConfig,
    segments: Iterable[Segment | HotSegment],
    now_ms: int,
) -> str | None:
    """What the earliest segment with a timestamp in the future holds back; None if nothing does.

    Clocks differ, so timestamps that are ahead by at most ``message.timestamp.after.max.ms``, or an
    hour if the topic takes more, give no warning: they delay expiry by no more than that.

    Args:
        segments: of either tier, those of a tier in offset order.
    """
    near_ms = now_ms + min(config["message.timestamp.after.max.ms"], HOUR_MS)
    ahead = [one for one in segments if near_ms < one.max_timestamp_ms and not _is_foreign(one)]
    if not ahead:
        return None
    delayed = _delayed_by_future(config, hot=any(isinstance(one, HotSegment) for one in ahead))
    if not delayed:
        return None
    base = min(segment.base_offset for segment in ahead)
    parts = [segment for segment in ahead if segment.base_offset == base]  # in each tier
    newest_ms = max(part.max_timestamp_ms for part in parts)
    end = max(part.end_offset for part in parts)
    return " ".join(
        (
            f"segment {base} of {topic_partition} holds a record with {_time(newest_ms)}, which is "
            f"yet to come. {' and '.join(delayed)} count{'s' if len(delayed) == 1 else ''} from "
            "then, so the segment and all after it stay; no record is lost by that.",
            *_ways_out(topic_partition, config, delayed, end, now_ms),
        )
    )


def _ways_out(
    topic_partition: TopicPartition,
    config: TopicConfig,
    delayed: Collection[str],
    end_offset: int,
    now_ms: int,
) -> Iterable[str]:
    """What to do, what deletes nothing first.

    Args:
        delayed: the settings that go by the timestamp.
        end_offset: of the segment.
    """
    topic, partition = topic_partition
    if "local.retention.ms" in delayed:
        yield (
            f"`lakelog topics alter {topic} --config local.retention.ms=0` has the next archive "
            "run trim all that is archived from Redis, and deletes no record; set it back then."
        )
    if "retention.ms" in delayed:
        expired = _text(now_ms - int(config["retention.ms"]))
        yield (
            f"`lakelog delete-records {topic} -p {partition} --before {expired}` deletes what has "
            "expired by now, up to the first record that has not. If that timestamp is wrong, "
            f"`--before {end_offset}` in its place deletes all records of the segment and before "
            "it, however young."
        )
    if config["message.timestamp.after.max.ms"] > HOUR_MS:
        yield f"message.timestamp.after.max.ms={HOUR_MS} would refuse such timestamps."


def _is_foreign(segment: Segment | HotSegment) -> bool:
    """Whether its largest timestamp is unknown because somebody else wrote a file of it.

    A file of lakelog's says none only where it lies after the year 9999, beyond Delta's text.
    """
    return (
        isinstance(segment, Segment)
        and segment.max_timestamp_ms == UNKNOWN_TIMESTAMP_MS
        and any(
            file.max_timestamp_ms == UNKNOWN_TIMESTAMP_MS and not is_ours(file.path)
            for file in segment.files
        )
    )


def _delayed_by_future(config: TopicConfig, *, hot: bool) -> list[str]:
    """The settings that go by a segment's largest timestamp."""
    names = []
    if _limits(config)[1] >= 0:
        names.append("retention.ms")
    if hot and config.tiered and config.local_retention_ms > 0:
        names.append("local.retention.ms")
    if config.compacted and config["min.compaction.lag.ms"] > 0:
        names.append("min.compaction.lag.ms")
    return names


def _warnings(
    topic_partition: TopicPartition, config: TopicConfig, kept: list[Segment], now_ms: int
) -> Iterable[str]:
    future = future_warning(topic_partition, config, kept, now_ms)
    if future is not None:
        yield future
    if kept and _is_foreign(kept[0]) and _limits(config)[1] >= 0:
        path = next(
            file.path
            for file in kept[0].files
            if file.max_timestamp_ms == UNKNOWN_TIMESTAMP_MS and not is_ours(file.path)
        )
        yield (
            f"segment {kept[0].base_offset} of {topic_partition} has a file that somebody else "
            f"wrote without statistics on timestamp, {path}, so retention.ms cannot tell its age: "
            "the segment and all after it stay. In Spark, ANALYZE TABLE delta.`<path>` COMPUTE "
            "DELTA STATISTICS brings them back"
        )


def _time(timestamp_ms: int) -> str:
    """``the timestamp …``, or that it lies after the year 9999, where most are microseconds."""
    if timestamp_ms == UNKNOWN_TIMESTAMP_MS:
        return "a timestamp after the year 9999"
    text = _text(timestamp_ms)
    after = " (after the year 9999: are these microseconds?)" if text.startswith("@") else ""
    return f"the timestamp {text}{after}"


def _text(timestamp_ms: int) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:  # after the year 9999, or before the first
        return f"@{timestamp_ms}"
    return moment.isoformat(timespec="milliseconds")
