"""The rows of ``_lakelog_groups``: how far each group had come when it was looked at last.

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

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import pyarrow as pa
from msgspec import Struct

from ...errors import CorruptRecordError
from ...groups.recorded_offset import GroupType, RecordedOffset, ordered
from ...values.record import OffsetAndMetadata
from ...values.topic_partition import TopicPartition

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
