"""How the offsets of rows follow each other, seen as the rows pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from ..values.offset_ranges import Ranges, doubled_in, holes_in
from ..values.topic_partition import OffsetRange
from .extent import Extent


class Spacing(Struct, frozen=True):
    """How the offsets of some rows follow each other."""

    holes: Ranges = field(default_factory=Ranges)  # between them, unexplained
    doubled: Ranges = field(default_factory=Ranges)  # those that are there more than once

    @classmethod
    def of(cls, offsets: np.ndarray, explained: Sequence[OffsetRange]) -> Spacing:
        """Of offsets in any order."""
        offsets = np.sort(offsets)
        return cls(Ranges.of(holes_in(offsets, explained)), Ranges.of(doubled_in(offsets)))


class OrderedRows:
    """Takes rows that come by offset, some at a time, and keeps their measures alone.

    Args:
        explained: sorted, disjoint ranges whose missing offsets are no holes.
    """

    def __init__(self, explained: Sequence[OffsetRange] = ()) -> None:
        self.records = 0
        self.extent = Extent()
        self.spacing = Spacing()
        self._explained = explained
        self._last: int | None = None
        self._last_doubled: int | None = None

    def is_continued_by(self, offsets: np.ndarray) -> bool:
        """Whether these rows go on where the others ended, strictly ascending."""
        follows = self._last is None or not len(offsets) or self._last < offsets[0]
        return bool(follows and np.all(offsets[1:] > offsets[:-1]))

    def add(self, offsets: np.ndarray, times_us: np.ndarray) -> None:
        """Take the next rows; at least one."""
        run = offsets if self._last is None else np.concatenate([[self._last], offsets])
        doubled = doubled_in(run)
        if doubled and doubled[0].start == self._last_doubled:  # counted with the rows before
            doubled[0] = OffsetRange(doubled[0].start + 1, doubled[0].end)
        if doubled:
            self._last_doubled = doubled[-1].end - 1
        self.spacing = Spacing(
            self.spacing.holes.plus(holes_in(run, self._explained)),
            self.spacing.doubled.plus(one for one in doubled if one.start < one.end),
        )
        self.records += len(offsets)
        self.extent |= Extent.of(offsets, times_us)
        self._last = int(run[-1])
