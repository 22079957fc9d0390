"""The Delta table ``_lakelog_status`` of a cold root: what every job run left behind.

It lies beside the topics' tables: ``{root}/_lakelog_status``, committed by delta-rs without Spark,
or ``catalog.schema._lakelog_status``, which Spark alone writes (`named_status_table`). Anything
that reads Delta reads it. A run's last rows come in one commit that carries the run as a Delta
transaction (``lakelog-status/{job}/{run_id}``), so that of two that end the same run at the same
time one is refused. It stays small by itself: rows go after `KEPT_DAYS`, files are merged.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import Transaction

from ..cold.place import ColdPlace
from ..cold.storage import Storage, one_line
from ..errors import ColdTierError, CommitConflictError, ForeignTableError
from ..failpoints import failpoint
from ..topic import STATUS_TABLE
from .status_rows import STATUS, RunKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

DESCRIPTION = "where each partition stood at each job run; written by lakelog"

#: Rows older than this go, at most a day later. Enough for a month's chart.
KEPT_DAYS = 30

#: How long Delta gives older versions and remembers runs. A run is repaired within that.
PROPERTIES = {
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.setTransactionRetentionDuration": f"interval {KEPT_DAYS} days",
}

#: After so many files they are merged. A continuous run leaves one a minute: 1,440 a day.
MERGED_FILES = 64

#: Each lost race has a winner, and a run commits once a minute.
COMMIT_ATTEMPTS = 10


class StatusTable(Protocol):
    """Where a run's rows go; made by the first ones. Both kinds keep the same contract."""

    def done_rows(self, key: RunKey) -> pa.Table:
        """The last rows of a run that ended well, as `STATUS`; none if it did not."""
        ...

    def append(self, rows: pa.Table, key: RunKey | None = None) -> pa.Table:
        """Commits rows, once.

        Args:
            rows: as `STATUS`.
            key: the run that they end; None for rows of a run that goes on, or failed.

        Returns:
            The rows that stand for the run: these, or those of who ended the same run before.

        Raises:
            ColdTierError: the table takes no commit.
        """
        ...

    def read(self, since: datetime | None = None) -> pa.Table:
        """Rows recorded at or after a time, oldest first, as `STATUS`; none without a table."""
        ...

    def rows_of(self, key: RunKey) -> pa.Table:
        """All rows of a run, also of one that goes on or failed, oldest first, as `STATUS`."""
        ...


def status_table(place: ColdPlace, spark: Callable[[], SparkSession] | None = None) -> StatusTable:
    """The status table of a cold root.

    Args:
        spark: gives the session where one is needed: for tables by name. Default: the one there
            is, or a local one.
    """
    from ..spark.session import session
    from .named_status_table import NamedStatusTable, register_status

    spark = spark or session
    if place.storage is None:
        return NamedStatusTable(place, spark)
    if place.schema is None:
        return PathStatusTable(place.storage)
    schema = place.schema
    return PathStatusTable(
        place.storage, after_create=lambda path: register_status(spark(), schema, path)
    )


