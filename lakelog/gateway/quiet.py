"""Partitions of which a connection knows that nothing is new, so that they need not be read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from ..hot.asynchronous import AsyncHotLog
from ..values.topic_partition import TopicPartition

#: They are read again after so long, as somebody may delete records or bring an older log back.
_MAX_AGE_S = 5.0


class _Seen(NamedTuple):
    """A partition as it was read last."""

    topic_id: UUID
    log_end: int
    log_start: int
    read_s: float


class Quiet:
    """What one connection has read to the end, and follows since.

    A consumer asks for all its partitions again and again, and few of them have anything new.
    """

    def __init__(self, hot: AsyncHotLog) -> None:
        self.hot = hot
        self._follower = hot.follower()
        self._seen: dict[TopicPartition, _Seen] = {}

    def log_start(
        self, topic_partition: TopicPartition, topic_id: UUID, position: int
    ) -> int | None:
        """The log start, if the position is the log end since it was read."""
        seen = self._seen.get(topic_partition)
        if (
            seen is None
            or (seen.topic_id, seen.log_end) != (topic_id, position)
            or seen.read_s < time.monotonic() - _MAX_AGE_S
            or not self._follower.follows(topic_partition, position)
        ):
            return None
        return seen.log_start

    def read_to_end(
        self, topic_partition: TopicPartition, topic_id: UUID, log_end: int, log_start: int
    ) -> None:
        """Takes note of a partition that has been read; it is followed once it is waited for."""
        self._seen[topic_partition] = _Seen(topic_id, log_end, log_start, time.monotonic())

    async def wait(
        self, positions: Mapping[TopicPartition, int], left_s: float
    ) -> set[TopicPartition]:
        """As `PartitionFollower.wait`."""
        return await self._follower.wait(positions, left_s)

    def keep(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Forgets all others."""
        self._seen = {tp: self._seen[tp] for tp in topic_partitions if tp in self._seen}

    def close(self) -> None:
        """Follows nothing any more."""
        self._follower.close()
