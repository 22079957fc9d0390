"""Moving the committed offsets of a group to where a scenario says, and telling where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

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
from ..record import OffsetAndMetadata, TopicPartition
from .partition_facts import log_ranges, partition_facts


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """Where a group stands in one partition."""

    topic_partition: TopicPartition
    committed: int | None  # None: nothing is committed of the topic as it is now
    log_end: int | None  # None: there is no such partition (any more)
    member: MemberDescription | None = None  # who reads it now

    @property
    def lag(self) -> int | None:
        """Offsets up to the log end, as kafka-consumer-groups counts; None: not known."""
        if self.committed is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.committed)


class GroupOffsetsAdmin:
    """Looks at the offsets of groups, and moves them.

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

    def describe(self, group: GroupDescription) -> list[GroupPartition]:
        """Each partition of which something is committed, or which a member reads; in order."""
        owners = dict(_owners(group))
        logs = self._there(group.group_id, owners)
        committed = self._committed(group.group_id, logs)
        asked = sorted({*owners, *self._coordinator.committed(group.group_id)})
        there = [
            tp
            for tp in asked
            if tp.topic in logs and tp.partition < logs[tp.topic].topic.partitions
        ]
        ranges = log_ranges(logs, there)
        return [
            GroupPartition(
                tp,
                committed.get(tp),
                ranges[tp][1] if tp in ranges else None,
                owners.get(tp),
            )
            for tp in asked
        ]

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """Those of which the group has committed something, of topics that are there."""
        logs = self._there(group_id, ())
        return sorted(self._committed(group_id, logs))

    def plan(
        self, group_id: str, scenario: Scenario, partitions: Iterable[TopicPartition]
    ) -> tuple[ResetOffset, ...]:
        """Where a scenario moves the group; nothing is done. See `plan_reset`.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic or partition.
            NoOffsetForPartitionError: a shift where nothing is committed.
            NonEmptyGroupError: the group has members.
        """
        check_inactive(self._admin.describe(group_id))
        asked = [*(scenario.offsets if isinstance(scenario, FromFile) else partitions)]
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
