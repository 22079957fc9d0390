"""A topic's table and views in a catalog.

Runs on: driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ...cold.by_name.names import parse_schema
from ...cold.table import NO_TABLE, ColdTable
from ...errors import ColdTierRefusedError, InvalidArgumentError
from ...place import ColdRoot, cold_root
from ...values.topic import Topic
from .views import create_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Registered(Struct, frozen=True):
    """What a topic is called in a catalog, each name quoted as SQL takes it."""

    topic: str
    table: str
    view: str
    latest: str


def register_topic(
    spark: SparkSession, root: ColdRoot, schema: str, topic: Topic, table: ColdTable
) -> Registered:
    """Make a topic's table and its two views known in a schema; again and again if need be.

    After the topic got typed columns, doing it again shows them in the views.

    Args:
        root: where the table lies.
        schema: ``catalog.schema``; it must exist. A table by name is in one already.

    Raises:
        InvalidArgumentError: it is no schema, or not that of the table by name.
        ForeignTableError: something else has one of the names; what has it was not touched.
        ColdTierError: nothing is archived yet, there is no such schema, or no right to it.
    """
    parse_schema(schema)
    if table.snapshot().version == NO_TABLE:
        raise ColdTierRefusedError(
            f"topic {topic.name!r} has no table yet: nothing of it was archived. Archive it first",
            topic=topic.name,
        )
    name = root.make_known(spark, schema, topic, table)
    view, latest = create_views(spark, name, topic)
    return Registered(topic.name, str(name), str(view), str(latest))


def register_topics(
    spark: SparkSession,
    cold: str,
    schema: str | None = None,
    topics: str | Iterable[str] | None = None,
    *,
    location: str | None = None,
    keyspace: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[Registered]:
    """Does `Lakelog.register` for tables that lie there, without Redis; a value a topic.

    Args:
        cold, location, keyspace, storage_options: see `Lakelog.connect`.
        schema: ``catalog.schema``; default the one that `cold` names.
        topics: names; None for all.

    Raises:
        UnknownTopicOrPartitionError: no table of that name lies there.
        AmbiguousTopicError: tables of several keyspaces do, and none was named.
        InvalidArgumentError: no schema is named.
        ColdTierError: see `register_topic`. Topics before the one that fails are registered.
    """
    root = cold_root(cold, location, storage_options, spark=lambda: spark)
    assert root is not None  # it was named
    schema = root.schema if schema is None else schema
    if schema is None:
        raise InvalidArgumentError(f"name the catalog.schema that tables of {cold} get names in")
    catalogue = root.catalogue(keyspace)
    names = [topic.name for topic in catalogue.topics] if topics is None else topics
    chosen = [
        catalogue.topic(name, root) for name in ([names] if isinstance(names, str) else names)
    ]
    return [register_topic(spark, root, schema, topic, root.table(topic)) for topic in chosen]
