"""Making and altering a table by name.

Unity Catalog may keep 255 characters of a property, so long ones are kept in pieces:

| property             | value                                                     |
|----------------------|-----------------------------------------------------------|
| name                 | all of it, or the first `PIECE_CHARACTERS` of a long one  |
| name.1, name.2 …     | what follows each full piece                              |
| lakelog.format       | 2 if any is in pieces                                     |

A full piece is followed by another, so what is left of a longer value is not read. Only lakelog's
own properties are long: settings, the keyspace's defaults, registers.

Runs on: driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from ...codec.value_columns import value_schema
from ...errors import InvalidConfigError
from ...values.topic import Topic
from ...values.value_ddl import VALUE_ERROR, parse_columns
from ..properties import FORMAT_PROPERTY, table_properties
from ..schema import PARTITION_COLUMNS, TABLE_SCHEMA
from .names import quoted, quoted_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

#: The notes must outlive what others commit after lakelog's newest commit (see `named_table`).
LOG_RETENTION = "interval 30 days"


def create_table(spark: SparkSession, name: str, topic: Topic) -> None:
    """Make the table, unless it is there."""
    columns = [
        f"{quoted(field.name)} {_sql_type(field.type)} COMMENT "
        f"{quoted_text(field.metadata[b'comment'].decode())}"
        for field in TABLE_SCHEMA
    ]
    columns += _value_columns(topic).values()
    properties = {**table_properties(topic), "delta.logRetentionDuration": LOG_RETENTION}
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(columns)}) USING delta "
        f"PARTITIONED BY ({', '.join(PARTITION_COLUMNS)}) "
        f"COMMENT {quoted_text('written by lakelog; change it through lakelog only')} "
        f"TBLPROPERTIES ({_pairs(in_pieces(properties))})"
    )


def set_properties(spark: SparkSession, name: str, properties: Mapping[str, str]) -> None:
    """Set these properties and keep the others."""
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({_pairs(in_pieces(properties))})")


def add_columns(spark: SparkSession, name: str, topic: Topic, missing: pa.Schema) -> None:
    """Add value columns of the topic that the table lacks."""
    columns = _value_columns(topic)
    added = ", ".join(columns[field.name] for field in missing)
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({added})")


def set_comment(spark: SparkSession, name: str, column: str, comment: str) -> None:
    """Set the comment of a column."""
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN {quoted(column)} COMMENT {quoted_text(comment)}")


def table_columns(columns: StructType) -> pa.Schema:
    """The columns of a table that lakelog may have made, as Arrow fields with comments."""
    fields = []
    for field in columns:
        if field.name in TABLE_SCHEMA.names:
            kind = TABLE_SCHEMA.field(field.name).type
        elif field.name == VALUE_ERROR:
            kind = pa.string()
        else:
            try:
                kind = value_schema(f"{quoted(field.name)} {_ddl(field.dataType)}").types[0]
            except InvalidConfigError:
                continue  # not lakelog's: no value column has this type
        comment = {"comment": field.metadata.get("comment", "")}
        fields.append(pa.field(field.name, kind, metadata=comment))
    return pa.schema(fields)


def _ddl(type_: DataType) -> str:
    """A type as `value_schema` reads it; Spark's own text leaves names unquoted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, ArrayType):
        return f"array<{_ddl(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{_ddl(type_.keyType)},{_ddl(type_.valueType)}>"
    if isinstance(type_, StructType):
        return f"struct<{', '.join(f'{quoted(f.name)} {_ddl(f.dataType)}' for f in type_)}>"
    return str(type_.simpleString())


def _value_columns(topic: Topic) -> dict[str, str]:
    """The topic's value columns as DDL, by name."""
    columns = {one.name: one.declaration for one in parse_columns(topic.config.value_columns)}
    return {**columns, VALUE_ERROR: f"{VALUE_ERROR} STRING"} if columns else {}


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(
        f"{quoted_text(name)} = {quoted_text(value)}" for name, value in properties.items()
    )


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"ARRAY<{_sql_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        inside = ", ".join(f"{quoted(one.name)}: {_sql_type(one.type)}" for one in fields)
        return f"STRUCT<{inside}>"
    return _SQL_TYPES[kind]


_SQL_TYPES = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


PIECE_CHARACTERS = 250

_OWN = "lakelog."
_FORMAT_OF_PIECES = "2"


def in_pieces(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as the catalog keeps them."""
    kept: dict[str, str] = dict(properties)
    for name, value in properties.items():
        if not name.startswith(_OWN) or len(value) < PIECE_CHARACTERS:
            continue
        kept[FORMAT_PROPERTY] = _FORMAT_OF_PIECES
        for number, start in enumerate(range(0, len(value) + 1, PIECE_CHARACTERS)):
            kept[_piece(name, number)] = value[start : start + PIECE_CHARACTERS]
    return kept


def joined(kept: Mapping[str, str]) -> dict[str, str]:
    """The properties that `in_pieces` cut, and the others."""
    properties = dict(kept)
    for name, value in kept.items():
        piece, number = value, 0
        while name.startswith(_OWN) and len(piece) == PIECE_CHARACTERS:
            number += 1
            piece = kept.get(_piece(name, number), "")
            properties[name] += piece
    return properties


def _piece(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name
