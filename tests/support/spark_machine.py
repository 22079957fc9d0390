"""The state machine with Spark as archiver: tables at a path by its tasks, and tables by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from lakelog.archive.archiver import Archiver
from lakelog.archive.copy import HotRows
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.table import ColdTable
from lakelog.engines.engine import Engine
from lakelog.engines.spark import SparkEngine
from lakelog.hot import TopicRegistry
from lakelog.hot.hot_log import HotSource
from lakelog.place.by_name import NamedRoot
from lakelog.place.cold_mirror import ColdMirror
from lakelog.values.topic import Topic

from .cleanup_rules import CleanupRules
from .harness import FileRows
from .log_rules import LogRules
from .machine import log_machine
from .named_files import files_by_spark
from .readers import Reader, Readers
from .spark_readers import NamedReaders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngineMachine(CleanupRules, LogRules):
    """Everything that may happen to a log whose files are written by Spark's tasks."""

    spark: ClassVar[SparkSession]

    def _engine(self) -> Engine:
        return SparkEngine(self.spark)


class NamedTableMachine(LogRules):
    """What may happen to a log whose table has a name."""

    spark: ClassVar[SparkSession]
    schema: ClassVar[str]
    tables_at: ClassVar[str]

    def _new_table(self) -> ColdTable:
        return self._table_of(self.topic)

    def _table_of(self, topic: Topic) -> ColdTable:
        rows_of = HotRows(HotSource(self.server.url))
        return self._root().table(topic, rows_of, naming=lambda: self.hot.naming(topic))

    def _root(self) -> NamedRoot:
        return NamedRoot(self.schema, lambda: self.spark)

    def _registry(self) -> TopicRegistry:
        """Tells the table of a deletion: a reader by name without Redis goes by that."""
        mirror = ColdMirror(self._root(), self.hot.keyspace, self._table_of, self.hot)
        return self.hot.topics(mirror)

    def _new_archiver(self) -> Archiver:
        """One that looks the topic up first: a purge drops the table that it would look at."""
        topic = self.topic
        current = partial(self.hot.topics().renewed, topic)
        return Archiver(topic, self.hot, self._new_table(), current_topic=current)

    def _readers(self) -> Readers:
        source = HotSource(self.server.url)
        return _FewReaders(self.log, source, self.schema, self.tables_at, self.spark)

    def teardown(self) -> None:
        """The next story finds no tables."""
        try:
            super().teardown()
        finally:
            for row in self.spark.sql(f"SHOW TABLES IN {self.schema}").collect():
                if not row["isTemporary"]:  # the session's views are shown in each schema
                    self.spark.sql(f"DROP TABLE {self.schema}.{row['tableName']}")

    def _is_table(self) -> bool:
        return bool(self.spark.catalog.tableExists(self._table_name()))

    def _active_files(self) -> list[tuple[Path, int, int]]:
        """As Spark reads them, each time anew: a deletion vector changes what a file holds."""
        if not self._is_table():
            return []
        files = files_by_spark(self.spark, self._table_name())
        self._files_read = {
            Path(file.path): self._file_rows(file.rows, file.partition) for file in files
        }
        return [(Path(file.path), file.partition, file.segment) for file in files]

    def _rows_of(self, path: Path, partition: int) -> FileRows:
        return self._files_read[path]

    def _table_name(self) -> str:
        assert isinstance(self.table, NamedTable)
        return self.table.name

    def _check_orphans(self) -> None:
        """Checks nothing: Delta itself removes what a failed write left."""


class _FewReaders(NamedReaders):
    """Each read is a query, so readers that read long ranges are enough."""

    def named(self) -> dict[str, Reader]:
        few = {"range read", "consumer, poll_arrow"}
        return {name: reader for name, reader in super().named().items() if name in few}


@contextmanager
def spark_engine_machine(
    directory: Path, spark: SparkSession
) -> Iterator[type[SparkEngineMachine]]:
    """`log_machine` with a session to archive with."""
    with log_machine(directory, SparkEngineMachine) as machine:
        yield type("SparkEngineMachine", (machine,), {"spark": spark})


@contextmanager
def named_table_machine(
    directory: Path, spark: SparkSession, schema: str, tables_at: str
) -> Iterator[type[NamedTableMachine]]:
    """`log_machine` with a schema to keep tables in.

    Args:
        schema: ``catalog.schema``.
        tables_at: as `NamedReaders` takes it.
    """
    with log_machine(directory, NamedTableMachine) as machine:
        given = {"spark": spark, "schema": schema, "tables_at": tables_at}
        yield type("NamedTableMachine", (machine,), given)
