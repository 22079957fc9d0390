"""Slices of a table by name are scanned together, as if each was scanned by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from lakelog.cold.by_name.either_view import EitherView
from lakelog.cold.by_name.runs import Run
from lakelog.cold.scan import Extent, FileScan, ScanTask
from lakelog.cold.segment import SegmentFile
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import MissingFileError
from lakelog.values.topic_partition import OffsetRange


class Rows(EitherView):
    """Offsets of segments, some of which lie in a file that is gone."""

    def __init__(self, offsets: dict[int, list[int]], gone: Sequence[int] = ()) -> None:
        self.offsets, self.gone = offsets, gone
        self.looks: list[OffsetRange] = []

    def _either(self, look: Any) -> Any:
        return look(self)

    def rows(self, version: int, run: Run, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.looks.append(OffsetRange(run.start, run.end))
        there = [one for one in self.offsets[run.first_segment] if run.start <= one < run.end]
        for at in range(0, len(there), 3):
            if set(there[at : at + 3]) & set(self.gone):
                raise MissingFileError("it is gone", path="it")
            offsets = pa.array(there[at : at + 3], pa.int64())
            times = pa.array(there[at : at + 3], pa.timestamp("ms", "UTC")).cast(
                pa.timestamp("us", "UTC")
            )
            yield pa.record_batch([offsets, times], ["offset", "timestamp"])


def tasks(*slices: tuple[int, int, int], explained: Sequence[OffsetRange] = ()) -> list[ScanTask]:
    """Of (segment, start, end)."""
    return [
        ScanTask(
            SegmentFile(0, segment, f"{segment}/{start}", 0, end - start, start, end, 0, 0),
            tuple(explained),
        )
        for segment, start, end in slices
    ]


def scanned(rows: Rows, asked: Sequence[ScanTask]) -> list[FileScan]:
    return list(rows.scan(ColdSnapshot(1), asked))


def test_slices_that_follow_each_other_are_read_at_once() -> None:
    rows = Rows({0: [0, 1, 4, 5, 5, 9, 12, 19], 20: [20, 21]})
    asked = tasks((0, 10, 20), (0, 0, 5), (0, 5, 10), (20, 20, 22), explained=[OffsetRange(13, 19)])
    found = scanned(rows, asked)
    assert rows.looks == [(0, 20), (20, 22)]
    one_by_one = [one for task in asked for one in scanned(rows, [task])]
    assert found == sorted(one_by_one, key=lambda scan: scan.file.start_offset)
    assert [one.records for one in found] == [3, 3, 2, 2]
    assert found[0].spacing.holes.ranges == (OffsetRange(2, 4),)
    assert found[1].spacing.doubled.ranges == (OffsetRange(5, 6),)
    assert (found[2].found, found[2].spacing.holes.ranges) == (Extent(12, 19, 12, 19), ())


def test_what_lies_between_two_slices_is_neithers() -> None:
    rows = Rows({0: [0, 7, 10]})
    assert [one.records for one in scanned(rows, tasks((0, 0, 5), (0, 10, 15)))] == [1, 1]


@pytest.mark.parametrize("gone", [[], [3], [0, 6]])
def test_which_slices_cannot_be_read_is_found_in_few_looks(gone: list[int]) -> None:
    rows = Rows({0: list(range(8))}, gone)
    found = scanned(rows, tasks(*((0, number, number + 1) for number in range(8))))
    assert [one.file.start_offset for one in found] == list(range(8))
    assert [one.file.start_offset for one in found if one.flaw is not None] == gone
    assert len(rows.looks) <= 1 + 6 * len(gone)
