"""What a group goes by, under the names Kafka's brokers have for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import Struct

from ..errors import InvalidConfigError
from ..values.arguments import settle_numbers
from ..values.config import DAY_MS, INT32_MAX, MINUTE_MS
from ..values.keyspace_defaults import KeyspaceDefaults

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
    #: ``offset.metadata.max.bytes``.
    offset_metadata_max_bytes: int = 4_096

    def __post_init__(self) -> None:
        settle_numbers(self)
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is not int or value < 0:
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
            offset_metadata_max_bytes=given["offset.metadata.max.bytes"],
        )


DEFAULT_SETTINGS = GroupSettings()


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
