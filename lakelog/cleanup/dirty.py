"""Which part of a compacted partition may be cleaned, and whether that is worth doing.

Source: Kafka ``LogCleanerManager`` and ``LogToClean``: clean, cleanable and uncleanable segments,
the ratio of the first two in bytes, and the two lags.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from ..cold.segment import Segment
from ..cold.table import ColdSnapshot
from ..values.config import INT64_MAX, TopicConfig
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


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
