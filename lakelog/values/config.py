"""Topic settings by their Kafka names: types, bounds, defaults, and what must hold between them.

Values travel as text (as Kafka's AdminClient has them); `TopicConfig` parses and checks them once
and hands out typed ones. Where a default is not Kafka's, the definition says so and why. What a
keyspace sets for all its topics comes from ``keyspace_defaults.py``.

Source: Kafka ``TopicConfig`` and ``LogConfig`` (names, bounds, defaults); settings that start with
``lakelog.`` are ours.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from ..base.json_text import parse_json
from ..base.secret_reference import is_secret_reference
from ..base.unit_text import plain_number, units_of
from ..errors import InvalidConfigError
from .data_keys import parse_data_keys
from .format_version import newer
from .record import TimestampType
from .value_ddl import check_additive, parse_columns
from .value_format import FORMATS, JSON, ValueFormat, format_name, parse_schemas

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class EntryFormat(str, Enum):
    """How records are laid out in the stream (``lakelog.entry.format``)."""

    AUTO = "auto"
    ARROW = "arrow"
    FIELDS = "fields"
    KAFKA = "kafka"


class Compression(str, Enum):
    """How an arrow entry's buffers are compressed, or the records of a kafka entry."""

    NONE = "uncompressed"
    LZ4 = "lz4"
    ZSTD = "zstd"


#: Kafka's codecs that Arrow IPC does not have, and what stands in for them.
COMPRESSION_STAND_INS = {"gzip": "zstd", "snappy": "lz4"}


class Setting(Struct, frozen=True):
    """One setting: how its text is read, and which values are legal."""

    name: str
    default: str
    parse: Callable[[str], Any]
    legal: str  # the rule in words, for the error
    doc: str
    kafka_default: str | None = None  # where ours differs
    may_be_secret: bool = False  # a wrong value may be a key: no error repeats it


_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")  # int() alone takes 1_000 too


def whole_number(low: int, high: int = INT64_MAX) -> Callable[[str], int]:
    """Reads a whole number in ``low..high``."""

    def parse(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text):
            raise ValueError
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return parse


