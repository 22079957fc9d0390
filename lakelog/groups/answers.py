"""What a member asks of its group, and what it is answered."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from ..errors import InvalidArgumentError
from ..values.record import OffsetAndMetadata
from .protocol import PROTOCOL_TYPE

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
