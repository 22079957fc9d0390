"""The status table as a Delta table at a path; see `status_table`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, Transaction

from ..base import compute as pc
from ..base.back_off import Tries
from ..base.failpoints import failpoint
from ..base.text_table import counted
from ..cold.by_path.root_table import RootTable
from ..cold.store.storage import Storage
from ..cold.store_errors import error_class, one_line
from ..errors import (
    ColdTierAccessError,
    ColdTierError,
    ColdTierFullError,
    CommitConflictError,
    ForeignTableError,
)
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

logger = logging.getLogger(__name__)


class PathStatusTable:
    """The table at a path, by delta-rs, without Spark.

    Args:
        after_create: called once, with the table's path, before this object's first commit.
        making: held while it is made.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        after_create: Callable[[str], None] | None = None,
        making: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._after_create = after_create
        self._table = RootTable(storage, DEFINITION, self._check, making)
        self.path = self._table.path

    def done_rows(self, key: RunKey) -> pa.Table:
        """See `StatusTable.done_rows`."""
        table = self._table.open()
        return STATUS.empty_table() if table is None else self._done_rows(table, key)

    def append(self, rows: pa.Table, key: RunKey | None = None) -> pa.Table:
        """See `StatusTable.append`."""
        table = self._create()
        tries = Tries(f"writing to the table at {self.path}", COMMITS)
        failure: Exception | None = None
        while True:
            if key is not None:
                # A lost reply and a lost race look the same, and both end the same way here.
                there = self._done_rows(table, key)
                if there.num_rows:
                    return there
            elif failure is not None and self._landed(table, rows):
                return rows
            try:
                self._write(table, rows, key)
            except (DeltaError, OSError, ColdTierError) as error:
                failure = error
                if issubclass(_class_of(error), _NOTHING_CHANGES):
                    tries.failures += 1
                    break
                pause_s = tries.failed(one_line(error))
                if pause_s is None:
                    break
                time.sleep(pause_s)
                table = self._create()
                continue
            if key is not None:  # not those of a run that goes on, which its own thread writes
                failpoint("jobs.after_rows")
            self._maintain()
            return rows
        says_what_to_do = isinstance(failure, ColdTierError)
        advice = "" if says_what_to_do else f" {self._table.storage.advice()}"
        raise _class_of(failure)(
            f"the table at {self.path} took no commit in {counted(tries.failures, 'attempt')}: "
            f"{one_line(failure)}. What the run did is done; running it again is safe.{advice}",
            path=self.path,
        ) from failure

    def read(self, since: datetime | None = None) -> pa.Table:
        """See `StatusTable.read`."""
        table = self._table.open()
        if table is None:
            return STATUS.empty_table()
        condition = None if since is None else pc.field("recorded_at") >= pa.scalar(since)
        return self._rows(table, condition).sort_by("recorded_at")

    def rows_of(self, key: RunKey) -> pa.Table:
        """See `StatusTable.rows_of`."""
        table = self._table.open()
        if table is None:
            return STATUS.empty_table()
        return self._rows(table, _is_run(key)).sort_by("recorded_at")

    # -- how -----------------------------------------------------------------------------------

    def _check(self, table: DeltaTable) -> None:
        missing = self._table.missing(table).difference(LATER_COLUMNS)
        if missing:
            raise ForeignTableError(
                f"{self.path} should hold the rows of job runs, but has no column "
                f"{min(missing)!r}: another version of lakelog, or somebody else, made it. "
                "Move it away",
                path=self.path,
            )

    def _create(self) -> DeltaTable:
        """The table as it is now; made first if it is not there."""
        table = self._table.create()
        if self._after_create is not None:
            # Before any row: a run that fails here is not done, so the next one tries again.
            self._after_create(self.path)
            self._after_create = None
        return table

    def _done_rows(self, table: DeltaTable, key: RunKey) -> pa.Table:
        with self._table.reading():
            if table.transaction_version(app_id(key)) is None:  # without reading a row
                return STATUS.empty_table()
        return self._rows(table, _is_run(key) & pc.field("done"))

    def _landed(self, table: DeltaTable, rows: pa.Table) -> bool:
        first = rows.slice(0, 1).to_pylist()[0]
        same = (pc.field("run_id") == first["run_id"]) & (
            pc.field("recorded_at") == pa.scalar(first["recorded_at"])
        )
        return bool(self._rows(table, same).num_rows)

    def _rows(self, table: DeltaTable, condition: Any) -> pa.Table:
        with self._table.reading():
            dataset = table.to_pyarrow_dataset()
            there = dataset.schema.names
            columns: dict[str, Any] = {
                field.name: pc.field(field.name)
                if field.name in there
                else pc.scalar(pa.scalar(None, field.type))
                for field in STATUS
            }
            if OLD_DURATION in there:
                old_ms = pc.round(pc.field(OLD_DURATION) * 1000).cast(pa.int64())
                columns[DURATION] = pc.coalesce(columns[DURATION], old_ms)
            rows = dataset.to_table(columns=columns, filter=condition).cast(STATUS)
        return check_rows(rows, self.path)

    def _write(self, table: DeltaTable, rows: pa.Table, key: RunKey | None) -> None:
        """One file and its commit. Where a disk takes nothing, delta-rs's own writer prints stacks
        of its threads (1.6), so Arrow writes the file.
        """
        missing = self._table.missing(table)
        if missing:  # an older lakelog made it
            added = pa.schema([field for field in rows.schema if field.name in missing])
            table.alter.add_columns(Schema.from_arrow(added).fields)
        transactions = [] if key is None else [Transaction(app_id(key), 1)]
        table.create_write_transaction(
            [self._written(rows)],
            mode="append",
            schema=table.schema(),
            partition_by=[],
            commit_properties=CommitProperties(app_transactions=transactions),
        )

    def _written(self, rows: pa.Table) -> AddAction:
        import pyarrow.parquet as pq

        name, storage = f"{uuid4().hex}.parquet", self._table.storage
        path = f"{self.path}/{name}"
        with storage.naming(path):
            with storage.filesystem().open_output_stream(storage.arrow_path(path)) as out:
                pq.write_table(rows, out, compression="zstd")
                size_bytes = out.tell()
            storage.sync(path)
        return AddAction(
            path=name,
            size=size_bytes,
            partition_values={},
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=_statistics(rows),
        )

    def _maintain(self) -> None:
        """Drop old rows, merge files, delete what no reader needs; a failure is logged.

        No run depends on it, and the next one tries again.
        """
        try:
            table = self._table.open()
            if table is None:
                return
            actions = pa.table(table.get_add_actions(flatten=True))
            now = datetime.now(timezone.utc)
            if rows_are_due(actions, now):
                table.delete(f"recorded_at < '{kept_from(now):%Y-%m-%dT%H:%M:%SZ}'")
            elif actions.num_rows < MERGED_FILES:
                return
            table.optimize.compact()
            # Not only what the log tells: a checkpoint forgets removed files of that age.
            table.vacuum(dry_run=False, full=True)
        except (DeltaError, OSError, ColdTierError) as error:
            logger.warning("%s was not tidied; the next run tries again: %s", self.path, error)


