"""What cleanup must do to one partition: Kafka's rules, applied to the segments seen there.

Written a second time from the same source, independently of `lakelog.cleanup`, so that a mistake in
one of the two shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ..values.config import TopicConfig
from ..values.offsets import HotSegments
from ..values.record import Record


class ColdSegment(Struct, frozen=True):
    """A segment as it lies in the Delta table."""

    base_offset: int
    end_offset: int  # exclusive; beyond the last record where cleaning removed some
    size_bytes: int
    modified_ms: int
    records: tuple[Record, ...]  # everything the files hold, even deleted records

    @property
    def largest_timestamp_ms(self) -> int:
        """As Kafka's ``LogSegment.largestTimestamp``: the file's own time if no record has one."""
        newest_ms = max((record.timestamp_ms for record in self.records), default=-1)
        return newest_ms if newest_ms >= 0 else self.modified_ms


class Retained(Struct, frozen=True):
    """What retention leaves."""

    dropped: tuple[ColdSegment, ...]
    kept: tuple[ColdSegment, ...]
    lowest: int  # the log start lies in [lowest, highest] then
    highest: int


def retained(
    segments: Sequence[ColdSegment],
    config: TopicConfig,
    log_start: int,
    archived_end: int,
    now_ms: int,
    *,
    all_archived: bool,
    hot_only_bytes: int = 0,
) -> Retained:
    """Kafka's three passes, each from the oldest segment to the first that does not qualify.

    Args:
        all_archived: these segments hold everything, so that even the newest may go.
        hot_only_bytes: the size of what is not archived.
    """
    kept = list(segments)

    def may_go() -> bool:
        return len(kept) > 1 or (all_archived and len(kept) == 1)

    while kept and kept[0].end_offset <= log_start:
        kept.pop(0)
    if "delete" in config["cleanup.policy"]:
        limit_bytes, limit_ms = config["retention.bytes"], config["retention.ms"]
        if limit_bytes != -1:
            while may_go() and hot_only_bytes + _size_bytes(kept[1:]) >= limit_bytes:
                kept.pop(0)
        if limit_ms != -1:
            while may_go() and now_ms - kept[0].largest_timestamp_ms > limit_ms:
                kept.pop(0)
    dropped = tuple(segments[: len(segments) - len(kept)])
    if not dropped:
        return Retained((), tuple(kept), log_start, log_start)
    lowest = max(log_start, dropped[-1].end_offset)
    # It must not pass a record that stays, and need not pass the gap before that record.
    first = next((r.offset for s in kept for r in s.records), archived_end)
    return Retained(dropped, tuple(kept), lowest, max(lowest, first))


def hot_only_bytes(seen: HotSegments, archived_end: int) -> int:
    """The size of what only the hot tier holds, of a segment that is archived in part its share."""
    total = 0
    for segment in seen.segments:
        offsets = range(segment.base_offset, segment.end_offset)
        alone = [o for o in offsets if o >= archived_end and o >= seen.local_log_start]
        if alone:
            total += segment.size_bytes * len(alone) // len(offsets)
    return total


def _size_bytes(segments: Iterable[ColdSegment]) -> int:
    return sum(segment.size_bytes for segment in segments)


class Dirty(Struct, frozen=True):
    """What compaction may clean."""

    first_dirty: int
    clean: tuple[ColdSegment, ...]
    dirty: tuple[ColdSegment, ...]

    @property
    def cleaned_end(self) -> int:
        """Where the cleaned part ends once all of it is cleaned."""
        return max(self.first_dirty, self.dirty[-1].end_offset)

    @property
    def ratio(self) -> float:
        dirty_bytes = sum(segment.size_bytes for segment in self.dirty)
        return dirty_bytes / (sum(segment.size_bytes for segment in self.clean) + dirty_bytes)


def dirty(
    segments: Sequence[ColdSegment],
    config: TopicConfig,
    log_start: int,
    cleaned_end: int,
    now_ms: int,
) -> Dirty | None:
    """The dirty part of a compacted partition; None if there is none.

    It ends at the newest segment, or at the first dirty one with a record younger than the lag.
    """
    if "compact" not in config["cleanup.policy"]:
        return None
    first_dirty = max(log_start, cleaned_end)
    closed = [segment for segment in segments[:-1] if segment.end_offset > log_start]
    clean = [segment for segment in closed if segment.end_offset <= first_dirty]
    cleanable = []
    lag_ms = config["min.compaction.lag.ms"]
    for segment in closed[len(clean) :]:
        if lag_ms > 0 and segment.largest_timestamp_ms > now_ms - lag_ms:
            break
        cleanable.append(segment)
    return Dirty(first_dirty, tuple(clean), tuple(cleanable)) if cleanable else None


def eligible(found: Dirty, config: TopicConfig, now_ms: int) -> bool | None:
    """Whether a dirty part must be cleaned.

    None: it may be cleaned. Kafka goes by the age of each segment's first batch, and the cold tier
    has no batches: only if all records have a timestamp is the oldest one sure to count.
    """
    if found.ratio > config["min.cleanable.dirty.ratio"]:
        return True
    overdue = [
        min(record.timestamp_ms for record in segment.records) > 0
        for segment in found.dirty
        for record in segment.records
        if 0 < record.timestamp_ms < now_ms - config["max.compaction.lag.ms"]
    ]
    return any(overdue) or (None if overdue else False)


def superseded(
    records: Iterable[Record], horizons_ms: Mapping[int, int], first_dirty: int, now_ms: int
) -> set[int]:
    """The offsets that cleaning removes.

    Args:
        records: those of all clean and dirty segments.
        horizons_ms: by offset, for the tombstones that an earlier cleaning kept.
        first_dirty: keys of records below it are only looked up.
    """
    records = list(records)
    latest = {record.key: record.offset for record in records if record.offset >= first_dirty}
    gone = set()
    for record in records:
        expired = record.value is None and horizons_ms.get(record.offset, now_ms + 1) <= now_ms
        older = record.offset < latest.get(record.key, -1)
        if expired or older or record.key is None:
            gone.add(record.offset)
    return gone
