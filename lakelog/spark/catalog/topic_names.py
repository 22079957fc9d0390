"""The names of topics in a catalog: given to tables at a path, and taken away again.

Only the name is made: the table stays where it is, and ``DROP TABLE`` removes the name and nothing
else. If a topic was dropped and created again, its name moves to the new table.

Runs on: driver.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING

from ...cold.by_name.entry import CatalogEntry, look_up, run, same_place
from ...cold.by_name.names import (
    TableName,
    latest_name,
    parse_schema,
    quoted,
    quoted_text,
    view_name,
)
from ...cold.by_name.spark_errors import naming
from ...cold.properties import GENERATION_PROPERTY, TOPIC_ID_PROPERTY
from ...errors import CommitConflictError, ForeignTableError
from ...values.topic import Topic, catalog_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

#: Others may register at the same time; each look tells what they did.
ATTEMPTS = 3


class Step(Enum):
    """What makes a name stand for a table."""

    NOTHING = "it does"
    CREATE = "nothing has the name"
    MOVE = "an earlier creation of the topic has it"


def register_external(spark: SparkSession, name: TableName, table_path: str, topic: Topic) -> None:
    """Make a name stand for the table of a topic; does nothing if it does already.

    Never drops or changes data: an external table that is registered is never its own copy.

    Args:
        table_path: where the table is; it must have been committed to.

    Raises:
        ForeignTableError: the name stands for something else.
        ColdTierError: there is no such schema, or no right to create tables in it.
    """
    for _ in range(ATTEMPTS):
        step = plan(look_up(spark, name), name, table_path, topic)
        if step is Step.NOTHING:
            return
        if step is Step.MOVE:
            run(spark, f"DROP TABLE IF EXISTS {name}")
        location = quoted_text(table_path)
        run(spark, f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION {location}")
        logger.info("%s is now the table at %s: %s before", name, table_path, step.value)
    raise CommitConflictError(
        f"others keep registering {name}: {ATTEMPTS} attempts did not make it the table at "
        f"{table_path}. Run it again when they are done",
        path=table_path,
    )


def plan(entry: CatalogEntry | None, name: TableName, table_path: str, topic: Topic) -> Step:
    """What to do so that the name stands for the topic's table.

    Raises:
        ForeignTableError: the name belongs to something else.
    """
    if entry is None:
        return Step.CREATE
    if entry.kind == "EXTERNAL" and same_place(entry.location, table_path):
        return Step.NOTHING
    if entry.kind == "EXTERNAL" and _is_earlier_creation(entry, topic):
        return Step.MOVE
    raise ForeignTableError(
        f"{name} should be the table of topic {topic.name!r} with id {topic.topic_id} at "
        f"{table_path}, but is {entry}. {_advice(entry, name, topic)}",
        path=table_path,
        name=str(name),
    )


def _is_earlier_creation(entry: CatalogEntry, topic: Topic) -> bool:
    """Whether a table is that of the same topic before it was dropped and created again."""
    generation = entry.properties.get(GENERATION_PROPERTY, "")
    return (
        entry.topic_name == topic.name
        and entry.properties.get(TOPIC_ID_PROPERTY) != str(topic.topic_id)
        and generation.isdecimal()
        and int(generation) < topic.generation
    )


def _advice(entry: CatalogEntry, name: TableName, topic: Topic) -> str:
    if entry.topic_name not in {None, topic.name}:
        return (
            "Topics whose names differ in case, '.', '-' and '_' alone have the same name in a "
            "catalog, and {topic}_view and {topic}_latest are views: register one of the two in "
            "another schema"
        )
    kind = "VIEW" if entry.kind == "VIEW" else "TABLE"
    safe = " (an external table's files stay)" if entry.kind == "EXTERNAL" else ""
    return f"Register the topic in another schema, or, if nobody needs it, DROP {kind} {name}{safe}"


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
