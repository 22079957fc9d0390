"""What a member of a group goes by, under the names Kafka's clients have for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ..errors import InvalidConfigError
from ..values.arguments import settle_numbers
from ..values.config import INT32_MAX
from .assignors import ASSIGNORS, Assignor, RebalanceProtocol, assignor_named

#: Kafka's rule for instance ids, which is that for the names of topics.
_INSTANCE_ID = re.compile(r"[a-zA-Z0-9._-]{1,249}")

DEFAULT_ASSIGNORS = (assignor_named("range"), assignor_named("cooperative-sticky"))


class MemberConfig(Struct, frozen=True, kw_only=True):
    """Checked when made.

    Raises:
        InvalidConfigError: a value that is not legal.
    """

    assignors: tuple[Assignor, ...] = DEFAULT_ASSIGNORS
    # The preferred one first. Members take the one that most of them prefer and all have.

    group_instance_id: str | None = None
    # A static member: when it starts again within its session, it goes on with what it had.

    client_id: str = "lakelog"
    client_host: str = ""
    # What others see of it.

    session_timeout_ms: int = 45_000
    # A member of which nothing was heard for so long is out.

    heartbeat_interval_ms: int = 3_000
    # How often it says that it lives, and hears of a rebalance; below the session's.

    max_poll_interval_ms: int = 300_000
    # A member that does not attend for so long leaves. It is also how long others wait for it.

    def __post_init__(self) -> None:
        settle_numbers(self)
        if not self.assignors:
            raise _illegal("partition_assignment_strategy", self.assignors, "give an assignor")
        _ = self.protocol
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"):
            value = getattr(self, name)
            if type(value) is not int or not 0 < value <= INT32_MAX:
                raise _illegal(name, value, "give a whole number of milliseconds, 1 or above")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise _illegal(
                "heartbeat_interval_ms",
                self.heartbeat_interval_ms,
                f"it must be below session_timeout_ms={self.session_timeout_ms}; a third of it "
                "lets two heartbeats be lost",
            )
        instance_id = self.group_instance_id
        if instance_id is not None and (
            not isinstance(instance_id, str)
            or not _INSTANCE_ID.fullmatch(instance_id)
            or instance_id in (".", "..")
        ):
            raise _illegal(
                "group_instance_id",
                instance_id,
                "give 1 to 249 letters, digits, dots, underscores or hyphens",
            )
        if not isinstance(self.client_id, str):
            raise _illegal("client_id", self.client_id, "give a text")

    @property
    def protocol(self) -> RebalanceProtocol:
        """The newest that all its assignors have, since it does not know which the group takes."""
        shared = set(RebalanceProtocol)
        for assignor in self.assignors:
            shared &= set(assignor.protocols)
        if not shared:
            names = tuple(assignor.name for assignor in self.assignors)
            raise _illegal(
                "partition_assignment_strategy", names, "they have no rebalance protocol in common"
            )
        return max(shared)


def chosen_assignors(strategy: object) -> tuple[Assignor, ...]:
    """Assignors from names, assignors, classes of them, or a list of these.

    Raises:
        InvalidConfigError: one is none of that, or is named twice.
    """
    given = strategy if isinstance(strategy, Iterable) and not isinstance(strategy, str) else None
    found: list[Assignor] = []
    for one in [strategy] if given is None else given:
        if isinstance(one, str):
            found.extend(assignor_named(name.strip()) for name in one.split(","))
        elif isinstance(one, Assignor):
            found.append(one)
        elif isinstance(one, type) and issubclass(one, Assignor):
            found.append(one())
        elif (name := getattr(one, "name", None)) in ASSIGNORS:  # as kafka-python's classes are
            found.append(ASSIGNORS[name])
        else:
            raise _illegal(
                "partition_assignment_strategy", one, "give the name of an assignor, or an Assignor"
            )
    names = [assignor.name for assignor in found]
    if len(set(names)) < len(names):
        raise _illegal("partition_assignment_strategy", names, "name each once")
    return tuple(found)


def _illegal(name: str, value: object, why: str) -> InvalidConfigError:
    return InvalidConfigError(f"{name}={value!r} is not legal: {why}", name=name, value=value)
