"""Where a position lies: by offset, by name, by timestamp, across both tiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..base.clock import Clock
from ..errors import MissingFileError
from ..values.offsets import (
    Ago,
    AtOffset,
    AtTimestamp,
    Earliest,
    EarliestLocal,
    EarliestPendingUpload,
    Latest,
    LatestTiered,
    LogOffsets,
    MaxTimestamp,
    Position,
)
from ..values.record import NO_TIMESTAMP_MS, OffsetAndTimestamp
from ..values.topic_partition import TopicPartition
from .fetch import stored_fetches
from .stretches import pieces
from .tiers import SegmentedLook, Tiers, out_of_range

#: Positions that need a search in each partition; one look at the offsets decides the others.
SOUGHT = (AtTimestamp, Ago, MaxTimestamp)

#: Of more partitions, one look at the indexes says first which have to be searched.
_ASKED_ONE_BY_ONE = 32


class Sought(Struct, frozen=True):
    """Where a position lies in each of some partitions."""

    offsets: Mapping[int, int | None]  # None where no record has that position
    times_ms: Mapping[int, int]  # of the record there, where it took reading it
    look: SegmentedLook  # at all of them, no older than what says so

    @staticmethod
    def of(found: Mapping[int, OffsetAndTimestamp | None], look: SegmentedLook) -> Sought:
        """What was read in each partition."""
        return Sought(
            {number: None if one is None else one.offset for number, one in found.items()},
            {number: one.timestamp_ms for number, one in found.items() if one is not None},
            look,
        )


def seek_each(tiers: Tiers, partitions: Iterable[int], position: Position, clock: Clock) -> Sought:
    """Where a position lies in each partition."""
    asked = [tiers.topic.partition(number) for number in partitions]
    numbers = [one.partition for one in asked]
    if not isinstance(position, SOUGHT):
        look = tiers.look_at_segments(numbers)
        known = {
            number: offset_of(position, tiers, number, one) for number, one in look.offsets.items()
        }
        return Sought(known, {}, look)
    target_ms = _target_ms(position, clock)
    if target_ms is None:
        found = {one.partition: max_timestamp(tiers, one) for one in asked}
        return Sought.of(found, tiers.look_at_segments(numbers))
    if len(asked) <= _ASKED_ONE_BY_ONE:
        found = {one.partition: offset_for_timestamp(tiers, one, target_ms) for one in asked}
        return Sought.of(found, tiers.look_at_segments(numbers))
    look = tiers.look_at_segments(numbers)
    decided = _decided_by_indexes(look, numbers, target_ms)
    left = [one for one in asked if one.partition not in decided]
    read = Sought.of(
        {one.partition: offset_for_timestamp(tiers, one, target_ms) for one in left}, look
    )
    offsets = {**decided, **read.offsets}
    return Sought({number: offsets[number] for number in numbers}, read.times_ms, look)


def seek(
    tiers: Tiers, topic_partition: TopicPartition, position: Position, clock: Clock
) -> int | None:
    """The offset of a position; None if no record has that position."""
    if not isinstance(position, SOUGHT):
        number = topic_partition.partition
        return offset_of(position, tiers, number, tiers.look([number]).offsets[number])
    target_ms = _target_ms(position, clock)
    found = (
        max_timestamp(tiers, topic_partition)
        if target_ms is None
        else offset_for_timestamp(tiers, topic_partition, target_ms)
    )
    return None if found is None else found.offset


def _target_ms(position: Position, clock: Clock) -> int | None:
    """The time that a position means; None if it means none."""
    match position:
        case AtTimestamp(timestamp_ms):
            return timestamp_ms
        case Ago(duration):
            return max(0, clock.now_ms() - duration // timedelta(milliseconds=1))
    return None


def _decided_by_indexes(
    look: SegmentedLook, partitions: Iterable[int], timestamp_ms: int
) -> dict[int, int | None]:
    """The offset of a time in those partitions where no record has to be read for it."""
    found: dict[int, int | None] = {}
    for number in partitions:
        log = look.offsets[number]
        parts = pieces(look, number, log.log_start, log.log_end)
        first = next((part for part in parts if part.max_ms >= timestamp_ms), None)
        if first is None:
            found[number] = None
        elif first.is_cold and first.is_full and first.min_ms >= timestamp_ms:
            found[number] = first.start
    return found


def offset_of(position: Position, tiers: Tiers, partition: int, offsets: LogOffsets) -> int | None:
    """The offset of a position that is not one of `SOUGHT`: the partition's offsets decide it."""
    match position:
        case Earliest():
            return offsets.log_start
        case Latest():
            return offsets.log_end
        case EarliestLocal():
            return offsets.local_log_start
        case LatestTiered():
            tiered = offsets.archived_end > offsets.log_start
            return offsets.archived_end - 1 if tiered else None
        case EarliestPendingUpload():
            return None if tiers.table is None else offsets.archive_start
        case AtOffset(offset):
            if not offsets.log_start <= offset <= offsets.log_end:
                out_of_range(tiers.topic.partition(partition), offset, offsets)
            return offset
        case _:
            raise TypeError(f"{position!r} is not decided by offsets")


