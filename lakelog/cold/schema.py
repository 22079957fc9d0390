"""The table's columns and properties, and how its Parquet files are laid out.

| column             | type                      |                                             |
|--------------------|---------------------------|---------------------------------------------|
| partition, segment | int, long                 | partition columns; not in the files         |
| offset             | long                      | files lakelog writes are sorted by it       |
| timestamp          | timestamp (ms precision)  | the record's                                |
| timestampType      | int                       | 0 CreateTime, 1 LogAppendTime               |
| key, value         | binary, nullable          | byte for byte                               |
| headers            | array<struct<key, value>> | in order                                    |
| delete_horizon     | timestamp, nullable       | set when compaction first keeps a tombstone |
| value columns …    | of lakelog.value.columns  | parsed from the value; null in older files  |
| value_error        | string, nullable          | why the value could not be parsed           |

Column comments of the table say what each means.

At a path, readers of version 1 are enough: no deletion vectors, no column mapping. By name, a
catalog may demand both, and Spark sees to them. Row groups are the sparse index within a file:
small enough to read one for one record, large enough to compress.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pyarrow as pa

from ..base.json_text import parse_json
from ..codec.value_columns import value_schema
from ..errors import ColdTierRefusedError, ContradictionError
from ..values.config import (
    DATA_KEYS,
    DAY_MS,
    HOUR_MS,
    INT64_MAX,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    TopicConfig,
)
from ..values.data_keys import DataKeys
from ..values.format_version import USUAL_FORMAT, check_format
from ..values.record import RECORDS
from ..values.topic import Topic, check_topic_name
from ..values.value_ddl import VALUE_ERROR

PARTITION_COLUMNS = ["partition", "segment"]

#: What a file holds: `RECORDS`, and what only cleanup needs.
FILE_SCHEMA = RECORDS.append(pa.field("delete_horizon", pa.timestamp("us", tz="UTC")))

#: What catalogs and ``DESCRIBE`` show of lakelog's own columns.
COLUMN_COMMENTS = {
    "partition": "Partition of the topic; offsets count within it",
    "segment": "Base offset of the record's segment, which expires and is compacted as a whole",
    "offset": "Number of the record in its partition: never changed, never used twice",
    "timestamp": "When the record was made or appended (see timestampType), to the millisecond",
    "timestampType": "Who set the timestamp: 0 the producer (CreateTime), 1 lakelog (append time)",
    "key": "Key, byte for byte; null if the record has none",
    "value": "Value, byte for byte; null in a tombstone, which says that the key is deleted",
    "headers": "Headers in their order; keys may repeat",
    "delete_horizon": "When compaction may drop this tombstone, once it has met it; null otherwise",
}

#: With nullable keys: Spark alters no column of a table that has a constraint within an array.
_HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def _table_field(name: str, kind: pa.DataType) -> pa.Field:
    kind = _HEADERS_TYPE if name == "headers" else kind
    return pa.field(name, kind, metadata={"comment": COLUMN_COMMENTS[name]})


#: Every column is nullable to Delta, so that no constraint stops other writers.
TABLE_SCHEMA = pa.schema(
    [
        _table_field("partition", pa.int32()),
        _table_field("segment", pa.int64()),
        *(_table_field(field.name, field.type) for field in FILE_SCHEMA),
    ]
)


def value_columns(topic: Topic) -> pa.Schema:
    """The columns parsed from the topic's values, with ``value_error``; often none."""
    return value_schema(topic.config.value_columns)


def missing_columns(topic: Topic, there: pa.Schema) -> pa.Schema:
    """The topic's value columns that its table does not have yet.

    Args:
        there: the table's columns.

    Raises:
        ContradictionError: the table has a column of that name and of another type.
    """
    for field, other in foreign_columns(topic, there).items():
        raise ContradictionError(
            f"the table of topic {topic.name!r} has a column {other.name!r} of type {other.type}, "
            f"and lakelog.value.columns asks for {field!r}. Somebody else added it: alter "
            "lakelog.value.columns, and give the value column another name or leave it out, which "
            "it may be as no file has it yet",
            topic=topic.name,
            column=field,
        )
    names = {field.name for field in there}
    return pa.schema([field for field in value_columns(topic) if field.name not in names])


def foreign_columns(topic: Topic, there: pa.Schema) -> dict[str, pa.Field]:
    """The topic's value columns, by name, that its table has in another spelling or of another
    type: somebody else added those, and no file of lakelog's has them.

    Args:
        there: the table's columns.
    """
    types = {field.name.lower(): field for field in there}
    found = {}
    for field in value_columns(topic):
        other = types.get(field.name.lower())
        if other is not None and (other.name, other.type) != (field.name, field.type):
            found[field.name] = other
    return found


def columns_beyond_own(there: pa.Schema) -> pa.Schema:
    """The columns of a table that not every table has: value columns, by whatever settings."""
    return pa.schema([field for field in there if field.name not in TABLE_SCHEMA.names])


