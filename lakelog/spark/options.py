"""The data source's options, for reading and writing: `OPTIONS` has them all, the README explains.

Their names are those of Kafka's source and sink. Positions are lakelog's (``earliest``, ``-10m``,
``2013-12-30T12:00:00Z``, an offset for all, …).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from enum import Flag, auto
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

from msgspec import Struct, field

from ..base.back_off import ASK_AGAIN, BackOff
from ..base.json_text import parse_json
from ..base.secret_reference import check_executors_can_resolve, check_secret_reference
from ..cold.by_name.names import SCHEMA
from ..errors import InvalidArgumentError, UnknownTopicOrPartitionError
from ..groups.group_values import check_group_id
from ..hot import Acks
from ..hot.keys import DEFAULT_KEYSPACE
from ..hot.registry import TopicRegistry
from ..place.log_place import LogPlace, check_no_password
from ..values.config import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from ..values.offsets import (
    AtOffset,
    AtTimestamp,
    Earliest,
    Latest,
    Position,
    position,
    timestamp_ms,
)
from ..values.topic import Topic, check_topic_name
from ..values.topic_partition import TopicPartition
from ..values.value_ddl import ddl_of, parse_columns
from .offsets_json import EARLIEST, LATEST, StreamOffset, parse_offsets
from .trigger_limits import TriggerLimits

#: How tasks, and streams that run, ask a tier again that does not answer: somebody has to start a
#: query again that fails. Source: the Kafka source's ``kafkaConsumer.pollTimeoutMs``, by default
#: ``spark.network.timeout``.
UNDER_WAY = ASK_AGAIN.within(120.0)


# -- what is asked --------------------------------------------------------------------------------


class Subscription(Struct, frozen=True):
    """Which topic-partitions are read; exactly one of the three is given."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None  # of whole names
    assigned: Mapping[str, tuple[int, ...]] | None = None

    def topics(self, registry: TopicRegistry) -> dict[str, Topic]:
        """The topics as they are now, by name. A named one that does not exist is not there."""
        if self.pattern is not None:
            found = registry.list()
            return {topic.name: topic for topic in found if self.pattern.fullmatch(topic.name)}
        topics = {}
        for name in self.assigned if self.assigned is not None else self.names:
            try:
                topics[name] = registry.get(name)
            except UnknownTopicOrPartitionError:
                continue
        return topics

    def partitions(self, topic: Topic) -> list[int]:
        """Those of a topic that are read.

        Raises:
            UnknownTopicOrPartitionError: one was assigned that the topic does not have.
        """
        if self.assigned is None:
            return list(range(topic.partitions))
        return [topic.partition(number).partition for number in self.assigned[topic.name]]

    def includes(self, name: str) -> bool:
        """Whether a topic of that name is read."""
        if self.pattern is not None:
            return self.pattern.fullmatch(name) is not None
        return name in self.required()

    def required(self) -> tuple[str, ...]:
        """The topics that must exist."""
        return tuple(self.assigned) if self.assigned is not None else self.names


class Bound(Struct, frozen=True):
    """One end of what is read: a position for all partitions, or one for each."""

    everywhere: Position | None
    each: Mapping[TopicPartition, Position] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    option: str = ""  # that said so, for errors

    def of(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Position]:
        """The position of each partition.

        Raises:
            InvalidArgumentError: positions were given one by one, and not for these.
        """
        if self.everywhere is not None:
            return dict.fromkeys(partitions, self.everywhere)
        missing = [str(tp) for tp in partitions if tp not in self.each]
        unknown = [str(tp) for tp in self.each if tp not in partitions]
        if missing or unknown:
            parts = [f"lacks {', '.join(missing)}"] if missing else []
            parts += [f"names {', '.join(unknown)}, which is not read"] if unknown else []
            raise InvalidArgumentError(
                f"{self.option} {' and '.join(parts)}: it must name each partition that is read, "
                "with an offset, -2 (earliest) or -1 (latest)"
            )
        return {tp: self.each[tp] for tp in partitions}


