"""A small Delta table of lakelog's own at a path, by delta-rs, without Spark; see `RootTable`."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, Transaction

from ...base import compute as pc
from ...errors import CommitConflictError, ForeignTableError, LakelogError
from ..root_table import ALL, TIME, RootTable, RootTableDefinition, Txn
from ..store.storage import Storage
from ..store_errors import error_class, one_line
from .made_once import make_table

logger = logging.getLogger(__name__)


class PathRootTable(RootTable):
    """The table below a root's folder.

    Args:
        making: held while it is made; it refuses where it must not be.
        after_create: called once, with the table's path, before this object's first commit.
    """

    def __init__(
        self,
        storage: Storage,
        definition: RootTableDefinition,
        making: Callable[[], AbstractContextManager[None]] = nullcontext,
        after_create: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(definition, f"{storage.root.rstrip('/')}/{definition.name}", making)
        self._storage = storage.keyed_for(self.where)
        self._after_create = after_create

    def __str__(self) -> str:
        return f"the table at {self.where}"

    def read(
        self,
        of: Mapping[str, object] = ALL,
        *,
        since: datetime | None = None,
        txn: str | None = None,
    ) -> pa.Table:
        table = self._open()
        with self._naming("cannot be read"):
            if table is None or (txn is not None and table.transaction_version(txn) is None):
                return self.definition.schema.empty_table()
            dataset = table.to_pyarrow_dataset()
            columns = self._columns(dataset.schema.names)
            rows = dataset.to_table(columns=columns, filter=_condition(of, since))
            return rows.cast(self.definition.schema)

    def tidy(self, kept: timedelta | None = None, merged_files: int = 0) -> None:
        try:
            table = self._open()
            if table is None:
                return
            if kept is not None:
                actions = pa.table(table.get_add_actions(flatten=True))
                kept_from = datetime.now(timezone.utc) - kept
                if rows_are_due(actions, kept_from):
                    table.delete(f"{TIME} < '{kept_from:%Y-%m-%dT%H:%M:%SZ}'")
                elif actions.num_rows < merged_files:
                    return
                table.optimize.compact()
            # Not only what the log tells: a checkpoint forgets removed files of that age.
            table.vacuum(dry_run=False, full=True)
        except (DeltaError, OSError, LakelogError) as error:
            logger.warning("%s was not tidied; a later commit tries again: %s", self, error)

    # -- how -----------------------------------------------------------------------------------

    def _open(self) -> DeltaTable | None:
        try:
            table = DeltaTable(self.where, storage_options=self._storage.delta_options())
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise self._failed("cannot be opened", error) from error
        columns = [field.name for field in table.schema().fields]
        self.definition.check(self.where, table.metadata().configuration, columns)
        return table

    def _create(self) -> DeltaTable:
        table = self._open() or self._made()
        if self._after_create is not None:
            # Before any row: a run that fails here is not done, so the next one tries again.
            self._after_create(self.where)
            self._after_create = None
        return table

    def _made(self) -> DeltaTable:
        there = self._storage.names(self.where)
        if any(not name.startswith(("_", ".")) for name in there):
            table = self._open()  # somebody else may have been faster
            if table is not None:
                return table
            raise ForeignTableError(
                f"{self.where} is the place of {self.definition.holds}, and something else lies "
                "there. Move it away",
                path=self.where,
            )
        with self._making():
            self._storage.make_folder(self.where)
            try:
                make_table(
                    self.where,
                    self.definition.schema,
                    partition_by=list(self.definition.partition_by),
                    name=self.definition.name,
                    description=self.definition.description,
                    configuration=dict(self.definition.properties),
                    # Properties may be Delta's own, but newer than those delta-rs knows.
                    raise_if_key_not_exists=False,
                    storage_options=self._storage.delta_options(),
                )
            except (DeltaError, OSError) as error:
                if self._open() is None:  # nobody else was faster
                    raise self._failed("cannot be made", error) from error
        table = self._open()
        assert table is not None  # it was just made
        return table

    def _columns(self, there: Collection[str]) -> dict[str, Any]:
        """Those of the definition, also of a table that an older lakelog made."""
        columns: dict[str, Any] = {
            field.name: pc.field(field.name)
            if field.name in there
            else pc.scalar(pa.scalar(None, field.type))
            for field in self.definition.schema
        }
        for name, old in self.definition.once_in_seconds.items():
            if old in there:
                old_ms = pc.round(pc.field(old) * 1000).cast(pa.int64())
                columns[name] = pc.coalesce(columns[name], old_ms)
        return columns

    def _append(self, table: DeltaTable, rows: pa.Table, txn: Txn | None) -> bool:
        """One file and its commit. Where a disk takes nothing, delta-rs's own writer prints stacks
        of its threads (1.6), so Arrow writes the file.
        """
        with self._committing():
            there = {field.name for field in table.schema().fields}
            added = [field for field in rows.schema if field.name not in there]
            if added:  # an older lakelog made it
                table.alter.add_columns(Schema.from_arrow(pa.schema(added)).fields)
            table.create_write_transaction(
                [self._written(rows)],
                mode="append",
                schema=table.schema(),
                partition_by=[],
                commit_properties=_carrying(txn),
            )
        return True

    def _replace(
        self, table: DeltaTable, rows: pa.Table, of: Mapping[str, object], txn: Txn
    ) -> bool:
        with self._committing():
            write_deltalake(
                table,
                rows,
                mode="overwrite",
                predicate=_sql_condition(of),
                commit_properties=_carrying(txn),
            )
        return True

    def _written(self, rows: pa.Table) -> AddAction:
        import pyarrow.parquet as pq

        name = f"{uuid4().hex}.parquet"
        path = f"{self.where}/{name}"
        with self._storage.naming(path):
            arrow_path = self._storage.arrow_path(path)
            with self._storage.filesystem().open_output_stream(arrow_path) as out:
                pq.write_table(rows, out, compression="zstd")
                size_bytes = out.tell()
            self._storage.sync(path)
        return AddAction(
            path=name,
            size=size_bytes,
            partition_values={},
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=_statistics(rows.select(self.definition.chosen_by)),
        )

    @contextmanager
    def _naming(self, what: str) -> Iterator[None]:
        """Says what fails within."""
        with self._storage.naming(self.where):
            try:
                yield
            except DeltaError as error:
                raise self._failed(what, error) from error

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Says why a commit fails."""
        try:
            yield
        except LakelogError:  # it says so itself, as of a file that cannot be written
            raise
        except CommitFailedError as error:  # a lost race
            raise CommitConflictError(one_line(error), path=self.where) from error
        except (DeltaError, OSError) as error:
            said = one_line(error)
            raise error_class(said)(f"{said}. {self._storage.advice()}", path=self.where) from error

    def _failed(self, what: str, error: Exception) -> LakelogError:
        said = one_line(error)
        return error_class(said)(
            f"the table at {self.where} {what}: {said}. {self._storage.advice()}", path=self.where
        )


