"""The Delta table ``_lakelog_groups`` of a cold root: the committed offsets of groups.

It lies beside the topics' tables, as a `RootTable`: ``{root}/_lakelog_groups``, committed without
Spark, or ``catalog.schema._lakelog_groups``, which Spark alone writes. Anything that reads Delta
reads it. Each recording replaces all rows of its keyspace, in one commit: a deleted group is not
among them, and a write that was cut short is none. A recording has a number; one with a smaller
number than the table has is refused, and of two at once one is.

| column           | type      | |
|------------------|-----------|-|
| keyspace         | string    | whose groups; several may share a cold root |
| keyspace_id      | string    | partition column: of the keyspace's creation |
| sequence         | bigint    | of the recording; all rows of a keyspace are of one, the newest |
| recorded_at      | timestamp | when, by Redis's clock |
| group_id         | string    | null: there was no group with offsets; its one row |
| group_type       | string    | classic (members share partitions), share (they share records) |
| protocol_type    | string    | consumer; empty: the group never had members |
| topic, partition |           | |
| topic_id         | string    | of the creation of the topic, if the committer said so |
| committed_offset | bigint    | the next record's; of a share group, below which all is done with |
| leader_epoch     | int       | -1: none |
| metadata         | string    | what was committed beside the offset |
| committed_at     | timestamp | when, by Redis's clock; null for share groups |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import UUID

import pyarrow as pa
from msgspec import Struct

from ..base.failpoints import failpoint
from ..cold.properties import FORMAT_PROPERTY
from ..cold.root_table import RootTable, RootTableDefinition, Txn
from ..errors import CorruptRecordError
from ..groups.recorded_offset import GroupType, RecordedOffset, ordered
from ..place import ColdRoot
from ..values.format_version import USUAL_FORMAT
from ..values.record import OffsetAndMetadata
from ..values.topic import GROUPS_TABLE
from ..values.topic_partition import TopicPartition

GROUPS = pa.schema(
    [
        pa.field("keyspace", pa.string()),
        pa.field("keyspace_id", pa.string()),
        pa.field("sequence", pa.int64()),
        pa.field("recorded_at", pa.timestamp("us", tz="UTC")),
        pa.field("group_id", pa.string()),
        pa.field("group_type", pa.string()),
        pa.field("protocol_type", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),
        pa.field("committed_offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("metadata", pa.string()),
        pa.field("committed_at", pa.timestamp("us", tz="UTC")),
    ]
)

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


class Recording(Struct, frozen=True):
    """All groups of a keyspace as they were recorded."""

    keyspace: str
    keyspace_id: UUID
    sequence: int  # a later recording has a larger one
    recorded_ms: int  # Redis's clock
    offsets: tuple[RecordedOffset, ...]


def recording_rows(recording: Recording) -> pa.Table:
    """The rows of a keyspace, as `GROUPS`; at least one."""
    common: dict[str, Any] = {
        "keyspace": recording.keyspace,
        "keyspace_id": str(recording.keyspace_id),
        "sequence": recording.sequence,
        "recorded_at": recording.recorded_ms * 1000,
    }
    rows: list[dict[str, Any]] = [
        {
            "group_id": one.group_id,
            "group_type": one.group_type.value,
            "protocol_type": one.protocol_type,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "topic_id": None if one.topic_id is None else str(one.topic_id),
            "committed_offset": one.committed.offset,
            "leader_epoch": one.committed.leader_epoch,
            "metadata": one.committed.metadata,
            "committed_at": None if one.committed_ms is None else one.committed_ms * 1000,
        }
        for one in recording.offsets
    ] or [{}]
    columns = [
        pa.array([(common | row).get(field.name) for row in rows], field.type) for field in GROUPS
    ]
    return pa.Table.from_arrays(columns, schema=GROUPS)


def recording_of(rows: pa.Table, where: str) -> Recording | None:
    """What the rows of a keyspace say; None if there are none.

    Raises:
        CorruptRecordError: they do not belong together, or are not what was written.
    """
    found = rows.cast(GROUPS).set_column(
        GROUPS.get_field_index("recorded_at"), "recorded_at", rows["recorded_at"].cast(pa.int64())
    )
    index = GROUPS.get_field_index("committed_at")
    found = found.set_column(index, "committed_at", rows["committed_at"].cast(pa.int64()))
    if not found.num_rows:
        return None
    try:
        values = found.to_pylist()
        about = ("keyspace", "keyspace_id", "sequence", "recorded_at")
        (head,) = {tuple(row[name] for name in about) for row in values}
        return Recording(
            str(head[0]),
            UUID(head[1]),
            int(head[2]),
            int(head[3]) // 1000,
            ordered(_offsets(values)),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptRecordError(
            f"the rows of {where} are not those of one recording of groups ({error}): somebody "
            "else wrote to it. Move the table away, or restore it to an earlier version: the next "
            "recording makes it anew from what Redis has",
            path=where,
        ) from error


def _offsets(values: Iterable[Mapping[str, Any]]) -> Iterable[RecordedOffset]:
    for v in values:
        if v["group_id"] is None:
            continue
        committed_us = v["committed_at"]
        yield RecordedOffset(
            v["group_id"],
            GroupType(v["group_type"]),
            v["protocol_type"],
            TopicPartition(v["topic"], int(v["partition"])),
            None if v["topic_id"] is None else UUID(v["topic_id"]),
            OffsetAndMetadata(int(v["committed_offset"]), v["metadata"], int(v["leader_epoch"])),
            None if committed_us is None else int(committed_us) // 1000,
        )
