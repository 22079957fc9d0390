"""What rows that pass by offset are found to be like, whatever pieces they come in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.by_name.slice_scan import ScannedRows, apart
from lakelog.cold.scan import Extent, FileScan, OrderedRows, ScanTask, Spacing
from lakelog.cold.segment import SegmentFile
from lakelog.errors import MissingFileError
from lakelog.values.topic_partition import OffsetRange

EXPLAINED = (OffsetRange(5, 9), OffsetRange(20, 22))


def slice_of(segment: int, start: int, end: int) -> SegmentFile:
    return SegmentFile(0, segment, f"{segment}/{start}", 0, end - start, start, end, 0, 0)


def rows(*places: tuple[int, int | None, int | None]) -> pa.RecordBatch:
    """Of (segment, offset, milliseconds)."""
    segments, offsets, times = zip(*places, strict=True)
    times_us = [None if one is None else 1000 * one for one in times]
    arrays = [pa.array(one, pa.int64()) for one in (segments, offsets, times_us)]
    return pa.record_batch(arrays, ["segment", "offset", "timestamp"])


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


def test_each_slice_has_the_rows_up_to_the_next_one() -> None:
    tasks = {0: [ScanTask(slice_of(0, 10, 20)), ScanTask(slice_of(0, 0, 10))]}
    scanned = ScannedRows(0, tasks)
    batches = [rows((0, 0, 5), (0, 3, 4), (0, 9, 6)), rows((0, 10, 7), (0, 25, 9), (8, 8, 1))]
    (first, second), (unknown,) = scanned.scans(batches)
    assert (first.file.path, first.records, first.found) == ("0/0", 3, Extent(0, 9, 4, 6))
    assert first.spacing.holes.ranges == (OffsetRange(1, 3), OffsetRange(4, 9))
    assert (second.file.path, second.found) == ("0/10", Extent(10, 25, 7, 9))
    assert (unknown.file.path, unknown.records) == ("partition=0/segment=8", 1)


def test_rows_that_lack_an_offset_or_a_timestamp_are_told() -> None:
    tasks = {0: [ScanTask(slice_of(0, 0, 10)), ScanTask(slice_of(0, 10, 20))]}
    batches = [rows((0, None, 1), (0, None, 1), (0, 1, 1)), rows((0, 11, None), (0, 12, None))]
    ((first, second),) = ScannedRows(0, tasks).scans(batches)
    assert first.flaw is not None
    assert first.flaw.message == "0/0 holds rows with no offset (2 of them)"
    assert second.flaw is not None
    assert second.flaw.message == "0/10 holds rows with no timestamp (offsets 11..12)"


@pytest.mark.parametrize("damaged", [set(), {3}, {0, 6}])
def test_what_stands_in_the_way_of_a_scan_is_found_in_few_looks(damaged: set[int]) -> None:
    looks = []

    def scan(some: Sequence[ScanTask]) -> list[FileScan]:
        looks.append(len(some))
        if any(one.file.start_offset in damaged for one in some):
            raise MissingFileError("it is gone", path="it")
        return [FileScan(one.file, records=1) for one in some]

    scans = list(apart(scan, [ScanTask(slice_of(0, number, number + 1)) for number in range(8)]))
    assert [one.file.start_offset for one in scans] == list(range(8))
    assert {one.file.start_offset for one in scans if one.flaw is not None} == damaged
    assert len(looks) <= 1 + 6 * len(damaged)
