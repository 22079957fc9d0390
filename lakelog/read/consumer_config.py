"""A consumer's settings, by Kafka's names in snake case."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..errors import InvalidArgumentError, InvalidConfigError
from ..groups.group_ids import check_group_id
from ..groups.member_config import MemberConfig, chosen_assignors
from ..values.arguments import check_timeout, settle_numbers, whole
from ..values.config import MIB, check_names
from .deserializers import Deserializer, TopicDeserializer
from .policy import OffsetReset


class ConsumerConfig(Struct, frozen=True, kw_only=True):
    """Checked when made; `of` also says which names are legal.

    Raises:
        InvalidConfigError: a value that is not legal.
    """

    auto_offset_reset: str = "latest"
    # Where to begin without a position, or when the log does not hold it (any more): "earliest",
    # "latest", "none" (an error), or "by_duration:PT10M" (that long before now). If no record is
    # that young, by_duration waits for one and does not take the log end; if the log begins later,
    # it takes its start. Kafka: latest.

    max_poll_records: int = 500
    # The most that one `poll` returns; ≥ 1. Kafka: 500.

    fetch_max_bytes: int = 50 * MIB
    # The most that one poll hands out, and how much of the cold tier is read ahead of it, of all
    # partitions together; decoded, and a single larger record still is. 0: nothing is read ahead,
    # and there is no thread for it. Kafka: 50 MiB.

    consumer_timeout_ms: int | None = None
    # Iterating ends after this long without a record; None: never. kafka-python: never.

    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    # What makes objects of keys and values: a function of the bytes, or an object with
    # `deserialize(topic, headers, data)`. A null stays None without being asked for.

    stored_values: bool = False
    # Give encrypted values as they are stored, which takes no key. Kafka has no such values.

    isolation_level: str = "read_uncommitted"
    # The only one: a log has no transactions, so there is nothing that is not committed.

    metadata_max_age_ms: int = 5_000
    # How often a subscription looks for new topics and partitions; ≥ 1. Kafka: 300,000; here it
    # takes Redis some microseconds.

    group_id: str | None = None
    # Whose offsets it commits and goes on from, and with whom it shares what it subscribes to.
    # None: nobody's, and it shares with nobody.

    group_instance_id: str | None = None
    # A static member: when it starts again within its session, it goes on with what it had.

    client_id: str = "lakelog"
    # What others see of a member.

    enable_auto_commit: bool = True
    # Commit positions by itself: every so often, before partitions go, and at the end.

    auto_commit_interval_ms: int = 5_000
    # How often. Kafka: 5,000.

    session_timeout_ms: int = 45_000
    # A member of which nothing was heard for so long is out. Kafka: 45,000.

    heartbeat_interval_ms: int = 3_000
    # How often it says that it lives, and hears of a rebalance. Kafka: 3,000.

    max_poll_interval_ms: int = 300_000
    # A member that is not polled for so long leaves; it is also how long others wait for it in a
    # rebalance. Kafka: 300,000.

    partition_assignment_strategy: Any = ("range", "cooperative-sticky")
    # Names of assignors, or assignors, the preferred one first; see `lakelog.groups`. Kafka: these.

    def __post_init__(self) -> None:
        settle_numbers(self)
        OffsetReset.parse(self.auto_offset_reset)
        if self.isolation_level != "read_uncommitted":
            raise InvalidConfigError(
                f"isolation_level={self.isolation_level!r} is not legal: it takes "
                "'read_uncommitted', since there are no transactions to wait for",
                name="isolation_level",
                value=self.isolation_level,
            )
        check_count("max_poll_records", self.max_poll_records)
        check_size("fetch_max_bytes", self.fetch_max_bytes)
        if self.consumer_timeout_ms is not None:
            check_timeout("consumer_timeout_ms", self.consumer_timeout_ms)
        check_max_age(self.metadata_max_age_ms)
        check_flag("enable_auto_commit", self.enable_auto_commit)
        check_flag("stored_values", self.stored_values)
        check_timeout("auto_commit_interval_ms", self.auto_commit_interval_ms)
        if self.group_id is not None:
            check_group_id(self.group_id)
        self.member_config()
        check_deserializers(self.key_deserializer, self.value_deserializer)

    def member_config(self, client_host: str = "") -> MemberConfig:
        """What a membership goes by.

        Args:
            client_host: where the consumer runs.

        Raises:
            InvalidConfigError: a value that is not legal.
        """
        return MemberConfig(
            assignors=chosen_assignors(self.partition_assignment_strategy),
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=client_host,
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            max_poll_interval_ms=self.max_poll_interval_ms,
        )

    @classmethod
    def of(cls, **settings: Any) -> ConsumerConfig:
        """From keyword arguments.

        Raises:
            InvalidConfigError: there is no such setting, or a value is not legal.
        """
        check_names(cls, "consumer", settings)
        return cls(**settings)


def check_max_age(metadata_max_age_ms: object) -> None:
    """How old what is known of topics may be.

    Raises:
        InvalidArgumentError: not a whole number ≥ 1.
    """
    if check_timeout("metadata_max_age_ms", metadata_max_age_ms) < 1:
        raise InvalidConfigError(
            "metadata_max_age_ms=0 is not legal: it takes a whole number ≥ 1",
            name="metadata_max_age_ms",
            value=0,
        )


def check_deserializers(key_deserializer: object, value_deserializer: object) -> None:
    """What makes objects of bytes.

    Raises:
        InvalidConfigError: neither a function nor an object as kafka-python has them.
    """
    both = {"key_deserializer": key_deserializer, "value_deserializer": value_deserializer}
    for name, given in both.items():
        if not (given is None or callable(given) or isinstance(given, TopicDeserializer)):
            raise InvalidConfigError(
                f"{name}={given!r} is not legal: it takes a function of the bytes, or an "
                "object with deserialize(topic, headers, data)",
                name=name,
            )


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise InvalidConfigError(
            f"{name}={value!r} is not legal: it takes True or False", name=name, value=value
        )


def check_count(name: str, value: object) -> int:
    """A number of records.

    Raises:
        InvalidArgumentError: not a whole number ≥ 1.
    """
    number = whole(value)
    if number is None or number < 1:
        raise InvalidArgumentError(f"{name}={value!r} is not a number of records ≥ 1")
    return number


def check_size(name: str, value: object) -> int:
    """A size in bytes.

    Raises:
        InvalidConfigError: not a whole number ≥ 0.
    """
    number = whole(value)
    if number is None or number < 0:
        raise InvalidConfigError(
            f"{name}={value!r} is not legal: it takes a number of bytes ≥ 0",
            name=name,
            value=value,
        )
    return number
