"""One step of each of very many partitions: a round trip for each server, and columns.

A partition that needs a closer look (its records were trimmed, are damaged or very large, it has
gaps) is left out: reading it by itself says what is the matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..codec import EntryId, decode, decode_together, decoded_bytes
from ..errors import LakelogError
from ..values.config import MIB
from ..values.record import FetchedTogether, empty_records
from ..values.topic_partition import TopicPartition
from .connection import Command, Servers, by_server
from .declared import RawEntry
from .foreign import ILLEGIBLE
from .keys import Keys

FIRST_COUNT = 4  # entries asked for before their size is known
_FIRST_STEP_BYTES = 16 * 1024
_MAX_COUNT = 16_384
#: How much a step may bring when small entries are followed by large ones; XRANGE takes no bytes.
MAX_STEP_BYTES = 64 * MIB

#: What of a partition's ``:state`` a read goes by.
STATE = ("topic_id", "local_log_start", "log_end", "largest_entry", "run_id", "gaps", "quarantined")


def first_count(max_bytes: int) -> int:
    """How many entries a step asks for before their size is known."""
    return min(FIRST_COUNT, 1 + max_bytes // _FIRST_STEP_BYTES)


def next_count(
    entries: Sequence[RawEntry],
    before: int,
    max_bytes: int,
    largest_entry_bytes: int,
    worst_bytes: int,
) -> int:
    """How many entries the step after some asks for.

    Args:
        before: how many those were to be.
        max_bytes: what it is to bring, about.
        largest_entry_bytes: of all that were ever appended.
        worst_bytes: what it may bring if all are that large.
    """
    size_bytes = sum(sum(map(len, fields)) for _, fields in entries)
    per_entry = max(1, size_bytes // max(1, len(entries)))
    at_worst = max(max_bytes, worst_bytes) // max(1, largest_entry_bytes)
    return max(1, min(_MAX_COUNT, max_bytes // per_entry, 8 * before, at_worst))


class _Step(Struct, frozen=True):
    """Sound entries of one partition, and what of them is wanted."""

    topic_partition: TopicPartition
    entries: list[RawEntry]
    start: int
    end: int
    next_count: int


def first_steps(
    servers: Servers,
    keys: Keys,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    max_bytes: int,
    topic_id: UUID | None,
    backward: bool = False,
    counts: Mapping[TopicPartition, int] | None = None,
) -> FetchedTogether:
    """The first step of each range; see `HotLog.first_steps`."""
    least = first_count(max_bytes)
    judged = partial(
        _judged,
        topic_id=None if topic_id is None else str(topic_id).encode(),
        max_bytes=max_bytes,
        worst_bytes=MAX_STEP_BYTES // max(1, len(ranges)),
        backward=backward,
    )
    steps: list[_Step] = []
    for server, asked in by_server(servers, ranges, keys.stream):
        commands = []
        for tp in asked:
            count = (counts or {}).get(tp, least)
            commands += _commands(keys, tp, ranges[tp], count, backward)
        with server.wire() as wire:
            replies = wire.exchange(commands)
        each = len(commands) // len(asked)
        for number, tp in enumerate(asked):
            count = (counts or {}).get(tp, least)
            own = replies[number * each : (number + 1) * each]
            if any(isinstance(reply, Exception) for reply in own):
                continue
            with suppress(LakelogError, *ILLEGIBLE):
                entries = own[0] if not backward else [*own[1][::-1], *own[0]]
                step = judged(tp, entries, own[-1], ranges[tp], count)
                if step is not None:
                    steps.append(step)
    return _decoded(steps)


def _commands(
    keys: Keys, topic_partition: TopicPartition, span: tuple[int, int], count: int, backward: bool
) -> list[Command]:
    """The entries from the first, or backward from the last one, then the state, in that order.

    If the state still names the topic's id, the entries are that topic's.
    """
    own = keys.partition(topic_partition)
    state: Command = ("HMGET", own.state, *STATE)
    start, end = span
    if not backward:
        return [("XRANGE", own.stream, start, "+", "COUNT", count), state]
    return [
        ("XRANGE", own.stream, end - 1, "+", "COUNT", 1),
        ("XREVRANGE", own.stream, f"{end - 1}-0", "-", "COUNT", max(1, count - 1)),
        state,
    ]


def _judged(
    topic_partition: TopicPartition,
    raw: Sequence[Any],
    state: Sequence[Any],
    span: tuple[int, int],
    count: int,
    *,
    topic_id: bytes | None,
    max_bytes: int,
    worst_bytes: int,
    backward: bool,
) -> _Step | None:
    """What of the entries is a step, if they are beyond doubt and not large."""
    found_id, local_log_start, log_end, largest, _, *gaps = state
    if not found_id or (topic_id is not None and found_id != topic_id) or any(gaps):
        return None
    start, end = span
    first, last = int(local_log_start), int(log_end)
    if not first <= start < last or (backward and end > last):
        return None
    entries: list[RawEntry] = []
    for raw_id, fields in raw:
        entry_id = EntryId.parse(raw_id)
        if entry_id.base_offset >= end:
            break
        if entries and entries[-1][0].end_offset != entry_id.base_offset:
            return None
        entries.append((entry_id, fields))
    if not entries or entries[-1][0].end_offset > last:
        return None
    if (entries[-1][0].end_offset < end) if backward else (entries[0][0].base_offset > start):
        return None
    following = next_count(entries, count, max_bytes, int(largest or 0), worst_bytes)
    entries = _within(entries, max_bytes, backward)
    if not entries:
        return None
    if backward:
        start = max(start, entries[0][0].base_offset)
    else:
        end = min(end, entries[-1][0].end_offset)
    return _Step(topic_partition, entries, start, end, following)


def _within(entries: list[RawEntry], max_bytes: int, backward: bool) -> list[RawEntry]:
    """As many as are decoded to so many bytes, from the first, or backward from the last one on."""
    size_bytes = 0
    for number, (_, fields) in enumerate(reversed(entries) if backward else entries):
        size_bytes += decoded_bytes(fields)
        if size_bytes > max_bytes:
            return entries[len(entries) - number :] if backward else entries[:number]
    return entries


def _decoded(steps: list[_Step]) -> FetchedTogether:
    """All of them in columns; without those that hold what is not sound."""
    records = decode_together([entry for step in steps for entry in step.entries])
    if records is None:
        parts, sound = [empty_records()], []
        for step in steps:
            with suppress(LakelogError):
                parts.append(decode(step.entries))
                sound.append(step)
        steps = sound
        records = pa.Table.from_batches(parts).combine_chunks().to_batches()
        records = records[0] if records else empty_records()
    counts = np.array(
        [sum(entry_id.record_count for entry_id, _ in step.entries) for step in steps], np.int64
    )
    starts = np.array([step.start for step in steps], np.int64)
    ends = np.array([step.end for step in steps], np.int64)
    if len(steps):
        offsets = records.column("offset").to_numpy()
        kept = (offsets >= np.repeat(starts, counts)) & (offsets < np.repeat(ends, counts))
        if not kept.all():
            records = records.filter(pa.array(kept))
            counts = np.add.reduceat(kept, np.cumsum(counts) - counts, dtype=np.int64)
    return FetchedTogether(
        [step.topic_partition for step in steps],
        records,
        np.cumsum(counts),
        starts,
        ends,
        [step.next_count for step in steps],
    )
