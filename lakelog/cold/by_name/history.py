"""The history of a table by name: who committed what, and what lakelog noted.

Runs on: driver.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct

from .notes import BASE_INTERVAL, Note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Commits that the first look takes; more if they do not reach back to a base.
FIRST_ROWS = BASE_INTERVAL + 10

#: Commits that are looked through for removed files.
REMOVALS_ROWS = 1000

#: Operations of foreign commits that move no row into or out of a table.
HARMLESS = frozenset(
    {
        "ADD COLUMNS",
        "ADD CONSTRAINT",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "CLUSTER BY",
        "COMPUTE STATS",
        "CREATE TABLE",
        "DROP COLUMNS",
        "DROP CONSTRAINT",
        "OPTIMIZE",
        "RENAME COLUMN",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "VACUUM END",
        "VACUUM START",
    }
)

#: Operations that leave a table's properties as they were.
_ROWS_ALONE = frozenset({"WRITE", "OPTIMIZE", "VACUUM START", "VACUUM END", "COMPUTE STATS"})


class Commit(Struct, frozen=True):
    """One version of the table."""

    version: int
    time_ms: int
    operation: str
    note: Note | None  # None: not lakelog's
    metrics: dict[str, str]

    @property
    def is_strange(self) -> bool:
        """Whether somebody else may have moved rows."""
        return self.note is None and self.operation not in HARMLESS

    @property
    def moves_rows_alone(self) -> bool:
        return self.operation in _ROWS_ALONE


def is_newest(spark: SparkSession, name: str, version: int) -> bool:
    """Whether nothing was committed above a version; False also where that cannot be told.

    Delta refuses to go to a version that is not there yet, and says how far the table goes. That
    lists its log and starts no job, while the history starts two.
    """
    try:
        # Spark Connect asks for nothing before the schema is read.
        _ = spark.sql(f"SELECT * FROM {name} VERSION AS OF {version + 1}").schema
    except Exception as error:  # Spark's, Py4J's and Connect's errors have no common base
        said = re.search(r"DELTA_VERSION_NOT_FOUND\b.*\[\d+, (\d+)\]", str(error))
        return said is not None and int(said[1]) == version
    return False


def read_history(spark: SparkSession, name: str, topic_id: UUID, since: int) -> list[Commit]:
    """The commits above a version, newest first; always at least the newest one.

    Args:
        since: -1: back to the newest base, or as far as the history goes.
    """
    limit = FIRST_ROWS if since < 0 else 4
    while True:
        # Whole rows: they are at hand when the command is done; a selection would be one more job.
        rows = spark.sql(f"DESCRIBE HISTORY {name} LIMIT {limit}").collect()
        commits = [
            Commit(
                row["version"],
                int(row["timestamp"].timestamp() * 1000),
                row["operation"],
                Note.parse(row["userMetadata"], topic_id),
                dict(row["operationMetrics"] or {}),
            )
            for row in rows
        ]
        if len(rows) < limit or is_enough(commits, since):
            above = [commit for commit in commits if commit.version > since]
            return above or commits[:1]
        limit *= 8


def removed_files(spark: SparkSession, name: str, before_ms: int) -> int:
    """How many files the newest commits removed before a time and no VACUUM has looked at since."""
    count = 0
    for row in spark.sql(f"DESCRIBE HISTORY {name} LIMIT {REMOVALS_ROWS}").collect():
        if row["operation"].startswith("VACUUM"):
            break
        if row["timestamp"].timestamp() * 1000 <= before_ms:
            count += int((row["operationMetrics"] or {}).get("numRemovedFiles", 0))
    return count


def is_enough(commits: Sequence[Commit], since: int) -> bool:
    oldest = commits[-1].version
    if since >= 0:
        return oldest <= since + 1
    bases = [c.note.base.version for c in commits if c.note and c.note.base]
    return bool(bases) and oldest <= max(bases) + 1
