"""How far groups are behind: in records, in time, and who is in them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from ..errors import LakelogError
from ..groups.admin import GroupAdmin, ShareGroupAdmin
from ..groups.group_records import GroupRecords
from ..groups.group_values import GroupState
from ..groups.recorded_offset import GroupType, RecordedOffset
from ..read.topic_log import TopicLog
from ..values.offsets import LogOffsets
from ..values.topic_partition import OffsetRange, TopicPartition

logger = logging.getLogger(__name__)

#: For so long the first unread records of groups are read, which say how old they are. In a cold
#: tier that is slow there may be time for a few hundred of them.
READING_S = 20.0

#: Which offset of which group: its id, its type, the partition.
GroupPlace = tuple[str, GroupType, TopicPartition]


class GroupOffset(Struct, frozen=True):
    """Where a group is in a partition, as Redis tells it without a record being read."""

    group_id: str
    group_type: GroupType
    topic_partition: TopicPartition
    offset: int  # committed; of a share group, below which all is done with
    log_end: int
    unread: int  # records appended behind it, at most: compaction may have removed some
    gaps: tuple[OffsetRange, ...] = ()  # of the partition: offsets that no record has

    @classmethod
    def of(cls, recorded: RecordedOffset, log: LogOffsets) -> GroupOffset:
        """Where that is in the partition."""
        offset = recorded.committed.offset
        return cls(
            recorded.group_id,
            recorded.group_type,
            recorded.topic_partition,
            offset,
            log.log_end,
            log.unread(offset),
            log.gaps,
        )

    @property
    def place(self) -> GroupPlace:
        """What tells it from the others."""
        return self.group_id, self.group_type, self.topic_partition


class GroupLag(Struct, frozen=True):
    """How far a group is behind in a partition."""

    group_id: str
    group_type: GroupType
    topic_partition: TopicPartition
    state: GroupState
    members: int  # of the group; of a share group, see its `member_ids`
    offset: int  # committed; of a share group, below which all is done with
    log_end: int
    lag_records: int  # that are there and were not read; at most, where `lag_ms` is not known
    lag_ms: int | None  # age of the first of them; None: there is none, or it is not known


class GroupLags:
    """Looks at all groups of one keyspace. Thread-safe.

    `offsets` costs a few round trips, however many groups there are; `lags` a few for each group,
    and reads a record for each position that is behind.

    Args:
        logs: gives the log of a topic.
    """

    def __init__(
        self,
        records: GroupRecords,
        groups: GroupAdmin,
        shares: ShareGroupAdmin,
        logs: Callable[[str], TopicLog],
    ) -> None:
        self._records = records
        self._groups = groups
        self._shares = shares
        self._logs = logs

    def offsets(self, topics: Collection[str] | None = None) -> list[GroupOffset]:
        """Where each group is, by group, topic and partition.

        What was committed of a topic that is not there any more is left out, and so are topics that
        cannot be looked at.

        Args:
            topics: names; None for all.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        by_topic: dict[str, list[RecordedOffset]] = {}
        for one in self._records.read().offsets:
            if topics is None or one.topic_partition.topic in topics:
                by_topic.setdefault(one.topic_partition.topic, []).append(one)
        found = [one for topic, seen in by_topic.items() for one in self._of_topic(topic, seen)]
        return sorted(found, key=lambda one: (one.group_id, one.group_type, one.topic_partition))

    def lags(self, offsets: Iterable[GroupOffset]) -> list[GroupLag]:
        """How far groups are behind there; those that are gone meanwhile are left out.

        The records that say how old they are, are read in this order, for `READING_S`.

        Args:
            offsets: some of those that `offsets` gave.
        """
        asked = list(offsets)
        classic = {one.group_id for one in asked if one.group_type is GroupType.CLASSIC}
        shared = {one.group_id for one in asked if one.group_type is GroupType.SHARE}
        known: dict[tuple[str, GroupType], tuple[GroupState, int]] = {}
        for group in map(self._groups.describe, sorted(classic)):
            known[group.group_id, GroupType.CLASSIC] = (group.state, len(group.members))
        gaps = {one.topic_partition: one.gaps for one in asked}
        undone: dict[GroupPlace, int] = {}
        for shares in self._shares.described(sorted(shared)):
            known[shares.group_id, GroupType.SHARE] = (shares.state, len(shares.member_ids))
            for part in shares.partitions:
                place = shares.group_id, GroupType.SHARE, part.topic_partition
                undone[place] = part.undone(gaps.get(part.topic_partition, ())) or 0
        behind = Behind(self._logs)
        lags = []
        for one in asked:
            state, members = known[one.group_id, one.group_type]
            if state is GroupState.DEAD:
                continue
            records, age_ms = behind.of(one.topic_partition, one.offset, one.unread)
            # A share group may be done with records above its start.
            records = min(records, undone.get(one.place, records))
            lags.append(
                GroupLag(
                    one.group_id,
                    one.group_type,
                    one.topic_partition,
                    state,
                    members,
                    one.offset,
                    one.log_end,
                    records,
                    age_ms if records else None,
                )
            )
        return lags

    def _of_topic(self, topic: str, seen: Sequence[RecordedOffset]) -> Iterable[GroupOffset]:
        try:
            log = self._logs(topic)
            current = [one for one in seen if one.is_of(log.topic)]
            numbers = sorted({one.topic_partition.partition for one in current})
            ends = log.offsets(numbers) if numbers else {}
        except LakelogError as error:
            logger.info("how far groups are behind in %s is not known: %s", topic, error)
            return
        for one in current:
            yield GroupOffset.of(one, ends[one.topic_partition.partition])


class Behind:
    """What is left to read from positions on, each asked for once, for `READING_S` in all.

    Args:
        logs: gives the log of a topic.
    """

    def __init__(self, logs: Callable[[str], TopicLog]) -> None:
        self._logs = logs
        self._opened: dict[str, TopicLog] = {}
        self._known: dict[tuple[TopicPartition, int], tuple[int, int | None]] = {}
        self._until_s = time.monotonic() + READING_S

    def of(
        self, topic_partition: TopicPartition, offset: int, unread: int
    ) -> tuple[int, int | None]:
        """How many records that are there lie behind an offset, and how old the first of them is.

        Args:
            unread: how many there are at most, see `LogOffsets.unread`.

        Returns:
            The records, and the age in ms. An age of None: there is none, or it is not known; then
            the records are `unread`.
        """
        if not unread:
            return 0, None
        place = topic_partition, offset
        if place not in self._known:
            self._known[place] = self._asked(*place, unread)
        return self._known[place]

    def _asked(
        self, topic_partition: TopicPartition, offset: int, unread: int
    ) -> tuple[int, int | None]:
        if time.monotonic() >= self._until_s:
            return unread, None
        topic, partition = topic_partition
        try:
            if topic not in self._opened:
                self._opened[topic] = self._logs(topic)
            found = self._opened[topic].lag(partition, offset)
        except LakelogError as error:  # deleted meanwhile, or its file cannot be read just now
            logger.info(
                "how far %d of %s is behind is not known: %s", offset, topic_partition, error
            )
            return unread, None
        return found.records.records, found.age_ms
