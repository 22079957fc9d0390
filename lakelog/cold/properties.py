"""A table's properties: what they say of its topic, and what somebody else may have set. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

import pyarrow as pa
from msgspec import Struct

from ..base.json_text import parse_json
from ..errors import ColdTierRefusedError, ContradictionError, PolicyViolationError
from ..values.config import (
    DATA_KEYS,
    DAY_MS,
    HOUR_MS,
    INT64_MAX,
    MINUTE_MS,
    SECOND_MS,
    TopicConfig,
)
from ..values.data_keys import DataKeys
from ..values.format_version import USUAL_FORMAT, check_format
from ..values.topic import Topic, check_topic_name
from .schema import changed_comments, missing_columns, statistics_columns

#: The format of the table, see `format_version`.
FORMAT_PROPERTY = "lakelog.format"

TOPIC_ID_PROPERTY = "lakelog.topic.id"
TOPIC_NAME_PROPERTY = "lakelog.topic.name"
GENERATION_PROPERTY = "lakelog.topic.generation"

#: Whose topic it is: several keyspaces may share a root, each with topics of the same names.
KEYSPACE_PROPERTY = "lakelog.keyspace"
KEYSPACE_ID_PROPERTY = "lakelog.keyspace.id"
KEYSPACE_DEFAULTS_PROPERTY = "lakelog.keyspace.defaults"

#: "false" if the topic is archived no more: nothing is added to its table, until it is again.
TIERED_PROPERTY = "lakelog.topic.tiered"

#: When the topic was deleted, in ms since the epoch; -1: it was not.
DELETED_PROPERTY = "lakelog.topic.deleted_ms"

#: When somebody began to remove the table for good; not there before that.
PURGED_PROPERTY = "lakelog.topic.purged_ms"

#: ``true`` if its table by name has its id in the name; not there otherwise.
NAMED_BY_ID_PROPERTY = "lakelog.topic.named_by_id"

#: The parts of a topic that may change. Where one is mirrored, all are.
PARTITIONS_PROPERTY = "lakelog.topic.partitions"
CONFIG_PROPERTY = "lakelog.topic.config"
CONFIG_VERSION_PROPERTY = "lakelog.topic.config_version"

#: How long any VACUUM keeps files that a commit removed.
FILE_RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"
FILE_RETENTION_DEFAULT_MS = 7 * DAY_MS  # Delta's own, where a table does not say

#: Spark counts intervals in µs. It cannot open a table that has a longer one (tried).
MAX_INTERVAL_MS = INT64_MAX // 1000

#: Which columns the add actions have statistics of, whoever writes the files.
STATISTICS_PROPERTY = "delta.dataSkippingStatsColumns"

FEED_PROPERTY = "delta.enableChangeDataFeed"

CHECKPOINT_PROPERTY = "delta.checkpointInterval"
CHECKPOINT_INTERVAL = 50

#: Of tables at a path, whose files pyarrow and other engines read too. Those by name Spark alone
#: reads, and catalogs demand deletion vectors of them.
READABLE_BY_ALL = {"delta.enableDeletionVectors": "false"}


def table_properties(topic: Topic) -> dict[str, str]:
    """The properties that a table of either kind is created with."""
    return {
        TOPIC_ID_PROPERTY: str(topic.topic_id),
        TOPIC_NAME_PROPERTY: topic.name,
        **mirrored_properties(topic),
        "delta.autoOptimize.autoCompact": "false",
        "delta.autoOptimize.optimizeWrite": "false",
        # A checkpoint costs as much as some commits. Each log file after it costs a request
        # whenever the table is opened.
        CHECKPOINT_PROPERTY: str(CHECKPOINT_INTERVAL),
        # An archiver that commits once a minute makes 10,000 log files in this time, and local
        # folders are listed as a whole. A stream over the table may pause for as long.
        "delta.logRetentionDuration": "interval 7 days",
    }


def mirrored_properties(topic: Topic) -> dict[str, str]:
    """The properties that describe the topic, for readers that have no Redis to ask."""
    delay_ms = min(topic.config["file.delete.delay.ms"], MAX_INTERVAL_MS)
    return {
        FORMAT_PROPERTY: str(USUAL_FORMAT),
        **_keyspace_properties(topic),
        DELETED_PROPERTY: str(-1 if topic.deleted_ms is None else topic.deleted_ms),
        **({} if topic.purged_ms is None else {PURGED_PROPERTY: str(topic.purged_ms)}),
        TIERED_PROPERTY: str(topic.config.tiered).lower(),
        **({NAMED_BY_ID_PROPERTY: "true"} if topic.named_by_id else {}),
        GENERATION_PROPERTY: str(topic.generation),
        PARTITIONS_PROPERTY: str(topic.partitions),
        CONFIG_PROPERTY: topic.config.to_json(),
        CONFIG_VERSION_PROPERTY: str(topic.config_version),
        FILE_RETENTION_PROPERTY: f"interval {delay_ms} milliseconds",
        STATISTICS_PROPERTY: statistics_columns(topic),
        **({FEED_PROPERTY: "true"} if topic.config["lakelog.change.data.feed"] else {}),
    }


def mirrored_topic(properties: Mapping[str, str]) -> Topic:
    """The topic that a table's properties describe.

    Raises:
        ValueError, KeyError: they are not what lakelog wrote.
        NewerVersionError: a newer one did, or they hold a setting that this one does not know.
    """
    check_format(properties.get(FORMAT_PROPERTY), "the table")
    defaults = parse_json(properties.get(KEYSPACE_DEFAULTS_PROPERTY, '{"settings":{},"version":0}'))
    keyspace_id = properties.get(KEYSPACE_ID_PROPERTY)
    return Topic(
        check_topic_name(properties[TOPIC_NAME_PROPERTY]),
        UUID(properties[TOPIC_ID_PROPERTY]),
        int(properties[PARTITIONS_PROPERTY]),
        TopicConfig.from_json(properties[CONFIG_PROPERTY]),
        int(properties[CONFIG_VERSION_PROPERTY]),
        int(properties[GENERATION_PROPERTY]),
        int(defaults["version"]),
        properties.get(KEYSPACE_PROPERTY),
        None if keyspace_id is None else UUID(keyspace_id),
        tuple(sorted((str(name), str(text)) for name, text in defaults["settings"].items())),
        _time_ms(properties, DELETED_PROPERTY),
        _time_ms(properties, PURGED_PROPERTY),
        properties.get(NAMED_BY_ID_PROPERTY) == "true",
    )


def had_feed(properties: Mapping[str, str]) -> bool:
    """Whether the topic that the properties describe asks for a change data feed."""
    text = properties.get(CONFIG_PROPERTY)
    return text is not None and TopicConfig.from_json(text)["lakelog.change.data.feed"]


def mirrored_data_keys(properties: Mapping[str, str]) -> DataKeys | None:
    """The keys of encrypted values that the properties have."""
    text = properties.get(CONFIG_PROPERTY)
    keys: DataKeys | None = None if text is None else TopicConfig.from_json(text)[DATA_KEYS]
    return keys


def is_deleted(properties: Mapping[str, str]) -> bool:
    """Whether the properties say that the topic was deleted."""
    return _time_ms(properties, DELETED_PROPERTY) is not None


def is_untiered(properties: Mapping[str, str]) -> bool:
    """Whether the properties say that the topic is archived no more."""
    return properties.get(TIERED_PROPERTY) == "false"


def is_purged(properties: Mapping[str, str]) -> bool:
    """Whether the properties say that the table is being removed."""
    return _time_ms(properties, PURGED_PROPERTY) is not None


def _time_ms(properties: Mapping[str, str], name: str) -> int | None:
    time_ms = int(properties.get(name, -1))
    return None if time_ms < 0 else time_ms


def _keyspace_properties(topic: Topic) -> dict[str, str]:
    if topic.keyspace is None:
        return {}
    defaults = {"settings": dict(topic.keyspace_defaults), "version": topic.defaults_version}
    named = {
        KEYSPACE_PROPERTY: topic.keyspace,
        KEYSPACE_DEFAULTS_PROPERTY: json.dumps(defaults, sort_keys=True),
    }
    if topic.keyspace_id is not None:
        named[KEYSPACE_ID_PROPERTY] = str(topic.keyspace_id)
    return named


def mirrored_version(properties: Mapping[str, str]) -> int:
    """The config version that the properties hold; 0 if they hold none."""
    text = properties.get(CONFIG_VERSION_PROPERTY, "")
    return int(text) if text.isdecimal() else 0


def file_retention_ms(properties: Mapping[str, str]) -> int:
    """How long the table keeps removed files.

    Raises:
        ColdTierError: the property is not written as lakelog, delta-rs and people write it.
    """
    text = properties.get(FILE_RETENTION_PROPERTY)
    if text is None:
        return FILE_RETENTION_DEFAULT_MS
    found = re.fullmatch(r"(?:interval )?(\d+) ([a-z]+?)s?", text.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise ColdTierRefusedError(
            f"the table property {FILE_RETENTION_PROPERTY} is {text!r}, which is not one number "
            "and one unit. Set it to 'interval 86400000 milliseconds', or change the topic's "
            "file.delete.delay.ms, which sets it"
        )
    return int(found[1]) * _UNITS_MS[found[2]]


_UNITS_MS = {
    "millisecond": 1,
    "second": SECOND_MS,
    "minute": MINUTE_MS,
    "hour": HOUR_MS,
    "day": DAY_MS,
    "week": 7 * DAY_MS,
}


# -- the next commit of settings ------------------------------------------------------------------


class AddColumns(Struct, frozen=True):
    """Columns of values that the table does not have yet."""

    columns: pa.Schema


class SetComment(Struct, frozen=True):
    """A column's comment that differs."""

    column: str
    comment: str


