"""Moving where share groups begin to where a scenario says, and forgetting that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from ..errors import GroupIdNotFoundError, NonEmptyGroupError
from ..groups.description import GroupState
from ..groups.reset import ResetOffset, Scenario, plan_reset, target_ms
from ..groups.share.admin import ShareGroupAdmin, ShareGroupDescription
from ..groups.share.share_partitions import SharePartitions
from ..groups.share.share_values import SharePartitionDescription
from ..read.topic_log import TopicLog
from ..values.arguments import Partitions, checked_partitions
from ..values.topic_partition import TopicPartition
from .group_lag import Behind
from .partition_facts import partition_facts


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
        at_ms = target_ms(scenario, self._now_ms())
        asked = checked_partitions(partitions)
        logs = {tp.topic: self._logs(tp.topic) for tp in asked}
        return plan_reset(scenario, partition_facts(logs, asked, starts, at_ms))

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
        NonEmptyGroupError: members hold records, of which they would say something.
    """
    members = tuple(sorted(group.member_ids))
    if members:
        where = "" if partition is None else f" of {partition}"
        raise NonEmptyGroupError(
            f"members of share group {group.group_id!r} hold records{where} "
            f"({', '.join(members[:5])}{', …' if len(members) > 5 else ''}), so it stays where it "
            "is. Stop them, or wait until their locks are over",
            group_id=group.group_id,
            members=members,
        )
