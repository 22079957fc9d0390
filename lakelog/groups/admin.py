"""Groups and share groups from outside: which there are, who is in them, taking them away."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ..base.clock import Clock
from ..errors import (
    ConcurrentChangeError,
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    NonEmptyGroupError,
)
from ..hot.connection import Servers
from ..hot.foreign import foreign_if_illegible
from ..hot.keys import DEFAULT_KEYSPACE, Keys
from ..hot.registry import TopicRegistry
from ..values.arguments import Partitions, checked_partitions
from ..values.topic_partition import TopicPartition
from .group_records import GroupRecords
from .group_values import GroupDescription, GroupListing, GroupState, check_group_id, parse_group
from .recorded_offset import GroupType, SeenGroup, SeenGroups
from .scripts import GroupScripts
from .settings import GroupSettings, KeyspaceGroupSettings
from .share.share_partitions import SharePartitions, listed_partitions
from .share.share_values import SharePartitionDescription


class ShareGroupDescription(Struct, frozen=True):
    """A share group. One that is not there is `GroupState.DEAD`."""

    group_id: str
    partitions: tuple[SharePartitionDescription, ...] = ()
    joined: GroupDescription | None = None  # by clients of Kafka; None: none ever did

    @property
    def state(self) -> GroupState:
        """`GroupState.STABLE` while there is a trace of a member."""
        if not self.partitions and self.joined is None:
            return GroupState.DEAD
        return GroupState.STABLE if self.member_ids else GroupState.EMPTY

    @property
    def member_ids(self) -> frozenset[str]:
        """Who holds records: there is no other trace of lakelog's own. And clients of Kafka."""
        joined = () if self.joined is None else self.joined.members
        holders = (one for found in self.partitions for one in found.member_ids)
        return frozenset([*holders, *(one.member_id for one in joined)])


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
        self._scripts = GroupScripts(servers, Keys(keyspace), clock)

    def list(self) -> builtins.list[ShareGroupDescription]:
        """All share groups, by id."""
        places = self._places()
        found = {*places, *self._scripts.listed()}
        described = (self._described(one, places.get(one, ())) for one in sorted(found))
        return [group for group in described if group.state is not GroupState.DEAD]

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
        """Removes a group without members; a consumer makes it anew.

        Raises:
            GroupIdNotFoundError: there is no such group.
            NonEmptyGroupError: members hold records, or clients of Kafka are in it.
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
                f"members of share group {group_id!r} hold records or wait for them "
                f"({', '.join(members[:5])}); stop them, or wait until their locks and sessions "
                "are over, then delete it",
                group_id=group_id,
                members=members,
            )
        if group.joined is not None:
            code, *token = self._scripts.call("remove", group_id, ["group"])
            if code == b"NON_EMPTY_GROUP":
                self.delete(group_id)  # which tells who has just come
                return
            if code == b"OK":
                self._scripts.unlist(group_id, token[0])
        shares = self._group(group_id)
        for topic_partition in self._places().get(group_id, ()):
            shares.forget(topic_partition)

    def _described(
        self, group_id: str, places: builtins.list[TopicPartition] | tuple[()]
    ) -> ShareGroupDescription:
        shares = self._group(group_id)
        found = [shares.describe(topic_partition) for topic_partition in places]
        joined = described_group(self._scripts, group_id)
        return ShareGroupDescription(
            group_id,
            tuple(one for one in found if one is not None),
            joined if joined.group_type is GroupType.SHARE else None,
        )

    def _places(self) -> dict[str, builtins.list[TopicPartition]]:
        """Where each group may have something."""
        places: dict[str, builtins.list[TopicPartition]] = {}
        for group_id, topic_partition in listed_partitions(self._servers, Keys(self._keyspace)):
            places.setdefault(group_id, []).append(topic_partition)
        return {group_id: sorted(places[group_id]) for group_id in sorted(places)}

    def _group(self, group_id: str) -> SharePartitions:
        return SharePartitions(self._servers, group_id, self._keyspace, clock=self._clock)


_TRIES = 10

#: Of so many groups, whoever makes one looks whether their time is over: more than come, go.
_SOME = 20


class GroupAdmin:
    """The groups of one keyspace, for whoever looks after them: ``lake.groups``. Thread-safe.

    Args:
        servers: from `connection.connect`.
        settings: only for tests; without them the keyspace's defaults hold.
        clock: only for tests; without one the scripts ask Redis for the time.
    """

    def __init__(
        self,
        servers: Servers,
        keyspace: str = DEFAULT_KEYSPACE,
        settings: GroupSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._scripts = GroupScripts(servers, Keys(keyspace), clock)
        self._records = GroupRecords(servers, keyspace, clock)
        self._shares = ShareGroupAdmin(servers, keyspace, clock)
        registry = TopicRegistry(servers, Keys(keyspace))
        self._settings_of = KeyspaceGroupSettings(registry.keyspace_defaults, settings)

    def list(self, group_type: GroupType | None = GroupType.CLASSIC) -> builtins.list[GroupListing]:
        """The groups, by id.

        Args:
            group_type: `GroupType.CLASSIC` for groups of consumers, whichever protocol they speak;
                `GroupType.CONSUMER` for those by KIP-848's alone; `GroupType.SHARE` for share
                groups; None for all.
        """
        found = [] if group_type is GroupType.SHARE else self._consumers()
        if group_type is GroupType.CONSUMER:
            found = [one for one in found if one.group_type is group_type]
        if group_type in (GroupType.SHARE, None):
            found += [
                GroupListing(one.group_id, "share", one.state, GroupType.SHARE)
                for one in self._shares.list()
            ]
        return sorted(found, key=lambda one: one.group_id)

    def _consumers(self) -> builtins.list[GroupListing]:
        described = map(self.describe, self._scripts.listed())
        return [
            GroupListing(group.group_id, group.protocol_type, group.state, group.group_type)
            for group in described
            if group.state
            is not GroupState.DEAD  # it was listed and never made, or is being removed
            and group.group_type is not GroupType.SHARE
        ]

    def describe(self, group_id: str) -> GroupDescription:
        """The group as it is now; `GroupState.DEAD` if there is none."""
        return described_group(self._scripts, check_group_id(group_id))

    def delete(self, group_id: str) -> None:
        """Removes a group without members, with its offsets.

        Raises:
            GroupIdNotFoundError: there is no such group.
            NonEmptyGroupError: it has members.
        """
        check_group_id(group_id)
        code, *token = self._scripts.call("remove", group_id, ["group"])
        if code == b"NO_GROUP":
            raise _not_found(group_id)
        if code == b"NON_EMPTY_GROUP":
            members = tuple(one.member_id for one in self.describe(group_id).members)
            raise NonEmptyGroupError(
                f"group {group_id!r} has members ({', '.join(members[:5]) or 'one that joins'}); "
                "stop them, then delete it",
                group_id=group_id,
                members=members,
            )
        self._scripts.unlist(group_id, token[0])

    def delete_offsets(self, group_id: str, partitions: Partitions) -> dict[TopicPartition, bool]:
        """Forgets offsets of topics that no member of the group reads.

        Returns:
            Whether there was one, of each partition.

        Raises:
            GroupIdNotFoundError: there is no such group.
            GroupSubscribedToTopicError: members read the topic; nothing was deleted.
        """
        asked = list(dict.fromkeys(checked_partitions(partitions)))

        def act(group: GroupDescription) -> Sequence[Any]:
            topics = group.subscribed_topics
            for partition in asked:
                if group.members and (topics is None or partition.topic in topics):
                    raise GroupSubscribedToTopicError(
                        f"members of group {group_id!r} read {partition.topic!r}; its offsets are "
                        "theirs. Stop them first",
                        group_id=group_id,
                        topic=partition.topic,
                    )
            fields = [str(partition) for partition in asked]
            return self._scripts.call("remove", group_id, ["offsets", group.version, *fields])

        answer = self._unchanged(group_id, act)
        return {tp: bool(there) for tp, there in zip(asked, answer[1:], strict=True)}

    def expire_offsets(self, group_id: str) -> int:
        """Removes the offsets that have expired, and a group if nothing is left of it.

        Returns:
            How many went.

        Raises:
            GroupIdNotFoundError: there is no such group.
        """

        def act(group: GroupDescription) -> Sequence[Any]:
            topics = group.subscribed_topics
            retention_ms = self._settings_of().offsets_retention_ms
            known = [*sorted(topics)] if topics is not None else []
            arguments = ["expire", group.version, retention_ms, int(topics is not None), *known]
            return self._scripts.call("remove", group_id, arguments)

        _, gone, token = self._unchanged(group_id, act)
        if token:
            self._scripts.unlist(group_id, token)
        return int(gone)

    def expire_all_offsets(self) -> int:
        """As `expire_offsets`, of all groups; those of which nothing can have expired cost little.

        `Lakelog.archive`, `archive_continuously` and `cleanup` see to it, all of them together
        every ``offsets.retention.check.interval.ms`` at most.
        """
        return self._expire(self._records.read())

    def expire_some_offsets(self) -> int:
        """As `expire_all_offsets`, of twenty groups at random."""
        return self._expire(self._records.read_some(_SOME))

    @property
    def expiry_interval_ms(self) -> int:
        """How often `expire_all_offsets` is worth a call."""
        return self._settings_of().offsets_retention_check_interval_ms

    def _expire(self, seen: SeenGroups) -> int:
        gone = 0
        retention_ms = self._settings_of().offsets_retention_ms
        now_ms = self._records.now_ms()
        for group_id, group in seen.groups.items():
            if group.empty_since_ms is None:
                self.describe(group_id)  # ends the sessions of members that died, if all have
            if may_expire(group, now_ms, retention_ms):
                with suppress(GroupIdNotFoundError):  # somebody else was faster
                    gone += self.expire_offsets(group_id)
        return gone

    def _unchanged(
        self, group_id: str, act: Callable[[GroupDescription], Sequence[Any]]
    ) -> Sequence[Any]:
        """Acts by what the group looks like, again if it changed meanwhile."""
        for _ in range(_TRIES):
            group = self.describe(group_id)
            answer = act(group) if group.state is not GroupState.DEAD else [b"NO_GROUP"]
            if answer[0] == b"NO_GROUP":
                raise _not_found(group_id)
            if answer[0] == b"OK":
                return answer
        raise ConcurrentChangeError(
            f"members of group {group_id!r} kept coming and going; nothing was done. Try again"
        )


def described_group(scripts: GroupScripts, group_id: str) -> GroupDescription:
    """A group as it is now; `GroupState.DEAD` if there is none."""
    answer = scripts.call("look", group_id, ["", "describe"])
    with foreign_if_illegible(answer, "description of a group"):
        return parse_group(group_id, answer)


def may_expire(group: SeenGroup, now_ms: int, retention_ms: int) -> bool:
    """Whether `is_over` in ``group.lua`` may hold of an offset, or nothing is left of the group."""
    before_ms = now_ms - retention_ms
    if group.empty_since_ms is None:
        return any((one.committed_ms or 0) <= before_ms for one in group.offsets)
    since_ms = group.empty_since_ms if group.had_members else 0
    return not group.offsets or any(
        max(one.committed_ms or 0, since_ms) <= before_ms for one in group.offsets
    )


def _not_found(group_id: str) -> GroupIdNotFoundError:
    return GroupIdNotFoundError(
        f"there is no group {group_id!r}; lake.groups.list() names those there are",
        group_id=group_id,
    )
