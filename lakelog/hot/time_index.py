"""Searching the hot tier by timestamp."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa

from ..base import compute as pc
from ..values.record import Fetched, OffsetAndTimestamp

ReadFrom = Callable[[int], Iterator[Fetched]]

#: How many segments one script looks through: a few milliseconds.
AT_ONCE = 500


def arguments(timestamp_ms: int, topic_id: UUID | None, after: str = "") -> list[Any]:
    """ARGV of ``look.lua``.

    Args:
        after: the base of a segment, to go on behind it.
    """
    return [timestamp_ms, "" if topic_id is None else str(topic_id), after, AT_ONCE]


def first_at_or_after(
    read_from: ReadFrom, start: int, timestamp_ms: int
) -> OffsetAndTimestamp | None:
    """The earliest offset from ``start`` whose timestamp is at or after the target."""
    for fetched in read_from(start):
        found = first_in(fetched.records, timestamp_ms)
        if found is not None:
            return found
    return None


def first_in(records: pa.RecordBatch, timestamp_ms: int) -> OffsetAndTimestamp | None:
    """The first of some records whose timestamp is at or after the target."""
    timestamps = records.column("timestamp").cast("int64")
    row = pc.index(pc.greater_equal(timestamps, timestamp_ms * 1000), True).as_py()
    if row < 0:
        return None
    return OffsetAndTimestamp(
        records.column("offset")[row].as_py(), timestamps[row].as_py() // 1000
    )


def largest(read_from: ReadFrom, start: int) -> OffsetAndTimestamp | None:
    """The first record from ``start`` that carries the largest timestamp."""
    best: OffsetAndTimestamp | None = None
    for fetched in read_from(start):
        records = fetched.records
        if not records.num_rows:
            continue
        timestamps = records.column("timestamp").cast("int64")
        top = pc.max(timestamps)
        if best is None or top.as_py() // 1000 > best.timestamp_ms:
            index = pc.index(timestamps, top).as_py()
            best = OffsetAndTimestamp(records.column("offset")[index].as_py(), top.as_py() // 1000)
    return best
