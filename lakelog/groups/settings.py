"""What groups, share groups and their members go by, under the names Kafka has for it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable

from msgspec import Struct

from ..errors import InvalidConfigError
from ..values.arguments import settle_numbers
from ..values.config import DAY_MS, INT32_MAX, MINUTE_MS
from ..values.keyspace_defaults import KeyspaceDefaults
from .assignors import ASSIGNORS, Assignor, RebalanceProtocol, assignor_named

#: For so long, what the keyspace says is not asked for again.
LASTING_S = 10.0


class GroupSettings(Struct, frozen=True):
    """All processes of a keyspace have the same: its defaults, unless a test gives others."""

    #: ``offsets.retention.minutes``: how long an offset is kept that nobody needs; see `is_over`
    #: in ``group.lua``.
    offsets_retention_ms: int = 7 * DAY_MS
    #: ``offsets.retention.check.interval.ms``: how often archivers look for those.
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    #: ``group.min.session.timeout.ms``, ``group.max.session.timeout.ms``.
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    #: ``group.initial.rebalance.delay.ms``: how long the first round waits for more members. Kafka
    #: has 3,000, for brokers that start with hundreds of clients.
    initial_rebalance_delay_ms: int = 500
    #: ``group.max.size``.
    max_size: int = INT32_MAX
    #: ``group.consumer.session.timeout.ms``, ``group.consumer.heartbeat.interval.ms``: of members
    #: by KIP-848's protocol, which do not choose them.
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    #: ``group.share.record.lock.duration.ms``, ``group.share.delivery.count.limit``, and where a
    #: share group begins: of members that are clients of Kafka.
    share_record_lock_duration_ms: int = 30_000
    share_delivery_count_limit: int = 5
    share_auto_offset_reset: str = "latest"
    #: ``offset.metadata.max.bytes``.
    offset_metadata_max_bytes: int = 4_096

    def __post_init__(self) -> None:
        settle_numbers(self)
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name != "share_auto_offset_reset" and (type(value) is not int or value < 0):
                raise InvalidConfigError(
                    f"{name}={value!r}: give a whole number, 0 or above",
                    name=name,
                    value=value,
                )

    @classmethod
    def of(cls, defaults: KeyspaceDefaults) -> GroupSettings:
        """What a keyspace's defaults say."""
        given = defaults.for_groups
        return cls(
            offsets_retention_ms=given["offsets.retention.minutes"] * MINUTE_MS,
            offsets_retention_check_interval_ms=given["offsets.retention.check.interval.ms"],
            min_session_timeout_ms=given["group.min.session.timeout.ms"],
            max_session_timeout_ms=given["group.max.session.timeout.ms"],
            initial_rebalance_delay_ms=given["group.initial.rebalance.delay.ms"],
            max_size=given["group.max.size"],
            consumer_session_timeout_ms=given["group.consumer.session.timeout.ms"],
            consumer_heartbeat_interval_ms=given["group.consumer.heartbeat.interval.ms"],
            share_record_lock_duration_ms=given["group.share.record.lock.duration.ms"],
            share_delivery_count_limit=given["group.share.delivery.count.limit"],
            share_auto_offset_reset=given["lakelog.share.auto.offset.reset"],
            offset_metadata_max_bytes=given["offset.metadata.max.bytes"],
        )


class KeyspaceGroupSettings:
    """The settings as the keyspace has them, asked for every `LASTING_S` at most. Thread-safe.

    Args:
        defaults: asks Redis.
        given: what holds instead, for tests.
    """

    def __init__(
        self, defaults: Callable[[], KeyspaceDefaults], given: GroupSettings | None = None
    ) -> None:
        self._defaults = defaults
        self._given = given
        self._lock = threading.Lock()
        self._seen: tuple[float, GroupSettings] | None = None

    def __call__(self) -> GroupSettings:
        if self._given is not None:
            return self._given
        now_s = time.monotonic()
        with self._lock:
            seen = self._seen
        if seen is None or now_s - seen[0] >= LASTING_S:
            seen = (now_s, GroupSettings.of(self._defaults()))
            with self._lock:
                self._seen = seen
        return seen[1]


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


class ShareGroupSettings(Struct, frozen=True, kw_only=True):
    """All members of a group should have the same. Checked when made.

    Raises:
        InvalidConfigError: a value that is not legal.
    """

    record_lock_duration_ms: int = 30_000
    # ``share.record.lock.duration.ms``: how long a member holds what it got; ≥ 1. Kafka: 30,000.

    delivery_count_limit: int = 5
    # ``share.delivery.count.limit``: how often a record is delivered at most; ≥ 1. Kafka: 5.

    partition_max_record_locks: int = 2_000
    # With how many ranges a partition gives out nothing new; ≥ 1. Kafka's
    # ``group.share.partition.max.record.locks`` counts records, of which it keeps each by itself.
    # What costs here are ranges: 2,000 take 24 KB, and each call some 4 ms of Redis's time; a
    # million records in one of them cost what one record does. Measured on 2 cores.

    dead_letter_topic: str | None = None
    # ``errors.deadletterqueue.topic.name``: where records go that were delivered too often, or
    # rejected; None: nowhere. Kafka: none.

    def __post_init__(self) -> None:
        settle_numbers(self)
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "dead_letter_topic":
                continue
            if type(value) is not int or not 1 <= value <= INT32_MAX:
                raise InvalidConfigError(
                    f"{name}={value!r} is not legal: give a whole number, 1 or above",
                    name=name,
                    value=value,
                )


DEFAULT_SETTINGS = ShareGroupSettings()

#: An acknowledgement that would leave more ranges than so many times the limit is refused.
MOST_RANGES_FACTOR = 10
