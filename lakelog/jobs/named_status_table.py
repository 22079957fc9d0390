"""The status table as a Delta table of a catalog; see `status_table`.

Runs on: driver.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pyarrow as pa

from ..base.back_off import Tries
from ..base.failpoints import failpoint
from ..cold.by_name.entry import look_up, run, same_place, table_of
from ..cold.by_name.names import TableName, parse_schema, quoted_text
from ..cold.by_name.query_errors import is_left_to_catalog, naming
from ..cold.by_name.root_table import create_root_table, sql_columns
from ..cold.store_errors import error_class, first_sentence
from ..errors import ColdTierError, ColdTierRefusedError, ForeignTableError
from ..values.topic import STATUS_TABLE
from .status_rows import (
    DURATION,
    LATER_COLUMNS,
    OLD_DURATION,
    STATUS,
    RunKey,
    check_rows,
)
from .status_table import (
    COMMITS,
    DEFINITION,
    MERGED_FILES,
    app_id,
    kept_from,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

#: Nobody adds rows of this age: they say when their run looked, which was a moment before.
MERGED_AGE = timedelta(hours=1)


class NamedStatusTable:
    """The table by name, through Spark, since a managed table takes no other commits."""

    def __init__(
        self,
        schema: str,
        spark: Callable[[], SparkSession],
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._spark = spark
        self._naming = naming  # held while the table is made
        self._is_made = False
        self._columns: frozenset[str] = frozenset()  # as the table has them
        self._looked_back = False  # for rows that are too old
        self._merged_files = MERGED_FILES
        self.name = TableName(*parse_schema(schema), STATUS_TABLE)

    def done_rows(self, key: RunKey) -> pa.Table:
        """See `StatusTable.done_rows`."""
        if not self._is_there():
            return STATUS.empty_table()
        return self._where(f"{_is_run(key)} AND done")

    def append(self, rows: pa.Table, key: RunKey | None = None) -> pa.Table:
        """See `StatusTable.append`."""
        self._create()
        tries = Tries(f"writing to the table {self.name}", COMMITS)
        failure: Exception | None = None
        while True:
            if key is not None:
                there = self.done_rows(key)
                if there.num_rows:
                    return there
            elif failure is not None and self._landed(rows):
                return rows
            try:
                self._write(rows, key)
            except Exception as error:  # the table tells whether it landed
                failure = error
                pause_s = tries.failed(first_sentence(error))
                if pause_s is None:
                    break
                time.sleep(pause_s)
                continue
            if key is not None:  # not those of a run that goes on, which its own thread writes
                failpoint("jobs.after_rows")
            self._maintain()
            # If two processes end the same run, Delta silently skips the second.
            return rows if key is None else self.done_rows(key)
        raise error_class(first_sentence(failure))(
            f"the table {self.name} took no commit in {COMMITS.tries} attempts: "
            f"{first_sentence(failure)}. What the run did is done; running it "
            "again is safe. Check that it may be written by this user",
            path=str(self.name),
        ) from failure

    def read(self, since: datetime | None = None) -> pa.Table:
        """See `StatusTable.read`."""
        if not self._is_there():
            return STATUS.empty_table()
        condition = "true" if since is None else f"recorded_at >= {_timestamp(since)}"
        return self._where(condition).sort_by("recorded_at")

    def rows_of(self, key: RunKey) -> pa.Table:
        """See `StatusTable.rows_of`."""
        if not self._is_there():
            return STATUS.empty_table()
        return self._where(_is_run(key)).sort_by("recorded_at")

    # -- how -----------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        if not self._is_made:
            self._is_made = bool(self._spark().catalog.tableExists(str(self.name)))
        if self._is_made and not self._columns:
            self._columns = frozenset(self._spark().table(str(self.name)).columns)
        return self._is_made

    def _create(self) -> None:
        if self._is_there():
            self._add_columns()
            return
        with self._naming():
            create_root_table(self._spark(), self.name, DEFINITION)

    def _add_columns(self) -> None:
        """Gives a table that an older lakelog made the columns that it lacks."""
        if self._columns.issuperset(LATER_COLUMNS):
            return
        with self._naming():  # two who add them would get in each other's way
            there = self._spark().table(str(self.name)).columns
            added = pa.schema([STATUS.field(name) for name in LATER_COLUMNS if name not in there])
            if added.names:
                run(self._spark(), f"ALTER TABLE {self.name} ADD COLUMNS ({sql_columns(added)})")
        self._columns |= frozenset(LATER_COLUMNS)

    def _write(self, rows: pa.Table, key: RunKey | None) -> None:
        writer = self._frame(rows).coalesce(1).writeTo(str(self.name))
        if key is not None:
            writer = writer.option("txnAppId", app_id(key)).option("txnVersion", "1")
        writer.append()

    def _frame(self, rows: pa.Table) -> DataFrame:
        values = [tuple(row[name] for name in STATUS.names) for row in rows.to_pylist()]
        frame = self._spark().createDataFrame(values, sql_columns(STATUS))
        if OLD_DURATION not in self._columns:
            return frame
        return frame.selectExpr("*", f"CAST(NULL AS DOUBLE) AS {OLD_DURATION}")

    def _landed(self, rows: pa.Table) -> bool:
        first = rows.slice(0, 1).to_pylist()[0]
        return bool(
            self._where(
                f"run_id = {quoted_text(first['run_id'])} "
                f"AND recorded_at = {_timestamp(first['recorded_at'])}"
            ).num_rows
        )

    def _where(self, condition: str) -> pa.Table:
        columns = ", ".join(map(self._column, STATUS))
        sql = f"SELECT {columns} FROM {self.name} WHERE {condition}"
        return check_rows(table_of(self._spark(), sql).cast(STATUS), str(self.name))

    def _column(self, field: pa.Field) -> str:
        """As SQL has it, also where the table lacks it."""
        if field.name == "recorded_at":  # as a number, which does not depend on the session's zone
            return "unix_micros(recorded_at) AS recorded_at"
        kind = sql_columns(pa.schema([field])).split()[-1]
        value = f"`{field.name}`" if field.name in self._columns else f"CAST(NULL AS {kind})"
        if field.name == DURATION and OLD_DURATION in self._columns:
            value = f"coalesce({value}, CAST(round({OLD_DURATION} * 1000) AS BIGINT))"
        return f"{value} AS `{field.name}`"

    def _maintain(self) -> None:
        """As in `PathStatusTable`, by what the catalog tells; a failure is logged."""
        spark = self._spark()
        now = datetime.now(timezone.utc)
        try:
            (details,) = run(spark, f"DESCRIBE DETAIL {self.name}")
            if int(details["numFiles"]) < self._merged_files and not self._has_old_rows(now):
                return
            run(spark, f"DELETE FROM {self.name} WHERE recorded_at < {_timestamp(kept_from(now))}")
            try:
                run(spark, f"OPTIMIZE {self.name}")
                run(spark, f"VACUUM {self.name}")
            except ColdTierRefusedError as error:
                if not is_left_to_catalog(error):
                    raise
                self._merge(now - MERGED_AGE)
        except ColdTierError as error:
            logger.warning("%s was not tidied; the next run tries again: %s", self.name, error)

    def _merge(self, before: datetime) -> None:
        """Write older rows again, as one file, where the catalog keeps OPTIMIZE to itself.

        Rows that others add meanwhile are newer, so they stay.
        """
        from pyspark.sql.functions import expr

        older = f"recorded_at < {_timestamp(before)}"
        with naming(str(self.name)):
            rows = self._spark().table(str(self.name)).where(older).coalesce(1)
            rows.writeTo(str(self.name)).overwrite(expr(older))
        self._merged_files = 4 * MERGED_FILES  # each time, all older rows are copied

    def _has_old_rows(self, now: datetime) -> bool:
        """Asked only once; needed where the catalog merges files itself, so that they stay few."""
        if self._looked_back:
            return False
        self._looked_back = True
        long_ago = _timestamp(kept_from(now) - timedelta(days=1))
        found = f"SELECT 1 FROM {self.name} WHERE recorded_at < {long_ago} LIMIT 1"
        return bool(run(self._spark(), found))


def register_status(spark: SparkSession, schema: str, path: str) -> None:
    """Give the status table at a path its name in a schema, unless it has it.

    Raises:
        ForeignTableError: something else has the name.
        ColdTierError: there is no such schema, or no right to it.
    """
    name = TableName(*parse_schema(schema), STATUS_TABLE)
    entry = look_up(spark, name)
    if entry is None:
        run(spark, f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION {quoted_text(path)}")
    elif not same_place(entry.location, path):
        raise ForeignTableError(
            f"{name} should be the table of job runs at {path}, but is {entry}. Use another "
            f"schema, or, if nobody needs it, DROP {'VIEW' if entry.kind == 'VIEW' else 'TABLE'} "
            f"{name}",
            path=path,
            name=str(name),
        )


def _is_run(key: RunKey) -> str:
    return f"job = {quoted_text(key.job)} AND run_id = {quoted_text(key.run_id)}"


def _timestamp(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f} UTC'"