class PathStatusTable:
    """At a path, by delta-rs.

    Args:
        after_create: called once, with the table's path, before this object's first commit.
    """

    def __init__(
        self, storage: Storage, *, after_create: Callable[[str], None] | None = None
    ) -> None:
        self._storage = storage
        self._after_create = after_create
        self.path = f"{storage.root.rstrip('/')}/{STATUS_TABLE}"

    def done_rows(self, key: RunKey) -> pa.Table:
        """See `StatusTable.done_rows`."""
        table = self._open()
        return STATUS.empty_table() if table is None else self._done_rows(table, key)

    def append(self, rows: pa.Table, key: RunKey | None = None) -> pa.Table:
        """See `StatusTable.append`."""
        table = self._create()
        failure: Exception | None = None
        for attempt in range(COMMIT_ATTEMPTS):
            if key is not None:
                # A lost reply and a lost race look the same, and here it is the same.
                there = self._done_rows(table, key)
                if there.num_rows:
                    return there
            elif failure is not None and self._landed(table, rows):
                return rows
            try:
                self._write(table, rows, key)
            except (DeltaError, OSError) as error:
                failure = error
                logger.debug("%s: attempt %d did not land: %s", self.path, attempt, error)
                time.sleep(random.uniform(0, min(1.0, 0.01 * 2**attempt)))
                table = self._create()
                continue
            failpoint("jobs.after_rows")
            self._maintain()
            return rows
        raise CommitConflictError(
            f"the table at {self.path} took no commit in {COMMIT_ATTEMPTS} attempts: "
            f"{one_line(failure) if failure else ''}. What the run did is done; running it again "
            f"is safe. {self._storage.advice()}",
            path=self.path,
        ) from failure

    def read(self, since: datetime | None = None) -> pa.Table:
        """See `StatusTable.read`."""
        table = self._open()
        if table is None:
            return STATUS.empty_table()
        condition = None if since is None else pc.field("recorded_at") >= pa.scalar(since)
        return self._rows(table, condition).sort_by("recorded_at")

    def rows_of(self, key: RunKey) -> pa.Table:
        """See `StatusTable.rows_of`."""
        table = self._open()
        if table is None:
            return STATUS.empty_table()
        return self._rows(table, _is_run(key)).sort_by("recorded_at")

    # -- how -----------------------------------------------------------------------------------

    def _open(self) -> DeltaTable | None:
        """As it is now; None: there is none.

        Raises:
            ForeignTableError: something else lies there.
        """
        try:
            table = DeltaTable(self.path, storage_options=self._storage.delta_options())
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise ColdTierError(
                f"the table at {self.path} cannot be opened: {one_line(error)}. "
                f"{self._storage.advice()}",
                path=self.path,
            ) from error
        missing = set(STATUS.names) - {field.name for field in table.schema().fields}
        if missing:
            raise ForeignTableError(
                f"{self.path} should hold the rows of job runs, but has no column "
                f"{sorted(missing)[0]!r}: another version of lakelog, or somebody else, made it. "
                "Move it away",
                path=self.path,
            )
        return table

    def _create(self) -> DeltaTable:
        """As it is now; made first, if need be."""
        table = self._open()
        if table is None:
            self._storage.make_folder(self.path)
            try:
                DeltaTable.create(
                    self.path,
                    STATUS,
                    mode="ignore",
                    name=STATUS_TABLE,
                    description=DESCRIPTION,
                    configuration=PROPERTIES,
                    # This one is Delta's own, and newer than what delta-rs knows by name.
                    raise_if_key_not_exists=False,
                    storage_options=self._storage.delta_options(),
                )
            except (DeltaError, OSError) as error:  # somebody else may have been faster
                table = self._open()
                if table is None:
                    raise ColdTierError(
                        f"no Delta table could be made at {self.path}: {one_line(error)}. "
                        f"{self._storage.advice()}",
                        path=self.path,
                    ) from error
            table = table or self._open()
            assert table is not None  # it was just made
        if self._after_create is not None:
            # Before any row: a run that failed here is not done, so the next one does it.
            self._after_create(self.path)
            self._after_create = None
        return table

    def _done_rows(self, table: DeltaTable, key: RunKey) -> pa.Table:
        if table.transaction_version(app_id(key)) is None:  # in the log, so without reading a row
            return STATUS.empty_table()
        return self._rows(table, _is_run(key) & pc.field("done"))

    def _landed(self, table: DeltaTable, rows: pa.Table) -> bool:
        first = rows.slice(0, 1).to_pylist()[0]
        same = (pc.field("run_id") == first["run_id"]) & (
            pc.field("recorded_at") == pa.scalar(first["recorded_at"])
        )
        return bool(self._rows(table, same).num_rows)

    def _rows(self, table: DeltaTable, condition: Any) -> pa.Table:
        with self._storage.naming(self.path):
            try:
                dataset = table.to_pyarrow_dataset()
                return dataset.to_table(columns=STATUS.names, filter=condition).cast(STATUS)
            except DeltaError as error:
                raise ColdTierError(
                    f"the table at {self.path} cannot be read: {one_line(error)}. "
                    f"{self._storage.advice()}",
                    path=self.path,
                ) from error

    def _write(self, table: DeltaTable, rows: pa.Table, key: RunKey | None) -> None:
        transactions = [] if key is None else [Transaction(app_id(key), 1)]
        write_deltalake(
            table,
            rows,
            mode="append",
            commit_properties=CommitProperties(app_transactions=transactions),
        )

    def _maintain(self) -> None:
        """Drop old rows, merge files, delete what no reader needs; a failure is logged.

        No run depends on it, and the next one tries again.
        """
        try:
            table = self._open()
            if table is None:
                return
            actions = pa.table(table.get_add_actions(flatten=True))
            now = datetime.now(timezone.utc)
            if rows_are_due(actions, now):
                table.delete(f"recorded_at < '{kept_from(now):%Y-%m-%dT%H:%M:%SZ}'")
            elif actions.num_rows < MERGED_FILES:
                return
            table.optimize.compact()
            table.vacuum(dry_run=False)
        except (DeltaError, OSError, ColdTierError) as error:
            logger.warning("%s was not tidied, which is tried again: %s", self.path, error)


def app_id(key: RunKey) -> str:
    """How a run is called among a table's Delta transactions."""
    return f"lakelog-status/{key.job}/{key.run_id}"


def _is_run(key: RunKey) -> Any:
    return (pc.field("job") == key.job) & (pc.field("run_id") == key.run_id)


def kept_from(now: datetime) -> datetime:
    """What was recorded before that goes."""
    return now - timedelta(days=KEPT_DAYS)


def rows_are_due(actions: pa.Table, now: datetime) -> bool:
    """Whether rows are a day over their time: what is rewritten for it, is so once a day at most.

    Args:
        actions: the add actions, flattened, with their statistics.
    """
    if "min.recorded_at" not in actions.column_names:
        return False
    oldest = pc.min(actions["min.recorded_at"]).as_py()
    return bool(oldest is not None and oldest < kept_from(now) - timedelta(days=1))
