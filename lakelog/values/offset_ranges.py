"""Ranges of offsets, shown briefly or merged, and holes and repeats among offsets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from .topic_partition import OffsetRange

#: How many ranges of a kind are listed for one file; the others are only counted.
MAX_RANGES = 100


class Ranges(Struct, frozen=True):
    """Offset ranges (of very many, only the first) and the number of offsets in all."""

    ranges: tuple[OffsetRange, ...] = ()
    offsets: int = 0

    @classmethod
    def of(cls, ranges: Iterable[OffsetRange]) -> Ranges:
        return cls().plus(ranges)

    def plus(self, ranges: Iterable[OffsetRange]) -> Ranges:
        """These ranges and the given ones."""
        kept, offsets = list(self.ranges), self.offsets
        for one in ranges:
            offsets += one.end - one.start
            if kept and kept[-1].end == one.start:
                kept[-1] = OffsetRange(kept[-1].start, one.end)
            elif len(kept) < MAX_RANGES:
                kept.append(one)
        return Ranges(tuple(kept), offsets)

    def __bool__(self) -> bool:
        return self.offsets > 0

    def __str__(self) -> str:
        shown = ", ".join(
            str(low) if low + 1 == end else f"{low}..{end - 1}" for low, end in self.ranges[:20]
        )
        left = self.offsets - sum(end - low for low, end in self.ranges[:20])
        return f"{shown} and {left:,} more" if left else shown


def holes_in(offsets: np.ndarray, explained: Sequence[OffsetRange]) -> list[OffsetRange]:
    """The holes between ascending offsets (which may repeat) that no range explains."""
    steps = np.flatnonzero(np.diff(offsets) > 1)
    starts, ends = offsets[steps] + 1, offsets[steps + 1]
    if len(explained) and len(starts):
        # Most holes lie within one explained range (below cleaned_end): drop those at once.
        lows = np.array([low for low, _ in explained], np.int64)
        highs = np.array([high for _, high in explained], np.int64)
        at = np.searchsorted(lows, starts, side="right") - 1
        open_ = (at < 0) | (ends > highs[np.maximum(at, 0)])
        starts, ends = starts[open_], ends[open_]
    ranges = zip(starts.tolist(), ends.tolist(), strict=True)
    return [hole for low, end in ranges for hole in unexplained(low, end, explained)]


def unexplained(start: int, end: int, explained: Sequence[OffsetRange]) -> Iterator[OffsetRange]:
    """The parts of [start, end) outside the ranges, which are sorted and disjoint."""
    for low, high in explained:
        if high <= start:
            continue
        if low >= end:
            break
        if low > start:
            yield OffsetRange(start, low)
        start = high
    if start < end:
        yield OffsetRange(start, end)


def doubled_in(offsets: np.ndarray) -> list[OffsetRange]:
    """The offsets that occur more than once among sorted ones, as ranges."""
    repeated = np.unique(offsets[1:][offsets[1:] == offsets[:-1]])
    if not len(repeated):
        return []
    cuts = np.flatnonzero(np.diff(repeated) > 1) + 1
    return [OffsetRange(int(run[0]), int(run[-1]) + 1) for run in np.split(repeated, cuts)]


def merged(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The same offsets as sorted, disjoint ranges."""
    joined: list[OffsetRange] = []
    for one in sorted(one for one in ranges if one.start < one.end):
        if joined and one.start <= joined[-1].end:
            joined[-1] = OffsetRange(joined[-1].start, max(joined[-1].end, one.end))
        else:
            joined.append(one)
    return tuple(joined)
