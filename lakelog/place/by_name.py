"""A cold root by name: a schema of a catalog, whose tables Spark alone may write."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from ..cold.by_name.either_view import EitherView
from ..cold.by_name.entry import delta_tables
from ..cold.by_name.location import (
    HandedOn,
    Location,
    PlainLocation,
    TableLocation,
    catalog_of,
    known_catalog,
    take,
    to_hand_on,
    why_not_directly,
)
from ..cold.by_name.log_view import LogView
from ..cold.by_name.named_table import NamedTable
from ..cold.by_name.names import TableName, parse_schema, quoted, table_name
from ..cold.by_name.spark_errors import naming
from ..cold.by_name.spark_view import SparkView
from ..cold.catalogue import Catalogue, described_topic
from ..cold.change import RowsOf, nothing_hot
from ..cold.properties import TOPIC_ID_PROPERTY
from ..cold.store.abilities import Ability
from ..cold.store.unity_catalog import UnityCatalog
from ..cold.table import ColdTable, Making, unguarded
from ..engines.engine import Engine, InlineEngine
from ..errors import (
    ColdTierAccessError,
    ColdTierError,
    InvalidArgumentError,
    LakelogError,
    MissingExtraError,
    NewerVersionError,
)
from ..spark.catalog.topic_names import forget_topic, make_schema
from ..spark.open_session import open_session
from ..values.tenant_name import tenant_schema
from ..values.topic import Topic, catalog_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..cold.root_table import RootTable, RootTableDefinition

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NamedRoot:
    """See `PathRoot`. What topics it has, the tables alone tell.

    Args:
        schema: ``catalog.schema``.
        tables_at: see `TableLocation`.
        spark: gives the session; it does not travel with a pickle.

    Runs on: driver, but for its value.
    """

    schema: str
    spark: Callable[[], SparkSession] = field(default=open_session, compare=False, repr=False)
    tables_at: str | None = None
    object_stores: ClassVar[tuple[str, ...]] = ()  # a catalog opens its own
    opens_in_tasks: ClassVar[bool] = False

    def check(self) -> str:
        catalog, _ = parse_schema(self.schema)
        unity = known_catalog(catalog)
        if unity is None:
            return f"{self.schema} is a schema, which only Spark opens: --spark"
        name = min(self._of_topics(unity), default=None)
        because = ""
        if name is not None:
            location = TableLocation(TableName(*parse_schema(self.schema), name), None)
            because = why_not_directly(location)
        if because:
            return f"tables of {self.schema} are for Spark alone to read and write: {because}"
        return f"tables of {self.schema} are read where they lie, and Spark writes them: --spark"

    def abilities(self) -> list[Ability]:
        """See `PathRoot.abilities`: the catalog writes and commits, so only it can be asked."""
        started_s, flaw = time.perf_counter(), None
        try:
            self.check()
        except LakelogError as error:
            flaw = error.message
        return [Ability("ask the catalog", 1000 * (time.perf_counter() - started_s), flaw)]

    # -- tenants ---------------------------------------------------------------------------------

    def of_tenant(self, name: str) -> NamedRoot:
        """See `PathRoot.of_tenant`: a schema beside this one."""
        return NamedRoot(tenant_schema(self.schema, name), self.spark)

    def read_definition(self) -> None:
        """See `PathRoot.read_definition`: only the tables tell, of the keyspace's defaults."""

    def write_definition(self, definition: bytes) -> None:
        """See `PathRoot.write_definition`: a schema keeps none, so that it is only made."""
        make_schema(self.spark(), self.schema)

    def remove_definition(self) -> None:
        """See `PathRoot.remove_definition`: the schema is the catalog's, and stays."""

    # -- tables ----------------------------------------------------------------------------------

    def catalogue(
        self,
        keyspace: str | None = None,
        only: str | None = None,
        known: Container[UUID] = (),
    ) -> Catalogue:
        """Reads the properties of every table of the schema that may be a topic's; see
        `PathRoot.catalogue`.
        """
        schema = parse_schema(self.schema)
        topics, broken = [], []
        tables = self._tables("" if only is None else catalog_name(only))
        for table, lies_at in sorted(tables.items()):
            name = quoted(*schema, table)
            try:
                with naming(name):
                    properties = self._view(TableName(*schema, table), lies_at).properties()
                if TOPIC_ID_PROPERTY not in properties:
                    logger.info("%s is not a topic's table and is passed over", name)
                    continue
                topic = described_topic(properties, name, name)
            except (ColdTierError, NewerVersionError) as error:
                broken.append(error.changed(topic=table))
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
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
        making: Making = unguarded,
    ) -> NamedTable:
        location = TableLocation(self._name(topic), self.spark, self.tables_at)
        return NamedTable(
            topic,
            self.spark,
            str(location.name),
            rows_of,
            newest_config,
            location=location,
            naming=naming,
            making=making,
        )

    def is_empty(self) -> bool:
        """See `PathRoot.is_empty`: its catalog tells."""
        return False

    def forget(self, topic: Topic) -> None:
        forget_topic(self.spark(), self.schema, topic)

    def frame(self, spark: SparkSession, table: ColdTable, version: int) -> DataFrame:
        assert isinstance(table, NamedTable)  # no other was made here
        return table.version_frame(version)

    def make_known(
        self, spark: SparkSession, schema: str, topic: Topic, table: ColdTable
    ) -> TableName:
        """See `PathRoot.make_known`: it has its name already."""
        name = self._name(topic)
        if TableName(*parse_schema(schema), name.table) != name:
            raise InvalidArgumentError(
                f"topic {topic.name!r} is archived to the catalog's own table {name}, whose "
                f"views lie beside it, not in {schema}; make a view of it there with CREATE VIEW",
                topic=topic.name,
            )
        return name

    # -- for tasks -------------------------------------------------------------------------------

    def task_table(self, topic: Topic, rows_of: RowsOf) -> NamedTable:
        """See `PathRoot.task_table`: it can be read where it lies, or not at all."""
        location = self._of_tasks(topic)
        return NamedTable(topic, None, str(location.name), rows_of, location=location)

    def for_tasks(self, spark: SparkSession, topic: Topic, table: ColdTable | None) -> NamedRoot:
        catalog, _ = parse_schema(self.schema)
        if self.tables_at is not None or known_catalog(catalog) is not None:
            return self
        if (unity := catalog_of(spark, catalog)) is not None:
            return replace(self, tables_at=unity.url)
        lies_at = table.lies_at if isinstance(table, NamedTable) else None
        folder, _, name = (lies_at or "").rpartition("/")
        return replace(self, tables_at=folder) if name == table_name(topic) else self

    def to_hand_on(self, topics: Iterable[Topic]) -> HandedOn:
        return to_hand_on(self._of_tasks(topic) for topic in topics if topic.config.tiered)

    def take(self, handed_on: Any) -> None:
        take(handed_on)

    def options(self) -> dict[str, str]:
        more = {} if self.tables_at is None else {"tablesAt": self.tables_at}
        return {"cold": self.schema, **more}

    def __str__(self) -> str:
        return self.schema

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.schema, self.tables_at)

    def _tables(self, prefix: str) -> dict[str, str | None]:
        """The tables of the schema, those alone that may be topics' as far as the catalog tells,
        and where they lie if it says so.

        Args:
            prefix: of their names.
        """
        catalog, schema = parse_schema(self.schema)
        unity = known_catalog(catalog) or catalog_of(self.spark(), catalog)
        if unity is not None:
            try:
                names = self._of_topics(unity, named=prefix)
                return dict.fromkeys(name for name in names if name.startswith(prefix))
            except (ColdTierAccessError, MissingExtraError) as error:
                logger.info("Spark lists the tables of %s, not its catalog: %s", self, error)
        return delta_tables(self.spark(), catalog, schema, prefix)

    def root_table(
        self, definition: RootTableDefinition, making: Callable[[], AbstractContextManager[None]]
    ) -> RootTable:
        from ..cold.by_name.root_table import NamedRootTable

        return NamedRootTable(self.schema, definition, self.spark, making)

    def _of_topics(self, unity: UnityCatalog, named: str = "") -> set[str]:
        """The tables of topics, as the catalog says.

        Args:
            named: a Delta table of this name is one too: of a table at a location, open-source
                Unity Catalog does not say what properties it has.

        Raises:
            ColdTierError, MissingExtraError: see `UnityCatalog.tables`.
        """
        return {
            str(one["name"])
            for one in unity.tables(*parse_schema(self.schema))
            if one.get("table_type") != "VIEW"
            and (
                TOPIC_ID_PROPERTY in (one.get("properties") or ())
                or (one["name"] == named and one.get("data_source_format") == "DELTA")
            )
        }

    def _view(self, name: TableName, lies_at: str | None) -> EitherView:
        location: Location = TableLocation(name, self.spark, self.tables_at)
        if lies_at is not None:
            location = PlainLocation(lies_at)
        log = LogView(location, str(name), _no_files)
        return EitherView(log, SparkView(self.spark, str(name), _no_files), str(name))

    def _name(self, topic: Topic) -> TableName:
        return TableName(*parse_schema(self.schema), table_name(topic))

    def _of_tasks(self, topic: Topic) -> TableLocation:
        return TableLocation(self._name(topic), None, self.tables_at)


def _no_files(paths: Iterable[str]) -> tuple[int, set[str]]:
    """What a view is told that reads no rows."""
    return -1, set()


def _unpickled(schema: str, tables_at: str | None) -> NamedRoot:
    return NamedRoot(schema, tables_at=tables_at)
