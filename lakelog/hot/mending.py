"""Rights what a partition's keys say of its entries, where the entries tell what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from uuid import UUID

from msgspec import Struct

from ..errors import UnknownTopicIdError
from ..values.offsets import HotSegment
from ..values.topic_partition import TopicPartition
from .connection import Servers, call_script
from .keys import Keys
from .segment_text import segment_text

#: How many go in one script: a millisecond or two.
_AT_ONCE = 500


class SegmentStatistics(Struct, frozen=True):
    """A segment's size and timestamps."""

    seen: HotSegment
    held: HotSegment

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("closed", segment_text(self.seen), segment_text(self.held))

    @property
    def of_open(self) -> tuple[str, ...]:
        """The same, if the segment is the open one."""
        return ("open", _open(self.seen), _open(self.held))


class ClosedBytes(Struct, frozen=True):
    """The size of all closed segments together."""

    seen: bytes  # what is said, a number or not; empty: nothing
    held: int | None  # None: a segment cannot be read, and nobody knows

    @property
    def arguments(self) -> tuple[str | bytes, ...]:
        return ("closed_bytes", self.seen, "" if self.held is None else str(self.held))


class ProducerCount(Struct, frozen=True):
    """How many producers are known."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("producer_count", "", "")


class LargestEntry(Struct, frozen=True):
    """What bounds the size of a page of entries."""

    at_least_bytes: int

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("largest_entry", str(self.at_least_bytes), "")


class LargestTimestamp(Struct, frozen=True):
    """What later entries of the time index build on."""

    at_least_ms: int

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("largest", str(self.at_least_ms), "")


class Unindexed(Struct, frozen=True):
    """An entry of the time index that is wrong."""

    offset: int
    timestamp_ms: int

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("unindex", str(self.offset), str(self.timestamp_ms))


class Indexed(Struct, frozen=True):
    """An entry that the time index lacks."""

    offset: int
    timestamp_ms: int  # the largest up to there

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("index", str(self.offset), str(self.timestamp_ms))


class Settings(Struct, frozen=True):
    """The settings that append reads, of a config version."""

    seen: str
    held: str
    config_version: int

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("settings", self.seen, f"{self.config_version} {self.held}")


Mend = (
    SegmentStatistics
    | ClosedBytes
    | ProducerCount
    | LargestEntry
    | LargestTimestamp
    | Unindexed
    | Indexed
    | Settings
)


class Mending:
    """Rights the keys of one keyspace, beside whoever appends, trims and reads."""

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys

    def apply(
        self, topic_partition: TopicPartition, topic_id: UUID, mends: Sequence[Mend]
    ) -> list[bool]:
        """Rights each that is still as it was seen, and tells of each whether it did.

        No record, offset or start of the log changes. Works while Redis is full.

        Raises:
            UnknownTopicIdError: the topic was deleted.
        """
        done: list[bool] = []
        left = iter(mends)
        while lot := list(islice(left, _AT_ONCE)):
            done += self._apply(topic_partition, topic_id, lot)
        return done

    def _apply(
        self, topic_partition: TopicPartition, topic_id: UUID, mends: Sequence[Mend]
    ) -> Iterator[bool]:
        triples = [mend.arguments for mend in mends]
        # A segment that was seen open may have been closed since, and only one of the two is there.
        also = [m.of_open for m in mends if isinstance(m, SegmentStatistics)]
        arguments = [str(topic_id), *(part for one in (*triples, *also) for part in one)]
        keys = self._keys.partition(topic_partition)
        code, *done = call_script(self._servers, "mend", keys.all(), arguments)
        if code != b"OK":
            raise UnknownTopicIdError(
                f"topic {topic_partition.topic!r} was deleted since it was looked up; nothing of "
                "it was mended",
                topic=topic_partition.topic,
                topic_id=topic_id,
            )
        opened = iter(done[len(triples) :])
        for mend, is_done in zip(mends, done, strict=False):
            other = next(opened) if isinstance(mend, SegmentStatistics) else 0
            yield bool(is_done or other)


def _open(segment: HotSegment) -> str:
    return (
        f"{segment.base_offset} {segment.size_bytes} {segment.first_timestamp_ms} "
        f"{segment.max_timestamp_ms} {segment.created_ms} {segment.modified_ms}"
    )
