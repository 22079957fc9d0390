"""What to archive: slices of hot segments, decided only from what both tiers said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ..cold.change import Change, HotRange
from ..cold.registers import ArchivedEnd, LogStart, Register
from ..cold.table import ColdSnapshot
from ..errors import ContradictionError
from ..values.config import MIB, TopicConfig
from ..values.offsets import HotSegment, HotSegments
from ..values.producer_calls import ProducerCall, last_calls
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition

#: A slice of more stored bytes becomes several files of about equal size. Copying 256 MiB takes a
#: worker a second or two, so that one hot partition with a whole 1 GiB segment still keeps four
#: workers busy, while a closed segment makes at most a handful of files. Much smaller would cost
#: every reader (the table's log grows with its files), much larger would leave workers idle.
MAX_FILE_BYTES = 256 * MIB

#: A smaller run is cut so that about so many workers share it, whichever partition its records are
#: in: else one hot partition would keep one worker busy and the others waiting. But never below
#: `MIN_SPLIT_BYTES`, which take a worker a few tenths of a second, many times what a task costs.
WORKERS = 8
MIN_SPLIT_BYTES = 64 * MIB


class FlushLimit(Struct, frozen=True):
    """When a partition is archived, and how far. The default: everything, at once."""

    rows: int = 1  # unarchived records that suffice, whatever their age
    interval_ms: int = 0  # age of the oldest unarchived append that suffices
    ends: Mapping[int, int] | None = None  # exclusive bound by partition, others are left alone

    @classmethod
    def of(cls, config: TopicConfig) -> FlushLimit:
        """The topic's flush policy: ``lakelog.flush.rows`` or ``lakelog.flush.interval.ms``."""
        return cls(config["lakelog.flush.rows"], config["lakelog.flush.interval.ms"])

    def reached(self, records: int, since_ms: int | None, now_ms: int) -> bool:
        """Whether this many records, the oldest appended at or after `since_ms`, must be archived.

        A `since_ms` of None (not known) counts as long ago.
        """
        if records == 0:
            return False
        return records >= self.rows or since_ms is None or now_ms - since_ms >= self.interval_ms

    def end(self, partition: int, log_end: int) -> int:
        """Where the partition's archiving stops at the latest."""
        return log_end if self.ends is None else min(log_end, self.ends.get(partition, 0))


def plan(
    topic: Topic,
    hot: Mapping[int, HotSegments],
    cold: ColdSnapshot,
    limit: FlushLimit,
    now_ms: int,
    *,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> Change:
    """The change that archives what the limit asks for; without partitions if that is nothing.

    `hot` must have been read with the calls of producers, and `cold` must hold all that had been
    trimmed by then, which would look like a hole; `now_ms` is of the clock that stamped
    ``HotSegments.unarchived_since_ms``.

    Each partition's ranges run without a hole from max(archived_end, log_start). A range that
    follows a gap begins with it and none ends in one, so that a file's last record is always there
    to be compared with the register. A partition that was untiered before begins where Redis does:
    the register of its log start says so. The largest come first: Spark starts tasks in that order,
    and the last ones to finish should be small.

    Raises:
        ContradictionError: records are in neither tier, and no gap says so.
    """
    slices: list[_Slice] = []
    registers: dict[Register, int] = {}
    calls: dict[int, Sequence[ProducerCall]] = {}
    for partition, offsets in hot.items():
        topic_partition = TopicPartition(topic.name, partition)
        start = max(cold.archive_start(partition), offsets.log_start)
        end = limit.end(partition, offsets.log_end)
        found = list(_slices(topic_partition, offsets, start, end))
        records = sum(piece.records for piece in found)
        if limit.reached(records, offsets.unarchived_since_ms, now_ms):
            slices += found
            registers[ArchivedEnd(partition)] = found[-1].end_offset
            calls[partition] = last_calls(offsets.calls, found[-1].end_offset)
        if offsets.log_start > cold.log_start(partition):  # it was untiered, and forgot by itself
            registers[LogStart(partition)] = offsets.log_start
    run_bytes = sum(piece.size_bytes for piece in slices)
    file_bytes = min(max_file_bytes, max(MIN_SPLIT_BYTES, run_bytes // WORKERS))
    slices = [part for piece in slices for part in piece.split(file_bytes)]
    slices.sort(key=lambda piece: piece.size_bytes, reverse=True)
    return Change(
        adds=tuple(
            HotRange(
                piece.topic_partition,
                topic.topic_id,
                piece.segment,
                piece.start_offset,
                piece.end_offset,
                piece.size_bytes,
            )
            for piece in slices
        ),
        registers=registers,
        # Under newer settings it is planned again, and by then the table has them: it must have the
        # keys of what it holds, since who loses Redis goes by the table alone. Redis may have lost
        # a change that the table has, which counts too.
        config_version=max(topic.config_version, cold.config_version),
        calls=calls,
    )


class _Slice(Struct, frozen=True):
    """A run of records of one segment, and the gap before it."""

    topic_partition: TopicPartition
    segment: int
    start_offset: int
    first_offset: int  # of the records; above start_offset when a gap comes first
    end_offset: int
    size_bytes: int  # stored; by proportion, since a segment knows only its whole size

    @property
    def records(self) -> int:
        return self.end_offset - self.first_offset

    def split(self, max_bytes: int) -> Iterator[_Slice]:
        parts = min(self.records, max(1, -(-self.size_bytes // max_bytes)))
        start = self.start_offset
        for part in range(parts):
            first = self.first_offset + self.records * part // parts
            end = self.first_offset + self.records * (part + 1) // parts
            yield _Slice(
                self.topic_partition, self.segment, start, first, end, self.size_bytes // parts
            )
            start = end


def _slices(
    topic_partition: TopicPartition, offsets: HotSegments, start: int, end: int
) -> Iterator[_Slice]:
    position = start
    for segment in offsets.segments:
        first = _first_record(segment, offsets, position)
        last = min(segment.end_offset, end)
        if first < last:
            _check_hole(topic_partition, offsets, OffsetRange(position, first))
            stored = segment.end_offset - segment.base_offset
            size_bytes = segment.size_bytes * (last - first) // stored
            yield _Slice(topic_partition, segment.base_offset, position, first, last, size_bytes)
            position = last
    _check_hole(topic_partition, offsets, OffsetRange(position, end))


def _first_record(segment: HotSegment, offsets: HotSegments, start: int) -> int:
    return max(segment.base_offset, offsets.local_log_start, start)


def _check_hole(topic_partition: TopicPartition, offsets: HotSegments, hole: OffsetRange) -> None:
    covered = hole.start
    for gap in offsets.gaps:
        if gap.start <= covered:
            covered = max(covered, gap.end)
    if covered < hole.end:
        raise ContradictionError(
            f"{topic_partition} cannot be archived from offset {hole.start}: the hot tier holds "
            f"[{offsets.local_log_start}, {offsets.log_end}), so [{covered}, {hole.end}) is in "
            "neither tier and no gap says that it was skipped. Is this the cold root the topic was "
            "archived to before? If it is, somebody trimmed the stream or went back to an older "
            "table: RESTORE the table to its newest version, or give up the missing records by "
            f"deleting those before {hole.end}",
            topic_partition=topic_partition,
            missing=OffsetRange(covered, hole.end),
            local_log_start=offsets.local_log_start,
            log_end=offsets.log_end,
        )
