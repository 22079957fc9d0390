"""Reading a topic-partition: entries by offset, decoded, with what they cover.

The entry id is ``{last_offset}-{record_count}``, so ``XRANGE key 250 +`` begins at the entry that
holds offset 250. One step is one round trip: the range, then the state, in that order on one
connection. If the state still names the topic's id, the entries read before it are that topic's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ..codec import EntryId, decode, gap_of, in_steps
from ..config import MIB
from ..errors import (
    CorruptRecordError,
    ForeignEntryError,
    TrimmedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..record import Fetched, OffsetRange, TopicPartition, empty_records
from .connection import Servers, moved, translate
from .keys import Keys

RawEntry = tuple[EntryId, list[bytes]]

_FIRST_COUNT = 4  # entries asked for before their size is known
_FIRST_STEP_BYTES = 16 * 1024
_MAX_COUNT = 16_384
#: How much a step may bring when small entries are followed by large ones; XRANGE takes no bytes.
_MAX_STEP_BYTES = 64 * MIB

#: The way on without what is damaged or lost. (To delete an entry is none: it leaves a hole.)
_GIVE_UP = (
    "or give it up, and all that lies below it, by raising the log start above it "
    "(UnifiedLog.raise_log_start)"
)


@dataclass(frozen=True, slots=True)
class EntriesStep:
    """What one round trip brought."""

    entries: list[RawEntry]
    local_log_start: int
    log_end: int
    largest_entry_bytes: int  # of all that were ever appended


class Fetcher:
    """Reads one keyspace's streams."""

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys

    def read(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None,
        *,
        max_bytes: int,
        topic_id: UUID | None,
    ) -> Iterator[Fetched]:
        """Steps from ``start_offset`` to ``end_offset`` or the log end, whichever comes first.

        A round trip is sized by stored bytes, since only they are known before; what it brought is
        decoded in steps that are bounded by decoded bytes. See `HotLog.read`.
        """
        count = min(_FIRST_COUNT, 1 + max_bytes // _FIRST_STEP_BYTES)  # one for who wants one
        offset = start_offset
        while end_offset is None or offset < end_offset:
            step = self.entries(topic_partition, offset, end_offset, count, topic_id)
            if offset < step.local_log_start:
                raise trimmed(topic_partition, offset, step.local_log_start)
            if not step.entries:
                if offset < step.log_end:  # the state was read later: trimmed or appended since
                    retry = self.entries(topic_partition, offset, end_offset, count, topic_id)
                    if offset < retry.local_log_start:
                        raise trimmed(topic_partition, offset, retry.local_log_start)
                    if not retry.entries:
                        raise _hole(topic_partition, offset, retry.log_end)
                    step = retry
                else:
                    return
            for entries in in_steps(step.entries, max_bytes):
                fetched = slice_entries(topic_partition, entries, offset, end_offset)
                yield fetched
                offset = fetched.next_offset
            size_bytes = sum(sum(map(len, fields)) for _, fields in step.entries)
            per_entry = max(1, size_bytes // len(step.entries))
            at_worst = max(max_bytes, _MAX_STEP_BYTES) // max(1, step.largest_entry_bytes)
            count = max(1, min(_MAX_COUNT, max_bytes // per_entry, 8 * count, at_worst))

    def entries(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None,
        count: int,
        topic_id: UUID | None,
    ) -> EntriesStep:
        """At most ``count`` raw entries from the one that holds ``start_offset``."""
        keys = self._keys.partition(topic_partition)
        commands = [
            ("XRANGE", keys.stream, start_offset, "+", "COUNT", count),
            ("HMGET", keys.state, "topic_id", "local_log_start", "log_end", "largest_entry"),
        ]
        for attempt in range(3):
            server = self._servers.for_key(keys.stream)
            with server.wire() as wire:
                raw, state = wire.exchange(commands)
            if moved(raw) and attempt < 2:
                self._servers.refresh()
                continue
            break
        for reply in (raw, state):
            if isinstance(reply, Exception):
                raise translate(reply, server.name, keys.stream) from reply
        check_topic_id(topic_partition, state[0], topic_id)
        return EntriesStep(
            _parse(topic_partition, raw, end_offset),
            local_log_start=int(state[1]),
            log_end=int(state[2]),
            largest_entry_bytes=int(state[3] or 0),
        )


def slice_entries(
    topic_partition: TopicPartition,
    entries: Sequence[RawEntry],
    offset: int,
    end_offset: int | None,
) -> Fetched:
    """Decodes entries and cuts them to ``[offset, end_offset)``, checking that none is missing.

    Raises:
        CorruptRecordError: an entry is damaged, not ours, or missing.
    """
    try:
        records = decode(entries)
    except CorruptRecordError as error:
        advice = "" if isinstance(error, ForeignEntryError) else f", {_GIVE_UP}"
        raise type(error)(
            f"{topic_partition}: {error.message}{advice}",
            **{**error.fields, "topic_partition": topic_partition},
        ) from error
    first_base = entries[0][0].base_offset
    if first_base > offset:
        raise _hole(topic_partition, offset, first_base)
    expected = first_base
    gaps = []
    for entry_id, fields in entries:
        if entry_id.base_offset > expected:
            raise _hole(topic_partition, expected, entry_id.base_offset)
        if entry_id.base_offset < expected:
            raise ForeignEntryError(
                f"{topic_partition}: entry {entry_id} speaks of offsets that the entry before it "
                "holds, so it is not lakelog's. Find out who writes to the stream, and delete it",
                topic_partition=topic_partition,
                entry_id=entry_id,
            )
        expected = entry_id.last_offset + 1
        gap = gap_of(entry_id, fields)
        if gap is not None:
            gaps.append(OffsetRange(*gap))
    next_offset = expected if end_offset is None else min(expected, end_offset)
    if first_base < offset or next_offset < expected:
        records = _cut(records, offset, next_offset)
    return Fetched(records, offset, next_offset, tuple(gaps))


def _cut(records: Any, offset: int, next_offset: int) -> Any:
    offsets = records.column(0).to_numpy(zero_copy_only=True)
    low, high = offsets.searchsorted([offset, next_offset])
    return records.slice(low, high - low) if high > low else empty_records()


def _parse(
    topic_partition: TopicPartition, raw: Sequence[Any], end_offset: int | None
) -> list[RawEntry]:
    entries = []
    for raw_id, fields in raw:
        try:
            entry_id = EntryId.parse(raw_id)
        except CorruptRecordError as error:
            raise ForeignEntryError(
                f"{topic_partition}: {error.message}",
                **{**error.fields, "topic_partition": topic_partition},
            ) from error
        if end_offset is not None and entry_id.base_offset >= end_offset:
            break
        entries.append((entry_id, fields))
    return entries


def check_topic_id(
    topic_partition: TopicPartition, found: bytes | None, wanted: UUID | None
) -> None:
    """Refuses to go on without a stream, or with that of another creation of the topic.

    Raises:
        UnknownTopicIdError: dropped, or dropped and created again.
        UnknownTopicOrPartitionError: there is none, and no creation was asked for.
    """
    if wanted is None:
        if not found:
            raise unknown_partition(topic_partition)
    elif not found or found.decode() != str(wanted):
        what = "deleted and created again" if found else "deleted"
        raise UnknownTopicIdError(
            f"topic {topic_partition.topic!r} was {what} since it was looked up; look it up again",
            topic=topic_partition.topic,
            topic_id=wanted,
        )


def unknown_partition(topic_partition: TopicPartition) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(
        f"{topic_partition} is not in the hot tier; create the topic, or run "
        "`lakelog topics apply` if its creation was cut short",
        topic=topic_partition.topic,
        partition=topic_partition.partition,
    )


def trimmed(topic_partition: TopicPartition, offset: int, local_log_start: int) -> TrimmedError:
    return TrimmedError(
        f"offset {offset} of {topic_partition} is no longer in the hot tier, which holds "
        f"{local_log_start} and on; read it from the cold tier",
        topic_partition=topic_partition,
        offset=offset,
        local_log_start=local_log_start,
    )


def _hole(topic_partition: TopicPartition, start: int, end: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"{topic_partition}: the hot tier holds nothing for offsets {start}..{end - 1}, and no gap "
        "was declared: entries were deleted or added by hand. Compare `lakelog status` with "
        f"XINFO STREAM and restore them, {_GIVE_UP}",
        topic_partition=topic_partition,
        offset=start,
        end_offset=end,
    )
