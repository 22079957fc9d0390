"""Tells where groups and share groups stand, and moves them to where a scenario says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from ..errors import GroupIdNotFoundError, NonEmptyGroupError, UnknownTopicOrPartitionError
from ..groups.admin import GroupAdmin, ShareGroupAdmin, ShareGroupDescription
from ..groups.coordinator import GroupCoordinator
from ..groups.group_values import GroupDescription, GroupState, MemberDescription
from ..groups.protocol import PROTOCOL_TYPE, Assignment
from ..groups.reset import (
    FromFile,
    PartitionFacts,
    ResetOffset,
    Scenario,
    check_inactive,
    plan_reset,
    target_ms,
)
from ..groups.share.share_partitions import SharePartitions
from ..groups.share.share_values import SharePartitionDescription
from ..read.topic_log import TopicLog
from ..values.arguments import Partitions, checked_partitions
from ..values.offsets import AtTimestamp, LogOffsets
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .group_lag import Behind


class GroupPartition(Struct, frozen=True):
    """Where a group stands in one partition."""

    topic_partition: TopicPartition
    committed: int | None  # None: nothing is committed of the topic as it is now
    log_end: int | None  # None: there is no such partition (any more)
    member: MemberDescription | None = None  # who reads it now
    lag_records: int | None = None  # see `GroupLag`; None: nothing is committed, or no log end
    lag_ms: int | None = None  # age of the first of them; None: there is none, or it is not known

    @property
    def is_beyond_end(self) -> bool:
        """Whether that is committed which the log has not come to: a reader has no such offset."""
        if self.committed is None or self.log_end is None:
            return False
        return self.committed > self.log_end


class GroupOffsetsAdmin:
    """The offsets of groups: looks at them, and moves them. ``lake.group_offsets``; thread-safe.

    Args:
        logs: gives the log of a topic.
        now_ms: what a duration is counted back from.
    """

    def __init__(
        self,
        logs: Callable[[str], TopicLog],
        coordinator: GroupCoordinator,
        admin: GroupAdmin,
        now_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._coordinator = coordinator
        self._admin = admin
        self._now_ms = now_ms

    def describe(self, group_id: str) -> list[GroupPartition]:
        """Each partition of which something is committed, or which a member reads; in order."""
        (found,) = self.described([self._admin.describe(group_id)])
        return found

    def described(self, groups: Iterable[GroupDescription]) -> list[list[GroupPartition]]:
        """As `describe`, of several groups, in their order.

        The records that say how old they are, are read for 20 s in all.
        """
        behind = Behind(self._logs)
        return [self._described(group, behind) for group in groups]

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """What the group has committed of topics as they are now, by topic and partition."""
        logs = self._there(group_id, ())
        return dict(sorted(self._committed(group_id, logs).items()))

    def plan(
        self, group_id: str, scenario: Scenario, partitions: Partitions
    ) -> tuple[ResetOffset, ...]:
        """Where a scenario moves the group; nothing is done. See `plan_reset`.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic or partition.
            NoOffsetForPartitionError: a shift where nothing is committed.
            NonEmptyGroupError: the group has members.
        """
        check_inactive(self._admin.describe(group_id))
        known = partial(self._committed, group_id)
        return _planned(scenario, partitions, self._logs, known, self._now_ms())

    def apply(self, group_id: str, planned: Sequence[ResetOffset]) -> None:
        """Commits what was planned: all of it, or nothing.

        Raises:
            UnknownMemberIdError: the group has got members since.
        """
        if planned:
            ids = {
                topic: self._logs(topic).topic.topic_id
                for topic in {one.topic_partition.topic for one in planned}
            }
            offsets = {one.topic_partition: OffsetAndMetadata(one.offset) for one in planned}
            self._coordinator.commit(group_id, offsets, topic_ids=ids)

    # -- how -----------------------------------------------------------------------------------

    def _described(self, group: GroupDescription, behind: Behind) -> list[GroupPartition]:
        owners = dict(_owners(group))
        logs = self._there(group.group_id, owners)
        committed = self._committed(group.group_id, logs)
        asked = sorted({*owners, *self._coordinator.committed(group.group_id)})
        there = (
            tp
            for tp in asked
            if tp.topic in logs and tp.partition < logs[tp.topic].topic.partitions
        )
        ends = _offsets(logs, there)
        found = []
        for tp in asked:
            log, offset, member = ends.get(tp), committed.get(tp), owners.get(tp)
            if log is None or offset is None:
                log_end = None if log is None else log.log_end
                found.append(GroupPartition(tp, offset, log_end, member))
                continue
            lag = behind.of(tp, offset, log.unread(offset))
            found.append(GroupPartition(tp, offset, log.log_end, member, *lag))
        return found

    def _there(self, group_id: str, more: Iterable[TopicPartition]) -> dict[str, TopicLog]:
        """The logs of the group's topics that are there."""
        found = {}
        for topic in {tp.topic for tp in (*self._coordinator.committed(group_id), *more)}:
            try:
                found[topic] = self._logs(topic)
            except UnknownTopicOrPartitionError:
                continue
        return found

    def _committed(self, group_id: str, logs: Mapping[str, TopicLog]) -> dict[TopicPartition, int]:
        """What is committed of these topics as they are now."""
        return {
            tp: one.committed.offset
            for tp, one in self._coordinator.committed(group_id).items()
            if tp.topic in logs
            and tp.partition < logs[tp.topic].topic.partitions
            and one.topic_id in (None, logs[tp.topic].topic.topic_id)
        }