class SetProperties(Struct, frozen=True):
    """Properties that differ."""

    properties: Mapping[str, str]


#: One commit.
Alteration = AddColumns | SetComment | SetProperties


def next_alteration(
    topic: Topic, held: Mapping[str, str], columns: Callable[[], pa.Schema]
) -> Alteration | None:
    """The next commit of a topic's settings to its table; None if it has them, or newer ones.

    The properties come last: they carry the config version.

    Args:
        held: the table's properties.
        columns: gives the columns it has.

    Raises:
        PolicyViolationError: the table is being removed; or is to be, but the topic is back.
        ContradictionError: it has keys of encrypted values that the topic does not have.
    """
    if is_purged(held):
        if topic.purged_ms is not None or topic.deleted_ms is not None:
            return None
        raise PolicyViolationError(
            f"topic {topic.name!r} with id {topic.topic_id} was deleted and is being removed for "
            "good: its table takes no commits any more",
            topic=topic.name,
            topic_id=topic.topic_id,
        )
    if topic.purged_ms is not None and not is_deleted(held):
        raise PolicyViolationError(
            f"topic {topic.name!r} with id {topic.topic_id} is not deleted: somebody brought it "
            "back, so nothing was removed. Delete it first",
            topic=topic.name,
            topic_id=topic.topic_id,
        )
    if mirrored_version(held) > topic.config_version:
        return None
    _check_keys_kept(topic, held)
    there = columns()
    missing = missing_columns(topic, there)
    if len(missing):
        return AddColumns(missing)
    comments = changed_comments(topic, there)
    if comments:
        return SetComment(*comments.popitem())
    wanted = mirrored_properties(topic)
    if int(held.get(FORMAT_PROPERTY, 0)) > int(wanted[FORMAT_PROPERTY]):
        del wanted[FORMAT_PROPERTY]  # it never goes back
    if FEED_PROPERTY not in wanted and had_feed(held):  # one that somebody else turned on stays
        wanted[FEED_PROPERTY] = "false"
    changes = {name: wanted[name] for name in wanted if held.get(name) != wanted[name]}
    return SetProperties(changes) if changes else None


