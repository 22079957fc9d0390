"""The codes with which a script refuses, as errors."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import (
    FencedInstanceIdError,
    GroupError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)


def refusal(
    code: str,
    group_id: str,
    *,
    member_id: str,
    instance_id: str | None,
    generation_id: int | None = None,
    protocols: tuple[str, ...] = (),
    max_size: int = 0,
) -> GroupError:
    """The error that a code stands for."""
    make: dict[str, Callable[[], GroupError]] = {
        "UNKNOWN_MEMBER_ID": lambda: UnknownMemberIdError(
            f"{member_id or 'a client without a member id'!r} is no member of group {group_id!r}: "
            "its session ended, it left, or it never joined. Join (again) without a member id",
            group_id=group_id,
            member_id=member_id,
        ),
        "FENCED_INSTANCE_ID": lambda: FencedInstanceIdError(
            f"instance {instance_id!r} of group {group_id!r} is another member now than "
            f"{member_id!r}: two consumers have one group_instance_id. Stop one of them, or give "
            "it another",
            group_id=group_id,
            instance_id=instance_id,
            member_id=member_id,
        ),
        "ILLEGAL_GENERATION": lambda: IllegalGenerationError(
            f"generation {generation_id} of group {group_id!r} is over: {member_id!r} missed a "
            "rebalance, and its partitions may be somebody else's. Join again",
            group_id=group_id,
            member_id=member_id,
            generation_id=generation_id,
        ),
        "REBALANCE_IN_PROGRESS": lambda: RebalanceInProgressError(
            f"group {group_id!r} shares its partitions out anew; {member_id!r} has to join again",
            group_id=group_id,
            member_id=member_id,
        ),
        "INCONSISTENT_GROUP_PROTOCOL": lambda: InconsistentGroupProtocolError(
            f"{', '.join(protocols) or 'no assignor'} of {member_id or 'a new member'!r} is not "
            f"what all members of group {group_id!r} have. Give it an assignor that they have too",
            group_id=group_id,
            protocols=protocols,
        ),
        "GROUP_MAX_SIZE_REACHED": lambda: GroupMaxSizeReachedError(
            f"group {group_id!r} has {max_size} members and takes no more (group.max.size)",
            group_id=group_id,
            max_size=max_size,
        ),
    }
    return make[code]()