class ReadOptions(Struct, frozen=True):
    """What the options say."""

    place: LogPlace
    subscription: Subscription
    starting: Bound
    ending: Bound
    latest_if_too_young: bool = False  # startingOffsetsByTimestampStrategy
    limits: TriggerLimits = TriggerLimits()
    min_partitions: int = 1
    fail_on_data_loss: bool = True
    back_off: BackOff = UNDER_WAY
    group_id: str | None = None  # that is told how far a stream is
    include_headers: bool = False
    value_columns: str = ""
    stored_values: bool = False  # encrypted ones are not decrypted
    as_of_version: int | None = None


class WriteOptions(Struct, frozen=True):
    """What the options of a write say."""

    place: LogPlace
    topic: str | None = None  # None: the column says
    acks: Acks = Acks()
    idempotent: bool = True
    include_headers: bool = True
    txn_app_id: str | None = None  # with the next: the batch, however often it is written
    txn_version: int | None = None


# -- what the text of an option says -----------------------------------------------------------


class _NotLegalError(Exception):
    """What the text of an option is not."""


def _count(text: str, least: int = 1) -> int:
    if not re.fullmatch(r"\s*-?\d{1,18}\s*", text) or int(text) < least:
        raise _NotLegalError(f"a whole number from {least} on")
    return int(text)


def _version(text: str) -> int:
    return _count(text, -1)


