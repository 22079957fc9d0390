"""What groups are asked, what they answer, and what they look like: values, without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InvalidArgumentError, SchemaError
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .consumer_values import ConsumerMember, parse_consumers
from .protocol import (
    MAX_STRING_BYTES,
    PROTOCOL_TYPE,
    SHARE_PROTOCOL_TYPE,
    Assignment,
    Subscription,
)
from .recorded_offset import GroupType

#: A new member has no id yet.
NO_MEMBER_ID = ""


class JoinRequest(Struct, frozen=True):
    """A member that wants to take part."""

    protocols: tuple[tuple[str, bytes], ...]  # assignor → the subscription; the preferred one first
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000  # how long it may take to join again
    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None  # of a static member
    client_id: str = "lakelog"
    client_host: str = ""
    protocol_type: str = PROTOCOL_TYPE
    #: A new member is given an id first, and joins with it: a call that is repeated after a lost
    #: answer leaves no member behind that nobody is.
    requires_known_member_id: bool = True
    #: How many of a subscription's first bytes tell what the member asks for; 0: all. A static
    #: member that comes back and asks for the same goes on without a round, whatever it had.
    asked_bytes: int = 0

    def __post_init__(self) -> None:
        names = [name for name, _ in self.protocols]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(
                f"a member has each of its assignors once, not {', '.join(names)}", value=names
            )


class Member(Struct, frozen=True):
    """A member as its leader gets to know it."""

    member_id: str
    instance_id: str | None
    metadata: bytes  # its subscription for the assignor that was agreed on


class Joined(Struct, frozen=True):
    """The round is over, and the member takes part in the generation it began."""

    generation_id: int
    protocol_type: str
    protocol_name: str
    leader_id: str
    member_id: str
    skip_assignment: bool = False  # the leader came back and all stays as it is
    members: tuple[Member, ...] = ()  # for the leader alone

    @property
    def is_leader(self) -> bool:
        return self.member_id == self.leader_id


class Synced(Struct, frozen=True):
    """The leader has assigned."""

    protocol_type: str
    protocol_name: str
    assignment: bytes


class Pending(Struct, frozen=True):
    """Others have not come yet."""

    member_id: str
    version: int  # of the group; when it grows, ask again
    due_in_ms: int  # or then: something ends that the group waits for


class Leaving(Struct, frozen=True):
    """A member that leaves: by its id, or by its instance id alone."""

    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None


class CommittedOffset(Struct, frozen=True):
    """A committed offset and when it was committed."""

    committed: OffsetAndMetadata
    committed_ms: int  # Redis's clock
    topic_id: UUID | None  # of the creation of the topic, if the committer said so


# -- as Redis keeps a committed offset: ``offset ms leader_epoch topic_id metadata``
# Ten of them stay in one small piece of memory, as long as none has more than 64 bytes.

_NO_TOPIC_ID = "-"


def pack_offset(offset: OffsetAndMetadata, topic_id: UUID | None) -> str:
    """What stands behind the offset and the time, which the script puts before it."""
    spelled = _NO_TOPIC_ID if topic_id is None else topic_id.hex
    return f"{offset.leader_epoch} {spelled} {offset.metadata}"


def unpack_offset(value: bytes) -> CommittedOffset:
    offset, committed_ms, leader_epoch, topic_id, metadata = value.decode().split(" ", 4)
    return CommittedOffset(
        OffsetAndMetadata(int(offset), metadata, int(leader_epoch)),
        int(committed_ms),
        None if topic_id == _NO_TOPIC_ID else UUID(topic_id),
    )


def parse_field(field: bytes) -> TopicPartition:
    topic, _, partition = field.decode().rpartition("-")
    return TopicPartition(topic, int(partition))


def check_group_id(group_id: object) -> str:
    """The id, if it is one.

    Raises:
        InvalidArgumentError: empty, no text, or longer than a string of Kafka's protocol.
    """
    if isinstance(group_id, str) and group_id:
        try:
            size_bytes = len(group_id.encode())
        except UnicodeEncodeError:
            size_bytes = MAX_STRING_BYTES + 1
        if size_bytes <= MAX_STRING_BYTES:
            return group_id
    shown = repr(group_id)
    raise InvalidArgumentError(
        f"{shown if len(shown) <= 100 else shown[:100] + '…'} is not the id of a group: give a "
        f"text of 1 to {MAX_STRING_BYTES:,} bytes",
        group_id=group_id if isinstance(group_id, str) else None,
    )


class GroupState(str, Enum):
    """Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"  # of type consumer: nobody has shared out yet what has changed
    RECONCILING = "Reconciling"  # of type consumer: members give up and take over
    STABLE = "Stable"
    DEAD = "Dead"


