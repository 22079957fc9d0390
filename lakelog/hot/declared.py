"""What ``:state`` declares of a partition's offsets, and which entries of the stream it disowns.

An entry in a declared gap, or past the log end, holds nothing that was ever given out: if its
append-only file was cut within a transaction, Redis 7.0 runs half of it, which leaves an entry
without its ``:state``. Readers skip it, as they skip the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from ..codec import EntryId
from ..codec.entry import gap_of
from ..errors import (
    CorruptRecordError,
    ForeignEntryError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..values.offsets import HotSegment
from ..values.record import MAX_OFFSET
from ..values.topic_partition import OffsetRange, TopicPartition

RawEntry = tuple[EntryId, list[bytes]]


class Declared(Struct, frozen=True):
    """Where the log ends, and its gaps, ascending and without overlaps."""

    log_end: int = MAX_OFFSET + 1
    gaps: tuple[OffsetRange, ...] = ()

    def disowns(self, entry_id: EntryId) -> bool:
        """Whether the entry lies in a gap or past the end, as a gap's own entry does, too."""
        return entry_id.end_offset > self.log_end or any(
            gap.start <= entry_id.base_offset and entry_id.end_offset <= gap.end
            for gap in self.gaps
        )

    def gap_at(self, offset: int) -> OffsetRange | None:
        """The gap that holds the offset."""
        return next((gap for gap in self.gaps if gap.start <= offset < gap.end), None)

    def past_gaps(self, offset: int) -> tuple[int, list[OffsetRange]]:
        """The first offset from there on outside of all gaps, and the gaps before it."""
        passed = []
        while (gap := self.gap_at(offset)) is not None:
            passed.append(gap)
            offset = gap.end
        return offset, passed

    def segments(self, closed: Sequence[HotSegment], open_base: int) -> list[HotSegment]:
        """The closed segments, without those that half a transaction left."""
        found = [
            segment
            for segment in closed
            if segment.base_offset < open_base and segment.end_offset <= self.log_end
        ]
        if self.gaps:
            found = [segment for segment in found if not self._is_in_gap(segment)]
        return found

    def _is_in_gap(self, segment: HotSegment) -> bool:
        return any(
            segment.base_offset < gap.end and gap.start < segment.end_offset for gap in self.gaps
        )


def parse_gaps(*texts: bytes | None) -> tuple[OffsetRange, ...]:
    """The fields ``gaps`` and ``quarantined`` of ``:state`` together, ascending."""
    if not any(texts):
        return ()
    parts = (part.split(b"-") for text in texts for part in (text or b"").split(b",") if part)
    return tuple(sorted({OffsetRange(int(start), int(end)) for start, end in parts}))


def check_topic_id(
    topic_partition: TopicPartition, found: bytes | None, wanted: UUID | None
) -> None:
    """Refuses to go on without a stream, or with the stream of another creation of the topic.

    Raises:
        UnknownTopicIdError: dropped, or dropped and created again.
        UnknownTopicOrPartitionError: there is none, and no creation was asked for.
    """
    if wanted is None:
        if not found:
            raise unknown_partition(topic_partition)
    elif not found or found != str(wanted).encode():
        topic = topic_partition.topic
        what = (
            "was deleted and created again since it was looked up; look it up again"
            if found
            else f"was deleted since it was looked up; look it up again. If it is there, Redis has "
            f"lost a key of it, which `lakelog check {topic} --repair` writes anew"
        )
        raise UnknownTopicIdError(
            f"topic {topic!r} {what}",
            topic=topic,
            topic_id=wanted,
        )


def unknown_partition(topic_partition: TopicPartition) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(
        f"{topic_partition} is not in the hot tier; create the topic, or run "
        "`lakelog topics apply` if its creation was cut short",
        topic=topic_partition.topic,
        partition=topic_partition.partition,
    )


class Covered(Struct, frozen=True):
    """A run of entries as a reader sees it: each offset belongs to a record or a gap."""

    entries: list[RawEntry]  # those with records
    next_offset: int
    gaps: list[OffsetRange]  # whole, as declared
    skipped: list[EntryId]  # disowned


def cover(
    topic_partition: TopicPartition, entries: Sequence[RawEntry], offset: int, declared: Declared
) -> Covered:
    """Judges entries, from the one that holds `offset` on, by the declared gaps.

    Raises:
        CorruptRecordError: an entry is missing and no gap says so, or a gap entry is damaged.
        ForeignEntryError: an entry speaks of offsets that another holds.
    """
    kept: list[RawEntry] = []
    gaps: list[OffsetRange] = []
    skipped: list[EntryId] = []
    position: int | None = None  # None: nothing of the log seen yet
    for index, (entry_id, fields) in enumerate(entries):
        gap = gap_of(entry_id, fields)
        if gap not in declared.gaps and declared.disowns(entry_id):
            skipped.append(entry_id)
            continue
        base = entry_id.base_offset
        if position is None and base <= offset:
            position = base
        else:
            position, passed = declared.past_gaps(offset if position is None else position)
            if (
                gap in passed
            ):  # the gap's own entry; gaps may lie side by side, with or without an entry
                position, passed = gap.start, passed[: passed.index(gap)]
            gaps += passed
        if base > position:
            _refuse_hole(topic_partition, entries, index, position)
        if base < position:
            raise ForeignEntryError(
                f"{topic_partition}: entry {entry_id} speaks of offsets that the entry before it "
                f"holds, so it is not lakelog's. Find out who writes to the stream, and "
                f"{skip_it(topic_partition, entry_id)}",
                topic_partition=topic_partition,
                entry_id=entry_id,
            )
        position = entry_id.end_offset
        if gap is None:
            kept.append((entry_id, fields))
        else:
            gaps.append(gap)
    if position is None:
        position, passed = declared.past_gaps(offset)
        gaps += passed
    return Covered(kept, position, gaps, skipped)


def _refuse_hole(
    topic_partition: TopicPartition, entries: Sequence[RawEntry], index: int, position: int
) -> None:
    entry_id = entries[index][0]
    if any(later.base_offset <= position for later, _ in entries[index + 1 :]):
        raise ForeignEntryError(
            f"{topic_partition}: entry {entry_id} speaks of offsets that an entry after it holds, "
            f"so it is not lakelog's. Find out who writes to the stream, and "
            f"{skip_it(topic_partition, entry_id)}",
            topic_partition=topic_partition,
            entry_id=entry_id,
        )
    raise hole(topic_partition, position, entry_id.base_offset)


def hole(topic_partition: TopicPartition, start: int, end: int) -> CorruptRecordError:
    """The error for offsets that nothing accounts for."""
    lost = EntryId(end - 1, end - start)
    return CorruptRecordError(
        f"{topic_partition}: the hot tier holds nothing for offsets {start}..{end - 1}, and no gap "
        "was declared: entries were deleted or added by hand. Compare `lakelog status` with "
        "XINFO STREAM and restore them, or give them up, so that readers skip them and go on: "
        f"`{command(topic_partition, lost)}`",
        topic_partition=topic_partition,
        offset=start,
        end_offset=end,
        entry_id=lost,
    )


def skip_it(topic_partition: TopicPartition, entry_id: EntryId | str) -> str:
    """What to do with an entry that blocks its partition, as the end of a sentence."""
    return f"skip the entry, so that others go on: `{command(topic_partition, entry_id)}`"


def command(topic_partition: TopicPartition, entry_id: EntryId | str) -> str:
    return (
        f"lakelog skip add {topic_partition.topic} -p {topic_partition.partition} "
        f"--entry {entry_id}"
    )
