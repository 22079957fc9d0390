"""Which left-over files may go: those that no commit can name any more."""

from __future__ import annotations

import pyarrow as pa

from lakelog.cold.by_path.orphans import is_settled, may_be_orphan
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.segment import COLUMNS, SegmentIndex, file_name
from lakelog.cold.table import ColdSnapshot

SNAPSHOT = ColdSnapshot(1, SegmentIndex(pa.Table.from_pylist([], COLUMNS)), {ArchivedEnd(0): 10})


def test_an_archive_file_is_left_over_once_its_start_is_archived() -> None:
    for start, settled in [(0, True), (9, True), (10, False), (11, False)]:
        name = file_name("archive", start, 20, "0" * 32)
        path = f"partition=0/segment=0/{name}"
        assert may_be_orphan(path, SNAPSHOT) == is_settled(path, SNAPSHOT) == settled


def test_files_of_others_are_never_touched() -> None:
    clean = file_name("clean", 0, 10, "0" * 32)
    for path in ["part-00000.parquet", "partition=0/segment=0/part-1.parquet", clean, "notes.txt"]:
        assert not may_be_orphan(path, SNAPSHOT)
        assert not is_settled(path, SNAPSHOT)
