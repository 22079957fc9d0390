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


class Mend(Struct, frozen=True):
    """One thing that is said of entries, as it was seen and as it is to be; see ``mend.lua``."""

    what: str
    seen: str | bytes = ""
    held: str = ""
    of_open: tuple[str, str] | None = None  # both, of a segment that may be open

    @classmethod
    def of_segment(cls, seen: HotSegment, held: HotSegment) -> Mend:
        """Of a segment's size and timestamps."""
        return cls("closed", segment_text(seen), segment_text(held), (_open(seen), _open(held)))


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
        triples = [(mend.what, mend.seen, mend.held) for mend in mends]
        # A segment that was seen open may have been closed since, and only one of the two is there.
        also = [("open", *mend.of_open) for mend in mends if mend.of_open is not None]
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
            other = next(opened) if mend.of_open is not None else 0
            yield bool(is_done or other)


def _open(segment: HotSegment) -> str:
    return (
        f"{segment.base_offset} {segment.size_bytes} {segment.first_timestamp_ms} "
        f"{segment.max_timestamp_ms} {segment.created_ms} {segment.modified_ms}"
    )
