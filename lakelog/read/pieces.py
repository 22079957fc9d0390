"""What a range of a partition consists of, and from when to when its records are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from ..cold.segment import UNKNOWN_TIMESTAMP_MS, SegmentIndex
from ..offsets import HotOffsets
from .stretches import tiers_between
from .tiers import Look

_NO_BOUND_MS = -1  # as of records without a timestamp: nothing is later than it


@dataclass(frozen=True, slots=True)
class Piece:
    """Offsets of one partition, and the least and the largest timestamp that a record there has."""

    start: int
    end: int  # exclusive
    records: int  # at most
    min_ms: int  # -1: some may have none, or it is not known
    max_ms: int  # -1: none has one; `UNKNOWN_TIMESTAMP_MS`: it is not known


def pieces(look: Look, partition: int, start: int, end: int) -> list[Piece]:
    """What the log holds of [start, end), by offset; none where it holds nothing."""
    found: list[Piece] = []
    hot = look.hot[partition]
    for tier in tiers_between(look.offsets[partition], hot, start, end):
        if tier.hot:
            found += _hot(hot, tier.start, tier.end)
        else:
            found += _cold(look.cold.files, partition, tier.start, tier.end)
    return found


def record_count(found: Iterable[Piece]) -> int:
    """How many records they hold at most."""
    return sum(piece.records for piece in found)


def _hot(hot: HotOffsets, low: int, high: int) -> Iterator[Piece]:
    at = low
    for segment in hot.segments:
        start, end = max(at, segment.base_offset), min(high, segment.end_offset)
        if start < end:
            if at < start:  # no segment says when it was
                yield Piece(at, start, start - at, _NO_BOUND_MS, UNKNOWN_TIMESTAMP_MS)
            yield Piece(start, end, end - start, _NO_BOUND_MS, segment.max_timestamp_ms)
            at = end
    if at < high:
        yield Piece(at, high, high - at, _NO_BOUND_MS, UNKNOWN_TIMESTAMP_MS)


def _cold(files: SegmentIndex, partition: int, low: int, high: int) -> list[Piece]:
    names = ["first", "last", "records", "min_timestamp_ms", "max_timestamp_ms"]
    columns = files.rows_between(partition, low, high).select(names)
    columns = columns.filter(pc.not_equal(columns["records"], 0))
    found: list[Piece] = []
    for row in columns.to_pylist():
        start, end = max(low, row["first"]), min(row["last"] + 1, high)
        if start >= end:
            continue
        records = row["records"] if row["records"] > 0 else end - start  # -1: not counted
        min_ms, max_ms = row["min_timestamp_ms"], row["max_timestamp_ms"]
        if max_ms == UNKNOWN_TIMESTAMP_MS:
            min_ms = _NO_BOUND_MS
        if found and start < found[-1].end:  # a foreign OPTIMIZE leaves files that overlap
            before = found.pop()
            start, end = before.start, max(before.end, end)
            records += before.records
            min_ms, max_ms = min(min_ms, before.min_ms), max(max_ms, before.max_ms)
        found.append(Piece(start, end, min(records, end - start), min_ms, max_ms))
    return found
