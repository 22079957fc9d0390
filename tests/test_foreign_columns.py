"""Another engine's ALTER TABLE ADD COLUMN and the topic's value columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field

from lakelog import Lakelog
from lakelog.errors import ArchiveFailedError, ContradictionError, InvalidConfigError

COLUMNS = "lakelog.value.columns"


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        send(lake)
        lake.archive("orders")
        yield lake


def send(lake: Lakelog) -> None:
    with lake.producer() as producer:
        producer.send("orders", b'{"origin": "A"}')


def delta(tmp_path: Path) -> DeltaTable:
    (path,) = (tmp_path / "cold" / "orders").iterdir()
    return DeltaTable(path)


@pytest.mark.parametrize("ddl", ["origin string", "ORIGIN int", "n int, origin string"])
def test_a_value_column_that_the_table_has_otherwise_is_refused(lake, tmp_path, ddl):
    delta(tmp_path).alter.add_columns([Field("Origin", "string")])

    with pytest.raises(InvalidConfigError, match=r"Origin.*give the value column another name"):
        lake.topics.alter("orders", {COLUMNS: ddl})

    assert lake.topics.get("orders").config.value_columns == ""
    send(lake)
    assert lake.archive("orders")[0].records == 1


@pytest.mark.parametrize(
    ("ddl", "columns"),
    [("origin2 string", ["origin2", "value_error"]), ("Origin string", ["value_error"]), ("", [])],
)
def test_a_column_that_comes_after_the_setting_leaves_a_way_out(
    lake, redis_url, tmp_path, ddl, columns
):
    with Lakelog.connect(redis_url) as elsewhere:  # which does not see the table
        elsewhere.topics.alter("orders", {COLUMNS: "origin string"})
    delta(tmp_path).alter.add_columns([Field("Origin", "string")])
    send(lake)
    with pytest.raises((ContradictionError, ArchiveFailedError), match="leave it out"):
        lake.archive("orders")

    lake.topics.alter("orders", {COLUMNS: ddl})

    assert lake.archive("orders")[0].records == 1
    assert lake.cleanup("orders")
    names = [field.name for field in delta(tmp_path).schema().fields]
    assert names[names.index("delete_horizon") + 1 :] == ["Origin", *columns]


def test_a_value_column_that_files_have_still_cannot_go(lake, tmp_path):
    lake.topics.alter("orders", {COLUMNS: "origin string"})
    send(lake)
    lake.archive("orders")
    for ddl in ("", "Origin string", "origin int"):
        with pytest.raises(InvalidConfigError, match="columns can only be added"):
            lake.topics.alter("orders", {COLUMNS: ddl})
