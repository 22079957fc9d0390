"""The Delta table ``_lakelog_groups`` of a cold root: the committed offsets of groups.

It lies beside the topics' tables: ``{root}/_lakelog_groups``, committed by delta-rs without Spark,
or ``catalog.schema._lakelog_groups``, which Spark alone writes. Anything that reads Delta reads it.
Each recording replaces all rows of its keyspace, in one commit: a deleted group is not among them,
and a write that was cut short is none. A recording has a number; one with a smaller number than the
table has is refused, and of two at once one is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from ...base.back_off import BackOff
from ...cold.root_table import RootTableDefinition
from ...cold.schema import FORMAT_PROPERTY
from ...errors import ForeignTableError
from ...values.format_version import USUAL_FORMAT, check_format
from ...values.topic import GROUPS_TABLE
from .rows import GROUPS, Recording

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
    partition_by=("keyspace_id",),
)

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


def check_ours(
    where: str, made_as: str | None, columns: Iterable[str], name: str | None = None
) -> None:
    """Refuses a table that is there and is another one.

    Args:
        where: its path, or its name.
        made_as: its `FORMAT_PROPERTY`.
        name: in the catalog, if that is where it is.

    Raises:
        NewerVersionError: a newer lakelog made it.
        ForeignTableError: somebody else did.
    """
    check_format(made_as, name or f"the table at {where}", path=where)
    missing = set(GROUPS.names) - set(columns)
    if missing:
        raise ForeignTableError(
            f"{where} should hold the offsets of groups, but has no column {min(missing)!r}: "
            "somebody else made it. Move it away",
            path=where,
            name=name,
        )
