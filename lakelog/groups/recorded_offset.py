"""A committed offset as it is kept outside of Redis."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import Enum
from uuid import UUID

from msgspec import Struct

from ..values.config import DAY_MS
from ..values.record import OffsetAndMetadata
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition


class GroupType(str, Enum):
    """Kafka's names."""

    CLASSIC = "classic"  # its members share partitions, and do so themselves
    CONSUMER = "consumer"  # they do, and the server shares out (KIP-848)
    SHARE = "share"  # its members share records


class RecordedOffset(Struct, frozen=True):
    """How far a group had come in a partition."""

    group_id: str
    group_type: GroupType  # CLASSIC of all groups of consumers: offsets stay when the kind changes
    protocol_type: str  # empty: the group never had members; of a share group, too
    topic_partition: TopicPartition
    topic_id: UUID | None  # of the creation of the topic, if the committer said so
    committed: OffsetAndMetadata  # of a share group, its share-partition start offset
    committed_ms: int | None  # Redis's clock; None: of a share group

    def is_of(self, topic: Topic) -> bool:
        """Whether it was committed in this creation of a topic, as far as the committer said so."""
        name, partition = self.topic_partition
        return (
            name == topic.name
            and partition < topic.partitions
            and self.topic_id in (None, topic.topic_id)
        )


class RecordingMark(Struct, frozen=True):
    """What Redis knows of the recordings of its groups."""

    id: str  # of the mark's creation; it is lost with the list of groups
    taken: int  # the number that was given out last
    digest: str = ""  # of what was recorded last
    recorded_ms: int | None = None  # when; Redis's clock


class SeenGroup(Struct, frozen=True):
    """A group at one moment."""

    offsets: tuple[RecordedOffset, ...]
    empty_since_ms: int | None  # None: it has members
    had_members: bool  # now, or before
    members: int = 0  # one that died counts until somebody calls the group


class SeenGroups(Struct, frozen=True):
    """All groups, each at one moment."""

    groups: Mapping[str, SeenGroup]  # of consumers, by id
    missing: frozenset[str]  # listed, but Redis has nothing of them: lost, or about to be made
    shares: tuple[RecordedOffset, ...]  # of share groups

    @property
    def offsets(self) -> tuple[RecordedOffset, ...]:
        """In the order of group, topic and partition."""
        found = [one for group in self.groups.values() for one in group.offsets]
        return ordered((*found, *self.shares))

    def digest(self) -> str:
        """Of what is worth recording: the same offset committed again is not, within a day."""
        told = repr(([_told(one) for one in self.offsets], sorted(self.missing)))
        return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def ordered(offsets: Iterable[RecordedOffset]) -> tuple[RecordedOffset, ...]:
    """In the order of group, topic and partition."""
    return tuple(sorted(offsets, key=_place))


def _place(one: RecordedOffset) -> tuple[str, str, TopicPartition]:
    return one.group_id, one.group_type.value, one.topic_partition


def _told(one: RecordedOffset) -> tuple[object, ...]:
    return (
        *_place(one),
        one.protocol_type,
        None if one.topic_id is None else one.topic_id.hex,
        *one.committed,
        None if one.committed_ms is None else one.committed_ms // DAY_MS,
    )
