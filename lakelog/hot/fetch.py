"""Reading a topic-partition: entries by offset, decoded, with what they cover; and by timestamp.

The entry id is ``{last_offset}-{record_count}``, so ``XRANGE key 250 +`` begins at the entry that
holds offset 250. One step is one round trip: the range, then the state, in that order on one
connection. If the state still names the topic's id, the entries read before it are that topic's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..base import compute as pc
from ..codec import EntryId, decode, decoded_bytes, in_steps
from ..errors import (
    CorruptRecordError,
    ForeignEntryError,
    NewerVersionError,
    TrimmedError,
)
from ..values.config import KIB, MIB
from ..values.offsets import HotOffsets
from ..values.record import Fetched, OffsetAndTimestamp, empty_records
from ..values.topic_partition import TopicPartition
from .connection import Command, Servers, call_script, exchange
from .declared import Declared, RawEntry, check_topic_id, cover, hole, parse_gaps, skip_it
from .foreign import ILLEGIBLE, illegible
from .keys import Keys
from .looks import Looks
from .refusals import translate
from .waits import STATE_OF_READS, Waits

#: About how much a step brings, unless it is said.
READ_STEP_BYTES = 8 * MIB

_MAX_SKIPPED = 1_000  # entries remembered as already warned of

#: Entries asked for before their size is known, if that many are wanted.
_FIRST_COUNT = 4
_FIRST_STEP_BYTES = 16 * KIB
_MAX_COUNT = 16_384
#: How much a step may bring when small entries are followed by large ones; XRANGE takes no bytes.
MAX_STEP_BYTES = 64 * MIB

#: How many segments one script looks through for a timestamp: a few milliseconds.
SEGMENTS_AT_ONCE = 500

logger = logging.getLogger(__name__)


class EntriesStep(Struct, frozen=True):
    """The result of one round trip."""

    entries: list[RawEntry]
    local_log_start: int
    declared: Declared
    largest_entry_bytes: int  # of all that were ever appended
    recovered: bool  # the server cannot have lost anything since it was last written
    log_start: int


class Fetcher:
    """Reads one keyspace's streams."""

    def __init__(self, servers: Servers, keys: Keys, looks: Looks, waits: Waits) -> None:
        self._servers = servers
        self._keys = keys
        self._looks = looks
        self._waits = waits
        self._skipped: set[tuple[TopicPartition, EntryId | str]] = set()  # warned of

    def read(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None = None,
        *,
        max_bytes: int = READ_STEP_BYTES,
        lead_bytes: int | None = None,
        topic_id: UUID | None = None,
        before_large: Callable[[], None] = lambda: None,
    ) -> Iterator[Fetched]:
        """Reads from ``start_offset`` to the log end, or to ``end_offset`` if that comes first.

        Args:
            max_bytes: how many decoded bytes a step may bring, and about how many stored ones a
                round trip; at least one entry.
            lead_bytes: as `max_bytes`, of the steps of the first round trip: less for who wants
                little, as each is decoded when it is asked for. Default: the same.
            topic_id: refuse to read another creation of the topic.
            before_large: called before an entry is decoded that alone is more than `max_bytes`.

        Yields:
            Steps that follow each other; their records are `RECORDS`.

        Raises:
            TrimmedError: the next offset was trimmed, perhaps since the step before.
            CorruptRecordError: an entry is damaged, missing or not ours; names topic-partition and
                entry.
            UnknownTopicIdError: the topic was dropped.
        """
        # A round trip is sized by stored bytes, since only those are known before; its result is
        # decoded in steps that are bounded by decoded bytes. Who wants one entry asks for one.
        count = min(_FIRST_COUNT, 1 + max_bytes // _FIRST_STEP_BYTES)
        offset = start_offset
        while end_offset is None or offset < end_offset:
            step = self._entries(topic_partition, offset, end_offset, count, topic_id)
            if offset < step.local_log_start:
                raise trimmed(topic_partition, offset, step.local_log_start)
            if offset >= step.declared.log_end:
                return
            if not step.entries and step.declared.gap_at(offset) is None:
                # the state was read later, after a trim or an append
                step = self._entries(topic_partition, offset, end_offset, count, topic_id)
                if offset < step.local_log_start:
                    raise trimmed(topic_partition, offset, step.local_log_start)
                if not step.entries and step.declared.gap_at(offset) is None:
                    raise hole(topic_partition, offset, step.declared.log_end)
            # Without entries, the gap must still be reported.
            bound = max_bytes if lead_bytes is None else min(lead_bytes, max_bytes)
            lead_bytes = None
            for entries in in_steps(step.entries, bound) if step.entries else [[]]:
                if len(entries) == 1 and decoded_bytes(entries[0][1]) > max_bytes:
                    before_large()
                fetched, skipped = slice_entries(
                    topic_partition, entries, offset, end_offset, step.declared
                )
                self._warn_of(topic_partition, skipped)
                if fetched.next_offset >= step.declared.log_end and step.recovered:
                    fetched = replace(fetched, at_log_end=True)
                yield fetched
                offset = fetched.next_offset
            count = _next_count(step, count, max_bytes)

    def _entries(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None,
        count: int,
        topic_id: UUID | None,
    ) -> EntriesStep:
        """At most ``count`` raw entries from the one that holds ``start_offset``."""
        keys = self._keys.partition(topic_partition)
        came = self._waits.taken(topic_partition, start_offset, topic_id)  # with the wait for it
        if came is None:
            commands = self.commands(topic_partition, start_offset, count)
            came = exchange(self._servers, keys.stream, commands)
        return self.step(topic_partition, end_offset, *came, topic_id)

    def commands(
        self, topic_partition: TopicPartition, start_offset: int, count: int
    ) -> tuple[Command, Command]:
        """What asks for at most ``count`` entries from the one that holds ``start_offset``."""
        keys = self._keys.partition(topic_partition)
        return (
            ("XRANGE", keys.stream, start_offset, "+", "COUNT", count),
            ("HMGET", keys.state, *STATE_OF_READS),
        )

    def step(
        self,
        topic_partition: TopicPartition,
        end_offset: int | None,
        run_id: str,
        replies: Sequence[Any],
        topic_id: UUID | None,
    ) -> EntriesStep:
        """What a server replied to `commands`.

        Raises:
            LakelogError: as `read`.
        """
        keys = self._keys.partition(topic_partition)
        raw, state = replies
        for reply in (raw, state):
            if isinstance(reply, Exception):
                where = self._servers.for_key(keys.stream).name
                raise translate(reply, where, keys.stream) from reply
        check_topic_id(topic_partition, state[0], topic_id)
        try:
            local_log_start, largest_entry_bytes = int(state[1]), int(state[3] or 0)
            log_start = int(state[7] or 0)
            declared = Declared(int(state[2]), parse_gaps(state[5], state[6]))
        except ILLEGIBLE as error:
            raise illegible(state, f"state of {topic_partition}", error) from error
        entries, beyond = _parse(topic_partition, raw, end_offset, declared)
        self._warn_of(topic_partition, beyond)
        return EntriesStep(
            entries,
            local_log_start=local_log_start,
            declared=declared,
            largest_entry_bytes=largest_entry_bytes,
            recovered=state[4] == run_id.encode(),
            log_start=log_start,
        )

    def offset_for_timestamp(
        self, topic_partition: TopicPartition, timestamp_ms: int, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """The earliest hot offset whose timestamp is at or after the target, or None."""
        keys = self._keys.partition(topic_partition)
        after = ""
        while True:  # as often as the segments take
            wanted = "" if topic_id is None else str(topic_id)
            arguments = (timestamp_ms, wanted, after, SEGMENTS_AT_ONCE)
            answer = call_script(self._servers, "find_timestamp", keys.all(), arguments)
            if answer[0] != b"MORE":
                break
            after = answer[1].decode()
        if answer[0] == b"UNKNOWN_TOPIC_ID":
            check_topic_id(topic_partition, answer[1], topic_id)
        if answer[0] == b"NONE":
            return None
        try:
            steps = self.read(
                topic_partition, answer[1], max_bytes=MIB, lead_bytes=1, topic_id=topic_id
            )
            found = (_first_at_or_after(step.records, timestamp_ms) for step in steps)
            return next((one for one in found if one is not None), None)
        except TrimmedError:  # between the two looks; the log start only grows, so this ends
            return self.offset_for_timestamp(topic_partition, timestamp_ms, topic_id=topic_id)

    def max_timestamp(
        self, topic_partition: TopicPartition, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """The first of the hot records that carry the largest timestamp, None if there are none."""
        offsets = self._looks.offsets([topic_partition], topic_id=topic_id)[topic_partition]
        if offsets.local_log_start >= offsets.log_end:
            return None
        for top in self._largest_timestamps(topic_partition, offsets, topic_id):
            found = self.offset_for_timestamp(topic_partition, max(top, 0), topic_id=topic_id)
            if found is not None:
                return found
        try:
            # The largest was in a trimmed part of a segment, or no record has a timestamp.
            return _largest(self.read(topic_partition, offsets.local_log_start, topic_id=topic_id))
        except TrimmedError:  # as above
            return self.max_timestamp(topic_partition, topic_id=topic_id)

    def _largest_timestamps(
        self, topic_partition: TopicPartition, offsets: HotOffsets, topic_id: UUID | None
    ) -> Iterator[int]:
        """The largest timestamp of all, and if that one was trimmed, the largest there is."""
        yield offsets.max_timestamp_ms
        seen = self._looks.segments([topic_partition], topic_id=topic_id)[topic_partition]
        yield max(segment.max_timestamp_ms for segment in seen.segments)

    def _warn_of(self, topic_partition: TopicPartition, skipped: Sequence[EntryId | str]) -> None:
        for entry_id in skipped:
            if (topic_partition, entry_id) not in self._skipped:
                if len(self._skipped) < _MAX_SKIPPED:
                    self._skipped.add((topic_partition, entry_id))
                logger.warning(
                    "%s: entry %s is skipped: it lies in a declared gap or past the log end, where "
                    "half a transaction or another program left it",
                    topic_partition,
                    entry_id,
                )


def _first_at_or_after(records: pa.RecordBatch, timestamp_ms: int) -> OffsetAndTimestamp | None:
    """The first of some records whose timestamp is at or after the target."""
    timestamps = records.column("timestamp").cast("int64")
    row = pc.index(pc.greater_equal(timestamps, timestamp_ms * 1000), True).as_py()
    if row < 0:
        return None
    return OffsetAndTimestamp(
        records.column("offset")[row].as_py(), timestamps[row].as_py() // 1000
    )


def _largest(steps: Iterable[Fetched]) -> OffsetAndTimestamp | None:
    """The first record that carries the largest timestamp."""
    best: OffsetAndTimestamp | None = None
    for fetched in steps:
        records = fetched.records
        if not records.num_rows:
            continue
        timestamps = records.column("timestamp").cast("int64")
        top = pc.max(timestamps)
        if best is None or top.as_py() // 1000 > best.timestamp_ms:
            index = pc.index(timestamps, top).as_py()
            best = OffsetAndTimestamp(records.column("offset")[index].as_py(), top.as_py() // 1000)
    return best


def _next_count(step: EntriesStep, before: int, max_bytes: int) -> int:
    """How many entries the step after this one asks for.

    Args:
        before: how many this one asked for.
        max_bytes: what it is to bring, about.
    """
    size_bytes = sum(sum(map(len, fields)) for _, fields in step.entries)
    per_entry = max(1, size_bytes // max(1, len(step.entries)))
    at_worst = max(max_bytes, MAX_STEP_BYTES) // max(1, step.largest_entry_bytes)
    return max(1, min(_MAX_COUNT, max_bytes // per_entry, 8 * before, at_worst))


def slice_entries(
    topic_partition: TopicPartition,
    entries: Sequence[RawEntry],
    offset: int,
    end_offset: int | None,
    declared: Declared,
) -> tuple[Fetched, list[EntryId]]:
    """Decodes entries and cuts them to ``[offset, end_offset)``, checking that none is missing.

    Returns:
        What was read, and the entries that were skipped, see `Declared.disowns`.

    Raises:
        CorruptRecordError: an entry is damaged, not ours, or missing.
        NewerVersionError: a newer lakelog wrote one.
    """
    try:
        covered = cover(topic_partition, entries, offset, declared)
        records = decode(covered.entries)
    except NewerVersionError as error:
        message = f"{topic_partition}: {error.message}"
        raise error.changed(message=message, topic_partition=topic_partition) from error
    except CorruptRecordError as error:
        if error.topic_partition is not None or error.entry_id is None:
            raise
        advice = f", or {skip_it(topic_partition, error.entry_id)}"
        raise error.changed(
            message=f"{topic_partition}: {error.message}{advice}",
            topic_partition=topic_partition,
        ) from error
    next_offset = (
        covered.next_offset if end_offset is None else min(covered.next_offset, end_offset)
    )
    if records.num_rows:
        ids = covered.entries
        if ids[0][0].base_offset < offset or next_offset < ids[-1][0].end_offset:
            records = _cut(records, offset, next_offset)
    return Fetched(records, offset, next_offset, tuple(covered.gaps)), covered.skipped


def _cut(records: Any, offset: int, next_offset: int) -> Any:
    offsets = records.column(0).to_numpy(zero_copy_only=True)
    low, high = offsets.searchsorted([offset, next_offset])
    return records.slice(low, high - low) if high > low else empty_records()


def _parse(
    topic_partition: TopicPartition,
    raw: Sequence[Any],
    end_offset: int | None,
    declared: Declared,
) -> tuple[list[RawEntry], list[str]]:
    """The entries up to the end, or to the first with a foreign id.

    Returns:
        The entries, and the foreign ids past the log end.

    Raises:
        ForeignEntryError: the first entry has a foreign id.
    """
    entries: list[RawEntry] = []
    for raw_id, fields in raw:
        try:
            entry_id = EntryId.parse(raw_id)
        except CorruptRecordError as error:
            if int(raw_id.partition(b"-")[0]) >= declared.log_end:
                return entries, [raw_id.decode()]
            if entries:
                break  # the next step's
            advice = skip_it(topic_partition, raw_id.decode())
            raise ForeignEntryError(
                f"{topic_partition}: {error.message}, or {advice}",
                topic_partition=topic_partition,
                entry_id=error.entry_id,
            ) from error
        if end_offset is not None and entry_id.base_offset >= end_offset:
            break
        entries.append((entry_id, fields))
    return entries, []


def trimmed(topic_partition: TopicPartition, offset: int, local_log_start: int) -> TrimmedError:
    return TrimmedError(
        f"offset {offset} of {topic_partition} is no longer in the hot tier, which holds "
        f"{local_log_start} and on; read it from the cold tier",
        topic_partition=topic_partition,
        offset=offset,
        local_log_start=local_log_start,
    )
