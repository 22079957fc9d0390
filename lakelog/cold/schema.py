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

from typing import Any

import pyarrow as pa

from ..codec.value_columns import value_schema
from ..errors import ContradictionError
from ..values.config import (
    MIB,
)
from ..values.record import RECORDS
from ..values.topic import Topic
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
    return value_schema(topic.config.value_columns, topic.config.value_format)


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
    wanted = value_columns(topic)
    return pa.schema([f for f in wanted if types.get(f.name) == f.type], wanted.metadata)


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


def statistics_columns(topic: Topic) -> str:
    """The columns with statistics of a topic's table, as Delta's property names them."""
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


#: Value columns with statistics, at most: every look at the table reads them, of each file.
MOST_WITH_STATISTICS = 32

#: Unity Catalog may keep 255 characters of a property.
_STATISTICS_CHARACTERS = 250

ROW_GROUP_ROWS = 64 * 1024
ROW_GROUP_BYTES = 16 * MIB  # of Arrow memory, before compression


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
