"""What rows that pass by offset are found to be like, whatever pieces they come in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.scan import Extent, OrderedRows, Spacing
from lakelog.values.topic_partition import OffsetRange

EXPLAINED = (OffsetRange(5, 9), OffsetRange(20, 22))


@given(st.lists(st.lists(st.integers(0, 30), min_size=1)))
def test_rows_in_pieces_are_as_rows_at_once(lengths: list[list[int]]) -> None:
    offsets = np.sort(np.array([one for piece in lengths for one in piece], np.int64))
    ordered, at = OrderedRows(EXPLAINED), 0
    for piece in lengths:
        part = offsets[at : at + len(piece)]
        ordered.add(part, 1000 * part)
        at += len(piece)
    assert ordered.spacing == Spacing.of(offsets, EXPLAINED)
    assert ordered.records == len(offsets)
    if len(offsets):
        low, high = int(offsets[0]), int(offsets[-1])
        assert ordered.extent == Extent(low, high, low, high)
