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
from ..cold.making import Making, anybody
from ..cold.store.storage import Storage
from ..cold.store.vended_credentials import Vended
from ..cold.table import ColdTable
from ..engines.engine import Engine, InlineEngine
from ..errors import ColdTierAccessError, SparkUnavailableError
from ..values.tenant_name import tenant_schema
from ..values.topic import EXPORTS_FOLDER, GROUPS_TABLE, STATUS_TABLE, Topic, catalog_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..cold.by_path.as_archived import PathAsArchived
    from ..cold.catalogue import Catalogue
    from ..cold.store.abilities import Ability


#: Of the tenant whose root it lies in.
TENANT_FILE = "_lakelog_tenant.json"


class PathRoot(Struct, frozen=True):
    """See `ColdRoot`.

    Args:
        schema: ``catalog.schema`` in which each table has a name besides.
    """

    storage: Storage
    schema: str | None = None
    opens_in_tasks: ClassVar[bool] = True

    @property
    def object_stores(self) -> tuple[str, ...]:
        """See `ColdRoot.object_stores`."""
        return self.storage.object_stores

    def check(self) -> str:
        """See `ColdRoot.check`."""
        self.storage.check_writable()
        return f"{self.storage.root} is writable"

    def abilities(self) -> list[Ability]:
        """See `ColdRoot.abilities`."""
        from ..cold.store.abilities import abilities

        return abilities(self.storage)

    # -- tenants ---------------------------------------------------------------------------------

    def of_tenant(self, name: str) -> PathRoot:
        """See `ColdRoot.of_tenant`: a folder below the root."""
        root = f"{self.storage.root.rstrip('/')}/{name}"
        schema = None if self.schema is None else tenant_schema(self.schema, name)
        return PathRoot(Storage(root, dict(self.storage.store_options)), schema)

    def read_definition(self) -> bytes | None:
        """See `ColdRoot.read_definition`."""
        return self.storage.read_bytes(self._definition)

    def write_definition(self, definition: bytes) -> None:
        """See `ColdRoot.write_definition`."""
        from ..spark.catalog.schemas import make_schema
        from ..spark.open_session import open_session

        if self.schema is not None:
            make_schema(open_session(), self.schema)
        self.storage.make_folder(self.storage.root)
        self.storage.write_bytes(self._definition, definition)

    def remove_definition(self) -> None:
        """See `ColdRoot.remove_definition`. What is not lakelog's stays."""
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
        """See `ColdRoot.catalogue`. Where Unity Catalog gives no keys to list the root, its schema
        says which tables lie there.
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
        making: Making = anybody,
    ) -> PathTable:
        """See `ColdRoot.table`. Of two first commits, the store refuses one."""
        return PathTable(
            topic, self._of(topic), engine, rows_of, newest_config=newest_config, making=making
        )

    def is_empty(self) -> bool:
        """See `ColdRoot.is_empty`."""
        return self.storage.is_local and not self.storage.names(self.storage.root)

    def forget(self, topic: Topic) -> None:
        """See `ColdRoot.forget`."""
        from ..spark.catalog.forgetting import forget_topic
        from ..spark.open_session import open_session

        if self.schema is not None:
            forget_topic(open_session(), self.schema, topic)

    def frame(self, spark: SparkSession, table: ColdTable, version: int) -> DataFrame:
        """See `ColdRoot.frame`."""
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
        """See `ColdRoot.make_known`."""
        from ..spark.catalog.external_table import register_external

        name = TableName(*parse_schema(schema), catalog_name(topic.name))
        register_external(spark, name, _own(table).path, topic)
        return name

    # -- for tasks -------------------------------------------------------------------------------

    def task_table(self, topic: Topic, rows_of: RowsOf) -> PathTable:
        """See `ColdRoot.task_table`."""
        return self.table(topic, rows_of)

    def as_archived(
        self, table: ColdTable, topic: Topic, partition: int, *, since: int, start: int, end: int
    ) -> PathAsArchived:
        """See `ColdRoot.as_archived`."""
        from ..cold.by_path.as_archived import PathAsArchived

        return PathAsArchived(_own(table), topic, partition, since=since, start=start, end=end)

    def for_tasks(self, spark: SparkSession, topic: Topic, table: ColdTable | None) -> PathRoot:
        """See `ColdRoot.for_tasks`: it says all."""
        return self

    def to_hand_on(self, topics: Iterable[Topic]) -> tuple[tuple[str, Vended], ...]:
        """See `ColdRoot.to_hand_on`: keys by table."""
        handed_on: list[tuple[str, Vended]] = []
        for topic in topics if self.storage.store_options.vended else ():
            given = self._of(topic).to_hand_on()
            if given is not None:
                handed_on.append((self.storage.table_path(topic), given))
        return tuple(handed_on)

    def take(self, handed_on: Any) -> None:
        """See `ColdRoot.take`."""
        for path, given in handed_on:
            self.storage.keyed_for(path).take(given)

    def options(self) -> dict[str, str]:
        """See `ColdRoot.options`."""
        found = {"cold": self.storage.root}
        if self.storage.store_options:
            found["storageOptions"] = json.dumps(self.storage.store_options.portable())
        return found

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
