"""Schemas of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cold.by_name.names import parse_schema, quoted
from ...cold.by_name.query_errors import naming

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from typing import TYPE_CHECKING

from ...cold.by_name.entry import look_up, run
from ...cold.by_name.names import TableName, latest_name, view_name
from ...cold.properties import TOPIC_ID_PROPERTY
from ...values.topic import Topic, catalog_name

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


def forget_topic(spark: SparkSession, schema: str, topic: Topic) -> None:
    """Take a topic's names out of a schema: its two views, and the name of a table at a path.

    What has these names and is not this creation's of the topic stays. A table that is the
    catalog's own stays too.

    Raises:
        ColdTierError: the catalog refuses.
    """
    name = TableName(*parse_schema(schema), catalog_name(topic.name))
    own = str(topic.topic_id)
    for view in (view_name(topic.name), latest_name(topic.name)):
        entry = look_up(spark, name._replace(table=view))
        if entry and entry.kind == "VIEW" and entry.properties.get(TOPIC_ID_PROPERTY) == own:
            run(spark, f"DROP VIEW IF EXISTS {name._replace(table=view)}")
    entry = look_up(spark, name)
    if entry and entry.kind == "EXTERNAL" and entry.properties.get(TOPIC_ID_PROPERTY) == own:
        run(spark, f"DROP TABLE IF EXISTS {name}")
