"""What a group looks like from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct

from ..errors import SchemaError
from .protocol import PROTOCOL_TYPE, Subscription
from .recorded_offset import GroupType


class GroupState(str, Enum):
    """Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
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

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics its members asked for; None if that cannot be told."""
        if self.protocol_type not in ("", PROTOCOL_TYPE):
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
