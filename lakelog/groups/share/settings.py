"""What a share group goes by, under the names Kafka has for it."""

from __future__ import annotations

from msgspec import Struct

from ...errors import InvalidConfigError
from ...values.arguments import settle_numbers
from ...values.config import INT32_MAX


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
