"""A cold root by name: a schema of a catalog, whose tables Spark alone may read and write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from uuid import UUID

from ...cold.by_name.entry import read_properties
from ...cold.by_name.named_table import NamedTable
from ...cold.by_name.names import TableName, parse_schema, quoted, table_name
from ...cold.by_name.query_errors import naming
from ...cold.catalogue import Catalogue, described_topic
from ...cold.change import RowsOf, nothing_hot
from ...cold.schema import TOPIC_ID_PROPERTY
from ...cold.table import ColdTable
from ...engines.engine import Engine, InlineEngine
from ...errors import (
    ColdTierError,
    ColdTierRefusedError,
    InvalidArgumentError,
    NewerVersionError,
)
from ...topic import Topic, catalog_name
from ..catalog.forgetting import forget_topic
from ..session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NamedRoot:
    """See `ColdRoot`. What topics it has, the tables alone tell.

    Args:
        schema: ``catalog.schema``.
        spark: gives the session; it does not travel with a pickle.

    Runs on: driver, but for its value.
    """

    schema: str
    spark: Callable[[], SparkSession] = field(default=session, compare=False, repr=False)
    object_stores: ClassVar[tuple[str, ...]] = ()  # a catalog opens its own
    opens_in_tasks: ClassVar[bool] = False

    def check(self) -> str:
        """See `ColdRoot.check`."""
        return f"{self.schema} is a schema, which only Spark opens: --spark"

    # -- tables ----------------------------------------------------------------------------------

    def catalogue(
        self,
        keyspace: str | None = None,
        only: str | None = None,
        known: Container[UUID] = (),
    ) -> Catalogue:
        """Reads the properties of every table of the schema; see `ColdRoot.catalogue`."""
        schema = self.schema.split(".")
        spark = self.spark()
        topics, broken = [], []
        with naming(self.schema):
            tables = spark.sql(f"SHOW TABLES IN {quoted(*schema)}").collect()
            views = spark.sql(f"SHOW VIEWS IN {quoted(*schema)}").collect()
        names = {row["tableName"] for row in tables} - {row[1] for row in views}
        if only is not None:
            names = {name for name in names if name.startswith(catalog_name(only))}
        for table in sorted(names):
            name = quoted(*schema, table)
            try:
                with naming(name):
                    properties = read_properties(spark, name)
                if TOPIC_ID_PROPERTY not in properties:
                    logger.info("%s is not a topic's table and is passed over", name)
                    continue
                topic = described_topic(properties, name, name)
            except (ColdTierError, NewerVersionError) as error:
                broken.append(replace(error, topic=table))
                continue
            if only not in (None, topic.name) or topic.topic_id in known:
                continue
            if table_name(topic) == table:  # else somebody put it aside
                topics.append(topic)
        return Catalogue(tuple(topics), tuple(broken), keyspace)

    def table(
        self,
        topic: Topic,
        rows_of: RowsOf = nothing_hot,
        *,
        engine: Engine = InlineEngine(),  # noqa: B008, it has no state
        newest_config: Callable[[], int] | None = None,
    ) -> NamedTable:
        """See `ColdRoot.table`."""
        return NamedTable(topic, self.spark, str(self._name(topic)), rows_of, newest_config)

    def forget(self, topic: Topic) -> None:
        """See `ColdRoot.forget`."""
        forget_topic(self.spark(), self.schema, topic)

    def quarantine(self, topic: Topic, table: ColdTable, partition: int) -> None:
        """See `ColdRoot.quarantine`."""

    def frame(self, spark: SparkSession, table: ColdTable, version: int) -> DataFrame:
        """See `ColdRoot.frame`."""
        assert isinstance(table, NamedTable)  # no other was made here
        return table.version_frame(version)

    def make_known(
        self, spark: SparkSession, schema: str, topic: Topic, table: ColdTable
    ) -> TableName:
        """See `ColdRoot.make_known`: it has its name already."""
        name = self._name(topic)
        if TableName(*parse_schema(schema), name.table) != name:
            raise InvalidArgumentError(
                f"topic {topic.name!r} is archived to the catalog's own table {name}, whose "
                f"views lie beside it, not in {schema}; make a view of it there with CREATE VIEW",
                topic=topic.name,
            )
        return name

    # -- for tasks -------------------------------------------------------------------------------

    def task_table(self, topic: Topic, rows_of: RowsOf) -> NoReturn:
        """See `ColdRoot.task_table`."""
        raise ColdTierRefusedError(
            f"topic {topic.name!r} is archived into {self.schema}, whose tables only Spark itself "
            "may read, not its tasks",
            topic=topic.name,
        )

    def to_hand_on(self) -> None:
        """See `ColdRoot.to_hand_on`."""

    def take(self, handed_on: object) -> None:
        """See `ColdRoot.take`."""

    def options(self) -> dict[str, str]:
        """See `ColdRoot.options`."""
        return {"cold": self.schema}

    def __str__(self) -> str:
        return self.schema

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedRoot, (self.schema,)

    def _name(self, topic: Topic) -> TableName:
        return TableName(*parse_schema(self.schema), table_name(topic))
