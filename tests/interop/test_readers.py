"""Every engine sees the same rows, and reads no more files than it must."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from archived_topic import ArchivedTopic, Row
from readers import READERS, Where, rows

ALL: Where = [("partition", ">=", 0)]


@pytest.fixture(params=sorted(READERS))
def read(request: pytest.FixtureRequest):
    if request.param == "Spark":
        request.getfixturevalue("spark")
    return lambda path, where: rows(READERS[request.param](path, where))


def test_all_rows_come_back_byte_for_byte(archived: ArchivedTopic, read) -> None:
    assert read(archived.path, ALL) == archived.rows


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ([("partition", "=", 1)], lambda row: row.partition == 1),
        ([("partition", "=", 0), ("segment", "=", 64)], lambda row: row[:2] == (0, 64)),
        ([("partition", "=", 0), ("offset", ">=", 120)], lambda row: row.offset >= 120),
    ],
    ids=["a partition", "a segment", "offsets"],
)
def test_only_the_files_that_can_hold_the_rows_are_opened(
    archived: ArchivedTopic, tmp_path: Path, read, where, wanted
) -> None:
    """The others are not even there."""
    expected = [row for row in archived.rows if wanted(row)]
    path = tmp_path / "table"
    shutil.copytree(archived.path, path)
    for file in archived.table.snapshot().files:
        if not any(holds(file, row) for row in expected):
            (path / file.path).unlink()
    assert read(path, where) == expected


def holds(file, row: Row) -> bool:
    within = file.start_offset <= row.offset < file.end_offset
    return (file.partition, file.segment) == (row.partition, row.segment) and within
