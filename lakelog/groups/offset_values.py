"""A committed offset as Redis keeps it: ``offset ms leader_epoch topic_id metadata``.

Ten of them stay in one small piece of memory, as long as none has more than 64 bytes.
"""

from __future__ import annotations

from uuid import UUID

from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .answers import CommittedOffset

_NO_TOPIC_ID = "-"


def pack_offset(offset: OffsetAndMetadata, topic_id: UUID | None) -> str:
    """What stands behind the offset and the time, which the script puts before it."""
    spelled = _NO_TOPIC_ID if topic_id is None else topic_id.hex
    return f"{offset.leader_epoch} {spelled} {offset.metadata}"


def unpack_offset(value: bytes) -> CommittedOffset:
    offset, committed_ms, leader_epoch, topic_id, metadata = value.decode().split(" ", 4)
    return CommittedOffset(
        OffsetAndMetadata(int(offset), metadata, int(leader_epoch)),
        int(committed_ms),
        None if topic_id == _NO_TOPIC_ID else UUID(topic_id),
    )


def parse_field(field: bytes) -> TopicPartition:
    topic, _, partition = field.decode().rpartition("-")
    return TopicPartition(topic, int(partition))
