"""What readers need of a hot tier, and a hot tier that holds nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol
from uuid import UUID

from ..base.clock import Clock, SystemClock
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import TrimmedError
from ..hot.fetch import READ_STEP_BYTES
from ..hot.waits import Waker
from ..values.offsets import HotOffsets, HotSegments
from ..values.record import Fetched, OffsetAndTimestamp
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition

#: How often a wait for archived records looks at the tables.
POLL_INTERVAL_S = 1.0


class HotTier(Protocol):
    """The reading side of `HotLog`; see there."""

    def now_ms(self) -> int:
        """The tier's time."""
        ...

    def renewed(self, topic: Topic) -> Topic:
        """The topic as it is now, with its settings."""
        ...

    def offsets(
        self, topic_partitions: Iterable[TopicPartition], *, topic_id: UUID | None = None
    ) -> dict[TopicPartition, HotOffsets]:
        """Where partitions begin and end."""
        ...

    def segments(
        self, topic_partitions: Iterable[TopicPartition], *, topic_id: UUID | None = None
    ) -> dict[TopicPartition, HotSegments]:
        """As `offsets`, with the segments."""
        ...

    def read(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None = None,
        *,
        max_bytes: int = READ_STEP_BYTES,
        lead_bytes: int | None = None,
        topic_id: UUID | None = None,
    ) -> Iterator[Fetched]:
        """Steps to the log end, or to an offset if that comes first."""
        ...

    def offset_for_timestamp(
        self, topic_partition: TopicPartition, timestamp_ms: int, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """The earliest offset whose timestamp is at or after the target, or None."""
        ...

    def max_timestamp(
        self, topic_partition: TopicPartition, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """The first record with the largest timestamp, or None."""
        ...

    def wait(
        self,
        positions: Mapping[TopicPartition, int],
        timeout_ms: int,
        waker: Waker | None = None,
    ) -> set[TopicPartition]:
        """Block until a partition has something at or above its position, or the time is over."""
        ...


class NothingHot:
    """A `HotTier` without records that begins where the cold tier ends, so the log ends there.

    Args:
        table_of: gives the cold tier of a topic by its name, and by its id if that is given.
        clock: the time from which "10 minutes ago" is counted.
    """

    def __init__(
        self, table_of: Callable[[str, UUID | None], ColdTable], clock: Clock | None = None
    ) -> None:
        self._table_of = table_of
        self._clock = clock or SystemClock()

    def now_ms(self) -> int:
        """See `HotTier.now_ms`: this machine's time, since there is no other."""
        return self._clock.now_ms()

    def renewed(self, topic: Topic) -> Topic:
        """See `HotTier.renewed`: as its table tells it."""
        return self._table_of(topic.name, topic.topic_id).mirrored() or topic

    def offsets(
        self, topic_partitions: Iterable[TopicPartition], *, topic_id: UUID | None = None
    ) -> dict[TopicPartition, HotOffsets]:
        return {**self.segments(topic_partitions, topic_id=topic_id)}

    def segments(
        self, topic_partitions: Iterable[TopicPartition], *, topic_id: UUID | None = None
    ) -> dict[TopicPartition, HotSegments]:
        """See `HotTier.segments`: there are none."""
        asked = list(topic_partitions)
        names = {tp.topic for tp in asked}
        cold = {name: self._table_of(name, topic_id).snapshot() for name in names}
        return {tp: one for tp in asked for one in nothing_above(cold[tp.topic], [tp]).values()}

    def read(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None = None,
        *,
        max_bytes: int = READ_STEP_BYTES,
        lead_bytes: int | None = None,
        topic_id: UUID | None = None,
    ) -> Iterator[Fetched]:
        """See `HotTier.read`.

        Raises (while iterating):
            TrimmedError: the offset is archived.
        """
        seen = self.offsets([topic_partition], topic_id=topic_id)
        end = seen[topic_partition].log_end
        if start_offset < end:
            raise TrimmedError(
                f"offset {start_offset} of {topic_partition} is archived, and no hot tier was "
                "asked",
                topic_partition=topic_partition,
                offset=start_offset,
                local_log_start=end,
            )
        yield from ()

    def offset_for_timestamp(
        self, topic_partition: TopicPartition, timestamp_ms: int, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        return None

    def max_timestamp(
        self, topic_partition: TopicPartition, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        return None

    def wait(
        self,
        positions: Mapping[TopicPartition, int],
        timeout_ms: int,
        waker: Waker | None = None,
    ) -> set[TopicPartition]:
        """See `HotTier.wait`: looks at the tables now and then."""
        deadline_s = time.monotonic() + timeout_ms / 1000
        while True:
            found = self.offsets(positions)
            ahead = {tp for tp, offsets in found.items() if offsets.log_end > positions[tp]}
            left_s = deadline_s - time.monotonic()
            if ahead or left_s <= 0:
                return ahead
            time.sleep(min(POLL_INTERVAL_S, left_s))


def nothing_above(
    cold: ColdSnapshot, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, HotSegments]:
    """A hot tier without records that begins where the cold one ends."""
    ends = {tp: cold.archive_start(tp.partition) for tp in topic_partitions}
    return {tp: HotSegments(end, end, -1, 0, segment_count=0) for tp, end in ends.items()}