def columns_to_write(topic: Topic, there: pa.Schema) -> pa.Schema:
    """The topic's value columns that its table has: a file has no others."""
    types = {field.name: field.type for field in there}
    return pa.schema([f for f in value_columns(topic) if types.get(f.name) == f.type])


def with_statistics(columns: pa.Schema) -> list[str]:
    """The value columns whose statistics a file's add action has.

    Those that Delta skips files by: numbers, strings and times, none of them nested. The first
    ones, if they are many, but always ``value_error``, which finds what did not parse.

    Args:
        columns: of `value_columns`, or the first ones of those.
    """
    names: list[str] = []
    characters = len(_OWN_STATISTICS)
    for field in sorted(columns, key=lambda field: field.name != VALUE_ERROR):
        if len(names) == MOST_WITH_STATISTICS:
            break
        if not _is_skipped_by(field.type):
            continue
        characters += len(_in_backticks(field.name)) + 1
        if characters > _STATISTICS_CHARACTERS:
            break
        names.append(field.name)
    return names


def _is_skipped_by(kind: pa.DataType) -> bool:
    return any(
        is_of(kind)
        for is_of in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_string,
            pa.types.is_date,
            pa.types.is_timestamp,
        )
    )


#: The add actions are the segment index, so these two must always have statistics.
_OWN_STATISTICS = "offset,timestamp"


def _statistics_property(topic: Topic) -> str:
    names = with_statistics(value_columns(topic))
    return ",".join([_OWN_STATISTICS, *map(_in_backticks, names)])


def _in_backticks(name: str) -> str:
    return f"`{name}`"


def changed_comments(topic: Topic, there: pa.Schema) -> dict[str, str]:
    """The comments that the table's value columns should have and do not have."""
    said = {field.name: comment_of(field) for field in there}
    wanted = {field.name: comment_of(field) for field in value_columns(topic)}
    return {name: text for name, text in wanted.items() if text and said.get(name) != text}


def comment_of(field: pa.Field) -> str | None:
    text = (field.metadata or {}).get(b"comment")
    return None if text is None else str(text, "utf-8")


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

#: Value columns with statistics, at most: every look at the table reads them, of each file.
MOST_WITH_STATISTICS = 32

#: Unity Catalog may keep 255 characters of a property.
_STATISTICS_CHARACTERS = 250

FEED_PROPERTY = "delta.enableChangeDataFeed"

CHECKPOINT_PROPERTY = "delta.checkpointInterval"
CHECKPOINT_INTERVAL = 50

#: Of tables at a path, whose files pyarrow and other engines read too. Those by name Spark alone
#: reads, and catalogs demand deletion vectors of them.
READABLE_BY_ALL = {"delta.enableDeletionVectors": "false"}

ROW_GROUP_ROWS = 64 * 1024
ROW_GROUP_BYTES = 16 * MIB  # of Arrow memory, before compression


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
        STATISTICS_PROPERTY: _statistics_property(topic),
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
    return (
        named
        if topic.keyspace_id is None
        else {
            **named,
            KEYSPACE_ID_PROPERTY: str(topic.keyspace_id),
        }
    )


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


#: For `pyarrow.parquet.ParquetWriter`. Offsets and timestamps hardly differ from their neighbours;
#: a dictionary pays where values repeat, which record values do not, and keys may (`key_column`).
WRITER_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["timestampType", "key", "headers.list.element.key"],
    "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    "write_statistics": ["offset", "timestamp"],
    "write_page_checksum": True,
}


def writer_options(columns: pa.Schema, compression: str) -> dict[str, Any]:
    """`WRITER_OPTIONS` with value columns, which do repeat and are used in filters.

    Args:
        compression: what the topic's `PARQUET_COMPRESSION` says.
    """
    leaves = leaf_paths(columns)
    more = {name: WRITER_OPTIONS[name] + leaves for name in ("use_dictionary", "write_statistics")}
    codec = _PYARROW_CODECS.get(compression, compression)
    return {**WRITER_OPTIONS, **more, "compression": codec}


#: pyarrow writes Parquet's LZ4_RAW by a shorter name, and has another one for nothing.
_PYARROW_CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}


def leaf_paths(columns: pa.Schema) -> list[str]:
    """Parquet's names of the columns that these are stored as."""
    return [path for field in columns for path in _leaf_paths(field.name, field.type)]


def _leaf_paths(path: str, type_: pa.DataType) -> list[str]:
    """Parquet's names of the columns that a nested column is stored as."""
    if pa.types.is_struct(type_):
        return [leaf for f in type_ for leaf in _leaf_paths(f"{path}.{f.name}", f.type)]
    if pa.types.is_list(type_):
        return _leaf_paths(f"{path}.list.element", type_.value_type)
    if pa.types.is_map(type_):
        entry = f"{path}.key_value"
        return [f"{entry}.key", *_leaf_paths(f"{entry}.value", type_.item_type)]
    return [path]
