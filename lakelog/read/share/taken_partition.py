"""One partition that a share consumer takes from: what it holds, and how that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...errors import OffsetOutOfRangeError
from ...groups.share.share_values import Acknowledgement, AcquiredRange, Outcome
from ...values.record import Record, empty_records
from ...values.topic_partition import TopicPartition
from ..topic_log import TopicLog
from .acquired_reader import AcquiredReader, Stretch
from .held_records import HeldRecords


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
