"""The settings of consumers and of share consumers, by Kafka's names in snake case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InvalidArgumentError, InvalidConfigError, RecordDeserializationError
from ..groups.group_values import check_group_id
from ..groups.settings import MemberConfig, ShareGroupSettings, chosen_assignors
from ..values.arguments import check_timeout, settle_numbers, whole
from ..values.config import MIB, check_names
from ..values.offsets import Ago, Earliest, Latest, Position
from ..values.record import Headers, Record
from ..values.topic_partition import TopicPartition
from ..values.typed_time import parse_duration


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


_BY_DURATION = "by_duration:"


class OffsetReset(Struct, frozen=True):
    """``auto_offset_reset``: ``earliest``, ``latest``, ``none`` or ``by_duration:PT1H``.

    Source: Kafka ``AutoOffsetResetStrategy``, KIP-1106.
    """

    text: str
    position: Position | None  # where to go; None: nowhere, the error is raised

    @classmethod
    def parse(cls, text: object) -> OffsetReset:
        """The policy of that name.

        Raises:
            InvalidConfigError: not one of the four, not in lower case, or a duration that
                is negative or not ISO-8601.
        """
        match text:
            case "earliest":
                return cls("earliest", Earliest())
            case "latest":
                return cls("latest", Latest())
            case "none":
                return cls("none", None)
            case str() if text.startswith(_BY_DURATION):
                try:
                    return cls(text, Ago(parse_duration(text[len(_BY_DURATION) :])))
                except InvalidArgumentError as error:
                    raise _illegal(text, f": {error}") from error
        raise _illegal(text)


def _illegal(text: object, why: str = "") -> InvalidConfigError:
    return InvalidConfigError(
        f"auto_offset_reset={text!r} is not legal: it takes 'earliest', 'latest', 'none' or "
        f"'by_duration:<ISO-8601 duration>' such as 'by_duration:PT10M'{why}",
        name="auto_offset_reset",
        value=text,
    )


@runtime_checkable
class TopicDeserializer(Protocol):
    """Makes something of bytes that may depend on the topic and the headers, as kafka-python's."""

    def deserialize(self, topic: str, headers: Headers, data: bytes) -> Any:
        """What the bytes stand for."""
        ...


Deserializer = Callable[[bytes], Any] | TopicDeserializer


class Deserializers:
    """Those of a consumer. A null stays None: no deserializer is asked for one."""

    def __init__(self, key: Deserializer | None, value: Deserializer | None) -> None:
        given = {"key": key, "value": value}
        self._of = {name: make for name, make in given.items() if make is not None}
        self.are_given = bool(self._of)

    def apply(
        self, records: list[Record]
    ) -> tuple[list[Record], RecordDeserializationError | None]:
        """Gives the records their objects.

        Returns:
            The records before the first that cannot be read, all if each can; and why it cannot.
        """
        if not self._of:
            return records, None
        for number, record in enumerate(records):
            for name, make in self._of.items():
                try:
                    made = _made(make, record, getattr(record, name))
                except Exception as error:
                    return records[:number], _failure(record, name, error)
                force_setattr(record, name, made)  # it is frozen for those who get it
        return records, None


def _made(make: Deserializer, record: Record, data: bytes | None) -> Any:
    if data is None:
        return None
    if isinstance(make, TopicDeserializer):
        return make.deserialize(record.topic, record.headers, data)
    return make(data)


def _failure(record: Record, name: str, error: Exception) -> RecordDeserializationError:
    failure = RecordDeserializationError(
        f"{name}_deserializer could not read the {name} of {record.topic}-{record.partition} at "
        f"offset {record.offset}: {error!r}. It comes again until you seek to "
        f"{record.offset + 1}, or until the deserializer reads it",
        topic_partition=TopicPartition(record.topic, record.partition),
        offset=record.offset,
    )
    failure.__cause__ = error
    return failure


MODES = ("implicit", "explicit")


class ShareConsumerConfig(Struct, frozen=True, kw_only=True):
    """Checked when made; `of` also says which names are legal.

    All consumers of a group should have the same settings but for ``max_poll_records``, the
    deserializers and ``share_acknowledgement_mode``. They are not kept in Redis.

    Raises:
        InvalidConfigError: a value that is not legal.
    """

    group_id: str
    # Whose records it takes.

    share_acknowledgement_mode: str = "implicit"
    # "implicit": the next poll or commit accepts all that the last poll gave. "explicit": each
    # record has to be acknowledged before the next poll. Kafka: implicit.

    share_auto_offset_reset: str = "latest"
    # Where the group begins in a partition in which it never was: "earliest", "latest" or
    # "by_duration:PT10M". Kafka: latest.

    share_record_lock_duration_ms: int = 30_000
    share_delivery_count_limit: int = 5
    share_partition_max_record_locks: int = 2_000
    errors_deadletterqueue_topic_name: str | None = None
    # See `ShareGroupSettings`.

    max_poll_records: int = 500
    # The most that one poll returns; ≥ 1. Kafka: 500.

    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    # As a consumer's. A record that cannot be read is released, so it ends where the limit says.

    stored_values: bool = False
    # As a consumer's. Dead letters have the stored bytes for their values, then.

    metadata_max_age_ms: int = 5_000
    # How often it looks for new topics and partitions; ≥ 1. Kafka: 300,000.

    def __post_init__(self) -> None:
        settle_numbers(self)
        check_group_id(self.group_id)
        if self.share_acknowledgement_mode not in MODES:
            raise InvalidConfigError(
                f"share_acknowledgement_mode={self.share_acknowledgement_mode!r} is not legal: it "
                "takes 'implicit' or 'explicit'",
                name="share_acknowledgement_mode",
                value=self.share_acknowledgement_mode,
            )
        if self.reset.position is None:
            raise InvalidConfigError(
                "share_auto_offset_reset='none' is not legal: a share group begins somewhere; it "
                "takes 'earliest', 'latest' or 'by_duration:PT…'",
                name="share_auto_offset_reset",
                value="none",
            )
        _ = self.group_settings
        check_count("max_poll_records", self.max_poll_records)
        check_max_age(self.metadata_max_age_ms)
        check_flag("stored_values", self.stored_values)
        check_deserializers(self.key_deserializer, self.value_deserializer)

    @property
    def is_explicit(self) -> bool:
        return self.share_acknowledgement_mode == "explicit"

    @property
    def reset(self) -> OffsetReset:
        try:
            return OffsetReset.parse(self.share_auto_offset_reset)
        except InvalidConfigError as error:
            raise InvalidConfigError(
                f"share_{error.message}",
                name="share_auto_offset_reset",
                value=self.share_auto_offset_reset,
            ) from None

    @property
    def group_settings(self) -> ShareGroupSettings:
        """What its group goes by."""
        return ShareGroupSettings(
            record_lock_duration_ms=self.share_record_lock_duration_ms,
            delivery_count_limit=self.share_delivery_count_limit,
            partition_max_record_locks=self.share_partition_max_record_locks,
            dead_letter_topic=self.errors_deadletterqueue_topic_name,
        )

    @classmethod
    def of(cls, **settings: Any) -> ShareConsumerConfig:
        """From keyword arguments.

        Raises:
            InvalidConfigError: there is no such setting, or a value is not legal.
        """
        check_names(cls, "share consumer", settings)
        if "group_id" not in settings:
            raise InvalidConfigError(
                "group_id is missing: consumers share the records of a group; name it",
                name="group_id",
            )
        return cls(**settings)
