"""Another engine's ALTER TABLE ADD COLUMN and the topic's value columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field

from lakelog import Lakelog
from lakelog.base.failpoints import armed
from lakelog.errors import ArchiveFailedError, ContradictionError, InvalidConfigError

COLUMNS = "lakelog.value.columns"


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        send(lake)
        lake.archive("orders")
        yield lake


def send(lake: Lakelog, topic: str = "orders") -> None:
    with lake.producer() as producer:
        producer.send(topic, b'{"origin": "A"}')


def delta(tmp_path: Path, topic: str = "orders") -> DeltaTable:
    (path,) = (tmp_path / "cold" / topic).iterdir()
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


@pytest.mark.parametrize("ddl", ["origin string, n bigint", "n bigint", ""])
def test_a_value_column_that_no_file_has_yet_may_change_or_go(lake, tmp_path, ddl):
    lake.topics.create("new", 1, {COLUMNS: "origin string, n int"})
    send(lake, "new")

    assert lake.topics.alter("new", {COLUMNS: ddl}).config.value_columns == ddl

    assert lake.archive("new")[0].records == 1
    added = {"origin": "string", "n": "long"}
    types = {field.name: field.type.type for field in delta(tmp_path, "new").schema().fields[9:]}
    assert types == {name: added[name] for name in added if name in ddl} | (
        {"value_error": "string"} if ddl else {}
    )


def test_a_value_column_may_not_change_where_its_table_is_another_or_not_seen(
    lake, redis_url, tmp_path
):
    lake.topics.alter("orders", {COLUMNS: "origin string"})
    send(lake)
    lake.archive("orders")
    for cold in (None, tmp_path / "other"):
        with (
            Lakelog.connect(redis_url, cold, engine="inline") as elsewhere,
            pytest.raises(InvalidConfigError, match="columns can only be added"),
        ):
            elsewhere.topics.alter("orders", {COLUMNS: "origin int"})


def test_a_value_column_that_changes_while_it_is_archived_leaves_a_way_out(
    lake, redis_url, tmp_path
):
    lake.topics.create("new", 1, {COLUMNS: "origin int"})
    send(lake, "new")

    def change() -> None:
        with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as other:
            other.topics.alter("new", {COLUMNS: "origin string"})

    refused = pytest.raises((ContradictionError, ArchiveFailedError), match="another name")
    with armed("archive.after_plan", change), refused:
        lake.archive("new")
    send(lake, "new")
    with pytest.raises((ContradictionError, ArchiveFailedError), match="another name"):
        lake.archive("new")

    lake.topics.alter("new", {COLUMNS: "origin2 string"})

    lake.archive("new")
    read = lake.log("new").read(0, "earliest").records()
    assert [record.value for record in read] == [b'{"origin": "A"}'] * 2
