"""A small Delta table of lakelog's own in a catalog, by Spark, since a managed table takes no other
commits; see `RootTable`.

Runs on: driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import ColdTierError, ColdTierRefusedError, ForeignTableError, LakelogError
from ..root_table import ALL, TIME, RootTable, RootTableDefinition, Txn
from ..store_errors import error_class, first_sentence
from .entry import column_comments, look_up, run, same_place, table_of
from .names import TableName, parse_schema, quoted_text
from .spark_errors import is_left_to_catalog, naming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

logger = logging.getLogger(__name__)

#: Nobody adds rows of this age: they say when they were recorded, which was a moment before.
MERGED_AGE = timedelta(hours=1)

_SQL_TYPES = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


class NamedRootTable(RootTable):
    """The table of a schema.

    Args:
        schema: ``catalog.schema``.
        spark: gives the session.
        making: held while the table is made.
    """

    def __init__(
        self,
        schema: str,
        definition: RootTableDefinition,
        spark: Callable[[], SparkSession],
        making: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.name = TableName(*parse_schema(schema), definition.name)
        super().__init__(definition, str(self.name), making)
        self._spark = spark
        self._columns: frozenset[str] = frozenset()  # as the table has them, once it is there
        self._looked_back = False  # for rows that are too old
        self._was_merged = False

    def __str__(self) -> str:
        return f"the table {self.name}"

    def read(
        self,
        of: Mapping[str, object] = ALL,
        *,
        since: datetime | None = None,
        txn: str | None = None,
    ) -> pa.Table:
        schema = self.definition.schema
        if not self._is_there():
            return schema.empty_table()
        condition = _condition(of)
        if since is not None:
            condition += f" AND {TIME} >= {_literal(since)}"
        columns = ", ".join(map(self._column, schema))
        sql = f"SELECT {columns} FROM {self.name} WHERE {condition}"
        return table_of(self._spark(), sql).cast(schema)

    def tidy(self, kept: timedelta | None = None, merged_files: int = 0) -> None:
        """See `RootTable.tidy`. What the catalog keeps to itself is left to it."""
        spark = self._spark()
        now = datetime.now(timezone.utc)
        try:
            if kept is not None:
                (details,) = run(spark, f"DESCRIBE DETAIL {self.name}")
                most = 4 * merged_files if self._was_merged else merged_files
                if int(details["numFiles"]) < most and not self._has_old_rows(now - kept):
                    return
                run(spark, f"DELETE FROM {self.name} WHERE {TIME} < {_literal(now - kept)}")
            try:
                if kept is not None:
                    run(spark, f"OPTIMIZE {self.name}")
                run(spark, f"VACUUM {self.name}")
            except ColdTierRefusedError as error:
                if not is_left_to_catalog(error):
                    raise
                if kept is not None:
                    self._merge(now - MERGED_AGE)
        except ColdTierError as error:
            logger.warning("%s was not tidied; a later commit tries again: %s", self, error)

    # -- how -----------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        if not self._columns:
            entry = look_up(self._spark(), self.name)
            if entry is None:
                return False
            columns = column_comments(self._spark(), self.name)
            self.definition.check(self.where, entry.properties, columns, self.where)
            self._columns = frozenset(columns)
        return True

    def _create(self) -> None:
        if self._is_there():
            self._add_columns()
            return
        properties = ", ".join(
            f"{quoted_text(key)} = {quoted_text(value)}"
            for key, value in self.definition.properties.items()
        )
        parts = f"PARTITIONED BY ({', '.join(self.definition.partition_by)}) "
        with self._making():
            run(
                self._spark(),
                f"CREATE TABLE IF NOT EXISTS {self.name} ({_sql_columns(self.definition.schema)}) "
                f"USING delta {parts if self.definition.partition_by else ''}"
                f"COMMENT {quoted_text(self.definition.description)} TBLPROPERTIES ({properties})",
            )

    def _add_columns(self) -> None:
        """Gives a table that an older lakelog made the columns that it lacks."""
        later = self.definition.later_columns
        if self._columns.issuperset(later):
            return
        with self._making():  # two who add them would get in each other's way
            there = column_comments(self._spark(), self.name)
            added = [self.definition.schema.field(name) for name in later if name not in there]
            if added:
                columns = _sql_columns(pa.schema(added))
                run(self._spark(), f"ALTER TABLE {self.name} ADD COLUMNS ({columns})")
        self._columns |= frozenset(later)

    def _append(self, table: None, rows: pa.Table, txn: Txn | None) -> bool:
        with self._committing():
            self._writer(rows, txn).append()
        return txn is None  # Delta silently skips a transaction that was

    def _replace(self, table: None, rows: pa.Table, of: Mapping[str, object], txn: Txn) -> bool:
        from pyspark.sql.functions import expr

        with self._committing():
            self._writer(rows, txn).overwrite(expr(_condition(of)))
        return False  # Delta silently skips one whose number is not above those that were

    def _writer(self, rows: pa.Table, txn: Txn | None) -> DataFrameWriterV2:
        writer = self._frame(rows).coalesce(1).writeTo(self.where)
        if txn is None:
            return writer
        return writer.option("txnAppId", txn.app_id).option("txnVersion", str(txn.version))

    def _frame(self, rows: pa.Table) -> DataFrame:
        schema = self.definition.schema
        values = [tuple(row[name] for name in schema.names) for row in rows.to_pylist()]
        frame = self._spark().createDataFrame(values, _sql_columns(schema))
        old = [name for name in self.definition.once_in_seconds.values() if name in self._columns]
        return frame.selectExpr("*", *(f"CAST(NULL AS DOUBLE) AS {name}" for name in old))

    def _column(self, field: pa.Field) -> str:
        """As SQL has it, also where the table lacks it."""
        value = f"`{field.name}`"
        if field.name not in self._columns:
            value = f"CAST(NULL AS {_SQL_TYPES[field.type]})"
        elif pa.types.is_timestamp(field.type):
            value = f"unix_micros({value})"  # a number does not depend on the session's zone
        old = self.definition.once_in_seconds.get(field.name)
        if old in self._columns:
            value = f"coalesce({value}, CAST(round({old} * 1000) AS BIGINT))"
        return f"{value} AS `{field.name}`"

    def _merge(self, before: datetime) -> None:
        """Write older rows again, as one file, where the catalog keeps OPTIMIZE to itself.

        Rows that others add meanwhile are newer, so they stay.
        """
        from pyspark.sql.functions import expr

        older = f"{TIME} < {_literal(before)}"
        with naming(self.where):
            rows = self._spark().table(self.where).where(older).coalesce(1)
            rows.writeTo(self.where).overwrite(expr(older))
        self._was_merged = True  # each time, all older rows are copied: so it is done less often

    def _has_old_rows(self, kept_from: datetime) -> bool:
        """Asked only once; needed where the catalog merges files itself, so that they stay few."""
        if self._looked_back:
            return False
        self._looked_back = True
        long_ago = _literal(kept_from - timedelta(days=1))
        found = f"SELECT 1 FROM {self.name} WHERE {TIME} < {long_ago} LIMIT 1"
        return bool(run(self._spark(), found))

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Says why a commit fails."""
        try:
            yield
        except LakelogError:
            raise
        except Exception as error:  # Spark's, Py4J's and Connect's errors have no common base
            said = first_sentence(error)
            raise error_class(said)(
                f"{said}. Check that it may be written by this user", path=self.where
            ) from error


def register_root_table(
    spark: SparkSession, schema: str, definition: RootTableDefinition, path: str
) -> None:
    """Gives such a table at a path its name in a schema, unless it has it.

    Raises:
        ForeignTableError: something else has the name.
        ColdTierError: there is no such schema, or no right to it.
    """
    name = TableName(*parse_schema(schema), definition.name)
    entry = look_up(spark, name)
    if entry is None:
        run(spark, f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION {quoted_text(path)}")
    elif not same_place(entry.location, path):
        raise ForeignTableError(
            f"{name} should hold {definition.holds}, as the table at {path} does, but is {entry}. "
            f"Use another schema, or, if nobody needs it, DROP "
            f"{'VIEW' if entry.kind == 'VIEW' else 'TABLE'} {name}",
            path=path,
            name=str(name),
        )


def _sql_columns(schema: pa.Schema) -> str:
    """The columns as SQL's DDL has them."""
    return ", ".join(f"`{field.name}` {_SQL_TYPES[field.type]}" for field in schema)


def _condition(of: Mapping[str, object]) -> str:
    return " AND ".join(f"{name} = {_literal(value)}" for name, value in of.items()) or "true"


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f} UTC'"
    return str(value).lower() if isinstance(value, bool) else quoted_text(str(value))
