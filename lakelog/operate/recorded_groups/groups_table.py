"""The Delta table ``_lakelog_groups`` of a cold root: the committed offsets of groups.

It lies beside the topics' tables: ``{root}/_lakelog_groups``, committed by delta-rs without Spark,
or ``catalog.schema._lakelog_groups``, which Spark alone writes. Anything that reads Delta reads it.
Each recording replaces all rows of its keyspace, in one commit: a deleted group is not among them,
and a write that was cut short is none. A recording has a number; one with a smaller number than the
table has is refused, and of two at once one is.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from ...back_off import BackOff
from .rows import Recording

DESCRIPTION = "how far each group had come; written by lakelog"

#: Each recording leaves the file of the one before. Readers have an hour.
PROPERTIES = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.checkpointInterval": "32",
}

#: Of so many commits, one is followed by the deletion of files that no reader needs.
VACUUM_COMMITS = 32

#: Each lost race has a winner, and there are two a minute at most.
COMMITS = BackOff(0.1, 1.0, tries=5)


class GroupsTable(Protocol):
    """Where recordings go; the first one creates it. Both kinds keep the same contract."""

    def read(self, keyspace_id: UUID) -> Recording | None:
        """The newest recording of a keyspace; None if there is none.

        Raises:
            ColdTierError: the table cannot be read.
        """
        ...

    def write(self, recording: Recording) -> bool:
        """Commits a recording in the place of the one before.

        Returns:
            False: the table has one with a larger number, and keeps it.

        Raises:
            ColdTierError: the table takes no commit.
        """
        ...


def app_id(keyspace_id: UUID) -> str:
    """The name of a keyspace's recordings among a table's Delta transactions."""
    return f"lakelog-groups/{keyspace_id}"
