"""Which offsets a read covers, fixed by one look, and how Spark's tasks share them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from ..base.clock import Clock
from ..engines.shared_tasks import sharing
from ..errors import InvalidArgumentError
from ..read.lag import count_records
from ..read.seek import SOUGHT, offset_of, seek
from ..read.stretches import Stretch, stretches_between, tiers_between
from ..read.tiers import Look, Tiers, out_of_range
from ..values.arguments import numbers
from ..values.config import MIB
from ..values.offsets import (
    Ago,
    AtOffset,
    AtTimestamp,
    LogOffsets,
    Position,
    PositionLike,
    position,
)
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition

#: What one task reads, in stored bytes: some tenths of a second, many times what a task costs.
SPLIT_BYTES = 32 * MIB

#: How many ranges of a micro-batch share a task at most. Whoever changes it cuts those anew that
#: began before and are run again.
SHARED_RANGES_OF_STREAM = 32

SEEKS_AT_ONCE = 16

Places = PositionLike | Mapping[int, PositionLike]


def partitions_of(
    topic: Topic, start: Places, end: Places, partitions: Iterable[int] | None = None
) -> tuple[dict[int, Position], dict[int, Position]]:
    """Start and end of each partition to be read: the named ones, those of a dict, or all.

    Raises:
        UnknownTopicOrPartitionError: the topic has no such partition.
        InvalidArgumentError: a dict speaks of other partitions, or a value is no position.
    """

    def of_topic(given: Iterable[int]) -> set[int]:
        return {topic.partition(one).partition for one in numbers("partitions", given)}

    named = None if partitions is None else of_topic(partitions)
    for places in (start, end):
        if isinstance(places, Mapping):
            there = of_topic(places)
            named = there if named is None else named
            if there != named:
                raise InvalidArgumentError(
                    f"a start or end by partition names {sorted(there)}, but {sorted(named)} are "
                    f"read of topic {topic.name!r}; name the same partitions everywhere"
                )
    asked = sorted(range(topic.partitions) if named is None else named)

    def spread(places: Places) -> dict[int, Position]:
        if isinstance(places, Mapping):
            return {number: position(places[number]) for number in asked}
        return dict.fromkeys(asked, position(places))

    return spread(start), spread(end)


def resolve(
    tiers: Tiers,
    starts: Mapping[int, Position],
    ends: Mapping[int, Position],
    clock: Clock,
    *,
    clip: bool = False,
    cut_with: str = "clip=True",
) -> tuple[Look, dict[int, OffsetRange]]:
    """The offset range of each partition, and the look that they were fixed by.

    A time finds what the log has from then on; one after every record is an empty range as a start
    and the log end as an end. Nothing that is appended after the look is in a range.

    Args:
        starts, ends: of the same partitions; an end is exclusive.
        clip: cut an offset outside the log to the nearest inside.
        cut_with: how the caller is asked for that, for the error.

    Raises:
        OffsetOutOfRangeError: an offset outside the log.
        InvalidArgumentError: a range ends before it begins.
    """
    look = tiers.look(starts)
    found = _sought(tiers, clock, [*starts.items(), *ends.items()])
    ranges = {}
    for number, start in starts.items():
        offsets = look.offsets[number]

        def place(
            where: Position, number: int = number, offsets: LogOffsets = offsets
        ) -> int | None:
            if isinstance(where, SOUGHT):
                offset = found[number, where]
                return None if offset is None else min(offset, offsets.log_end)
            if isinstance(where, AtOffset):
                inside = min(max(where.offset, offsets.log_start), offsets.log_end)
                if not clip and inside != where.offset:
                    do = f"Give one of these, or set {cut_with} to read what there is"
                    out_of_range(tiers.topic.partition(number), where.offset, offsets, do)
                return inside
            return offset_of(where, tiers, number, offsets)

        end = ends[number]
        if isinstance(start, AtOffset) and isinstance(end, AtOffset) and start.offset > end.offset:
            _refuse_reversed(tiers.topic.partition(number), start.offset, end.offset)
        first, last = place(start), place(end)
        if first is None:
            first = last = offsets.log_end if last is None else last
        elif last is None:
            last = offsets.log_end if isinstance(end, (AtTimestamp, Ago)) else first
        if last < first:
            _refuse_reversed(tiers.topic.partition(number), first, last)
        ranges[number] = OffsetRange(first, last)
    return look, ranges


def _sought(
    tiers: Tiers, clock: Clock, places: Iterable[tuple[int, Position]]
) -> dict[tuple[int, Position], int | None]:
    """Offsets of the positions that need a search; many at once, since each waits for answers."""
    wanted = list(dict.fromkeys(item for item in places if isinstance(item[1], SOUGHT)))

    def one(item: tuple[int, Position]) -> int | None:
        return seek(tiers, tiers.topic.partition(item[0]), item[1], clock)

    if len(wanted) < 2:
        return {item: one(item) for item in wanted}
    with ThreadPoolExecutor(SEEKS_AT_ONCE, thread_name_prefix="lakelog-seek") as threads:
        return dict(zip(wanted, threads.map(one, wanted), strict=True))


def _refuse_reversed(topic_partition: TopicPartition, first: int, last: int) -> None:
    raise InvalidArgumentError(
        f"the range [{first}, {last}) of {topic_partition} ends before it begins; the end is "
        "exclusive and comes second",
        offset=first,
        end_offset=last,
    )


# -- dealing out -------------------------------------------------------------------------------


class SizedRange(Struct, frozen=True):
    """Offsets [start, end) of one partition, where its records are, and about how large."""

    topic: Topic
    partition: int
    start_offset: int
    end_offset: int
    stretches: tuple[Stretch, ...]  # by offset, disjoint, within the range
    size_bytes: float  # stored

    @property
    def records(self) -> int:
        """At most."""
        return sum(stretch.records for stretch in self.stretches)


def sized_range(look: Look, topic: Topic, partition: int, start: int, end: int) -> SizedRange:
    """A range of a look, sized by the average of its partition."""
    return SizedRange(
        topic,
        partition,
        start,
        end,
        tuple(stretches_between(look, partition, start, end)),
        size_of(look, partition, start, end),
    )


def size_of(look: Look, partition: int, start: int, end: int) -> float:
    """About how many stored bytes a range takes, by the averages of the partition's tiers.

    An average of each: a short stream in Redis takes many times as much a record.
    """
    hot = look.hot[partition]
    held = count_records(look, partition, hot.local_log_start, hot.log_end).records
    archived, archived_bytes = look.cold.files.totals(partition)
    of_hot = hot.size_bytes / held if held > 0 else 0.0
    of_cold = archived_bytes / archived if archived > 0 else 0.0
    size_bytes = 0.0
    for tier in tiers_between(look.offsets[partition], hot, start, end):
        records = count_records(look, partition, tier.start, tier.end).records
        each = (of_hot or of_cold) if tier.hot else (of_cold or of_hot)
        size_bytes += max(1.0, each) * records
    return size_bytes


def split(
    ranges: Sequence[SizedRange], min_parts: int = 1, split_bytes: int = SPLIT_BYTES
) -> list[SizedRange]:
    """The ranges cut into parts of about one size, so that no task has much more than the others.

    At least `min_parts` in all, unless there are fewer records; a larger range is cut into more.
    Empty ranges are left out; one without records is one part, since it may hold some that a look
    did not know of.
    """
    ranges = [one for one in ranges if one.end_offset > one.start_offset]
    total_bytes = sum(one.size_bytes for one in ranges)
    part_bytes = max(1.0, min(split_bytes, total_bytes / max(1, min_parts)))
    return [part for one in ranges for part in _cut(one, math.ceil(one.size_bytes / part_bytes))]


def shared(
    parts: Sequence[SizedRange], min_tasks: int = 1, max_ranges: int = SHARED_RANGES_OF_STREAM
) -> list[list[SizedRange]]:
    """The parts of each task, see `sharing`.

    Args:
        min_tasks: tasks at least, if there are so many parts.
        max_ranges: that one task reads.
    """
    most = max(1, min(max_ranges, len(parts) // max(1, min_tasks)))
    return sharing(parts, most)


def _cut(one: SizedRange, parts: int) -> Iterator[SizedRange]:
    """The range in so many parts of equally many records, or fewer if it has not so many."""
    records = one.records
    parts = max(1, min(records, parts))
    ends = list(accumulate(stretch.records for stretch in one.stretches))  # by rank
    start = one.start_offset
    for number in range(1, parts + 1):
        end = one.end_offset
        if number < parts:
            rank = records * number // parts
            at = bisect_right(ends, rank)
            end = one.stretches[at].offset(rank - ends[at] + one.stretches[at].records)
        if start < end:
            yield replace(
                one,
                start_offset=start,
                end_offset=end,
                stretches=tuple(_within(one.stretches, start, end)),
                size_bytes=one.size_bytes / parts,
            )
        start = end


def _within(stretches: Sequence[Stretch], start: int, end: int) -> Iterator[Stretch]:
    low = bisect_right(stretches, start, key=lambda stretch: stretch.end)
    for stretch in stretches[low:]:
        if stretch.start >= end:
            return
        records = stretch.records_between(start, end)
        first, last = max(start, stretch.start), min(end, stretch.end)
        yield Stretch(stretch.partition, first, last, records)


# -- how far a micro-batch goes ----------------------------------------------------------------


def advance(look: Look, partition: int, start: int, records: int) -> int:
    """The furthest offset up to which there are at most so many records from an offset on.

    Where compaction thinned records out there may be fewer: only reading them would tell.
    """
    log_end = look.offsets[partition].log_end
    for stretch in stretches_between(look, partition, start, log_end):
        if records < stretch.records:
            return stretch.start + records
        records -= stretch.records
    return log_end


def share(available: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """A limit dealt out in proportion to what is there; each that has some gets at least one.

    Source: Spark's KafkaMicroBatchStream, `rateLimit`.
    """
    total = sum(available.values())
    if total <= limit:
        return dict(available)
    return {
        tp: min(count, max(1, count * limit // total)) if count else 0
        for tp, count in available.items()
    }
