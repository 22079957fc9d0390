"""What each engine makes of value columns, as `lakelog/cold/README.md` says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from readers import READERS, Where

from lakelog import Lakelog

#: The page says that these pass over files that are older than a column where it is null.
PASS_OVER_OLDER_FILES = {"delta-rs Arrow", "pandas"}

Read = Callable[[Where], list[dict[str, object]]]


@pytest.fixture
def table(redis_url: str, tmp_path: Path) -> Path:
    """Offset 0 is in a file that has none of the columns; 1 has no `qty`, 2 and 3 have all."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        topic = lake.topics.create("orders", partitions=1)

        def archive(*values: str) -> None:
            with lake.producer() as producer:
                for value in values:
                    producer.send("orders", value)
            lake.archive("orders")

        archive("{}")
        columns = "qty int, `user.name` string, `user.id` int, user struct<name: string, id: int>"
        lake.topics.alter("orders", {"lakelog.value.columns": columns})
        archive(
            '{"user.name": "a", "user.id": 1, "user": {"name": "b", "id": 2}}',
            '{"qty": 7, "user.name": "c", "user.id": 2, "user": {"name": "d", "id": 1}}',
            '{"qty": 8, "user.name": "e", "user.id": 3, "user": {"name": "f", "id": 4}}',
        )
        return tmp_path / "cold" / "orders" / str(topic.topic_id)


@pytest.fixture(params=sorted(READERS))
def reader(request: pytest.FixtureRequest) -> str:
    if request.param == "Spark":
        request.getfixturevalue("spark")
    return request.param


@pytest.fixture
def read(reader: str, table: Path) -> Read:
    """Rows for which a condition holds, by offset."""
    return lambda where: sorted(
        READERS[reader](table, where).to_pylist(), key=lambda row: row["offset"]
    )


def offsets(rows: list[dict[str, object]]) -> list[object]:
    return [row["offset"] for row in rows]


def test_values_are_null_in_files_that_are_older_than_a_column(read: Read) -> None:
    assert [row["qty"] for row in read([("offset", ">=", 0)])] == [None, None, 7, 8]
    assert offsets(read([("qty", ">=", 8)])) == [3]


def test_whether_those_are_found_by_is_null_is_what_the_page_says(reader: str, read: Read) -> None:
    found = [1] if reader in PASS_OVER_OLDER_FILES else [0, 1]
    assert offsets(read([("qty", "is null", "")])) == found, "say so in lakelog/cold/README.md"


def test_a_name_with_a_dot_is_one_beside_a_struct(read: Read) -> None:
    rows = read([("offset", ">=", 0)])
    assert [row["user.name"] for row in rows] == [None, "a", "c", "e"]
    users = [row["user"] and row["user"]["name"] for row in rows]  # type: ignore[index]
    assert users == [None, "b", "d", "f"]
    assert offsets(read([("user.id", "=", 2)])) == [2]
    assert offsets(read([("user.id", ">=", 3)])) == [3]
