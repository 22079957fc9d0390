"""What the keys of a partition hold, sound or damaged, for whoever looks for damage.

Readers stop at the first entry that is not what was written; here it is part of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
from msgspec import Struct
from redis.exceptions import ResponseError

from ..codec import EntryId, decode, in_steps
from ..codec.description import describe
from ..errors import CorruptRecordError, ForeignEntryError, LakelogError
from ..values.config import MIB
from ..values.offsets import HotSegment
from ..values.producer_calls import CUT, ProducerCall
from ..values.record import NO_TIMESTAMP_MS, RECORDS, empty_records
from ..values.topic_partition import OffsetRange, TopicPartition
from .connection import Servers, exchange, run_script
from .declared import RawEntry, check_topic_id, unknown_partition
from .keys import Keys, PartitionKeys
from .looks import parse_calls
from .refusals import translate

PAGE_BYTES = 8 * MIB
_MAX_COUNT = 4_096
_INDEX_PAGE = 10_000
_PRODUCERS_PAGE = 1_000

_STATE_NUMBERS = ("log_end", "log_start", "local_log_start", "closed_bytes", "producer_count")
_GAPS = re.compile(rb"(\d{1,16})-(\d{1,16})")


class KeyFlaw(NamedTuple):
    """What cannot be read of a key."""

    where: str  # the key
    what: str
    field: str | None = None  # of ``:state``
    is_type: bool = False  # whether the key holds something else altogether


class HotLook(Struct, frozen=True):
    """All of a partition except its entries and time index, at one moment."""

    topic_partition: TopicPartition
    keys: PartitionKeys
    run_id: str  # of the server
    state: Mapping[str, bytes]
    segments: tuple[HotSegment, ...]  # those that can be read, the open one last
    gaps: tuple[OffsetRange, ...]  # likewise
    producers: int
    entries: int
    flaws: tuple[KeyFlaw, ...]  # all that cannot be read

    def number(self, name: str) -> int | None:
        """A field of ``:state`` that is a whole number; None if it is missing or something else."""
        numbers = self.numbers(name)
        return numbers[0] if len(numbers) == 1 else None

    def numbers(self, name: str) -> tuple[int, ...]:
        """A field of ``:state`` with several numbers; empty if it is missing or something else."""
        return _numbers(self.state.get(name, b""))

    @property
    def recovered(self) -> bool:
        """False: the server changed since the last append, see `RecoveryNeededError`."""
        return self.state.get("run_id", b"").decode("latin-1") == self.run_id


class StoredEntry(Struct, frozen=True):
    """One entry as it is stored."""

    id: str
    base_offset: int | None  # None: the id is none of lakelog's
    end_offset: int  # exclusive; 0 where the id is none of lakelog's
    size_bytes: int  # as the segment counts it: without the append time
    format: str  # arrow, fields, kafka, gap or unknown
    compression: str | None
    crc: str | None
    crc_holds: bool | None
    min_timestamp_ms: int | None  # over those that are not -1; -1: all are; None: not readable
    max_timestamp_ms: int | None  # likewise
    flaw: str | None  # why it is not what was written

    @property
    def records(self) -> int:
        """By its id; a gap entry has none."""
        if self.base_offset is None or self.format == "gap":
            return 0
        return self.end_offset - self.base_offset


class EntryPage(Struct, frozen=True):
    """The result of one round trip, or a part of it if it decodes to more than a page."""

    entries: tuple[StoredEntry, ...]
    records: pa.RecordBatch  # `RECORDS` of the sound ones, in order
    local_log_start: int  # read after the entries


class Inspection:
    """Looks into the keys of one keyspace."""

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys

    def look(self, topic_partition: TopicPartition, topic_id: UUID) -> HotLook:
        """One look at everything except the entries and the time index.

        Raises:
            UnknownTopicIdError: the topic was dropped.
            UnknownTopicOrPartitionError: the hot tier does not know the partition.
            HotTierAccessError: this user may not read one of the keys.
        """
        keys = self._keys.partition(topic_partition)
        run_id, replies = run_script(self._servers, "inspect", keys.all(), ())
        flaws = []
        for at, key in enumerate((keys.state, keys.segments, keys.producers, keys.stream)):
            if isinstance(replies[at], list) and replies[at][:1] == [b"ERR"]:
                said = replies[at][1].decode("utf-8", "replace")
                if "WRONGTYPE" not in said:  # it says nothing of what the key holds
                    raise translate(ResponseError(said), "the hot tier", keys.stream)
                why = f"cannot be read: {said}"
                flaws.append(KeyFlaw(key, why, is_type=True))
                replies[at] = [] if at < 2 else 0
        fields, closed, producers, entries = replies
        names = (name.decode("utf-8", "replace") for name in fields[::2])
        state = dict(zip(names, fields[1::2], strict=True))
        if state:
            check_topic_id(topic_partition, state.get("topic_id"), topic_id)
        elif not flaws:
            raise unknown_partition(topic_partition)
        gaps, segments = set(), []
        for name in ("gaps", "quarantined"):
            for part in filter(None, state.get(name, b"").split(b",")):
                found = _GAPS.fullmatch(part)
                if found:
                    gaps.add(OffsetRange(int(found[1]), int(found[2])))
                else:
                    flaws.append(KeyFlaw(keys.state, f"has among its {name} {part!r}", name))
        for text, score in zip(closed[::2], closed[1::2], strict=True):
            numbers = _numbers(text)
            if len(numbers) == 7 and float(score) == numbers[0]:
                segments.append(HotSegment(*numbers))
            else:
                said = f"{text.decode('latin-1')!r} under score {score.decode('latin-1')}"
                flaws.append(KeyFlaw(keys.segments, f"holds {said}, which is no segment"))
        counts = dict.fromkeys(_STATE_NUMBERS, 1) | {"segment": 6, "index": 3}
        flaws += [
            KeyFlaw(
                keys.state,
                f"should hold {count} whole numbers as {name}, not {state.get(name)!r}",
                name,
            )
            for name, count in counts.items()
            if state and len(_numbers(state.get(name, b""))) != count
        ]
        base, *rest = _numbers(state.get("segment", b"")) or (None,)
        log_end = _numbers(state.get("log_end", b""))
        if base is not None and len(rest) == 5 and log_end:
            segments.append(HotSegment(base, log_end[0], *rest))
        return HotLook(
            topic_partition,
            keys,
            run_id,
            state,
            tuple(segments),
            tuple(sorted(gaps)),
            producers,
            entries,
            tuple(flaws),
        )

    def pages(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID | None,
        start_offset: int = 0,
        *,
        max_bytes: int = PAGE_BYTES,
    ) -> Iterator[EntryPage]:
        """The entries from the one that holds ``start_offset`` on; the last page has none.

        Args:
            topic_id: None: whatever ``:state`` says, if it is there.
            max_bytes: about how much a page brings, once the size of entries is known.

        Raises:
            UnknownTopicIdError: the topic was dropped.
            ForeignEntryError: the key is no stream.
        """
        keys = self._keys.partition(topic_partition)
        after = str(start_offset) if start_offset else "-"
        count = 4
        while True:
            raw, state = self._exchange(
                keys.stream,
                ("XRANGE", keys.stream, after, "+", "COUNT", count),
                ("HMGET", keys.state, "topic_id", "local_log_start"),
            )
            if isinstance(raw, Exception):
                raise translate(raw, "the hot tier", keys.stream) from raw
            local_log_start = 0
            if not isinstance(state, Exception):
                if topic_id is not None:
                    check_topic_id(topic_partition, state[0], topic_id)
                local_log_start = _numbers(state[1] or b"0")[0] if _numbers(state[1] or b"0") else 0
            for entries in in_steps(raw, max_bytes):
                yield _page(entries, local_log_start)
            if not raw:
                yield _page([], local_log_start)
                return
            after = "(" + raw[-1][0].decode()
            size_bytes = max(1, sum(sum(map(len, fields)) for _, fields in raw))
            largest = max(sum(map(len, fields)) for _, fields in raw)
            count = max(1, min(_MAX_COUNT, 8 * count, max_bytes * len(raw) // size_bytes))
            count = max(1, min(count, 8 * max_bytes // max(1, largest)))

    def time_index(
        self, topic_partition: TopicPartition
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The time index from its beginning: offsets, and the largest timestamp up to each.

        Raises:
            ForeignEntryError: the key is no sorted set, or holds what is no offset.
        """
        keys = self._keys.partition(topic_partition)
        after = "-inf"
        while True:
            (reply,) = self._exchange(
                keys.stream,
                ("ZRANGEBYSCORE", keys.times, after, "+inf", "WITHSCORES", "LIMIT", 0, _INDEX_PAGE),
            )
            if isinstance(reply, Exception):
                raise translate(reply, "the hot tier", keys.times) from reply
            flat = _flat(reply)
            if not flat:
                return
            try:
                offsets = np.array([int(member) for member in flat[::2]], np.int64)
                scores = np.array([int(float(score)) for score in flat[1::2]], np.int64)
            except ValueError as error:
                raise ForeignEntryError(f"it holds what is no offset: {error}") from error
            yield offsets, scores
            after = f"({int(scores[-1])}"

    def producer_calls(
        self, topic_partition: TopicPartition, from_offset: int = 0
    ) -> list[ProducerCall]:
        """The known calls that wrote the offsets from there on, by offset.

        Each producer's last five calls, as long as it is not forgotten
        (``producer.id.expiration.ms``, or a recovery).
        """
        keys = self._keys.partition(topic_partition)
        calls: list[ProducerCall] = []
        cursor: Any = b"0"
        while True:
            (reply,) = self._exchange(
                keys.stream, ("HSCAN", keys.producers, cursor, "COUNT", _PRODUCERS_PAGE)
            )
            if isinstance(reply, Exception):
                raise translate(reply, "the hot tier", keys.producers) from reply
            cursor, found = reply
            fields = _flat(found)
            for producer, text in zip(fields[::2], fields[1::2], strict=True):
                calls += [
                    call
                    for call in parse_calls(producer, text)
                    if call.end_offset > from_offset and call.checksum != CUT
                ]
            if cursor in (b"0", 0):
                return sorted(calls, key=lambda call: call.base_offset)

    def _exchange(self, key: str, *commands: Sequence[Any]) -> list[Any]:
        return exchange(self._servers, key, [tuple(command) for command in commands])[1]


