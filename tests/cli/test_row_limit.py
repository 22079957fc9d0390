"""``--max`` bounds what is read, the same for every command."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelog.cli.records import RowLimit
from lakelog.errors import InvalidArgumentError


class Tables:
    """Tables of three rows, and how many were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __iter__(self) -> Iterator[pa.Table]:
        for _ in range(4):
            self.asked += 1
            yield pa.table({"n": [1, 2, 3]})


@pytest.mark.parametrize(
    ("most", "rows", "asked"),
    [(None, [3, 3, 3, 3], 4), (0, [], 0), (2, [2], 1), (3, [3], 1), (4, [3, 1], 2)],
)
def test_no_more_is_read_than_is_wanted(most: int | None, rows: list[int], asked: int) -> None:
    tables = Tables()
    assert [table.num_rows for table in RowLimit(most).limited(tables)] == rows
    assert tables.asked == asked


def test_it_is_that_of_all_tables_together() -> None:
    limit, first, second = RowLimit(5), Tables(), Tables()
    assert [table.num_rows for table in limit.limited(first)] == [3, 2]
    assert list(limit.limited(second)) == []
    assert second.asked == 0


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="--max -1 is negative"):
        RowLimit(-1)
