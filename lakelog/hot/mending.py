"""Rights what a partition's keys say of its entries, and rebuilds it where a key is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from uuid import UUID

from msgspec import Struct

from ..errors import (
    ConcurrentChangeError,
    CorruptRecordError,
    ForeignEntryError,
    UnknownTopicIdError,
)
from ..values.offset_ranges import merged, unexplained
from ..values.offsets import HotSegment
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .connection import Servers, by_name, call_script
from .inspection import Inspection, StoredEntry
from .keys import Keys
from .topic_definition import settings_text

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


#: How often a stream is looked at that somebody appends to meanwhile.
_ROUNDS = 5


class Bookkeeping(Struct, frozen=True):
    """What entries tell of their partition."""

    start_offset: int
    end_offset: int  # exclusive
    gaps: tuple[OffsetRange, ...]  # as gap entries declare them
    holes: tuple[OffsetRange, ...]  # offsets of no entry: readers are to skip them
    lacking: tuple[OffsetRange, ...]  # of closed segments
    open_base: int


def bookkeeping(
    topic_partition: TopicPartition,
    entries: Iterable[StoredEntry],
    closed: Sequence[OffsetRange],
    *,
    last_end: int,
    archived_end: int,
    open_base: int | None,
) -> Bookkeeping:
    """What the entries tell. Pure.

    Args:
        entries: all of the stream, in order.
        closed: the segments that are still known.
        last_end: where the last entry ended that was ever added.
        archived_end: no segment reaches across it: cold has segments of its own below.
        open_base: of the open segment; None: it is not known.

    Raises:
        ForeignEntryError: an entry is none of lakelog's; nobody knows what the stream is.
        CorruptRecordError: two entries hold the same offset.
    """
    start: int | None = None
    end = 0
    gaps, holes = [], []
    for entry in entries:
        if entry.base_offset is None or entry.format == "unknown":
            raise ForeignEntryError(
                f"entry {entry.id} of {topic_partition} is none of lakelog's, so its stream may be "
                "somebody else's. Nothing was changed: rename the key, or use another keyspace",
                topic_partition=topic_partition,
                entry_id=entry.id,
            )
        if start is None:
            start = end = entry.base_offset
        if entry.format == "gap":  # over what half a transaction left there
            gaps.append(OffsetRange(entry.base_offset, entry.end_offset))
        elif entry.base_offset < end:
            raise CorruptRecordError(
                f"entry {entry.id} of {topic_partition} begins below {end}, where the one before "
                f"it ends. Nothing was changed: `lakelog skip add {topic_partition.topic} "
                f"-p {topic_partition.partition} --entry {entry.id}` takes it out",
                topic_partition=topic_partition,
                entry_id=entry.id,
            )
        if entry.base_offset > end:
            holes.append(OffsetRange(end, entry.base_offset))
        end = max(end, entry.end_offset)
    if start is None:
        start = end = last_end
    elif last_end > end:
        holes.append(OffsetRange(end, last_end))
        end = last_end
    lacking = [
        OffsetRange(low, high)
        for one in unexplained(
            start,
            end if open_base is None else max(start, open_base),
            merged([*closed, *gaps, *holes]),
        )
        for low, high in _cut(one, archived_end)
    ]
    if open_base is None:
        open_base = end
        if lacking and lacking[-1].end == end:
            open_base = lacking.pop().start
    return Bookkeeping(start, end, tuple(gaps), tuple(holes), tuple(lacking), open_base)


def _cut(whole: OffsetRange, at: int) -> list[tuple[int, int]]:
    edges = [whole.start, *([at] if whole.start < at < whole.end else []), whole.end]
    return list(pairwise(edges))


class Rebuilding:
    """Rebuilds the bookkeeping of one keyspace's partitions."""

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys
        self._inspection = Inspection(servers, keys)

    def has_entries_alone(self, topic_partition: TopicPartition) -> bool:
        """Whether a stream is there, and no ``:state`` that says what it is of."""
        keys = self._keys.partition(topic_partition)
        kind, is_told = self._servers.for_key(keys.stream).call(
            ("TYPE", keys.stream), ("EXISTS", keys.state)
        )
        return kind == b"stream" and not is_told

    def rebuild(
        self, topic: Topic, topic_partition: TopicPartition, archived_end: int, log_start: int
    ) -> Bookkeeping:
        """Writes ``:state`` anew, if it is gone, and the closed segments that are lacking.

        Args:
            topic: as its definition is now.
            archived_end: of the cold tier; 0: nothing is archived.
            log_start: of the cold tier.

        Raises:
            ForeignEntryError, CorruptRecordError: see `bookkeeping`; nothing was changed.
            ConcurrentChangeError: it changed whenever it was looked at.
        """
        for _ in range(_ROUNDS):
            found, arguments = self._seen(topic, topic_partition, archived_end, log_start)
            keys = self._keys.partition(topic_partition)
            (answer,) = call_script(self._servers, "rebuild", keys.all(), arguments)
            if answer == b"OK":
                return found
        raise ConcurrentChangeError(
            f"{topic_partition} changed whenever it was looked at; check again later",
            topic=topic.name,
        )

    def _seen(
        self, topic: Topic, topic_partition: TopicPartition, archived_end: int, log_start: int
    ) -> tuple[Bookkeeping, list[str | int]]:
        keys = self._keys.partition(topic_partition)
        about, closed, segment = self._servers.for_key(keys.stream).call(
            ("XINFO", "STREAM", keys.stream),
            ("ZRANGE", keys.segments, 0, -1),
            ("HGET", keys.state, "segment"),
        )
        about = by_name(about)
        last_id = about[b"last-generated-id"]
        entries = (
            entry
            for page in self._inspection.pages(topic_partition, None)
            for entry in page.entries
        )
        ranges = [OffsetRange(*map(int, text.split()[:2])) for text in closed]
        found = bookkeeping(
            topic_partition,
            entries,
            ranges,
            last_end=_end_of(last_id),
            archived_end=archived_end,
            open_base=None if segment is None else int(segment.split()[0]),
        )
        arguments: list[str | int] = [
            str(topic.topic_id),
            topic.generation,
            topic.config_version,
            settings_text(topic.config),
            "",
            last_id.decode("latin-1"),
            found.end_offset,
            log_start if topic.config.tiered else found.start_offset,
            found.start_offset,
            _texts(found.gaps),
            _texts(found.holes),
            found.open_base,
        ]
        for one in found.lacking:
            arguments += (one.start, one.end)
        return found, arguments


def _end_of(last_id: bytes) -> int:
    """Where the entry of the stream's last id ended; 0: there was none."""
    last_offset, _, count = last_id.partition(b"-")
    end = int(last_offset) + 1
    return end if int(count) and end < 2**53 else 0


def _texts(ranges: Iterable[OffsetRange]) -> str:
    return ",".join(f"{one.start}-{one.end}" for one in ranges)


def segment_text(segment: HotSegment) -> str:
    """Its numbers, in the order of `HotSegment`'s fields."""
    return (
        f"{segment.base_offset} {segment.end_offset} {segment.size_bytes} "
        f"{segment.first_timestamp_ms} {segment.max_timestamp_ms} {segment.created_ms} "
        f"{segment.modified_ms}"
    )
