"""What a place of cold tables is to those who need not know which kind it is."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from ..cold.change import RowsOf, nothing_hot
from ..cold.making import Making, anybody
from ..cold.table import ColdTable
from ..engines.engine import Engine, InlineEngine
from ..values.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..cold.as_archived import AsArchived
    from ..cold.by_name.names import TableName
    from ..cold.catalogue import Catalogue
    from ..cold.store.abilities import Ability


class ColdRoot(Protocol):
    """Where the tables of topics lie: `PathRoot` or `NamedRoot`.

    A value: it can be pickled, compared and hashed. As a string, how people call it.
    """

    @property
    def schema(self) -> str | None:
        """The ``catalog.schema`` that knows the tables; None for one that no catalog knows."""
        ...

    @property
    def object_stores(self) -> tuple[str, ...]:
        """What a Spark that reads the tables has to open besides; see `session`."""
        ...

    @property
    def opens_in_tasks(self) -> bool:
        """Whether tasks of Spark, and processes without one, may open and change the tables."""
        ...

    def check(self) -> str:
        """A sentence on what this process can do there.

        Raises:
            ColdTierError: it cannot be used.
        """
        ...

    def abilities(self) -> Sequence[Ability]:
        """What is asked of the store, tried, with how long it took; see `abilities`."""
        ...

    # -- tenants ---------------------------------------------------------------------------------

    def of_tenant(self, name: str) -> ColdRoot:
        """Where the tables of a tenant's topics lie, apart from those of all others."""
        ...

    def read_definition(self) -> bytes | None:
        """What is kept here of the tenant whose place this is; None if nothing is.

        Raises:
            ColdTierError: it cannot be read.
        """
        ...

    def write_definition(self, definition: bytes) -> None:
        """Make the place, if it is not there, and keep a tenant's definition in it.

        Raises:
            ColdTierError, SparkUnavailableError: it cannot be made or written.
        """
        ...

    def remove_definition(self) -> None:
        """Remove what is kept here beside topics' tables, of a tenant that has none any more.

        Raises:
            ColdTierError: it cannot be removed.
        """
        ...

    # -- tables ----------------------------------------------------------------------------------

    def catalogue(
        self,
        keyspace: str | None = None,
        only: str | None = None,
        known: Container[UUID] = (),
    ) -> Catalogue:
        """Which topics have their tables there, as the tables tell it.

        Args:
            keyspace: whose topics are meant; None for those of all.
            only: a topic's name, whose tables alone are looked at; None for all.
            known: ids of topics whose tables need not be looked at.

        Raises:
            ColdTierError: the place cannot be listed.
        """
        ...

    def table(
        self,
        topic: Topic,
        rows_of: RowsOf = nothing_hot,
        *,
        engine: Engine = InlineEngine(),  # noqa: B008, it has no state
        newest_config: Callable[[], int] | None = None,
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
        making: Making = anybody,
    ) -> ColdTable:
        """A topic's table, opened anew.

        Args:
            rows_of: left out by those who archive nothing.
            engine: where files at paths are read and written.
            newest_config, making: see the tables.
            naming: held while a catalog makes the table, so that nobody else does at that time.
        """
        ...

    def is_empty(self) -> bool:
        """Whether it is a folder of this machine in which nothing lies, or that is not there.

        Raises:
            ColdTierError: it cannot be listed.
        """
        ...

    def forget(self, topic: Topic) -> None:
        """Take the names of a topic that is removed for good out of the catalog that has them.

        Raises:
            ColdTierError: the catalog refuses.
        """
        ...

    def frame(self, spark: SparkSession, table: ColdTable, version: int) -> DataFrame:
        """A version of a table, as Spark's own reader gives it.

        Raises:
            SparkUnavailableError: this Spark lacks what opens the store.
        """
        ...

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
        ...

    # -- for tasks -------------------------------------------------------------------------------

    def task_table(self, topic: Topic, rows_of: RowsOf) -> ColdTable:
        """A topic's table for a task of Spark, which may but read one by name."""
        ...

    def as_archived(
        self, table: ColdTable, topic: Topic, partition: int, *, since: int, start: int, end: int
    ) -> AsArchived:
        """See `AsArchived`; the table was made here."""
        ...

    def for_tasks(self, spark: SparkSession, topic: Topic, table: ColdTable | None) -> ColdRoot:
        """The place as those find it who have no session: what the session knows of it besides."""
        ...

    def to_hand_on(self, topics: Iterable[Topic]) -> Any:
        """What opens the topics' tables in a process without a login; None if nothing is needed.

        It is secret: for a pickle, and for `take` in another process.
        """
        ...

    def take(self, handed_on: Any) -> None:
        """Open tables in this process with what `to_hand_on` gave another one."""
        ...

    def options(self) -> Mapping[str, str]:
        """The options of ``format("lakelog")`` that name the place.

        Raises:
            InvalidArgumentError: one would be a secret in clear.
        """
        ...