def _flag(text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise _NotLegalError("true or false")
    return text.strip().lower() == "true"


def _strategy(text: str) -> bool:
    if text.lower() not in {"error", "latest"}:
        raise _NotLegalError("'error' or 'latest'")
    return text.lower() == "latest"


def _back_off(text: str) -> BackOff:
    return UNDER_WAY.within(_count(text) / 1000)


def _columns(text: str) -> str:
    return ddl_of(parse_columns(text))


#: As Spark reads sizes and times in options.
_BYTES = {
    "": 1,
    "b": 1,
    **{unit: 1024**n for n, letter in enumerate("kmgtp", 1) for unit in (letter, f"{letter}b")},
}
_DURATIONS_MS = {
    "": 1,
    "ms": 1,
    "s": SECOND_MS,
    "m": MINUTE_MS,
    "min": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
}


def _measure(text: str, units: Mapping[str, int], wanted: str) -> int:
    found = re.fullmatch(r"\s*(\d{1,12})\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in units or int(found[1]) == 0:
        raise _NotLegalError(wanted)
    return int(found[1]) * units[found[2]]


_size = partial(_measure, units=_BYTES, wanted="bytes, such as 1000, 64m or 1g")
_delay_ms = partial(_measure, units=_DURATIONS_MS, wanted="a time, such as 500ms or 15m")


# -- which options there are -------------------------------------------------------------------


class Use(Flag):
    """What an option may be said of."""

    BATCH = auto()
    STREAM = auto()
    WRITE = auto()  # of a batch or a stream
    READ = BATCH | STREAM
    ALL = READ | WRITE


class Option(Struct, frozen=True):
    """An option, and what is made of its text."""

    name: str
    of: Use
    field: str = ""  # of `ReadOptions`, `TriggerLimits`, `WriteOptions`; empty: not of one alone
    says: Callable[[str], Any] = str
    why_not: str = ""  # it is refused of the other kind of read
    is_public: bool = True


_NO_END = "cannot be used with a stream, which has no end; use spark.read"
_NO_PART = "is for streams; a batch reads its whole range"
_NO_PROGRESS = "is for streams: a batch has no progress that a group could be told of"
_NO_VERSION = "is for batches, which are read again; a stream goes on"

OPTIONS = (
    Option("redis", Use.ALL),  # the hot tier's URL, without a password
    Option("passwordRef", Use.ALL),  # see `secret_reference`
    Option("keyspace", Use.ALL),
    Option("tenant", Use.ALL),  # has a keyspace, and a folder or schema, below these or beside them
    Option("cold", Use.ALL),  # folder or URL of the cold root, or catalog.schema
    Option("storageOptions", Use.ALL),  # JSON: what opens an object store; secrets by reference
    Option("tablesAt", Use.ALL),  # with catalog.schema: the Unity Catalog's URL, or a folder
    Option("subscribe", Use.READ),  # names; this or one of the next two
    Option("subscribePattern", Use.READ),
    Option("assign", Use.READ),  # JSON
    Option("startingTimestamp", Use.READ),  # epoch ms or a time with its zone; over the next two
    Option("startingOffsetsByTimestamp", Use.READ),  # JSON in epoch ms; over the next
    Option("startingOffsets", Use.READ),  # a position, or JSON with -2 and -1
    Option("startingOffsetsByTimestampStrategy", Use.READ, "latest_if_too_young", _strategy),
    Option("endingTimestamp", Use.BATCH, why_not=_NO_END),
    Option("endingOffsetsByTimestamp", Use.BATCH, why_not=_NO_END),
    Option("endingOffsets", Use.BATCH, why_not=_NO_END),
    Option("maxOffsetsPerTrigger", Use.STREAM, "max_offsets", _count, _NO_PART),
    Option("maxBytesPerTrigger", Use.STREAM, "max_bytes", _size, _NO_PART),
    Option("minOffsetsPerTrigger", Use.STREAM, "min_offsets", _count, _NO_PART),
    Option("maxTriggerDelay", Use.STREAM, "max_delay_ms", _delay_ms, _NO_PART),
    Option("minPartitions", Use.READ, "min_partitions", _count),
    Option("failOnDataLoss", Use.READ, "fail_on_data_loss", _flag),
    Option("kafkaConsumer.pollTimeoutMs", Use.READ, "back_off", _back_off),
    Option("groupId", Use.STREAM, "group_id", check_group_id, _NO_PROGRESS),
    Option("includeHeaders", Use.ALL, "include_headers", _flag),
    Option("valueColumns", Use.READ, "value_columns", _columns),  # DDL
    Option("storedValues", Use.READ, "stored_values", _flag),
    # A frame over both tiers says it to the reader of its tail, and nobody else does: what the
    # archive took since that version of the table is read as it was.
    Option("readAsOfVersion", Use.BATCH, "as_of_version", _version, _NO_VERSION, is_public=False),
    Option("topic", Use.WRITE, "topic", check_topic_name),  # of all rows, over the column
    Option("acks", Use.WRITE, "acks", Acks.parse),
    Option("idempotent", Use.WRITE, "idempotent", _flag),
    Option("txnAppId", Use.WRITE, "txn_app_id"),  # as for Delta's writes in foreachBatch
    Option("txnVersion", Use.WRITE, "txn_version", partial(_count, least=0)),
)

#: How much each micro-batch of a stream takes.
OF_TRIGGERS = tuple(one.name for one in OPTIONS if one.field in TriggerLimits.__struct_fields__)


def _public(use: Use) -> tuple[str, ...]:
    return tuple(option.name for option in OPTIONS if option.is_public and use & option.of)


WRITE = _public(Use.WRITE)

#: What Spark adds to the options of a table or view of its catalog.
OF_SPARK = frozenset(
    {"provider", "path", "location", "owner", "comment", "external", "is_managed_location"}
)

#: Options of Spark's Kafka source and sink that have no meaning here, and why.
LEFT_OUT = {
    "groupIdPrefix": "a stream goes by its checkpoint; groupId names a group that is told of it",
    "kafka.group.id": "a stream goes by its checkpoint; groupId names a group that is told of it",
    "fetchOffset.numRetries": "lakelog asks again by itself; see kafkaConsumer.pollTimeoutMs",
    "fetchOffset.retryIntervalMs": "lakelog asks again by itself; see kafkaConsumer.pollTimeoutMs",
    "maxRecordsPerPartition": "large ranges are split anyway; see minPartitions",
}


# -- as they were given --------------------------------------------------------------------------


def parse_write(given: Mapping[str, str]) -> WriteOptions:
    """The options of a batch or streaming write. Names are told apart without their case.

    Raises:
        InvalidArgumentError: an option is unknown, not legal or missing.
    """
    # Spark hands its own option of streams over with the others.
    own = {name: value for name, value in given.items() if name.lower() != "checkpointlocation"}
    options = _known(own, Use.WRITE)
    if "topic" not in options and "," not in options.get("subscribe", ","):
        options["topic"] = options["subscribe"].strip()  # of a view that is read and written
    made = WriteOptions(log_place(options), **_said(options, Use.WRITE))
    if (made.txn_app_id is None) != (made.txn_version is None):
        _refuse("txnAppId and txnVersion name a batch together: give both, or none")
    return made


def parse(given: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """The options of a batch or streaming read. Names are told apart without their case.

    Raises:
        InvalidArgumentError: an option is unknown, not legal, missing, or contradicts another.
    """
    use = Use.STREAM if streaming else Use.BATCH
    options = _known(given, Use.READ)
    for option in OPTIONS:
        if option.name in options and option.why_not and not use & option.of:
            _refuse(f"{option.name} {option.why_not}")
    said = _said(options, use)
    limits = {name: said.pop(name) for name in TriggerLimits.__struct_fields__ if name in said}
    return ReadOptions(
        log_place(options),
        _subscription(options),
        starting=_bound(options, "starting", Latest() if streaming else Earliest(), streaming),
        ending=_bound(options, "ending", Latest(), streaming),
        limits=TriggerLimits(**limits),
        **said,
    )


def check(given: Mapping[str, str]) -> None:
    """Refuse what is wrong whether a batch or a stream is read.

    Raises:
        InvalidArgumentError: see `parse`.
    """
    options = _known(given, Use.READ)
    log_place(options)
    _subscription(options)


def _known(given: Mapping[str, str], use: Use) -> dict[str, str]:
    """The options under their proper spelling: Spark hands them over in lower case.

    Those of another use are no mistake: a view that is read may be written, too.
    """
    known = [option.name for option in OPTIONS if option.is_public or use & option.of]
    spelling = {name.lower(): name for name in known}
    options = {}
    for name, value in given.items():
        if name.lower() in spelling:
            options[spelling[name.lower()]] = value
        elif name.lower() not in OF_SPARK and not name.lower().startswith("option."):
            _refuse_unknown(name, _public(use))
    return options


def _said(options: Mapping[str, str], use: Use) -> dict[str, Any]:
    """The fields that one option gives each."""
    said = {}
    for option in OPTIONS:
        text = options.get(option.name)
        if text is None or not option.field or not use & option.of:
            continue
        try:
            said[option.field] = option.says(text)
        except _NotLegalError as error:
            _refuse(f"{option.name}={text!r} is not {error}")
    return said


def log_place(options: Mapping[str, str]) -> LogPlace:
    """Where the log is, by the options of `WHERE`.

    Raises:
        InvalidArgumentError: no Redis is named, its URL has a password, a storage option is a
            secret in clear, or a reference is one that executors cannot resolve.
    """
    if not options:
        _refuse(
            "Spark gave no options: it does not hand those of CREATE TABLE … USING lakelog on to a "
            "Python data source. CREATE TEMPORARY VIEW … USING lakelog OPTIONS (…) works, and can "
            "be inserted into too"
        )
    if "redis" not in options:
        _refuse("the option 'redis' is missing: the URL of the Redis that holds the hot tier")
    check_no_password(options["redis"])
    if "passwordRef" in options:
        check_secret_reference(options["passwordRef"], "passwordRef")
        check_executors_can_resolve(options["passwordRef"], "passwordRef")
    if "cold" not in options and "storageOptions" in options:
        _refuse("storageOptions goes with 'cold': it opens an object store")
    if "tablesAt" in options and "tenant" in options:
        _refuse("tablesAt is where the tables of one schema are, and a tenant has another")
    if "tablesAt" in options and not SCHEMA.fullmatch(options.get("cold", "")):
        _refuse("tablesAt goes with cold=catalog.schema: it says where the schema's tables are")
    place = LogPlace.of(
        options["redis"],
        options.get("cold"),
        keyspace=options.get("keyspace", DEFAULT_KEYSPACE),
        password_ref=options.get("passwordRef"),
        storage_options=_storage_options(options.get("storageOptions", "{}")),
        tables_at=options.get("tablesAt"),
    )
    if "tenant" in options:
        place = place.of_tenant(options["tenant"])
    if place.cold is not None:
        place.cold.options()  # refuses what may not be shown
    return place


def _storage_options(text: str) -> dict[str, str]:
    try:
        given = parse_json(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):  # not repeated: it may hold a secret
        _refuse('storageOptions should be JSON such as {"AWS_ENDPOINT_URL": "https://host:9000"}')
    return given


def _refuse_unknown(name: str, public: tuple[str, ...]) -> NoReturn:
    left_out = {one.lower(): why for one, why in LEFT_OUT.items()}.get(name.lower())
    if left_out is not None:
        _refuse(f"{name} of the Kafka source is not here: {left_out}. Leave it out")
    if name.lower().startswith("kafka."):
        _refuse(
            f"{name} is a setting of a Kafka client, and there is none here; say where the log is "
            "with 'redis' and 'cold'"
        )
    spelling = {one.lower(): one for one in public}
    near = difflib.get_close_matches(name.lower(), spelling, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(spelling[one] for one in near)}?"
    legal = f"legal: {', '.join(public)}"
    _refuse(f"there is no option {name!r}; {hint if near else legal}")


def _subscription(options: Mapping[str, str]) -> Subscription:
    ways = [name for name in ("assign", "subscribe", "subscribePattern") if name in options]
    if len(ways) != 1:
        given = f"{' and '.join(ways)} contradict each other" if ways else "none is given"
        _refuse(f"say which topics with one of subscribe, subscribePattern, assign: {given}")
    text = options[ways[0]]
    if ways == ["assign"]:
        return Subscription(assigned=_assigned(text))
    if ways == ["subscribePattern"]:
        try:
            return Subscription(pattern=re.compile(text))
        except re.error as error:
            _refuse(f"subscribePattern={text!r} is no regular expression: {error}")
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        _refuse("subscribe names no topic; give names separated by commas")
    return Subscription(names=tuple(dict.fromkeys(map(check_topic_name, names))))


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    wanted = 'JSON such as {"orders": [0, 1]}'
    try:
        members = parse_json(text)
    except ValueError as error:
        _refuse(f"assign={text!r} should be {wanted}: {error}")
    if not isinstance(members, dict) or not members:
        _refuse(f"assign={text!r} should be {wanted}")
    for name, numbers in members.items():
        check_topic_name(name)
        whole = isinstance(numbers, list) and all(type(number) is int for number in numbers)
        if not whole or not numbers or min(numbers) < 0:
            _refuse(f"assign={text!r} should be {wanted}; {numbers!r} is no list of partitions")
    return {name: tuple(sorted(set(numbers))) for name, numbers in members.items()}


def _bound(options: Mapping[str, str], end: str, default: Position, streaming: bool) -> Bound:
    """By Kafka's precedence: a timestamp for all, timestamps one by one, offsets."""
    name = f"{end}Timestamp"
    if name in options:
        return Bound(AtTimestamp(_time(name, options[name])), option=name)
    name = f"{end}OffsetsByTimestamp"
    if name in options:
        times = parse_offsets(options[name], name)
        if min(times.offsets.values(), default=0) < 0:
            _refuse(f"{name}={options[name]!r} has a negative time; -1 and -2 are for offsets")
        each = {tp: AtTimestamp(time) for tp, time in times.offsets.items()}
        return Bound(None, each, option=name)
    name = f"{end}Offsets"
    text = options.get(name, "").strip()
    if not text:
        return Bound(default, option=name)
    forbidden = Earliest() if end == "ending" else Latest() if not streaming else None
    if text.startswith("{"):
        given = parse_offsets(text, name)
        bound = _bound_of(given, name)
    else:
        bound = Bound(position(text.lower() if text.lower() in _NAMES else text), option=name)
    if forbidden is not None and forbidden in {bound.everywhere, *bound.each.values()}:
        _refuse(
            f"{name} cannot be {'earliest (-2)' if end == 'ending' else 'latest (-1)'} in a batch: "
            "it would always be empty"
        )
    return bound


_NAMES = ("earliest", "latest")  # in any case, as with Kafka's


def _bound_of(given: StreamOffset, option: str) -> Bound:
    special: dict[int, Position] = {EARLIEST: Earliest(), LATEST: Latest()}
    each = {
        tp: special[offset] if offset in special else AtOffset(offset)
        for tp, offset in given.offsets.items()
    }
    return Bound(None, each, given.topic_ids, option)


def _time(name: str, text: str) -> int:
    text = text.strip()
    if text.isdecimal() and len(text) < 20:
        return int(text)
    try:
        return timestamp_ms(text)
    except InvalidArgumentError as error:
        _refuse(f"{name}: {error.message}; or give epoch milliseconds")


def _refuse(message: str) -> NoReturn:
    raise InvalidArgumentError(message)
