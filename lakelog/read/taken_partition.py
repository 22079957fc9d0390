"""One partition that a share consumer takes from: what it holds, and how that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..base import compute as pc
from ..errors import OffsetOutOfRangeError
from ..groups.share.share_values import Acknowledgement, AcknowledgeType, AcquiredRange, Outcome
from ..values.config import MIB
from ..values.record import Fetched, Record, empty_records
from ..values.topic_partition import TopicPartition
from .tiers import out_of_range
from .topic_log import TopicLog

#: What a step brings: more than was asked for, since what follows is often acquired next.
_STEP_BYTES = MIB


class Stretch(Struct, frozen=True):
    """The records of [start, end), and where the next one may be."""

    records: pa.RecordBatch  # RECORDS
    start: int
    end: int
    next_offset: int  # [end, next_offset) holds no records; ≥ end


class AcquiredReader:
    """One partition, read by the log's ordinary reader, from whichever tier holds it.

    It remembers the last step and reads on behind it, so that neither an entry nor a cold file is
    read again for each range that lies in it.
    """

    def __init__(self, log: TopicLog, partition: int) -> None:
        self._log = log
        self._partition = partition
        self._steps: Iterator[Fetched] | None = None
        self._last: Fetched | None = None

    def read(self, start: int, end: int) -> Iterator[Stretch]:
        """Stretches that cover [start, end), each where the one before ended.

        Raises:
            OffsetOutOfRangeError: some of it is below the log start.
            LakelogError: a tier does not answer or is damaged.
        """
        at = start
        while at < end:
            step = self._step_at(at)
            last = min(step.next_offset, end)
            offsets = step.records.column("offset")
            first = pc.sum(pc.less(offsets, at)).as_py() or 0
            until = pc.sum(pc.less(offsets, last)).as_py() or 0
            following = offsets[until].as_py() if until < len(offsets) else step.next_offset
            yield Stretch(step.records.slice(first, until - first), at, last, max(following, last))
            at = last

    def _step_at(self, offset: int) -> Fetched:
        last = self._last
        if last is not None and last.start_offset <= offset < last.next_offset:
            return last
        if last is None or last.next_offset != offset:
            self._steps = None
        self._last = None
        while True:
            steps = self._steps or self._log.fetches(self._partition, offset, max_bytes=_STEP_BYTES)
            was_open, self._steps = self._steps is not None, None  # one that raises is over
            step = next(steps, None)
            if step is not None:
                self._steps, self._last = steps, step
                return step
            if not was_open:  # it was acquired, so the log had it
                offsets = self._log.offsets([self._partition])[self._partition]
                out_of_range(TopicPartition(self._log.topic.name, self._partition), offset, offsets)


class Coming(Struct, frozen=True):
    """Records that were read and not handed out yet, all that [start, end) has."""

    acquired: AcquiredRange
    start: int
    end: int
    records: list[Record]


class TakenPartition:
    """What one consumer has to do with one partition."""

    def __init__(self, topic_partition: TopicPartition, log: TopicLog) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.held = HeldRecords()
        self.unsent: list[Acknowledgement] = []  # said, and Redis has not heard it
        self.coming: list[Coming] = []
        self._reader = AcquiredReader(log, topic_partition.partition)

    def hand_out(self) -> list[Record]:
        """What was read, which is held from now on.

        A poll that is interrupted before has handed out nothing, so that nothing is accepted that
        nobody saw.
        """
        records = []
        for one in self.coming:
            offsets = [record.offset for record in one.records]
            self.held.add(one.acquired, one.start, one.end, offsets)
            records += one.records
        self.coming = []
        return records

    def give_back(self) -> list[Acknowledgement]:
        """What was read and is not to be handed out any more."""
        coming, self.coming = self.coming, []
        return [acknowledgement(one.acquired, one.start, one.end, Outcome.UNREAD) for one in coming]

    def stretches(self, left: Left) -> Iterator[tuple[AcquiredRange, Stretch]]:
        """Reads ranges from their beginning on.

        What was deleted since is a stretch without records.

        Args:
            left: what is left of them, kept up by the caller.

        Raises:
            LakelogError: see `AcquiredReader.read`.
        """
        while left.ranges:
            one = left.ranges[0]
            try:
                for stretch in self._reader.read(one.start, one.end):
                    yield one, stretch
            except OffsetOutOfRangeError as error:
                at = left.ranges[0].start
                if error.log_start is None or error.log_start <= at:
                    raise
                end = min(error.log_start, one.end)
                yield one, Stretch(empty_records(), at, end, error.log_start)


class Left:
    """Ranges of which more and more is done with, from the first on."""

    def __init__(self, ranges: Sequence[AcquiredRange]) -> None:
        self.ranges = [*ranges]

    def passed(self, offset: int) -> None:
        """The first of them is done with up to there."""
        if offset < self.ranges[0].end:
            self.ranges[0] = replace(self.ranges[0], start=offset)
        else:
            self.ranges.pop(0)

    def unread(self) -> list[Acknowledgement]:
        return [acknowledgement(one, one.start, one.end, Outcome.UNREAD) for one in self.ranges]


def acknowledgement(
    acquired: AcquiredRange, start: int, end: int, outcome: Outcome
) -> Acknowledgement:
    """Of a part of a range."""
    return Acknowledgement(start, end, acquired.epoch, outcome)


class _Held(Struct):
    start: int  # the offsets that are acknowledged with it: those before it hold no record
    end: int
    epoch: int
    said: AcknowledgeType | None = None
    is_renewed: bool = False


class HeldRecords:
    """Records that were handed out, and not yet settled."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}  # by offset, in order of acquisition

    def __len__(self) -> int:
        return len(self._held)

    def add(self, acquired: AcquiredRange, start: int, end: int, offsets: Sequence[int]) -> None:
        """Hand out the records at these offsets, all that [start, end) of the range has."""
        at = start
        for offset in offsets:
            self._held[offset] = _Held(at, offset + 1, acquired.epoch)
            at = offset + 1
        if offsets:
            self._held[offsets[-1]].end = end

    def say(self, offset: int, type_: AcknowledgeType) -> bool:
        """What became of a record; the last word counts. False if it is not held."""
        held = self._held.get(offset)
        if held is None:
            return False
        held.said = type_
        return True

    def unsaid(self) -> Iterator[int]:
        """The offsets of which nothing was said yet."""
        return (at for at, one in self._held.items() if one.said is None and not one.is_renewed)

    def say_the_rest(self, type_: AcknowledgeType) -> None:
        for held in self._held.values():
            if held.said is None:
                held.said = type_

    def take(self) -> list[Acknowledgement]:
        """What was said, in order of offsets; what was renewed is held on."""
        taken: list[Acknowledgement] = []
        for offset in sorted(self._held):
            held = self._held[offset]
            if held.said is None:
                continue
            outcome = Outcome.of(held.said)
            last = taken[-1] if taken else None
            if last and (last.end, last.epoch, last.outcome) == (held.start, held.epoch, outcome):
                taken[-1] = Acknowledgement(last.start, held.end, held.epoch, outcome)
            else:
                taken.append(Acknowledgement(held.start, held.end, held.epoch, outcome))
            if held.said is AcknowledgeType.RENEW:
                held.said, held.is_renewed = None, True
            else:
                del self._held[offset]
        return taken
