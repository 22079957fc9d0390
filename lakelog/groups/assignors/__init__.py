"""How the partitions of topics are shared out among the members of a group."""

from __future__ import annotations

from ...errors import InvalidArgumentError
from .assignor import Assignor, RebalanceProtocol, Subscriber
from .range import RangeAssignor, RoundRobinAssignor
from .sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscriber",
    "assignor_named",
]

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
    )
}


def assignor_named(name: str) -> Assignor:
    """The assignor of that name in Kafka's protocol.

    Raises:
        InvalidArgumentError: there is none.
    """
    if name not in ASSIGNORS:
        raise InvalidArgumentError(
            "partition_assignment_strategy: "
            f"there is no assignor {name!r}: give one of {', '.join(ASSIGNORS)}, or an Assignor",
            name="partition_assignment_strategy",
            value=name,
        )
    return ASSIGNORS[name]
