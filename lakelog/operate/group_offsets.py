"""Moving the committed offsets of a group to where a scenario says, and telling where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from ..errors import UnknownTopicOrPartitionError
from ..groups.admin import GroupAdmin
from ..groups.coordinator import GroupCoordinator
from ..groups.description import GroupDescription, MemberDescription
from ..groups.protocol import PROTOCOL_TYPE, Assignment
from ..groups.reset import (
    FromFile,
    ResetOffset,
    Scenario,
    check_inactive,
    plan_reset,
    target_ms,
)
from ..read.topic_log import TopicLog
from ..values.arguments import Partitions, checked_partitions
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .group_lag import Behind
from .partition_facts import log_offsets, partition_facts


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
        asked = checked_partitions(
            scenario.offsets if isinstance(scenario, FromFile) else partitions
        )
        logs = {tp.topic: self._logs(tp.topic) for tp in asked}
        committed = self._committed(group_id, logs)
        at_ms = target_ms(scenario, self._now_ms())
        return plan_reset(scenario, partition_facts(logs, asked, committed, at_ms))

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
        ends = log_offsets(logs, there)
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