# -- entries -----------------------------------------------------------------------------------


def _page(raw: Sequence[tuple[bytes, list[bytes]]], local_log_start: int) -> EntryPage:
    ids: list[EntryId | LakelogError] = []
    for raw_id, _ in raw:
        try:
            ids.append(EntryId.parse(raw_id))
        except ForeignEntryError as error:
            ids.append(error)
    ours = [(i, fields) for i, (_, fields) in zip(ids, raw, strict=True) if isinstance(i, EntryId)]
    records, flaws = _decoded(ours)
    bounds = _bounds(records, [i for i, fields in ours if i not in flaws and fields[0] != b"__gap"])
    entries = []
    for (raw_id, fields), entry_id in zip(raw, ids, strict=True):
        said = describe(fields)
        if isinstance(entry_id, EntryId):
            base, end, flaw = entry_id.base_offset, entry_id.end_offset, flaws.get(entry_id)
            low, high = bounds.get(entry_id, (None, None))
        else:
            base, end, flaw, low, high = None, 0, entry_id.message, None, None
        entries.append(
            StoredEntry(
                raw_id.decode("latin-1"),
                base,
                end,
                said.size_bytes,
                said.format,
                said.compression,
                said.crc,
                said.crc_holds,
                low,
                high,
                flaw,
            )
        )
    return EntryPage(tuple(entries), records, local_log_start)


