"""The coordinator of groups: who takes part, in which generation, and how far the group has come.

There is no process that coordinates. The state of a group lies in Redis, scripts change it, and
what is due by Redis's clock (a session that ends, a round of joining that takes too long) is done
by whoever calls next. While a group has members they call all the time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..base.clock import Clock
from ..errors import (
    GroupError,
    InvalidSessionTimeoutError,
    LakelogError,
    MemberIdRequiredError,
    OffsetMetadataTooLargeError,
)
from ..hot.connection import Servers
from ..hot.foreign import foreign_if_illegible
from ..hot.keys import DEFAULT_KEYSPACE, Keys
from ..hot.registry import TopicRegistry
from ..values.offsets import check_offset
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .admin import GroupAdmin
from .group_values import (
    CommittedOffset,
    Joined,
    JoinRequest,
    Leaving,
    Member,
    Pending,
    Synced,
    check_group_id,
    pack_offset,
    parse_field,
    parse_members,
    unpack_offset,
)
from .scripts import GroupScripts, refusal
from .settings import GroupSettings, KeyspaceGroupSettings

#: Another look, if nothing was heard. The wait is ended by news, or by what is due.
MAX_WAIT_MS = 4_000


class GroupCoordinator:
    """The groups of one keyspace. Thread-safe.

    The answers, the refusals and their order are those of Kafka's coordinator for the classic
    protocol. It never reads what members say: subscriptions and assignments are bytes.

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
        registry = TopicRegistry(servers, Keys(keyspace))
        self._admin = GroupAdmin(servers, keyspace, settings, clock)
        self._settings_of = KeyspaceGroupSettings(registry.keyspace_defaults, settings)

    # -- members -------------------------------------------------------------------------------

    def try_join(self, group_id: str, request: JoinRequest) -> Joined | Pending:
        """Takes part in the group, and does not wait for the others; see `await_join`.

        Raises:
            InvalidArgumentError: not an id.
            InvalidSessionTimeoutError: out of the bounds of the settings.
            MemberIdRequiredError: a new member: call again with the id that the error carries.
            UnknownMemberIdError: no member has that id any more.
            FencedInstanceIdError: another one has joined under the instance id.
            InconsistentGroupProtocolError: it has no assignor that all others have too.
            GroupMaxSizeReachedError: the group takes no more.
        """
        self._check_session(group_id, request)
        names = tuple(name for name, _ in request.protocols)
        if not names or not request.protocol_type:
            raise self._refused(group_id, "INCONSISTENT_GROUP_PROTOCOL", request)
        settings = self._settings_of()
        new_id = f"{request.instance_id or request.client_id}-{uuid.uuid4()}"

        def arguments(token: str) -> list[Any]:
            return [
                *("join", request.member_id, request.instance_id or ""),
                *(request.client_id, request.client_host, request.protocol_type),
                *(request.session_timeout_ms, request.rebalance_timeout_ms),
                *(int(request.requires_known_member_id), new_id, token),
                *(settings.initial_rebalance_delay_ms, settings.max_size),
                request.asked_bytes,
                *(part for protocol in request.protocols for part in protocol),
            ]

        return self._read_join(group_id, self._call_or_make("join", group_id, arguments), request)

    def await_join(self, group_id: str, request: JoinRequest) -> Joined | Pending:
        """Whether the round has ended that the member joined; makes its session last.

        Args:
            request: with the member id that `Pending` says.

        Raises:
            RebalanceInProgressError: another one has begun: join again.
            UnknownMemberIdError, FencedInstanceIdError: as `try_join`.
        """
        of_a_join = ("", "", "", 0, 0, 0, "", "", 0, 0, 0)
        arguments = ["await", request.member_id, request.instance_id or "", *of_a_join]
        answer = self._scripts.call("join", group_id, arguments)
        return self._read_join(group_id, answer, request)

    def try_sync(
        self,
        group_id: str,
        joined: Joined,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
    ) -> Synced | Pending:
        """What the member is to do in the generation it joined, once the leader has said so.

        Args:
            assignments: of the leader: member id → what it is to do.

        Raises:
            RebalanceInProgressError: another round has begun: join again.
            IllegalGenerationError: another one is over.
            UnknownMemberIdError, FencedInstanceIdError: as `try_join`.
            InconsistentGroupProtocolError: the group has agreed on another assignor.
        """
        answer = self._scripts.call(
            "attend",
            group_id,
            [
                *("sync", joined.member_id, instance_id or "", joined.generation_id),
                *(joined.protocol_type, joined.protocol_name),
                *(part for given in (assignments or {}).items() for part in given),
            ],
        )
        if answer[0] == b"PENDING":
            return Pending(joined.member_id, int(answer[1]), int(answer[2]))
        if answer[0] == b"SYNCED":
            return Synced(answer[1].decode(), answer[2].decode(), answer[3])
        request = JoinRequest(
            ((joined.protocol_name, b""),), member_id=joined.member_id, instance_id=instance_id
        )
        raise self._refused(group_id, answer[0].decode(), request, joined.generation_id)

    def heartbeat(
        self, group_id: str, member_id: str, generation_id: int, instance_id: str | None = None
    ) -> int:
        """The member is alive: its session lasts from now.

        Returns:
            The version of the group, for `await_change`.

        Raises:
            RebalanceInProgressError, IllegalGenerationError, UnknownMemberIdError,
            FencedInstanceIdError: as `try_sync`; after the first of these the session lasts too.
        """
        arguments = ["heartbeat", member_id, instance_id or "", generation_id]
        code, *version = self._scripts.call("attend", group_id, arguments)
        if code != b"OK":
            request = JoinRequest((), member_id=member_id, instance_id=instance_id)
            raise self._refused(group_id, code.decode(), request, generation_id)
        return int(version[0])

    def leave(self, group_id: str, leaving: Sequence[Leaving]) -> dict[Leaving, GroupError | None]:
        """Ends memberships now, rather than when sessions end.

        Returns:
            What stood against each, or None.
        """
        check_group_id(group_id)
        if not leaving:
            return {}
        parts = [part for one in leaving for part in (one.member_id, one.instance_id or "")]
        codes = self._scripts.call("attend", group_id, ["leave", *parts])
        if codes == [b"NO_GROUP"]:
            codes = [b"UNKNOWN_MEMBER_ID"] * len(leaving)
        return {
            one: None if code == b"OK" else self._refused(group_id, code.decode(), _as_request(one))
            for one, code in zip(leaving, codes, strict=True)
        }

    def assignments(self, group_id: str) -> dict[str, bytes]:
        """What each member has, by member id; empty bytes while the group is not stable."""
        answer = self._scripts.call("look", group_id, [0, "describe"])
        if answer[0] != b"GROUP":
            return {}
        return {one.member_id: one.assignment for one in parse_members(answer[8:])}

    def await_news(self, group_id: str, pending: Pending, most_ms: int) -> None:
        """Waits until it is worth asking again: there is news, something is due, or it was long."""
        self.await_change(group_id, pending.version, min(pending.due_in_ms, most_ms))

    def await_change(self, group_id: str, version: int, most_ms: int) -> bool:
        """Waits until the group is newer than that, as when somebody joins; not for long.

        Returns:
            Whether it is.
        """
        return self._scripts.wait(group_id, version, max(1, min(MAX_WAIT_MS, most_ms)))

    # -- offsets -------------------------------------------------------------------------------

    def commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None],
        *,
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        topic_ids: Mapping[str, uuid.UUID] | None = None,
    ) -> None:
        """Stores how far the group has come: all of it, or nothing.

        An offset may lie beyond the log end, as in Kafka. Without a member id and a generation it
        is the commit of somebody who assigns partitions by hand; a group with members refuses it.

        Args:
            offsets: None for what is taken back.
            topic_ids: topic → its creation, so that a topic made again is not taken for it.

        Raises:
            InvalidArgumentError: not an id.
            OffsetMetadataTooLargeError: a text beside an offset is too long.
            RebalanceInProgressError, IllegalGenerationError, UnknownMemberIdError,
            FencedInstanceIdError, StaleMemberEpochError: the partitions may be somebody else's by
                now.
        """
        check_group_id(group_id)
        most_bytes = self._settings_of().offset_metadata_max_bytes
        values: list[Any] = []
        for topic_partition, one in offsets.items():
            if one is None:
                values += [str(topic_partition), "", ""]
                continue
            check_offset(one.offset)
            size_bytes = len(one.metadata.encode())
            if size_bytes > most_bytes:
                raise OffsetMetadataTooLargeError(
                    f"the metadata beside offset {one.offset} of {topic_partition} has "
                    f"{size_bytes:,} bytes; offset.metadata.max.bytes is {most_bytes:,}. Nothing "
                    "was committed",
                    group_id=group_id,
                    topic_partition=topic_partition,
                    size_bytes=size_bytes,
                )
            topic_id = (topic_ids or {}).get(topic_partition.topic)
            values += [str(topic_partition), one.offset, pack_offset(one, topic_id)]

        def arguments(token: str) -> list[Any]:
            return [member_id, instance_id or "", generation_id, token, *values]

        (code,) = self._call_or_make("commit", group_id, arguments)
        if code != b"OK":
            request = JoinRequest((), member_id=member_id, instance_id=instance_id)
            raise self._refused(group_id, code.decode(), request, generation_id)

    def committed(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        member_id: str = "",
        member_epoch: int = -1,
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, of these partitions or of all; without what has expired.

        Args:
            member_id: of a member by KIP-848's protocol that asks for itself, in its epoch.

        Raises:
            InvalidArgumentError: not an id.
            UnknownMemberIdError, StaleMemberEpochError: the partitions may be somebody else's.
        """
        check_group_id(group_id)
        fields = None if partitions is None else [str(partition) for partition in partitions]
        if fields == []:
            return {}
        retention_ms = self._settings_of().offsets_retention_ms
        arguments = [retention_ms, "offsets", member_id, member_epoch, *(fields or ())]
        answer = self._scripts.call("look", group_id, arguments)
        if answer[0] not in (b"OFFSETS", b"NO_GROUP"):
            request = JoinRequest((), member_id=member_id)
            raise self._refused(group_id, answer[0].decode(), request, member_epoch)
        with foreign_if_illegible(answer, "offsets of a group"):
            found = answer[1:]
            return {
                parse_field(field): unpack_offset(value)
                for field, value in zip(found[::2], found[1::2], strict=True)
            }

    def _call_or_make(
        self, script: str, group_id: str, arguments: Callable[[str], Iterable[Any]]
    ) -> list[Any]:
        """Whoever makes a group has some others go whose time is over, so that they never pile up
        where nobody archives.
        """
        is_new = False

        def noticed(token: str) -> Iterable[Any]:
            nonlocal is_new
            is_new = token != ""
            return arguments(token)

        answer = self._scripts.call_or_make(script, group_id, noticed)
        if is_new:
            with suppress(LakelogError):  # it is nobody's call
                self._admin.expire_some_offsets()
        return answer

    # -- how it asks ---------------------------------------------------------------------------

    def _read_join(
        self, group_id: str, answer: Sequence[bytes], request: JoinRequest
    ) -> Joined | Pending:
        code = answer[0]
        if code == b"PENDING":
            return Pending(answer[3].decode(), int(answer[1]), int(answer[2]))
        if code == b"JOINED":
            _, generation_id, kind, protocol, leader, member_id, skip, *members = answer
            return Joined(
                int(generation_id),
                kind.decode(),
                protocol.decode(),
                leader.decode(),
                member_id.decode(),
                bool(skip),
                tuple(
                    Member(id_.decode(), instance.decode() or None, metadata)
                    for id_, instance, metadata in zip(*[iter(members)] * 3, strict=True)
                ),
            )
        if code == b"MEMBER_ID_REQUIRED":
            raise MemberIdRequiredError(
                f"group {group_id!r} has given out a member id; join with it",
                group_id=group_id,
                member_id=answer[1].decode(),
            )
        raise self._refused(group_id, code.decode(), request)

    def _refused(
        self, group_id: str, code: str, request: JoinRequest, generation_id: int | None = None
    ) -> GroupError:
        return refusal(
            code,
            group_id,
            member_id=request.member_id,
            instance_id=request.instance_id,
            generation_id=generation_id,
            protocols=tuple(name for name, _ in request.protocols),
            max_size=self._settings_of().max_size,
        )

    def _check_session(self, group_id: str, request: JoinRequest) -> None:
        check_group_id(group_id)
        settings = self._settings_of()
        least_ms, most_ms = settings.min_session_timeout_ms, settings.max_session_timeout_ms
        if not least_ms <= request.session_timeout_ms <= most_ms:
            raise InvalidSessionTimeoutError(
                f"a session of {request.session_timeout_ms} ms is not within {least_ms}..{most_ms} "
                "ms (group.min.session.timeout.ms, group.max.session.timeout.ms)",
                group_id=group_id,
                session_timeout_ms=request.session_timeout_ms,
            )


def _as_request(leaving: Leaving) -> JoinRequest:
    return JoinRequest((), member_id=leaving.member_id, instance_id=leaving.instance_id)
