"""The Delta table ``_lakelog_groups`` of a cold root: the committed offsets of groups.

It lies beside the topics' tables, as a `RootTable`: ``{root}/_lakelog_groups``, committed without
Spark, or ``catalog.schema._lakelog_groups``, which Spark alone writes. Anything that reads Delta
reads it. Each recording replaces all rows of its keyspace, in one commit: a deleted group is not
among them, and a write that was cut short is none. A recording has a number; one with a smaller
number than the table has is refused, and of two at once one is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from uuid import UUID

from ...base.failpoints import failpoint
from ...cold.properties import FORMAT_PROPERTY
from ...cold.root_table import RootTable, RootTableDefinition, Txn
from ...place import ColdRoot
from ...values.format_version import USUAL_FORMAT
from ...values.topic import GROUPS_TABLE
from .rows import GROUPS, Recording, recording_of, recording_rows

DEFINITION = RootTableDefinition(
    GROUPS_TABLE,
    "the offsets of groups",
    GROUPS,
    "how far each group had come; written by lakelog",
    {
        # Each recording leaves the file of the one before. Readers have an hour.
        "delta.logRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 1 hours",
        "delta.checkpointInterval": "32",
        FORMAT_PROPERTY: str(USUAL_FORMAT),
    },
    "The groups are as they are; the next recording tries again",
    partition_by=("keyspace_id",),
)

#: Of so many recordings, one is followed by the deletion of files that no reader needs.
VACUUM_COMMITS = 32


class GroupsTable:
    """Where recordings go; the first one creates it."""

    def __init__(self, table: RootTable) -> None:
        self._table = table
        self.where = table.where

    def read(self, keyspace_id: UUID) -> Recording | None:
        """The newest recording of a keyspace; None if there is none.

        Raises:
            ColdTierError: the table cannot be read.
        """
        return recording_of(self._table.read(_is_of(keyspace_id)), self.where)

    def write(self, recording: Recording) -> bool:
        """Commits a recording in the place of the one before.

        Returns:
            False: the table has one with a larger number, and keeps it.

        Raises:
            ColdTierError: the table takes no commit.
        """

        def is_settled(_: bool) -> bool:
            there = self.read(recording.keyspace_id)
            if there is not None and there.sequence >= recording.sequence:
                return True
            failpoint("groups.before_commit")
            return False

        is_of = _is_of(recording.keyspace_id)
        txn = Txn(f"lakelog-groups/{recording.keyspace_id}", recording.sequence)
        is_written = self._table.replace(recording_rows(recording), is_of, is_settled, txn)
        failpoint("groups.after_commit")
        if recording.sequence % VACUUM_COMMITS == 0:
            self._table.tidy()
        if is_written:
            return True
        there = self.read(recording.keyspace_id)
        return there is not None and there.sequence == recording.sequence


def open_groups_table(
    root: ColdRoot, making: Callable[[], AbstractContextManager[None]] = nullcontext
) -> GroupsTable:
    """The table of groups of a cold root.

    Args:
        making: held while the table is made; see `LogPlace.naming_status`.
    """
    return GroupsTable(root.root_table(DEFINITION, making))


def _is_of(keyspace_id: UUID) -> dict[str, object]:
    return {"keyspace_id": str(keyspace_id)}
