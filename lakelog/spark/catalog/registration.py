"""A topic's table and views in a catalog; a table at a path is given a name there.

The name is all that is made: the table stays where it is, and ``DROP TABLE`` takes the name away
again and nothing else. When a topic was dropped and made again, its name moves to the new table.

Runs on: driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from ...cold.catalogue import tables
from ...cold.change import nothing_hot
from ...cold.path_table import PathTable
from ...cold.place import ColdPlace
from ...cold.schema import GENERATION_PROPERTY, TOPIC_ID_PROPERTY
from ...cold.table import NO_TABLE, ColdTable
from ...engine import InlineEngine
from ...errors import ColdTierError, ForeignTableError, InvalidArgumentError
from ...topic import Topic
from ..cold_alone import cold_topic
from ..named.root import NamedRoot
from ..named.table import NamedTable
from .entry import CatalogEntry, look_up, run, same_place
from .names import TableName, catalog_name, parse_schema, quoted_text
from .views import create_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

#: Others may register at the same time; each look tells what they did.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Registered:
    """What a topic is called in a catalog, each name quoted as SQL takes it."""

    topic: str
    table: str
    view: str
    latest: str


class Step(Enum):
    """What makes a name stand for a table."""

    NOTHING = "it does"
    CREATE = "nothing has the name"
    MOVE = "an earlier creation of the topic has it"


def register_topic(spark: SparkSession, schema: str, topic: Topic, table: ColdTable) -> Registered:
    """Make a topic's table and its two views known in a schema; again and again if need be.

    After the topic got typed columns, doing it again shows them in the views.

    Args:
        schema: ``catalog.schema``; it must exist. A table by name is in one already.

    Raises:
        InvalidArgumentError: it is no schema, or not that of the table by name.
        ForeignTableError: something else has one of the names; what has it was not touched.
        ColdTierError: nothing is archived yet, there is no such schema, or no right to it.
    """
    name = TableName(*parse_schema(schema), catalog_name(topic.name))
    if table.snapshot().version == NO_TABLE:
        raise ColdTierError(
            f"topic {topic.name!r} has no table yet: nothing of it was archived. Archive it first",
            topic=topic.name,
        )
    if isinstance(table, PathTable):
        register_external(spark, name, table.path, topic)
    elif isinstance(table, NamedTable) and table.name != str(name):
        raise InvalidArgumentError(
            f"topic {topic.name!r} is archived to the catalog's own table {table.name}, whose "
            f"views lie beside it, not in {schema}; make a view of it there with CREATE VIEW",
            topic=topic.name,
        )
    view, latest = create_views(spark, name, topic)
    return Registered(topic.name, str(name), str(view), str(latest))


def register_topics(
    spark: SparkSession,
    cold: str,
    schema: str | None = None,
    topics: str | Iterable[str] | None = None,
    *,
    location: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[Registered]:
    """Does `Lakelog.register` for tables that lie there, without Redis; a value a topic.

    Args:
        cold, location, storage_options: see `Lakelog.connect`.
        schema: ``catalog.schema``; default the one that `cold` names.
        topics: names; None for all.

    Raises:
        UnknownTopicOrPartitionError: no table of that name lies there.
        InvalidArgumentError: no schema is named.
        ColdTierError: see `register_topic`. Topics before the one that fails are registered.
    """
    place = ColdPlace.of(cold, location, storage_options)
    schema = place.schema if schema is None else schema
    if schema is None:
        raise InvalidArgumentError(f"name the catalog.schema that tables of {cold} get names in")
    table_of: Callable[[Topic], ColdTable]
    if place.storage is None:
        root = NamedRoot(place, lambda: spark)
        catalogue, table_of = root.catalogue(), root.table
    else:
        catalogue = tables(place.storage)
        table_of = partial(
            PathTable, storage=place.storage, engine=InlineEngine(), rows_of=nothing_hot
        )
    names = [topic.name for topic in catalogue.topics] if topics is None else topics
    chosen = [
        cold_topic(catalogue, place, name)
        for name in ([names] if isinstance(names, str) else names)
    ]
    return [register_topic(spark, schema, topic, table_of(topic)) for topic in chosen]


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
    raise ColdTierError(
        f"others keep registering {name}: {ATTEMPTS} attempts did not make it the table at "
        f"{table_path}. Run it again when they are done",
        path=table_path,
    )


def plan(entry: CatalogEntry | None, name: TableName, table_path: str, topic: Topic) -> Step:
    """What to do so that the name stands for the topic's table.

    Raises:
        ForeignTableError: the name is somebody else's.
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
    """Whether a table is that of the same topic before it was dropped and made again."""
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
