"""The Delta table ``_lakelog_status`` of a cold root: what every job run recorded.

It lies beside the topics' tables, as a `RootTable`: ``{root}/_lakelog_status``, committed without
Spark, or ``catalog.schema._lakelog_status``, which Spark alone writes. Anything that reads Delta
reads it. A run's last rows come in one commit that carries the run as a Delta transaction
(``lakelog-status/{job}/{run_id}``). So if two processes end the same run at the same time, one is
refused. The table stays small by itself: rows go after `KEPT_DAYS`, and files are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from ..base.failpoints import failpoint
from ..cold.root_table import ALL, TIME, RootTable, RootTableDefinition, Txn
from ..errors import InvalidArgumentError
from ..place import ColdRoot
from ..values.topic import STATUS_TABLE
from .status_rows import DURATION, LATER_COLUMNS, OLD_DURATION, STATUS, RunKey, check_rows

#: Rows older than this go, at most a day later. Enough for a month's chart.
KEPT_DAYS = 30

DEFINITION = RootTableDefinition(
    STATUS_TABLE,
    "the rows of job runs",
    STATUS,
    "where each partition stood at each job run; written by lakelog",
    # How long Delta keeps older versions and remembers runs. A run is repaired within that time.
    {
        "delta.logRetentionDuration": "interval 7 days",
        "delta.deletedFileRetentionDuration": "interval 1 days",
        "delta.setTransactionRetentionDuration": f"interval {KEPT_DAYS} days",
    },
    "What the run did is done; running it again is safe",
    chosen_by=("job", "run_id", TIME),
    later_columns=LATER_COLUMNS,
    once_in_seconds={DURATION: OLD_DURATION},
    has_name=True,
)

#: This many files are merged. A continuous run leaves one a minute: 1,440 a day.
MERGED_FILES = 64


class StatusTable:
    """Where a run's rows go; the first rows create it."""

    def __init__(self, table: RootTable) -> None:
        self._table = table
        self.where = table.where

    def done_rows(self, key: RunKey) -> pa.Table:
        """The last rows of a run that ended well, as `STATUS`; none if it did not."""
        return self._read({**_is_run(key), "done": True}, txn=app_id(key))

    def append(self, rows: pa.Table, key: RunKey | None = None) -> pa.Table:
        """Commits rows, once.

        Args:
            rows: as `STATUS`.
            key: the run that they end; None for rows of a run that goes on, or failed.

        Returns:
            The run's rows: these, or those of the process that ended the same run before.

        Raises:
            ColdTierError: the table takes no commit.
        """

        def is_settled(has_failed: bool) -> bool:
            if key is not None:
                return bool(self.done_rows(key).num_rows)
            if not has_failed:
                return False
            first = rows.slice(0, 1).to_pylist()[0]
            return bool(self._read({name: first[name] for name in ("run_id", TIME)}).num_rows)

        txn = None if key is None else Txn(app_id(key), 1)
        is_written = self._table.append(rows, is_settled, txn)
        if key is not None:  # not those of a run that goes on, which its own thread writes
            failpoint("jobs.after_rows")
        self._table.tidy(timedelta(days=KEPT_DAYS), MERGED_FILES)
        return rows if is_written or key is None else self.done_rows(key)

    def read(self, since: datetime | None = None) -> pa.Table:
        """Rows recorded at or after a time, oldest first, as `STATUS`; none without a table."""
        return self._read(since=since)

    def rows_of(self, key: RunKey) -> pa.Table:
        """All rows of a run, also of one that goes on or failed, oldest first, as `STATUS`."""
        return self._read(_is_run(key))

    def _read(self, of: Mapping[str, object] = ALL, **how: Any) -> pa.Table:
        return check_rows(self._table.read(of, **how), self.where).sort_by(TIME)


def open_status_table(
    root: ColdRoot | None, making: Callable[[], AbstractContextManager[None]] = nullcontext
) -> StatusTable:
    """The status table of a cold root.

    Args:
        making: held while the table is made; see `LogPlace.naming_status`.

    Raises:
        InvalidArgumentError: there is none.
    """
    if root is None:
        raise InvalidArgumentError(
            "a job records where things stand in a table under the cold root, but no cold root is "
            "given; give cold"
        )
    return StatusTable(root.root_table(DEFINITION, making))


def app_id(key: RunKey) -> str:
    """The name of a run among a table's Delta transactions."""
    return f"lakelog-status/{key.job}/{key.run_id}"


def _is_run(key: RunKey) -> dict[str, object]:
    return {"job": key.job, "run_id": key.run_id}