def offset_for_timestamp(
    tiers: Tiers, topic_partition: TopicPartition, timestamp_ms: int
) -> OffsetAndTimestamp | None:
    """The earliest record of the log whose timestamp is at or after that, None if there is none.

    Kafka answers "none" when its first segment that could match does so only below the log start;
    this answers with the earliest match at or above it.
    """
    # Hot first, then a snapshot that covers all that was trimmed by then: so no record escapes the
    # search, whatever is archived and trimmed meanwhile.
    hot = tiers.hot.offset_for_timestamp(
        topic_partition, timestamp_ms, topic_id=tiers.topic.topic_id
    )
    partition = topic_partition.partition
    look = tiers.look([partition])
    offsets = look.offsets[partition]
    cold = None
    if tiers.table is not None and offsets.archived_end > offsets.log_start:
        try:
            cold = tiers.table.offset_for_timestamp(
                look.cold, partition, timestamp_ms, offsets.log_start
            )
        except MissingFileError:
            if not tiers.outdated(look):
                raise
            return offset_for_timestamp(tiers, topic_partition, timestamp_ms)
    if hot is not None and hot.offset < offsets.log_start:  # trimming lags behind the log start
        end = None if cold is None else cold.offset
        hot = _first_at_or_after(tiers, topic_partition, timestamp_ms, offsets.log_start, end)
    # Hot's may come first although cold was copied from it: compaction does not change hot.
    return min((found for found in (hot, cold) if found is not None), default=None)


def _first_at_or_after(
    tiers: Tiers, topic_partition: TopicPartition, timestamp_ms: int, start: int, end: int | None
) -> OffsetAndTimestamp | None:
    for step in stored_fetches(tiers, topic_partition, start, end):
        times_ms = _timestamps_ms(step.records)
        row = pc.index(pc.greater_equal(times_ms, timestamp_ms), True).as_py()
        if row >= 0:
            return _at(step.records, times_ms, row)
    return None


def max_timestamp(tiers: Tiers, topic_partition: TopicPartition) -> OffsetAndTimestamp | None:
    """The first record that carries the log's largest timestamp, None if no record has one."""
    topic_id = tiers.topic.topic_id
    hot = tiers.hot.max_timestamp(topic_partition, topic_id=topic_id)  # first, as above
    if hot is not None and hot.timestamp_ms == NO_TIMESTAMP_MS:
        hot = None  # cold's answer counts, so that archiving does not change it
    partition = topic_partition.partition
    look = tiers.look([partition])
    offsets = look.offsets[partition]
    found = []
    if hot is not None and hot.offset >= offsets.log_start:
        found.append(hot)
    elif hot is not None:  # trimming lags behind the log start
        for step in stored_fetches(tiers, topic_partition, offsets.log_start):
            times_ms = _timestamps_ms(step.records)
            largest = pc.max(times_ms).as_py()
            if largest is not None and largest != NO_TIMESTAMP_MS:
                first = pc.index(times_ms, largest).as_py()
                found.append(_at(step.records, times_ms, first))
    if tiers.table is not None and offsets.archived_end > offsets.log_start:
        try:
            cold = tiers.table.max_timestamp(look.cold, partition, offsets.log_start)
        except MissingFileError:
            if not tiers.outdated(look):
                raise
            return max_timestamp(tiers, topic_partition)
        if cold is not None:
            found.append(cold)
    return max(found, key=lambda one: (one.timestamp_ms, -one.offset), default=None)


def first_timestamp_ms(tiers: Tiers, topic_partition: TopicPartition, offset: int) -> int | None:
    """That of the first record at or behind an offset, None at the log end. It takes no key.

    Raises:
        LakelogError: as `stored_fetches`.
    """
    for step in stored_fetches(tiers, topic_partition, offset, max_bytes=1):
        if step.records.num_rows:
            return int(_timestamps_ms(step.records)[0].as_py())
    return None


def _timestamps_ms(records: pa.RecordBatch) -> pa.Array:
    microseconds = records.column("timestamp").view(pa.int64())
    return pc.divide(microseconds, 1000)


def _at(records: pa.RecordBatch, times_ms: pa.Array, row: int) -> OffsetAndTimestamp:
    return OffsetAndTimestamp(records.column("offset")[row].as_py(), times_ms[row].as_py())