def _check_keys_kept(topic: Topic, held: Mapping[str, str]) -> None:
    """Refuse settings after which values in the table could not be decrypted any more."""
    before, after = mirrored_data_keys(held), topic.config[DATA_KEYS]
    if before is None or (after is not None and after.keeps(before)):
        return
    raise ContradictionError(
        f"the table of topic {topic.name!r} has {before}, and Redis has {after or 'none'}: it has "
        f"lost a change of the topic's settings. `lakelog topics rotate-key {topic.name}` takes up "
        "again what the table has; until then nothing is archived"
    )


# -- what others set ------------------------------------------------------------------------------

#: Spark's checkpoints drop txn actions that are older, and all that do not say how old they are.
TXN_RETENTION_PROPERTY = "delta.setTransactionRetentionDuration"

APPEND_ONLY_PROPERTY = "delta.appendOnly"

#: More than writing a file and committing it takes.
_WRITTEN_WITHIN_MS = 10 * MINUTE_MS

_JSON_STATISTICS = "delta.checkpoint.writeStatsAsJson"
_STRUCT_STATISTICS = "delta.checkpoint.writeStatsAsStruct"


def warnings(properties: Mapping[str, str]) -> Iterator[str]:
    """What comes of them, and what to do, a sentence each."""
    if TXN_RETENTION_PROPERTY in properties:
        yield (
            f"{TXN_RETENTION_PROPERTY} is {properties[TXN_RETENTION_PROPERTY]!r}: Spark's "
            "checkpoints drop registers, which say how far the topic is archived. The next archive "
            f"run states them so that they stay. {unset(TXN_RETENTION_PROPERTY)}"
        )
    if _is(properties, _JSON_STATISTICS, "false") and not _is(
        properties, _STRUCT_STATISTICS, "true"
    ):
        yield (
            f"{_JSON_STATISTICS} is 'false' without {_STRUCT_STATISTICS}='true': after Spark's "
            "next checkpoint nothing says when a file's records are, so that none expires by "
            "retention.ms, nor which records a file has that Spark's OPTIMIZE wrote. "
            f"{unset(_JSON_STATISTICS)}"
        )
    if _is(properties, APPEND_ONLY_PROPERTY, "true"):
        yield (
            f"{APPEND_ONLY_PROPERTY} is 'true': nothing can be deleted from such a table, so that "
            f"cleanups and erasures fail. {unset(APPEND_ONLY_PROPERTY)}"
        )
    named = properties.get(STATISTICS_PROPERTY)
    if named is not None and not {"offset", "timestamp"} <= set(named.replace("`", "").split(",")):
        yield (
            f"{STATISTICS_PROPERTY} is {named!r}, without offset and timestamp: the files of the "
            "next OPTIMIZE by Spark do not say which records they hold, and lakelog refuses them. "
            "Add both"
        )
    try:
        kept_ms = file_retention_ms(properties)
    except ColdTierRefusedError as error:
        yield error.message
        return
    if kept_ms < _WRITTEN_WITHIN_MS:
        yield (
            f"{FILE_RETENTION_PROPERTY} is {properties[FILE_RETENTION_PROPERTY]!r}: a VACUUM by "
            "Spark takes files that are being written. Set the topic's file.delete.delay.ms to "
            "600000 (ten minutes) or more"
        )


def _is(properties: Mapping[str, str], name: str, value: str) -> bool:
    return properties.get(name, "").strip().lower() == value


def unset(name: str) -> str:
    """How a property is taken back."""
    return f"Undo it in Spark: ALTER TABLE … UNSET TBLPROPERTIES ('{name}')"
