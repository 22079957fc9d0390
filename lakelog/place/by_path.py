"""A cold root at a path: a folder or an object store's URL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from msgspec import Struct

from ..cold.by_name.names import TableName, parse_schema
from ..cold.by_path.path_table import PathTable
from ..cold.change import RowsOf, nothing_hot
from ..cold.store.storage import Storage
from ..cold.store.unity_catalog import Vended
from ..cold.table import ColdTable, Making, unguarded
from ..engines.engine import Engine, InlineEngine
from ..errors import ColdTierAccessError, SparkUnavailableError
from ..values.tenant_name import tenant_schema
from ..values.topic import EXPORTS_FOLDER, GROUPS_TABLE, STATUS_TABLE, Topic, catalog_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..cold.catalogue import Catalogue
    from ..cold.root_table import RootTable, RootTableDefinition
    from ..cold.store.abilities import Ability


#: Of the tenant whose root it lies in.
TENANT_FILE = "_lakelog_tenant.json"


class PathRoot(Struct, frozen=True):
    """Tables below a folder or an object store's URL.

    Args:
        schema: ``catalog.schema`` in which each table has a name besides.
    """

    storage: Storage
    schema: str | None = None
    #: Whether tasks of Spark, and processes without one, may open and change the tables.
    opens_in_tasks: ClassVar[bool] = True

    @property
    def object_stores(self) -> tuple[str, ...]:
        """What a Spark that reads the tables has to open besides; see `session`."""
        return self.storage.object_stores

    def check(self) -> str:
        """A sentence on what this process can do there.

        Raises:
            ColdTierError: it cannot be used.
        """
        self.storage.check_writable()
        return f"{self.storage.root} is writable"

    def abilities(self) -> list[Ability]:
        """What is asked of the store, tried, with how long it took; see `abilities`."""
        from ..cold.store.abilities import abilities

        return abilities(self.storage)

    # -- tenants ---------------------------------------------------------------------------------

    def of_tenant(self, name: str) -> PathRoot:
        """Where the tables of a tenant's topics lie, apart from those of all others.

        A folder below the root.
        """
        root = f"{self.storage.root.rstrip('/')}/{name}"
        schema = None if self.schema is None else tenant_schema(self.schema, name)
        return PathRoot(Storage(root, dict(self.storage.store_options)), schema)

    def read_definition(self) -> bytes | None:
        """What is kept here of the tenant whose place this is; None if nothing is.

        Raises:
            ColdTierError: it cannot be read.
        """
        return self.storage.read_bytes(self._definition)

    def write_definition(self, definition: bytes) -> None:
        """Make the place, if it is not there, and keep a tenant's definition in it.

        Raises:
            ColdTierError, SparkUnavailableError: it cannot be made or written.
        """
        from ..spark.catalog.topic_names import make_schema
        from ..spark.open_session import open_session

        if self.schema is not None:
            make_schema(open_session(), self.schema)
        self.storage.make_folder(self.storage.root)
        self.storage.write_bytes(self._definition, definition)

    def remove_definition(self) -> None:
        """Remove what is kept here beside topics' tables, of a tenant that has none any more.

        What is not lakelog's stays.

        Raises:
            ColdTierError: it cannot be removed.
        """
        for folder in (GROUPS_TABLE, STATUS_TABLE, EXPORTS_FOLDER):
            self.storage.remove_folder(f"{self.storage.root.rstrip('/')}/{folder}")
        self.storage.delete_file(self._definition)

    @property
    def _definition(self) -> str:
        return f"{self.storage.root.rstrip('/')}/{TENANT_FILE}"

    # -- tables ----------------------------------------------------------------------------------

    def catalogue(
        self,
        keyspace: str | None = None,
        only: str | None = None,
        known: Container[UUID] = (),
    ) -> Catalogue:
        """Which topics have their tables there, as the tables tell it.

        Where Unity Catalog gives no keys to list the root, its schema says which tables lie there.

        Args:
            keyspace: whose topics are meant; None for those of all.
            only: a topic's name, whose tables alone are looked at; None for all.
            known: ids of topics whose tables need not be looked at.

        Raises:
            ColdTierError: the place cannot be listed.
        """
        from ..cold.by_path.listing import tables

        try:
            return tables(self.storage, keyspace, only, known)
        except ColdTierAccessError:
            if self.schema is None or not self.storage.store_options.vended:
                raise
            return tables(self.storage, keyspace, only, known, paths=self._registered(self.schema))

    def table(
        self,
        topic: Topic,
        rows_of: RowsOf = nothing_hot,
        *,
        engine: Engine = InlineEngine(),  # noqa: B008, it has no state
        newest_config: Callable[[], int] | None = None,
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
        making: Making = unguarded,
    ) -> PathTable:
        """A topic's table, opened anew.

        Of two first commits, the store refuses one.

        Args:
            rows_of: left out by those who archive nothing.
            engine: where files at paths are read and written.
            newest_config, making: see the tables.
            naming: held while a catalog makes the table, so that nobody else does at that time.
        """
        return PathTable(
            topic, self._of(topic), engine, rows_of, newest_config=newest_config, making=making
        )

    def is_empty(self) -> bool:
        """Whether it is a folder of this machine in which nothing lies, or that is not there.

        Raises:
            ColdTierError: it cannot be listed.
        """
        return self.storage.is_local and not self.storage.names(self.storage.root)

    def forget(self, topic: Topic) -> None:
        """Take the names of a topic that is removed for good out of the catalog that has them.

        Raises:
            ColdTierError: the catalog refuses.
        """
        from ..spark.catalog.topic_names import forget_topic
        from ..spark.open_session import open_session

        if self.schema is not None:
            forget_topic(open_session(), self.schema, topic)

    def frame(self, spark: SparkSession, table: ColdTable, version: int) -> DataFrame:
        """A version of a table, as Spark's own reader gives it.

        Raises:
            SparkUnavailableError: this Spark lacks what opens the store.
        """
        from ..engines.spark import spark_context

        path = _own(table).path
        reader = spark.read.format("delta").option("versionAsOf", version)
        if spark_context(spark) is not None:
            # A classic session keeps them to itself. A client of Spark Connect would send their
            # secrets in clear, in a plan that others keep; its server opens the store as it was
            # set up.
            reader = reader.options(**_own(table).storage.spark_options())
        try:
            return reader.load(path)
        except Exception as error:  # py4j's and Connect's have no common base
            if not re.search(r"Class org\.apache\.hadoop\.\S+ not found|No FileSystem", str(error)):
                raise
            raise SparkUnavailableError(
                f"this Spark lacks the jars that open {path}. A local one gets those of S3 with "
                "lakelog.spark.session(object_stores=['s3']), called before any other session is "
                "there; of other stores, name them in its conf: spark.jars"
            ) from error

    def make_known(
        self, spark: SparkSession, schema: str, topic: Topic, table: ColdTable
    ) -> TableName:
        """Have a schema's name stand for the table, which is there; nothing happens if it does.

        Returns:
            That name.

        Raises:
            InvalidArgumentError: the table has its name in another schema.
            ForeignTableError, ColdTierError: see `register_topic`.
        """
        from ..spark.catalog.topic_names import register_external

        name = TableName(*parse_schema(schema), catalog_name(topic.name))
        register_external(spark, name, _own(table).path, topic)
        return name

    # -- for tasks -------------------------------------------------------------------------------

    def task_table(self, topic: Topic, rows_of: RowsOf) -> PathTable:
        """A topic's table for a task of Spark, which may but read one by name."""
        return self.table(topic, rows_of)

    def for_tasks(self, spark: SparkSession, topic: Topic, table: ColdTable | None) -> PathRoot:
        """The place as those find it who have no session: what the session knows of it besides.

        It says all.
        """
        return self

    def to_hand_on(self, topics: Iterable[Topic]) -> tuple[tuple[str, Vended], ...]:
        """What opens the topics' tables in a process without a login; None if nothing is needed.

        Keys by table.

        It is secret: for a pickle, and for `take` in another process.
        """
        handed_on: list[tuple[str, Vended]] = []
        for topic in topics if self.storage.store_options.vended else ():
            given = self._of(topic).to_hand_on()
            if given is not None:
                handed_on.append((self.storage.table_path(topic), given))
        return tuple(handed_on)

    def take(self, handed_on: Any) -> None:
        """Open tables in this process with what `to_hand_on` gave another one."""
        for path, given in handed_on:
            self.storage.keyed_for(path).take(given)

    def options(self) -> dict[str, str]:
        """The options of ``format("lakelog")`` that name the place.

        Raises:
            InvalidArgumentError: one would be a secret in clear.
        """
        found = {"cold": self.storage.root}
        if self.storage.store_options:
            found["storageOptions"] = json.dumps(self.storage.store_options.portable())
        return found

    def root_table(
        self, definition: RootTableDefinition, making: Callable[[], AbstractContextManager[None]]
    ) -> RootTable:
        """A table of lakelog's own beside those of topics.

        Args:
            making: held while it is made.
        """
        from ..cold.by_path.root_table import PathRootTable

        schema = self.schema
        if schema is None or not definition.has_name:
            return PathRootTable(self.storage, definition, making)

        def register(path: str) -> None:
            from ..cold.by_name.root_table import register_root_table
            from ..spark.open_session import open_session

            with making():
                register_root_table(open_session(), schema, definition, path)

        return PathRootTable(self.storage, definition, making, register)

    def _registered(self, schema: str) -> list[str]:
        """Where the tables and views of the schema lie, as the workspace's catalog says."""
        from ..cold.store.unity_catalog import UnityCatalog

        listed = UnityCatalog().tables(*parse_schema(schema))
        return [str(one["storage_location"]) for one in listed if one.get("storage_location")]

    def _of(self, topic: Topic) -> Storage:
        return self.storage.keyed_for(self.storage.table_path(topic))

    def __str__(self) -> str:
        root = self.storage.root
        return root if self.schema is None else f"{self.schema} at {root}"


def _own(table: ColdTable) -> PathTable:
    assert isinstance(table, PathTable)  # no other was made here
    return table