def _ratio(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError
    return value


def boolean(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    return {"true": True, "false": False}[text.lower()]


def one_of(*names: str) -> Callable[[str], str]:
    """Reads one of these words."""

    def parse(text: str) -> str:
        if text not in names:
            raise ValueError
        return text

    return parse


def _policies(text: str) -> frozenset[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not set(names) <= {"delete", "compact"}:
        raise ValueError
    return frozenset(names)


def _reference(text: str) -> str:
    if text and not is_secret_reference(text):
        raise ValueError
    return text


_TIMESTAMP_TYPES = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


def number(
    name: str, default: int, low: int, doc: str, high: int = INT64_MAX, **more: Any
) -> Setting:
    """The definition of a whole number in ``low..high``."""
    bound = f"a whole number ≥ {low}" if high == INT64_MAX else f"a whole number in {low}..{high}"
    return Setting(name, str(default), whole_number(low, high), bound, doc, **more)


def text_of(value: object) -> str:
    """A Python value as Kafka writes it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(sorted(map(str, value)))
    return str(value)


def switch(name: str, default: bool, doc: str, **more: Any) -> Setting:
    """The definition of something that is on or off."""
    return Setting(name, text_of(default), boolean, "true or false", doc, **more)


#: How files of the cold table are compressed, by the names of Parquet and Spark.
PARQUET_COMPRESSION = "lakelog.parquet.compression"

#: What values and keys are, and the schemas that they were written by.
VALUE_FORMAT = "lakelog.value.format"
ENFORCE_COLUMNS = "lakelog.value.columns.enforce"
KEY_FORMAT = "lakelog.key.format"
SCHEMAS = "lakelog.schemas"

#: Where the key is under which a topic's data keys are wrapped, and these.
ENCRYPTION_KEY = "lakelog.encryption.key"
DATA_KEYS = "lakelog.encryption.data.keys"

_DEFINITIONS = (
    Setting(
        "cleanup.policy",
        "delete",
        _policies,
        "a comma list of delete and compact (empty: keep forever)",
        "what cleanup forgets: whole old segments, superseded records, both or nothing",
    ),
    Setting(
        "compression.type",
        "producer",
        one_of("producer", "uncompressed", "lz4", "zstd", "gzip", "snappy"),
        "producer, uncompressed, lz4, zstd, gzip (stored as zstd) or snappy (stored as lz4)",
        "how hot entries are compressed; producer keeps what the producer chose",
    ),
    number("delete.retention.ms", DAY_MS, 0, "how long compaction keeps a tombstone"),
    # A stranger's VACUUM goes by it too, and takes files younger than it that no commit names yet.
    number(
        "file.delete.delay.ms",
        DAY_MS,
        0,
        "how long removed cold files stay readable",
        kafka_default=str(MINUTE_MS),
    ),
    number(
        "index.interval.bytes", 4096, 0, "at most one time-index entry per so many bytes", INT32_MAX
    ),
    number(
        "internal.segment.bytes",
        0,
        0,
        "overrides segment.bytes without its lower bound, for tests (0: not set)",
        INT32_MAX,
    ),
    number("local.retention.bytes", -2, -2, "hot bytes kept; -2: as retention.bytes, -1: all"),
    number(
        "local.retention.ms",
        -2,
        -2,
        "how long archived records stay hot; -2: as retention.ms, -1: forever",
    ),
    number("max.compaction.lag.ms", INT64_MAX, 1, "the longest a record stays uncompacted"),
    number("max.message.bytes", MIB + 12, 0, "the largest entry, in stored bytes", INT32_MAX),
    number("message.timestamp.after.max.ms", HOUR_MS, 0, "how far ahead a timestamp may lie"),
    number("message.timestamp.before.max.ms", INT64_MAX, 0, "how far back a timestamp may lie"),
    Setting(
        "message.timestamp.type",
        "CreateTime",
        _TIMESTAMP_TYPES.__getitem__,
        "CreateTime or LogAppendTime",
        "whose clock stamps the records: the producer's or Redis's",
    ),
    Setting(
        "min.cleanable.dirty.ratio", "0.5", _ratio, "a number in 0..1", "when compaction starts"
    ),
    number("min.compaction.lag.ms", 0, 0, "the shortest a record stays uncompacted"),
    number("producer.id.expiration.ms", DAY_MS, 1, "when an idle producer id is forgotten"),
    switch(
        "remote.storage.enable",
        True,
        "whether the topic is archived to the cold tier",
        kafka_default="false",
    ),
    switch(
        "remote.log.delete.on.disable",
        False,
        "whether remote.storage.enable may be switched off, which deletes what is archived",
    ),
    number("retention.bytes", -1, -1, "the size above which old segments go; -1: no limit"),
    number("retention.ms", 7 * DAY_MS, -1, "the age after which old segments go; -1: no limit"),
    number("segment.bytes", GIB, MIB, "a segment rolls before it exceeds this", INT32_MAX),
    number(
        "segment.index.bytes",
        10 * MIB,
        4,
        "no effect here: an index is a sorted set of Redis's, which grows as it is filled",
        INT32_MAX,
    ),
    number("segment.jitter.ms", 0, 0, "the most by which segment.ms is shortened"),
    number("segment.ms", 7 * DAY_MS, 1, "the record time after which a segment rolls"),
    Setting(
        "lakelog.entry.format",
        "auto",
        EntryFormat,
        "auto, arrow, fields or kafka",
        "how records are laid out in the stream; auto: fields below 16 records, else arrow; kafka: "
        "record batches of Kafka's",
    ),
    switch(
        "lakelog.fields.flatten",
        False,
        "whether a JSON object's members become fields of a fields entry",
    ),
    # Two steps of a reader, and what Parquet makes of one, stay well below 512 MiB.
    number(
        "lakelog.max.decoded.bytes",
        64 * MIB,
        1,
        "the largest entry, in bytes once it is decompressed",
        INT32_MAX,
    ),
    number(
        "lakelog.flush.rows",
        1_000_000,
        1,
        "unarchived records from which a continuous archiver archives a partition",
    ),
    number(
        "lakelog.flush.interval.ms",
        MINUTE_MS,
        0,
        "time since the oldest unarchived append from which it archives all the same",
    ),
    number(
        "lakelog.high.water.percent",
        80,
        1,
        "the share of Redis's maxmemory from which all that is archived goes from there; 100: none",
        100,
    ),
    number(
        "lakelog.retention.entries", -1, -1, "the entries an untiered partition keeps; -1: no limit"
    ),
    Setting(
        "lakelog.value.columns",
        "",
        parse_columns,
        "columns as in a table definition (flight int, origin string)",
        "the columns that the cold table gets out of JSON values",
    ),
    switch(
        ENFORCE_COLUMNS,
        False,
        "whether a value that is not what the columns say is refused when it is appended",
    ),
    Setting(
        VALUE_FORMAT,
        JSON,
        format_name,
        f"{', '.join(FORMATS)}, or the name of a decoder that is installed",
        "what values are read as where they are shown, searched or made columns of",
    ),
    Setting(
        KEY_FORMAT,
        JSON,
        format_name,
        f"{', '.join(FORMATS)}, or the name of a decoder that is installed",
        "what keys are read as where they are shown; a search compares them as they are stored",
    ),
    Setting(
        SCHEMAS,
        "",
        parse_schemas,
        "a JSON object of schemas by id",
        "schemas of values and keys, kept so that no registry is needed to read what is archived",
    ),
    Setting(
        PARQUET_COMPRESSION,
        "zstd",
        one_of("zstd", "lz4_raw", "snappy", "uncompressed"),
        "zstd, lz4_raw, snappy or uncompressed",
        "how archived files are compressed, from the next file on",
    ),
    switch(
        "lakelog.key.bloom.filter",
        True,
        "whether archived files have Bloom filters, by which a search for keys skips files",
    ),
    switch(
        "lakelog.change.data.feed",
        False,
        "whether the cold table has a change data feed, from the commit on that says so",
    ),
    Setting(
        ENCRYPTION_KEY,
        "",
        _reference,
        "env:NAME, file:/PATH or databricks:SCOPE/KEY, where a 256-bit key is (empty: none), and "
        "never the key itself",
        "where the key is that wraps the keys by which values are encrypted; empty: none are",
        may_be_secret=True,
    ),
    Setting(
        DATA_KEYS,
        "",
        parse_data_keys,
        "what lakelog wrote there",
        "the keys by which values are encrypted, wrapped; only lakelog writes it",
    ),
)

#: What a change data feed adds to a table's own columns.
FEED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})

SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _DEFINITIONS}

#: The quotas of a keyspace. Kafka's quota of producers is ``producer_byte_rate``, for each broker.
QUOTA_HOT_BYTES = "lakelog.quota.hot.bytes"
QUOTA_COLD_BYTES = "lakelog.quota.cold.bytes"
QUOTA_TOPICS = "lakelog.quota.topics"
QUOTA_BYTE_RATE = "lakelog.quota.producer.byte.rate"
QUOTAS = (QUOTA_HOT_BYTES, QUOTA_COLD_BYTES, QUOTA_TOPICS, QUOTA_BYTE_RATE)

#: What a keyspace sets for all its topics and no topic for itself, by Kafka's broker names.
KEYSPACE_SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        switch("log.cleaner.enable", True, "whether compaction runs; false pauses it"),
        number(
            "log.cleaner.dedupe.buffer.size",
            128 * MIB,
            MIB + 1,  # Kafka: more than 1 MiB
            "the bytes of keys that one compaction task holds at a time",
        ),
        number(
            "log.retention.check.interval.ms",
            5 * MINUTE_MS,
            1,
            "how often an untiered partition forgets what is older than retention.ms, and a "
            "continuous cleanup looks",
        ),
        number(
            QUOTA_HOT_BYTES,
            -1,
            -1,
            "the stored bytes that all topics together may hold in Redis; -1: no limit",
        ),
        number(
            QUOTA_COLD_BYTES,
            -1,
            -1,
            "the bytes of all tables from which on nothing more is archived; -1: no limit",
        ),
        number(QUOTA_TOPICS, -1, -1, "how many topics there may be; -1: no limit"),
        number(
            QUOTA_BYTE_RATE,
            -1,
            -1,
            "the stored bytes a second that may be appended to all topics; -1: no limit",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic's settings: its own, over the keyspace's, over those built in. Checked when made.

    Args:
        overrides: what the topic set itself: text by setting name.
        defaults: what its keyspace sets for all topics, by *topic* setting name, and the
            `KEYSPACE_SETTINGS`.

    Raises:
        InvalidConfigError: an unknown name, a value out of bounds, or two that contradict; as in
            Kafka, those in effect are compared, wherever they come from.
    """

    overrides: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    #: What was asked for so far: a look at many partitions asks the same again and again.
    _values: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for layer in ("overrides", "defaults"):
            given = dict(getattr(self, layer)).items()  # stored as numbers, as Kafka has them
            plain = sorted((name, plain_number(name, text)) for name, text in given)
            object.__setattr__(self, layer, tuple(plain))
        for name, text in self.overrides:
            parse(setting(name), text)
        for name, text in self.defaults:
            parse(KEYSPACE_SETTINGS.get(name) or setting(name), text)
        _check_together(self)

    @classmethod
    def of(cls, settings: Mapping[str, object] | None = None, **kwargs: object) -> TopicConfig:
        """From any mapping; Python's True, 5 and None are written as Kafka writes them.

        Keyword names use ``_`` for ``.``: ``TopicConfig.of(retention_ms=-1)``.
        """
        given = dict(settings or {})
        given.update({name.replace("_", "."): value for name, value in kwargs.items()})
        return cls(tuple((name, text_of(value)) for name, value in given.items()))

    def replace(self, changes: Mapping[str, object | None]) -> TopicConfig:
        """A copy with settings of the topic changed; None puts one back to its default."""
        check_settings(changes)
        for name in changes:
            setting(name)
        merged: dict[str, object | None] = {**dict(self.overrides), **changes}
        given = {name: text_of(value) for name, value in merged.items() if value is not None}
        return TopicConfig(tuple(given.items()), self.defaults)

    def __getitem__(self, name: str) -> Any:
        """The typed value of a setting (int, float, bool, str, Enum or frozenset)."""
        try:
            return self._values[name]
        except KeyError:
            found = self._values[name] = setting(name).parse(self.text(name))
            return found

    def text(self, name: str) -> str:
        """The value of a setting as text."""
        definition = setting(name)
        given = self._given(name)
        return definition.default if given is None else given

    def source(self, name: str) -> str:
        """Where the value of a setting comes from: ``topic``, ``keyspace`` or ``default``."""
        setting(name)
        if name in dict(self.overrides):
            return "topic"
        return "keyspace" if name in dict(self.defaults) else "default"

    def with_defaults(self, defaults: Iterable[tuple[str, str]]) -> TopicConfig:
        """The topic's own settings over other defaults of the keyspace."""
        return TopicConfig(self.overrides, tuple(defaults))

    def to_json(self) -> str:
        """Both layers as JSON text; the same config always gives the same text."""
        layers = {"overrides": dict(self.overrides), "defaults": dict(self.defaults)}
        return json.dumps(layers, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> TopicConfig:
        """What `to_json` wrote.

        Raises:
            InvalidConfigError: it is not that.
            NewerVersionError: it holds a setting that this lakelog does not know.
        """
        try:
            layers = parse_json(text)
            overrides, defaults = (tuple(layers[k].items()) for k in ("overrides", "defaults"))
            if not all(isinstance(value, str) for _, value in overrides + defaults):
                raise TypeError("a value is not text")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidConfigError(
                f"{text[:80]!r} is no topic config as JSON ({error!r}); somebody else wrote it",
                value=text,
            ) from None
        return cls.stored(overrides, defaults, "this topic config")

    @classmethod
    def stored(
        cls,
        overrides: Iterable[tuple[str, str]],
        defaults: Iterable[tuple[str, str]],
        what: str,
    ) -> TopicConfig:
        """A config that a lakelog wrote down.

        Args:
            what: where it was found.

        Raises:
            NewerVersionError: it holds a setting that this lakelog does not know.
        """
        overrides, defaults = tuple(overrides), tuple(defaults)
        for name, _ in overrides + defaults:
            if name not in SETTINGS and name not in KEYSPACE_SETTINGS:
                raise newer(what, f"a setting {name[:80]}")
        return _checked(overrides, defaults)

    def _given(self, name: str) -> str | None:
        """What the topic or the keyspace sets; loops, for it is asked often over a few."""
        for layer in (self.overrides, self.defaults):
            for given, text in layer:
                if given == name:
                    return text
        return None

    def _of_keyspace(self, name: str) -> Any:
        definition = KEYSPACE_SETTINGS[name]
        given = self._given(name)
        return definition.parse(definition.default if given is None else given)

    # -- what more than one stage asks for ---------------------------------------------------

    @property
    def tiered(self) -> bool:
        """Whether the topic has a cold tier."""
        return bool(self["remote.storage.enable"])

    @property
    def value_columns(self) -> str:
        """``lakelog.value.columns``: what columns are made of JSON values, as DDL."""
        return self.text("lakelog.value.columns")

    @property
    def enforces_columns(self) -> bool:
        """Whether values that are not what they say are refused: `ENFORCE_COLUMNS`."""
        return bool(self[ENFORCE_COLUMNS])

    @property
    def value_format(self) -> ValueFormat:
        """How values are read: ``lakelog.value.format``, and the schemas that are known."""
        return ValueFormat(self.text(VALUE_FORMAT), self.text(SCHEMAS))

    @property
    def key_format(self) -> ValueFormat:
        """How keys are read: ``lakelog.key.format``."""
        return ValueFormat(self.text(KEY_FORMAT), self.text(SCHEMAS))

    @property
    def encrypts(self) -> bool:
        """Whether values are encrypted before they are appended: ``lakelog.encryption.key``."""
        return bool(self.text(ENCRYPTION_KEY))

    @property
    def compacted(self) -> bool:
        return "compact" in self["cleanup.policy"]

    @property
    def cleaner_enabled(self) -> bool:
        """Whether compaction runs: ``log.cleaner.enable`` of the keyspace."""
        return bool(self._of_keyspace("log.cleaner.enable"))

    @property
    def dedupe_buffer_bytes(self) -> int:
        """``log.cleaner.dedupe.buffer.size`` of the keyspace: keys a compaction task holds."""
        return int(self._of_keyspace("log.cleaner.dedupe.buffer.size"))

    @property
    def retention_check_interval_ms(self) -> int:
        """``log.retention.check.interval.ms`` of the keyspace."""
        return int(self._of_keyspace("log.retention.check.interval.ms"))

    def quota(self, name: str) -> int | None:
        """What the keyspace allows all its topics together; None: there is no limit.

        Args:
            name: one of `QUOTAS`.
        """
        limit = int(self._of_keyspace(name))
        return None if limit < 0 else limit

    @property
    def segment_bytes(self) -> int:
        return int(self["internal.segment.bytes"] or self["segment.bytes"])

    @property
    def effective_segment_ms(self) -> int:
        """``segment.ms``, shortened by ``max.compaction.lag.ms`` on compacted topics."""
        if self.compacted:
            return int(min(self["segment.ms"], self["max.compaction.lag.ms"]))
        return int(self["segment.ms"])

    @property
    def local_retention_ms(self) -> int:
        """How long archived records stay hot; -1: forever."""
        local = int(self["local.retention.ms"])
        return int(self["retention.ms"]) if local == -2 else local

    @property
    def high_water_percent(self) -> float:
        """Of ``maxmemory``, from which the topic gives room in Redis; infinite: never, as where it
        has no cold tier.
        """
        percent = int(self["lakelog.high.water.percent"])
        return percent if percent < 100 and self.tiered else math.inf

    @property
    def local_retention_bytes(self) -> int:
        """How many hot bytes a partition keeps; -1: no limit."""
        local = int(self["local.retention.bytes"])
        return int(self["retention.bytes"]) if local == -2 else local


@lru_cache(maxsize=1024)
def _checked(
    overrides: tuple[tuple[str, str], ...], defaults: tuple[tuple[str, str], ...]
) -> TopicConfig:
    """Thousands of topics mostly have a few configs."""
    return TopicConfig(overrides, defaults)


def setting(name: str) -> Setting:
    """The definition of a setting.

    Raises:
        InvalidConfigError: there is none of that name; the message proposes near ones.
    """
    found = SETTINGS.get(name)
    if found is None:
        raise InvalidConfigError(f"there is no topic setting {name!r}; {_hint(name)}", name=name)
    return found


#: How names of Kafka's brokers begin, and of what is set for all topics.
_FOR_ALL_TOPICS = (
    *("log.", "offsets.", "offset.", "group.", "message.max.bytes"),
    *("lakelog.quota.", "lakelog.log."),
)


def _hint(name: str) -> str:
    if name.startswith(_FOR_ALL_TOPICS):
        return (
            f"it is a name of what all topics go by: `lakelog topics defaults --config {name}=…`, "
            "or set_defaults(), sets it, and `lakelog topics defaults --all` lists such names. "
            "`lakelog topics describe TOPIC --all` lists those of one topic"
        )
    if "flush" in name.lower():
        return f"did you mean {_FLUSH}?"
    import difflib

    near = difflib.get_close_matches(name, SETTINGS, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"legal: {', '.join(SETTINGS)}"


_FLUSH = "lakelog.flush.rows=1000 and lakelog.flush.interval.ms=60s"


def parse(definition: Setting, text: str) -> Any:
    """The typed value of a setting.

    Raises:
        InvalidConfigError: not a legal one; the message says which are.
    """
    try:
        return definition.parse(text)
    except InvalidConfigError as error:
        message = f"{definition.name}={text!r} is not legal: it takes {definition.legal}; {error}"
        raise error.changed(message=message, name=definition.name) from None
    except (ValueError, KeyError):
        is_shown = not definition.may_be_secret
        given = repr(text) if is_shown else "… (which may be a key, and is not shown)"
        raise InvalidConfigError(
            f"{definition.name}={given} is not legal: it takes {definition.legal}"
            f"{units_of(definition.name)}"
            + (f"; two settings: {_FLUSH}" if definition.name.startswith("lakelog.flush.") else ""),
            name=definition.name,
            value=text if is_shown else None,
        ) from None


def check_change(
    old: TopicConfig, new: TopicConfig, unwritten: Callable[[], Collection[str]] = tuple
) -> None:
    """Refuse a change of a topic's settings that what is stored already could not follow.

    Args:
        unwritten: asked where value columns go: those that no file can have.

    Raises:
        InvalidConfigError: a value column that files may have goes or gets another type; or the
            topic would lose its cold tier, and nothing says that what is archived may go; or data
            keys would be lost.
    """
    if old.tiered and not new.tiered and not new["remote.log.delete.on.disable"]:
        raise InvalidConfigError(
            "remote.storage.enable=false deletes what is archived and no longer in Redis: the log "
            "then starts at its local log start. If that is meant, set "
            "remote.log.delete.on.disable=true with it. To keep what is archived and archive no "
            "more, leave both as they are and stop archiving the topic",
            name="remote.storage.enable",
            value=new.text("remote.storage.enable"),
        )
    if new.tiered:
        before, after = old["lakelog.value.columns"], new["lakelog.value.columns"]
        try:
            check_additive(before, after)
        except InvalidConfigError:
            never = unwritten()
            check_additive([one for one in before if one.name not in never], after)
    check_keys_kept(old, new)


def check_keys_kept(old: TopicConfig, new: TopicConfig) -> None:
    """Refuse a change after which values could not be decrypted any more.

    Raises:
        InvalidConfigError: data keys would go, or another key than the one that wrapped them is
            named.
    """
    before, after = old[DATA_KEYS], new[DATA_KEYS]
    if before is None:
        return
    if after is None or not after.keeps(before):
        raise InvalidConfigError(
            f"{DATA_KEYS} would lose keys, and with them the values that they encrypted. Leave it "
            f"as it is: {ENCRYPTION_KEY}= (empty) stops encrypting, and what is there stays "
            "readable",
            name=DATA_KEYS,
        )
    asked = new.text(ENCRYPTION_KEY)
    if asked not in ("", old.text(ENCRYPTION_KEY), after.reference):
        raise InvalidConfigError(
            f"the topic's data keys are wrapped under the key at {after.reference!r}, and "
            f"{ENCRYPTION_KEY} alone cannot change that: `lakelog topics rotate-key TOPIC "
            f"--wrap-with {asked}` wraps them anew, and sets it",
            name=ENCRYPTION_KEY,
            value=asked,
        )


def _check_together(config: TopicConfig) -> None:
    if config["min.compaction.lag.ms"] > config["max.compaction.lag.ms"]:
        _contradiction(config, "min.compaction.lag.ms", "max.compaction.lag.ms", "at most")
    for unit in ("ms", "bytes"):
        local, total = f"local.retention.{unit}", f"retention.{unit}"
        if not config.tiered or config[local] == -2:
            continue
        if config[total] >= 0 and (config[local] == -1 or config[local] > config[total]):
            _contradiction(config, local, total, "at most")
    if config["lakelog.value.columns"] and not config.tiered:
        raise InvalidConfigError(
            "lakelog.value.columns needs the cold tier, whose table has the columns, but "
            "remote.storage.enable=false; set remote.storage.enable=true or leave the columns out",
            name="lakelog.value.columns",
            value=config.value_columns,
        )
    if config.enforces_columns and not config["lakelog.value.columns"]:
        raise InvalidConfigError(
            f"{ENFORCE_COLUMNS}=true needs lakelog.value.columns, which it enforces",
            name=ENFORCE_COLUMNS,
            value="true",
        )
    if config["lakelog.value.columns"] and (config.encrypts or config.text(DATA_KEYS)):
        raise InvalidConfigError(
            f"lakelog.value.columns and {ENCRYPTION_KEY} do not go together: the columns are made "
            "of the values, and would lie in the table in the clear. Leave one of them out",
            name="lakelog.value.columns",
            value=config.value_columns,
        )
    feed = "lakelog.change.data.feed"
    taken = [
        one.name for one in config["lakelog.value.columns"] if one.name.lower() in FEED_COLUMNS
    ]
    if config[feed] and taken:
        raise InvalidConfigError(
            f"{feed}=true and a value column {taken[0]!r} do not go together: a change data feed "
            "has a column of that name itself; name the column otherwise, or leave the feed out",
            name=feed,
            value="true",
        )
    if config.compacted and not config.tiered:
        raise InvalidConfigError(
            "cleanup.policy=compact needs the cold tier, where compaction runs, but "
            "remote.storage.enable=false; set remote.storage.enable=true or "
            "cleanup.policy=delete",
            name="cleanup.policy",
            value=config.text("cleanup.policy"),
        )


def _contradiction(config: TopicConfig, name: str, other: str, relation: str) -> None:
    def shown(name: str) -> str:
        origin = config.source(name)
        where = {"topic": "", "keyspace": " (the keyspace's)", "default": " (the default)"}
        return f"{name}={config.text(name)}{where[origin]}"

    raise InvalidConfigError(
        f"{shown(name)} must be {relation} {shown(other)}; change one of the two",
        name=name,
        value=config.text(name),
    )


def check_settings(settings: object) -> None:
    """Refuses what is no mapping of settings' names.

    Raises:
        InvalidConfigError: that.
    """
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise InvalidConfigError(
            f"{settings!r:.200} is no dict of settings, such as {{'retention.ms': -1}}"
        )


def check_names(config: type[Struct], kind: str, names: Iterable[str]) -> None:
    """Refuses names that are no fields of a config's class.

    Args:
        kind: whose settings these are, such as "producer".

    Raises:
        InvalidConfigError: there is no such setting.
    """
    legal = config.__struct_fields__
    for name in names:
        if name not in legal:
            raise InvalidConfigError(
                f"there is no {kind} setting {name!r}; legal: {', '.join(legal)}", name=name
            )