def _owners(group: GroupDescription) -> Iterable[tuple[TopicPartition, MemberDescription]]:
    if group.protocol_type == PROTOCOL_TYPE:
        for member in group.members:
            for partition in Assignment.decode(member.assignment).partitions:
                yield partition, member


class ShareGroupPartition(Struct, frozen=True):
    """Where a share group stands in a partition, and what there is left for it."""

    description: SharePartitionDescription
    lag_records: int | None  # see `GroupLag`; None: the topic was deleted, or made again
    lag_ms: int | None  # age of the first at or behind the start; None: no lag, or it is not known


class ShareGroupOffsets:
    """Where share groups begin: tells what is left, and moves the share-partition start offsets of
    groups of which nobody holds records. ``lake.share_group_offsets``; thread-safe.

    Args:
        logs: gives the log of a topic.
        shares: gives a group in its partitions.
        now_ms: what a duration is counted back from.
    """

    def __init__(
        self,
        logs: Callable[[str], TopicLog],
        admin: ShareGroupAdmin,
        shares: Callable[[str], SharePartitions],
        now_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._admin = admin
        self._shares = shares
        self._now_ms = now_ms

    def described(self, groups: Iterable[ShareGroupDescription]) -> list[list[ShareGroupPartition]]:
        """How far each of these groups is behind in its partitions, in their order.

        The records that say how old they are, are read for 20 s in all.
        """
        behind = Behind(self._logs)
        return [[self._left(one, behind) for one in group.partitions] for group in groups]

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """Those in which the group is, of topics that are there."""
        described = self._admin.describe(group_id).partitions
        return [one.topic_partition for one in described if one.log_end is not None]

    def plan(
        self, group_id: str, scenario: Scenario, partitions: Partitions
    ) -> tuple[ResetOffset, ...]:
        """Where a scenario has the group begin; nothing is done. See `plan_reset`.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic or partition.
            NonEmptyGroupError: members hold records.
        """
        group = self._admin.describe(group_id)
        check_unheld(group)
        starts = {one.topic_partition: one.start_offset for one in group.partitions}
        return _planned(scenario, partitions, self._logs, lambda _: starts, self._now_ms())

    def apply(self, group_id: str, planned: Sequence[ResetOffset]) -> None:
        """Has the group begin there: what it knew of records from there on is forgotten.

        Raises:
            NonEmptyGroupError: somebody has taken records since; partitions before that one moved.
        """
        for one in planned:
            self._move(group_id, one.topic_partition, one.offset)

    def delete_offsets(
        self, group_id: str, partitions: Partitions
    ) -> Mapping[TopicPartition, bool]:
        """Has the group begin there as where it never was, by ``share_auto_offset_reset``.

        Returns:
            Whether it was there, of each partition.

        Raises:
            GroupIdNotFoundError: there is no such group.
            NonEmptyGroupError: members hold records; nothing was deleted, unless they took them
                just now.
        """
        asked = checked_partitions(partitions)
        group = self._admin.describe(group_id)
        if group.state is GroupState.DEAD:
            raise GroupIdNotFoundError(
                f"there is no share group {group_id!r}; lake.share_groups.list() names those there "
                "are",
                group_id=group_id,
            )
        check_unheld(group)
        return {tp: self._move(group_id, tp, None) for tp in dict.fromkeys(asked)}

    def _left(self, one: SharePartitionDescription, behind: Behind) -> ShareGroupPartition:
        tp = one.topic_partition
        if one.log_end is None:
            return ShareGroupPartition(one, None, None)
        log = self._logs(tp.topic).offsets([tp.partition])[tp.partition]
        undone = one.undone(log.gaps) or 0
        records, age_ms = behind.of(tp, one.start_offset, log.unread(one.start_offset))
        records = min(records, undone)  # it may be done with records above its start
        return ShareGroupPartition(one, records, age_ms if records else None)

    def _move(self, group_id: str, partition: TopicPartition, start: int | None) -> bool:
        topic_id = self._logs(partition.topic).topic.topic_id
        was_there = self._shares(group_id).move(partition, topic_id, start)
        if was_there is None:
            check_unheld(self._admin.describe(group_id), partition)
            return self._move(group_id, partition, start)  # the locks have just ended
        return was_there


def check_unheld(group: ShareGroupDescription, partition: TopicPartition | None = None) -> None:
    """Raises unless a group may begin elsewhere.

    Raises:
        NonEmptyGroupError: members hold records, of which they would say something, or clients
            of Kafka are in it.
    """
    members = tuple(sorted(group.member_ids))
    if members:
        where = "" if partition is None else f" of {partition}"
        raise NonEmptyGroupError(
            f"members of share group {group.group_id!r} hold records{where} or wait "
            f"for them ({', '.join(members[:5])}{', …' if len(members) > 5 else ''}), so it stays "
            "where it is. Stop them, or wait until their locks and sessions are over",
            group_id=group.group_id,
            members=members,
        )


def _planned(
    scenario: Scenario,
    partitions: Partitions,
    logs: Callable[[str], TopicLog],
    known: Callable[[Mapping[str, TopicLog]], Mapping[TopicPartition, int]],
    now_ms: int,
) -> tuple[ResetOffset, ...]:
    """Where a scenario moves a group.

    Args:
        known: where the group is in these logs, as far as it is anywhere.
    """
    asked = checked_partitions(scenario.offsets if isinstance(scenario, FromFile) else partitions)
    opened = {tp.topic: logs(tp.topic) for tp in asked}
    there, at_ms = known(opened), target_ms(scenario, now_ms)
    facts = {}
    for tp, log in _offsets(opened, asked).items():
        found = None if at_ms is None else opened[tp.topic].seek(tp.partition, AtTimestamp(at_ms))
        facts[tp] = PartitionFacts(log.log_start, log.log_end, there.get(tp), found)
    return plan_reset(scenario, facts)


def _offsets(
    logs: Mapping[str, TopicLog], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LogOffsets]:
    """Where each begins and ends.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(logs[topic].topic.partition(number).partition)
    return {
        TopicPartition(topic, number): found
        for topic, numbers in by_topic.items()
        for number, found in logs[topic].offsets(numbers).items()
    }
