"""The topics that have their tables in a schema of a catalog.

Runs on: driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...cold.catalogue import Catalogue
from ...cold.change import RowsOf, nothing_hot
from ...cold.place import ColdPlace
from ...cold.schema import TOPIC_ID_PROPERTY, mirrored_topic
from ...errors import ColdTierError
from ...topic import Topic
from ..catalog.entry import read_properties
from ..catalog.names import catalog_name, quoted
from .query_errors import naming
from .table import NamedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NamedRoot:
    """A schema of tables; what topics it has, the tables alone tell."""

    place: ColdPlace
    spark: Callable[[], SparkSession]

    def catalogue(self) -> Catalogue:
        """Reads the properties of every table of the schema.

        Raises:
            ColdTierError: the schema cannot be listed.
        """
        assert self.place.schema is not None
        schema = self.place.schema.split(".")
        spark = self.spark()
        topics, broken = [], []
        with naming(self.place.schema):
            tables = spark.sql(f"SHOW TABLES IN {quoted(*schema)}").collect()
            views = spark.sql(f"SHOW VIEWS IN {quoted(*schema)}").collect()
        for table in sorted({row["tableName"] for row in tables} - {row[1] for row in views}):
            name = quoted(*schema, table)
            try:
                with naming(name):
                    properties = read_properties(spark, name)
                if TOPIC_ID_PROPERTY not in properties:
                    logger.info("%s is not a topic's table and is passed over", name)
                    continue
                topic = _topic(name, properties)
            except ColdTierError as error:
                broken.append(error)
                continue
            if catalog_name(topic.name) == table:  # else it was put aside
                topics.append(topic)
        topics.sort(key=lambda topic: topic.name)
        return Catalogue(tuple(topics), (), tuple(broken))

    def table(
        self,
        topic: Topic,
        rows_of: RowsOf = nothing_hot,
        newest_config: Callable[[], int] | None = None,
    ) -> NamedTable:
        """The topic's table; without `rows_of` for those who archive nothing."""
        assert self.place.schema is not None
        name = quoted(*self.place.schema.split("."), catalog_name(topic.name))
        return NamedTable(topic, self.spark, name, rows_of, newest_config)

    def __str__(self) -> str:
        return str(self.place)


def _topic(name: str, properties: Mapping[str, str]) -> Topic:
    try:
        return mirrored_topic(properties)
    except (ValueError, KeyError, TypeError) as error:
        raise ColdTierError(
            f"the properties of {name} do not say its topic ({error!r}): an older or newer lakelog "
            "made it. Archive the topic once with this one, or update it",
            path=name,
        ) from error
