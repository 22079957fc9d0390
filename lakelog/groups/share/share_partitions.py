"""Share groups in partitions: taking records from the queue, and saying what became of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from ...base.clock import Clock
from ...errors import InvalidRecordStateError, UnknownTopicIdError
from ...hot.connection import Servers, call_script
from ...hot.foreign import foreign_if_illegible
from ...hot.keys import DEFAULT_KEYSPACE, Keys
from ...values.topic_partition import TopicPartition
from ..group_values import check_group_id
from ..settings import DEFAULT_SETTINGS, MOST_RANGES_FACTOR, ShareGroupSettings
from .share_values import (
    ANY_EPOCH,
    Acknowledgement,
    AcquiredRange,
    Acquisition,
    Outcome,
    RangeState,
    SharePartitionDescription,
    ShareRange,
)


class SharePartitions:
    """One share group in the partitions of one keyspace. Thread-safe.

    There is no process that coordinates: the state of a partition lies beside its stream, scripts
    change it, and locks whose time is over end when somebody takes from the partition. A member is
    an id, made up by itself: it holds records for as long as its locks last.

    Args:
        servers: from `connection.connect`.
        clock: only for tests; without one the scripts ask Redis for the time.

    Raises:
        InvalidArgumentError: not an id.
    """

    def __init__(
        self,
        servers: Servers,
        group_id: str,
        keyspace: str = DEFAULT_KEYSPACE,
        settings: ShareGroupSettings = DEFAULT_SETTINGS,
        clock: Clock | None = None,
    ) -> None:
        self.group_id = check_group_id(group_id)
        self.settings = settings
        self._servers = servers
        self._keys = Keys(keyspace)
        self._clock = clock

    def acquire(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        member_id: str,
        max_records: int,
        begin: int | None = None,
    ) -> Acquisition | None:
        """Takes the first records that nobody holds, for as long as the group's locks last.

        Args:
            max_records: how many offsets at most. Some of them may hold no record.
            begin: where the group begins if it was never in this partition.

        Returns:
            None: it was never there, and `begin` was not said.

        Raises:
            UnknownTopicIdError: the topic was deleted, or made again.
        """
        if begin is not None:
            self._list(topic_partition, topic_id)
        settings = self.settings
        code, *found = self._call(
            "acquire",
            topic_partition,
            topic_id,
            [
                *(member_id, max_records, settings.record_lock_duration_ms),
                *(settings.delivery_count_limit, settings.partition_max_record_locks),
                *(self._has_dead_letters, "" if begin is None else begin),
            ],
        )
        if code == b"NEW":
            return None
        end_offset, log_end, due, is_full, epoch, count, *numbers = found
        ranges = [
            AcquiredRange(int(start), int(end), int(deliveries), int(epoch))
            for start, end, deliveries in zip(*[iter(numbers)] * 3, strict=True)
        ]
        delivered = int(count)
        return Acquisition(
            tuple(ranges[:delivered]),
            tuple(ranges[delivered:]),
            int(end_offset),
            int(log_end),
            int(due) if due else None,
            bool(is_full),
        )

    def acknowledge(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
    ) -> list[bool]:
        """Says what became of what the member holds.

        Args:
            acknowledgements: in order of offsets, no two of one offset.

        Returns:
            Whether each was taken; one that was not speaks of something the member does not hold
            (any more), and nothing of it was done.

        Raises:
            InvalidRecordStateError: nothing was done.
            UnknownTopicIdError: the topic was deleted, or made again.
        """
        if not acknowledgements:
            return []
        settings = self.settings
        most = settings.partition_max_record_locks * MOST_RANGES_FACTOR
        code, *results = self._call(
            "acknowledge",
            topic_partition,
            topic_id,
            [
                *(member_id, settings.delivery_count_limit, self._has_dead_letters),
                settings.record_lock_duration_ms,
                most,
                *(
                    part
                    for one in acknowledgements
                    for part in (one.start, one.end, one.epoch, one.outcome.value)
                ),
            ],
        )
        if code == b"TOO_MANY_RANGES":
            raise InvalidRecordStateError(
                f"these acknowledgements would leave share group {self.group_id!r} with more than "
                f"{most} ranges of unlike records in {topic_partition}; none was taken. "
                "Acknowledge neighbouring offsets together, in their order, or poll fewer records",
                group_id=self.group_id,
                topic_partition=topic_partition,
                max_ranges=most,
            )
        return [result == b"OK" for result in results]

    def release(self, topic_partition: TopicPartition, topic_id: UUID, member_id: str) -> None:
        """Has others get whatever the member holds, as if it never had been delivered.

        Raises:
            UnknownTopicIdError: the topic was deleted, or made again.
        """
        found = self.describe(topic_partition, topic_id)
        held = [
            Acknowledgement(one.start, one.end, ANY_EPOCH, Outcome.UNREAD)
            for one in (found.ranges if found else ())
            if one.member_id == member_id
        ]
        self.acknowledge(topic_partition, topic_id, member_id, held)

    def describe(
        self, topic_partition: TopicPartition, topic_id: UUID | None = None
    ) -> SharePartitionDescription | None:
        """Where the group stands in a partition; None if it was never there."""
        answer = self._call("look", topic_partition, topic_id, [])
        if answer[0] == b"NONE":
            return None
        with foreign_if_illegible(answer, "share group"):
            now_ms, _, end_offset, log_end, *parts = answer[1:]
            ranges = tuple(
                ShareRange(
                    int(start),
                    int(end),
                    RangeState(int(state)),
                    int(count),
                    owner.decode() or None,
                    int(deadline) or None,
                )
                for start, end, state, count, owner, deadline in zip(
                    *[iter(parts)] * 6, strict=True
                )
            )
            return SharePartitionDescription(
                topic_partition,
                ranges[0].start if ranges else int(end_offset),
                int(end_offset),
                int(log_end) if log_end else None,
                ranges,
                int(now_ms),
            )

    def move(
        self, topic_partition: TopicPartition, topic_id: UUID, start: int | None
    ) -> bool | None:
        """Has the group begin elsewhere in a partition; whatever it knew of it is forgotten.

        Args:
            start: at most the log end; None: as if it had never been there.

        Returns:
            Whether it was there before; None: somebody holds records, and nothing was done.

        Raises:
            UnknownTopicIdError: the topic was deleted, or made again.
        """
        if start is not None:
            self._list(topic_partition, topic_id)
        begin = "" if start is None else start
        code, *was_there = self._call("move", topic_partition, topic_id, [begin])
        return None if code == b"HELD" else bool(was_there[0])

    def forget(self, topic_partition: TopicPartition) -> None:
        """Takes the group's state in a partition away, whoever holds something."""
        self._call("forget", topic_partition, None, [])
        field = share_field(self.group_id, topic_partition)
        self._servers.for_key(self._keys.share_groups).call(
            ("HDEL", self._keys.share_groups, field)
        )

    @property
    def _has_dead_letters(self) -> str:
        return "" if self.settings.dead_letter_topic is None else "1"

    def _list(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        key = self._keys.share_groups
        field = share_field(self.group_id, topic_partition)
        self._servers.for_key(key).call(("HSET", key, field, str(topic_id)))

    def _call(
        self,
        script: str,
        topic_partition: TopicPartition,
        topic_id: UUID | None,
        arguments: Sequence[Any],
    ) -> Any:
        keys = self._keys.partition(topic_partition)
        now_ms = "" if self._clock is None else self._clock.now_ms()
        asked = "" if topic_id is None else str(topic_id)
        answer = call_script(
            self._servers,
            f"groups/share/{script}",
            (keys.shares,),
            [now_ms, self.group_id, asked, *arguments],
        )
        if isinstance(answer, list) and answer[0] == b"UNKNOWN_TOPIC_ID":
            raise UnknownTopicIdError(
                f"topic {topic_partition.topic!r} was deleted, or deleted and made again, since it "
                "was looked up; look it up again",
                topic=topic_partition.topic,
                topic_id=topic_id,
            )
        return answer


def share_field(group_id: str, topic_partition: TopicPartition) -> str:
    """How the list of share groups names one of them in a partition."""
    return json.dumps([group_id, *topic_partition], ensure_ascii=False)


def listed_partitions(servers: Servers, keys: Keys) -> Iterator[tuple[str, TopicPartition]]:
    """Each group and partition of which there may be something.

    Raises:
        ForeignEntryError: somebody else wrote to the list.
    """
    (fields,) = servers.for_key(keys.share_groups).call(("HKEYS", keys.share_groups))
    for field in sorted(fields):
        with foreign_if_illegible(field, "place of a share group"):
            group_id, topic, partition = json.loads(field)
            found = check_group_id(group_id), TopicPartition(str(topic), int(partition))
        yield found
