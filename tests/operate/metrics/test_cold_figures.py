"""Sizes and files of partitions, against the same counted file by file."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.segment import COLUMNS, SegmentIndex
from lakelog.operate.metrics.cold_looks import ColdFigures, figures_of

FILES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=12)


def index_of(files: list[tuple[int, int, int]]) -> SegmentIndex:
    rows = [
        {
            "partition": partition,
            "segment": 100 * segment,
            "path": f"f{number}",
            "size_bytes": size,
            "records": 1,
            "start_offset": 100 * segment + number,
            "end_offset": 100 * segment + number + 1,
            "min_timestamp_ms": 0,
            "max_timestamp_ms": 0,
            "modified_ms": 0,
            "first": 100 * segment + number,
            "last": 100 * segment + number,
            "ours": True,
        }
        for number, (partition, segment, size) in enumerate(files)
    ]
    return SegmentIndex(pa.Table.from_pylist(rows, COLUMNS))


@given(FILES)
def test_figures_are_those_of_the_files_one_by_one(files: list[tuple[int, int, int]]) -> None:
    expected = {}
    for partition in {one[0] for one in files}:
        own = [one for one in files if one[0] == partition]
        segments = [segment for _, segment, _ in own]
        expected[partition] = ColdFigures(
            sum(size for *_, size in own),
            len(set(segments)),
            len(own),
            max(map(segments.count, segments)),
        )
    assert figures_of(index_of(files)) == expected
