"""Groups whose members speak Kafka's consumer protocol: the server shares partitions out (KIP-848).

As of all groups, their state lies in Redis, and whoever calls next does what is due. That includes
sharing out: the first heartbeat after a change computes who is to have what, and writes it unless
the members have changed meanwhile.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..base.clock import Clock
from ..errors import (
    ConcurrentChangeError,
    FencedMemberEpochError,
    GroupError,
    GroupIdNotFoundError,
    InvalidArgumentError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from ..hot.connection import Servers
from ..hot.foreign import foreign_if_illegible
from ..hot.keys import DEFAULT_KEYSPACE, Keys
from ..hot.registry import TopicRegistry
from .consumer_values import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    ConsumerHeartbeat,
    ConsumerTold,
    pack_partitions,
    parse_consumers,
    parse_partitions,
)
from .group_values import check_group_id
from .protocol import SHARE_PROTOCOL_TYPE
from .scripts import GroupScripts, refusal
from .settings import GroupSettings, KeyspaceGroupSettings
from .target_assignment import ASSIGNORS, matching, target_assignment

#: So many others may come and go while partitions are shared out.
_TRIES = 20


class ConsumerGroups:
    """The groups of one keyspace, for members by the consumer protocol. Thread-safe.

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
        self._registry = TopicRegistry(servers, Keys(keyspace))
        self._settings_of = KeyspaceGroupSettings(self._registry.keyspace_defaults, settings)

    def heartbeat(
        self, group_id: str, said: ConsumerHeartbeat, topics_version: tuple[int, int]
    ) -> ConsumerTold:
        """A member joins, goes on or leaves, and hears what it may read.

        Args:
            topics_version: `TopicRegistry.version`, not much older than now: another one has the
                topics looked at.

        Raises:
            InvalidArgumentError: what no member may say, or not an id.
            UnsupportedAssignorError, InvalidRegularExpressionError: see there.
            UnknownMemberIdError: no member has that id (any more): join under it.
            FencedMemberEpochError: it is in another epoch: give all up, and join under its id.
            UnreleasedInstanceIdError: another member has the instance id and has not left.
            FencedInstanceIdError: another member has taken the instance id over.
            GroupIdNotFoundError: the group has members of another kind.
            GroupMaxSizeReachedError: the group takes no more.
            ConcurrentChangeError: members kept coming and going.

        Source: ``GroupMetadataManager.consumerGroupHeartbeat``.
        """
        check_heartbeat(group_id, said)
        settings = self._settings_of()
        mark, shared_out = _mark(topics_version), ()
        packed = msgspec.msgpack.encode(said)

        def arguments(token: str) -> list[Any]:
            session_ms = settings.consumer_session_timeout_ms
            return [token, packed, session_ms, settings.max_size, mark, *shared_out]

        for _ in range(_TRIES):
            code, *rest = self._scripts.call_or_make("consumer_heartbeat", group_id, arguments)
            if code != b"ASSIGN":
                break
            shared_out = self._shared_out(rest, said.protocol_type)
        else:
            raise ConcurrentChangeError(
                f"members of group {group_id!r} kept coming and going while their partitions were "
                "shared out. Try again"
            )
        if code != b"OK":
            raise self._refused(group_id, code.decode(), said)
        return ConsumerTold(
            int(rest[0]),
            settings.consumer_heartbeat_interval_ms,
            parse_partitions(rest[1]) if rest[1] else None,
        )

    def _shared_out(self, answer: list[bytes], protocol_type: str) -> tuple[Any, ...]:
        """What goes to whom, by the topics as they are now."""
        mark = _mark(self._registry.version())  # first: what changes after it is looked at again
        topics = {topic.name: topic for topic in self._registry.list()}
        with foreign_if_illegible(answer, "members of a group"):
            version, *parts = answer
            members = parse_consumers(parts)
        is_share_group = protocol_type == SHARE_PROTOCOL_TYPE
        target = target_assignment(members, topics, is_share_group=is_share_group)
        given = [
            part
            for member_id, partitions in target.partitions.items()
            for part in (member_id, pack_partitions(partitions))
        ]
        return version, mark, target.digest, target.assignor, *given

    def _refused(self, group_id: str, code: str, said: ConsumerHeartbeat) -> GroupError:
        member_id, epoch, instance_id = said.member_id, said.member_epoch, said.instance_id
        if code == "FENCED_MEMBER_EPOCH":
            return FencedMemberEpochError(
                f"{member_id!r} of group {group_id!r} says that it is in epoch {epoch}, and is in "
                "another. Give up all partitions, and join again with epoch 0",
                group_id=group_id,
                member_id=member_id,
                member_epoch=epoch,
            )
        if code == "UNRELEASED_INSTANCE_ID":
            return UnreleasedInstanceIdError(
                f"instance {instance_id!r} of group {group_id!r} is another member than "
                f"{member_id!r}, which has not left. Stop it, or wait until its session ends",
                group_id=group_id,
                instance_id=instance_id,
                member_id=member_id,
            )
        if code == "GROUP_ID_NOT_FOUND":
            return GroupIdNotFoundError(
                f"group {group_id!r} has members of another kind, so it is no {said.protocol_type} "
                "group. Stop them first, take another group.id, or join as they do, such as by "
                "group.protocol=classic",
                group_id=group_id,
            )
        return refusal(
            code,
            group_id,
            member_id=member_id,
            instance_id=instance_id,
            max_size=self._settings_of().max_size,
        )


def _mark(version: tuple[int, int]) -> str:
    return "-".join(map(str, version))


def check_heartbeat(group_id: str, said: ConsumerHeartbeat) -> None:
    """That a heartbeat is one.

    Raises:
        InvalidArgumentError, UnsupportedAssignorError, InvalidRegularExpressionError: it is not.

    Source: ``GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid``.
    """
    check_group_id(group_id)
    joins = said.member_epoch == JOINS
    subscribes = bool(said.topics or said.regex)
    shares = said.protocol_type == SHARE_PROTOCOL_TYPE
    wrong = [
        (not said.member_id, "no member id: give a UUID of your own"),
        (said.instance_id == "", "an empty instance id: give one, or none"),
        (said.rack_id == "", "an empty rack id: give one, or none"),
        (said.member_epoch < (LEAVES if shares else LEAVES_FOR_A_WHILE), "an epoch below any"),
        (
            said.member_epoch == LEAVES_FOR_A_WHILE and said.instance_id is None,
            "epoch -2 without an instance id: only static members come back",
        ),
        (
            joins and not shares and said.rebalance_timeout_ms is None,
            "no rebalance timeout: a new member has one",
        ),
        (
            joins and not shares and said.owned != (),
            "partitions: who joins has none, and says so",
        ),
        (joins and not subscribes, "no topics: subscribe to names or a regular expression"),
    ]
    for is_so, what in wrong:
        if is_so:
            raise InvalidArgumentError(
                f"a heartbeat of {said.member_id!r} for group {group_id!r} in epoch "
                f"{said.member_epoch} has {what}",
                name="heartbeat",
            )
    if said.assignor is not None and said.assignor not in ASSIGNORS:
        raise UnsupportedAssignorError(
            f"there is no assignor {said.assignor!r} for group {group_id!r}; set "
            f"group.remote.assignor to {' or '.join(ASSIGNORS)}, or to nothing",
            group_id=group_id,
            assignor=said.assignor,
        )
    if said.regex:
        matching(said.regex, ())
