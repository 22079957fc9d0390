"""Share groups from outside: which there are, how far each has come, and taking them away."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from msgspec import Struct

from ...base.clock import Clock
from ...errors import GroupIdNotFoundError, NonEmptyGroupError
from ...hot.connection import Servers
from ...hot.keys import DEFAULT_KEYSPACE, Keys
from ...values.topic_partition import TopicPartition
from ..description import GroupState
from ..group_ids import check_group_id
from .share_partitions import SharePartitions, listed_partitions
from .share_values import SharePartitionDescription


class ShareGroupDescription(Struct, frozen=True):
    """A share group. One that is not there is `GroupState.DEAD`."""

    group_id: str
    partitions: tuple[SharePartitionDescription, ...] = ()

    @property
    def state(self) -> GroupState:
        """`GroupState.STABLE` while somebody holds records: there is no other trace of a member."""
        if not self.partitions:
            return GroupState.DEAD
        return GroupState.STABLE if self.member_ids else GroupState.EMPTY

    @property
    def member_ids(self) -> frozenset[str]:
        """Who holds records."""
        return frozenset(one for found in self.partitions for one in found.member_ids)


class ShareGroupAdmin:
    """The share groups of one keyspace, for whoever looks after them: ``lake.share_groups``.

    Thread-safe.

    Args:
        servers: from `connection.connect`.
        clock: only for tests; without one the scripts ask Redis for the time.
    """

    def __init__(
        self, servers: Servers, keyspace: str = DEFAULT_KEYSPACE, clock: Clock | None = None
    ) -> None:
        self._servers = servers
        self._keyspace = keyspace
        self._clock = clock

    def list(self) -> builtins.list[ShareGroupDescription]:
        """All share groups, by id."""
        described = (self._described(*one) for one in self._places().items())
        return [group for group in described if group.partitions]

    def describe(self, group_id: str) -> ShareGroupDescription:
        """The group as it is now; `GroupState.DEAD` if there is none."""
        (found,) = self.described([group_id])
        return found

    def described(self, group_ids: Iterable[str]) -> builtins.list[ShareGroupDescription]:
        """As `describe`, of several groups, in their order."""
        asked = [check_group_id(group_id) for group_id in group_ids]
        places = self._places() if asked else {}
        return [self._described(group_id, places.get(group_id, ())) for group_id in asked]

    def delete(self, group_id: str) -> None:
        """Removes a group of which nobody holds records; a consumer makes it anew.

        Raises:
            GroupIdNotFoundError: there is no such group.
            NonEmptyGroupError: members hold records.
        """
        group = self.describe(group_id)
        if group.state is GroupState.DEAD:
            raise GroupIdNotFoundError(
                f"there is no share group {group_id!r}; lake.share_groups.list() names those there "
                "are",
                group_id=group_id,
            )
        if group.member_ids:
            members = tuple(sorted(group.member_ids))
            raise NonEmptyGroupError(
                f"members of share group {group_id!r} hold records ({', '.join(members[:5])}); "
                "stop them, or wait until their locks are over, then delete it",
                group_id=group_id,
                members=members,
            )
        shares = self._group(group_id)
        for topic_partition in self._places().get(group_id, ()):
            shares.forget(topic_partition)

    def _described(
        self, group_id: str, places: builtins.list[TopicPartition] | tuple[()]
    ) -> ShareGroupDescription:
        shares = self._group(group_id)
        found = [shares.describe(topic_partition) for topic_partition in places]
        return ShareGroupDescription(group_id, tuple(one for one in found if one is not None))

    def _places(self) -> dict[str, builtins.list[TopicPartition]]:
        """Where each group may have something."""
        places: dict[str, builtins.list[TopicPartition]] = {}
        for group_id, topic_partition in listed_partitions(self._servers, Keys(self._keyspace)):
            places.setdefault(group_id, []).append(topic_partition)
        return {group_id: sorted(places[group_id]) for group_id in sorted(places)}

    def _group(self, group_id: str) -> SharePartitions:
        return SharePartitions(self._servers, group_id, self._keyspace, clock=self._clock)
