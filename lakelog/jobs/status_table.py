"""The Delta table ``_lakelog_status`` of a cold root: what every job run recorded.

It lies beside the topics' tables: ``{root}/_lakelog_status``, committed by delta-rs without Spark
(`path_status_table`), or ``catalog.schema._lakelog_status``, which Spark alone writes
(`named_status_table`). Anything that reads Delta reads it. A run's last rows come in one commit
that carries the run as a Delta transaction (``lakelog-status/{job}/{run_id}``). So if two processes
end the same run at the same time, one is refused. The table stays small by itself: rows go after
`KEPT_DAYS`, and files are merged.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

import pyarrow as pa

from ..base.back_off import BackOff
from ..cold.root_table import RootTableDefinition
from ..values.topic import STATUS_TABLE
from .status_rows import STATUS, RunKey

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
)

#: This many files are merged. A continuous run leaves one a minute: 1,440 a day.
MERGED_FILES = 64

#: Each lost race has a winner, and a run commits once a minute.
COMMITS = BackOff(0.1, 1.0, tries=10)


class StatusTable(Protocol):
    """Where a run's rows go; the first rows create it. Both kinds keep the same contract."""

    def done_rows(self, key: RunKey) -> pa.Table:
        """The last rows of a run that ended well, as `STATUS`; none if it did not."""
        ...

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
        ...

    def read(self, since: datetime | None = None) -> pa.Table:
        """Rows recorded at or after a time, oldest first, as `STATUS`; none without a table."""
        ...

    def rows_of(self, key: RunKey) -> pa.Table:
        """All rows of a run, also of one that goes on or failed, oldest first, as `STATUS`."""
        ...


def app_id(key: RunKey) -> str:
    """The name of a run among a table's Delta transactions."""
    return f"lakelog-status/{key.job}/{key.run_id}"


def kept_from(now: datetime) -> datetime:
    """The time before which rows go."""
    return now - timedelta(days=KEPT_DAYS)
