"""Schemas of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cold.by_name.names import parse_schema, quoted
from ...cold.by_name.query_errors import naming

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_schema(spark: SparkSession, schema: str) -> None:
    """Makes ``catalog.schema``, if it is not there.

    Raises:
        ColdTierError: the catalog refuses.
    """
    name = quoted(*parse_schema(schema))
    with naming(name):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