#: What another attempt would meet as well.
_NOTHING_CHANGES = (ColdTierAccessError, ColdTierFullError)


def _class_of(failure: Exception | None) -> type[ColdTierError]:
    if isinstance(failure, ColdTierError):
        return type(failure)
    if isinstance(failure, CommitFailedError):  # a lost race
        return CommitConflictError
    return error_class(one_line(failure))


def _statistics(rows: pa.Table) -> str:
    """As Delta has them, of the columns that readers choose rows by."""
    columns = {name: rows[name] for name in ("job", "run_id", "recorded_at")}
    # As text by NumPy, which knows the name of any number of microseconds.
    times = columns["recorded_at"].cast(pa.int64()).to_numpy().astype("datetime64[us]")
    columns["recorded_at"] = pa.chunked_array([[f"{time}Z" for time in times]])
    bounds = {name: pc.min_max(column).as_py() for name, column in columns.items()}
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: found["min"] for name, found in bounds.items()},
            "maxValues": {name: found["max"] for name, found in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


def _is_run(key: RunKey) -> Any:
    return (pc.field("job") == key.job) & (pc.field("run_id") == key.run_id)


def rows_are_due(actions: pa.Table, now: datetime) -> bool:
    """Whether rows are a day past their time, so that files are rewritten once a day at most.

    Args:
        actions: the add actions, flattened, with their statistics.
    """
    if "min.recorded_at" not in actions.column_names:
        return False
    due = pa.scalar(kept_from(now) - timedelta(days=1))
    oldest = pc.min(actions["min.recorded_at"])  # compared by Arrow: it may be any number
    return pc.less(oldest, due.cast(oldest.type)).as_py() is True