class MemberDescription(Struct, frozen=True):
    """One member."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    metadata: bytes  # empty while the group agrees on an assignor
    assignment: bytes  # empty while the group is not stable
    consumer: ConsumerMember | None = None  # what there is besides, in a group of type consumer


class GroupDescription(Struct, frozen=True):
    """A group. One that is not there is `GroupState.DEAD`, as in Kafka."""

    group_id: str
    state: GroupState
    generation_id: int = 0
    protocol_type: str = ""  # empty: it never had members
    protocol_name: str = ""
    leader_id: str = ""
    since_ms: int = 0  # in this state, Redis's clock
    version: int = 0
    members: tuple[MemberDescription, ...] = ()
    group_type: GroupType = GroupType.CLASSIC
    assigned_generation_id: int = 0  # of type consumer: for whose members there is a target

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics its members asked for; None if that cannot be told."""
        if self.protocol_type not in ("", PROTOCOL_TYPE):
            return None
        if any(one.consumer and one.consumer.regex for one in self.members):
            return None
        try:
            asked = [Subscription.decode(m.metadata).topics for m in self.members if m.metadata]
        except SchemaError:
            return None
        if len(asked) < len(self.members):
            return None
        return frozenset(topic for topics in asked for topic in topics)


class GroupListing(Struct, frozen=True):
    """A line in the list of groups."""

    group_id: str
    protocol_type: str
    state: GroupState
    group_type: GroupType = GroupType.CLASSIC


def parse_group(group_id: str, answer: Sequence[bytes]) -> GroupDescription:
    """A group, from what ``look.lua`` says of it."""
    if answer[0] == b"NO_GROUP":
        return GroupDescription(group_id, GroupState.DEAD)
    state, generation_id, kind, protocol, leader, since_ms, version = answer[1:8]
    group = GroupDescription(
        group_id,
        GroupState(state.decode()),
        int(generation_id),
        kind.decode(),
        protocol.decode(),
        leader.decode(),
        int(since_ms),
        int(version),
    )
    if answer[0] == b"GROUP":
        members = sorted(parse_members(answer[8:]), key=lambda one: one.member_id)
        return replace(group, members=tuple(members))
    assigned, consumers = int(answer[8]), parse_consumers(answer[9:])
    is_share_group = group.protocol_type == SHARE_PROTOCOL_TYPE
    waiting = () if is_share_group else consumers  # for each other, maybe
    found = group.state
    if waiting and assigned != group.generation_id:
        found = GroupState.ASSIGNING
    elif any(not one.is_settled or one.member_epoch != assigned for one in waiting):
        found = GroupState.RECONCILING
    return replace(
        group,
        state=found,
        members=tuple(map(_as_member, consumers)),
        group_type=GroupType.SHARE if is_share_group else GroupType.CONSUMER,
        assigned_generation_id=assigned,
    )


def _as_member(one: ConsumerMember) -> MemberDescription:
    """With what it subscribes to and has in the bytes of the classic protocol, as of any member."""
    return MemberDescription(
        one.member_id,
        one.instance_id,
        one.client_id,
        one.client_host,
        one.session_timeout_ms,
        Subscription(one.topics).encode(),
        Assignment(tuple(part.topic_partition for part in one.assigned)).encode(),
        one,
    )


def parse_members(parts: Sequence[bytes]) -> Iterator[MemberDescription]:
    """The members, from what ``look.lua`` says of them."""
    for one in zip(*[iter(parts)] * 7, strict=True):
        member_id, instance_id, client_id, host, session_ms, metadata, assignment = one
        yield MemberDescription(
            member_id.decode(),
            instance_id.decode() or None,
            client_id.decode(),
            host.decode(),
            int(session_ms),
            metadata,
            assignment,
        )
