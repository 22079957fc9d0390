"""What a group goes by, under the names Kafka's brokers have for it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..config import DAY_MS, INT32_MAX
from ..errors import InvalidConfigError


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """All processes of a keyspace should have the same."""

    #: ``offsets.retention.minutes``: how long an offset is kept that nobody needs; see `is_over`
    #: in ``group.lua``.
    offsets_retention_ms: int = 7 * DAY_MS
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
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidConfigError(
                    f"{field.name}={value!r}: give a whole number, 0 or above",
                    name=field.name,
                    value=value,
                )


DEFAULT_SETTINGS = GroupSettings()
