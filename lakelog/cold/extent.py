"""Which offsets and timestamps some rows span. A value."""

from __future__ import annotations

import numpy as np
from msgspec import Struct


class Extent(Struct, frozen=True):
    """What some rows span; all None if there are no rows, or it is not known."""

    first_offset: int | None = None  # the smallest
    last_offset: int | None = None  # the largest, inclusive
    min_timestamp_ms: int | None = None  # -1 counts, as statistics have it
    max_timestamp_ms: int | None = None

    @classmethod
    def of(cls, offsets: np.ndarray, times_us: np.ndarray) -> Extent:
        """Of rows in any order; at least one."""
        return cls(
            int(offsets.min()),
            int(offsets.max()),
            int(times_us.min()) // 1000,
            int(times_us.max()) // 1000,
        )

    def __or__(self, other: Extent) -> Extent:
        lows = (
            (self.first_offset, other.first_offset),
            (
                self.min_timestamp_ms,
                other.min_timestamp_ms,
            ),
        )
        highs = (
            (self.last_offset, other.last_offset),
            (
                self.max_timestamp_ms,
                other.max_timestamp_ms,
            ),
        )
        first, low_ms = (min((v for v in pair if v is not None), default=None) for pair in lows)
        last, high_ms = (max((v for v in pair if v is not None), default=None) for pair in highs)
        return Extent(first, last, low_ms, high_ms)