def _decoded(entries: list[RawEntry]) -> tuple[pa.RecordBatch, dict[EntryId, str]]:
    """The records of the sound entries, and what is wrong with the others."""
    try:
        return decode(entries), {}
    except CorruptRecordError:
        pass
    batches, flaws = [], {}
    for entry in entries:
        try:
            batches.append(decode([entry]))
        except CorruptRecordError as error:
            flaws[entry[0]] = error.message
    table = pa.Table.from_batches(batches, RECORDS).combine_chunks()
    return (table.to_batches() or [empty_records()])[0], flaws


def _bounds(records: pa.RecordBatch, ids: list[EntryId]) -> dict[EntryId, tuple[int, int]]:
    """The smallest and largest timestamp of each entry, of those that are not -1."""
    if not ids:
        return {}
    times_us = records.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
    times_ms = times_us // 1000
    counts = np.array([entry_id.record_count for entry_id in ids])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    highest = np.maximum.reduceat(times_ms, starts)
    none = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(np.where(times_ms == NO_TIMESTAMP_MS, none, times_ms), starts)
    lowest = np.where(lowest == none, NO_TIMESTAMP_MS, lowest)
    bounds = zip(lowest.tolist(), highest.tolist(), strict=True)
    return dict(zip(ids, bounds, strict=True))


def _numbers(text: bytes) -> tuple[int, ...]:
    parts = text.split(b" ")
    if not all(re.fullmatch(rb"-?\d{1,16}", part) for part in parts):
        return ()
    return tuple(map(int, parts))


def _flat(reply: Any) -> list[bytes]:
    """Pairs as one list, whether they came as a map (RESP3), as pairs, or flat."""
    if isinstance(reply, dict):
        return [part for pair in reply.items() for part in pair]
    if reply and isinstance(reply[0], (list, tuple)):
        return [part for pair in reply for part in pair]
    return list(reply)
