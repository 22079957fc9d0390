"""A small Delta table of lakelog's own in a catalog, beside those of topics, by Spark.

Runs on: driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ..root_table import RootTableDefinition
from .entry import run
from .names import TableName, quoted_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL_TYPES = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


def sql_columns(schema: pa.Schema) -> str:
    """The columns as SQL's DDL has them."""
    return ", ".join(f"`{field.name}` {sql_type(field)}" for field in schema)


def sql_type(field: pa.Field) -> str:
    """The type of a column, likewise."""
    return _SQL_TYPES[field.type]


def create_root_table(
    spark: SparkSession, name: TableName, definition: RootTableDefinition
) -> None:
    """Makes the table, unless something has its name.

    Raises:
        ColdTierError: Spark or its catalog refuses, or does not answer.
    """
    properties = ", ".join(
        f"{quoted_text(key)} = {quoted_text(value)}" for key, value in definition.properties.items()
    )
    parts = f"PARTITIONED BY ({', '.join(definition.partition_by)}) "
    run(
        spark,
        f"CREATE TABLE IF NOT EXISTS {name} ({sql_columns(definition.schema)}) USING delta "
        f"{parts if definition.partition_by else ''}"
        f"COMMENT {quoted_text(definition.description)} TBLPROPERTIES ({properties})",
    )