def _carrying(txn: Txn | None) -> CommitProperties:
    transactions = [] if txn is None else [Transaction(txn.app_id, txn.version)]
    return CommitProperties(app_transactions=transactions)


def _condition(of: Mapping[str, object], since: datetime | None) -> Any:
    found = None if since is None else pc.field(TIME) >= pa.scalar(since)
    for name, value in of.items():
        # Where a file has no statistics of a column, delta-rs (1.6) has Arrow believe that nothing
        # in it equals anything. A column that is true is no comparison.
        equal = pc.field(name) if value is True else pc.field(name) == pa.scalar(value)
        found = equal if found is None else found & equal
    return found


def _sql_condition(of: Mapping[str, object]) -> str:
    values = {name: str(value).replace("'", "''") for name, value in of.items()}
    return " AND ".join(f"{name} = '{value}'" for name, value in values.items())


def _statistics(rows: pa.Table) -> str:
    """As Delta has them."""
    columns = {name: rows[name] for name in rows.column_names}
    if TIME in columns:
        # As text by NumPy, which knows the name of any number of microseconds.
        times = columns[TIME].cast(pa.int64()).to_numpy().astype("datetime64[us]")
        columns[TIME] = pa.chunked_array([[f"{time}Z" for time in times]])
    bounds = {name: pc.min_max(column).as_py() for name, column in columns.items()}
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: found["min"] for name, found in bounds.items()},
            "maxValues": {name: found["max"] for name, found in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


def rows_are_due(actions: pa.Table, kept_from: datetime) -> bool:
    """Whether rows are a day past their time, so that files are rewritten once a day at most.

    Args:
        actions: the add actions, flattened, with their statistics.
    """
    if f"min.{TIME}" not in actions.column_names:
        return False
    due = pa.scalar(kept_from - timedelta(days=1))
    oldest = pc.min(actions[f"min.{TIME}"])  # compared by Arrow: it may be any number
    return pc.less(oldest, due.cast(oldest.type)).as_py() is True
