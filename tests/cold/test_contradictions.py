"""What is seen of all partitions at once is what a look at each of them says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold import contradictions
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart, Register
from lakelog.cold.segment import COLUMNS, SegmentIndex
from lakelog.errors import ContradictionError
from lakelog.values.topic_partition import TopicPartition

#: A file's segment, kind, start, length, gap before its first record, records it lacks.
FILES = st.lists(
    st.tuples(
        st.booleans(),  # whether a segment begins
        st.sampled_from(["archive", "archive", "archive", "clean", "quarantine", "foreign"]),
        st.integers(1, 4),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from([0, 0, 0, 0, 1, -1]),
        st.sampled_from([0, 0, 0, 0, 1, -1]),  # where it begins, from the end of the one before
    ),
    max_size=4,
)
PARTITION = st.tuples(
    FILES,
    st.sampled_from([0, 0, 0, 1, -1]),  # archived end, from the files' end
    st.sampled_from([0, 0, 1, 3, 99]),  # log start
    st.sampled_from([0, 0, 0, 5]),  # cleaned end
)


def index(partitions: list[tuple[list[tuple], int, int, int]]) -> SegmentIndex:
    rows = []
    for number, (files, *_) in enumerate(partitions):
        at = segment = 0
        for name, (begins, kind, length, before, lacks, away) in enumerate(files):
            start = max(0, at + away)
            segment = start if begins else segment
            end = start + length
            first = min(start + before, end - 1)
            is_empty = kind == "quarantine"
            records = 0 if is_empty else max(0, end - first - lacks)
            last = -1 if is_empty else end - 1
            path = f"partition={number}/segment={segment}/{kind}-{name}.parquet"
            if kind != "foreign":
                path = path.replace(
                    f"{kind}-{name}", f"{kind}-{start:020}-{end:020}-{name:016x}{name:016x}"
                )
            rows.append(
                (
                    *(number, segment, path, 9, records, start, end, 1, 2, 3, first, last),
                    kind != "foreign",
                )
            )
            at = end
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    table = pa.table(columns, COLUMNS.names).cast(COLUMNS) if rows else COLUMNS.empty_table()
    return SegmentIndex(table)


def registers(
    files: SegmentIndex, partitions: list[tuple[list[tuple], int, int, int]]
) -> Mapping[Register, int]:
    found: dict[Register, int] = {}
    for number, (_, away, log_start, cleaned_end) in enumerate(partitions):
        ends = files.rows_of_partition(number)["end_offset"].to_pylist()
        found[ArchivedEnd(number)] = max(0, max(ends, default=0) + away)
        found[LogStart(number)] = log_start
        found[CleanedEnd(number)] = cleaned_end
    return found


@given(st.lists(PARTITION, max_size=3))
def test_all_at_once_is_judged_as_one_by_one(partitions):
    files = index(partitions)
    known = registers(files, partitions)

    def said(check: Callable[[], None]) -> str | None:
        try:
            check()
        except ContradictionError as error:
            return str(error)
        return None

    one_by_one = [
        said(partial(contradictions.check_partition, partition, files, known))
        for partition in (TopicPartition("orders", number) for number in range(len(partitions)))
    ]
    first = next((error for error in one_by_one if error), None)
    assert said(lambda: contradictions.check("orders", files, known)) == first


def test_a_partition_without_files_is_judged_too():
    files = SegmentIndex()
    contradictions.check("orders", files, {ArchivedEnd(3): 5, LogStart(3): 5})
    with pytest.raises(ContradictionError, match="orders-3"):
        contradictions.check("orders", files, {ArchivedEnd(3): 5, LogStart(3): 2})
