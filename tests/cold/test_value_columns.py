"""The columns that a table gets out of JSON values: made, added to, and filled in by rewrites."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType
from made_up import archive, batch_of
from msgspec.structs import replace

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.schema import TABLE_SCHEMA
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.errors import ContradictionError
from lakelog.values.config import TopicConfig
from lakelog.values.record import Record
from lakelog.values.topic import Topic

FLIGHT = "flight int COMMENT 'number', origin string"
MORE = (
    "flight int COMMENT 'of the airline', origin string, delay double, "
    "legs array<struct<to string>>"
)
OURS = {field.name for field in TABLE_SCHEMA}


@dataclass(frozen=True)
class Flights:
    """Every tenth value is no JSON, every eleventh is a tombstone."""

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        tp = hot_range.topic_partition
        for at in range(hot_range.start_offset, hot_range.end_offset, 100):
            end = min(at + 100, hot_range.end_offset)
            yield batch_of([Record(*tp, n, n, b"k", value_of(n)) for n in range(at, end)])


def value_of(offset: int) -> bytes | None:
    if offset % 11 == 0:
        return None
    if offset % 10 == 0:
        return b"no JSON"
    return json.dumps(
        {"flight": offset, "origin": f"A{offset % 3}", "delay": offset / 2, "legs": [{"to": "B"}]}
    ).encode()


def expected(offset: int, columns: str) -> dict[str, Any]:
    names = {FLIGHT: ["flight", "origin"], MORE: ["flight", "origin", "delay", "legs"]}[columns]
    value = value_of(offset)
    why = "not a JSON object" if value == b"no JSON" else None
    members = json.loads(value) if value and not why else {}
    return {name: members.get(name) for name in names} | {"value_error": why}


def with_columns(topic: Topic, columns: str, version: int) -> Topic:
    config = TopicConfig.of({"lakelog.value.columns": columns})
    return replace(topic, config=config, config_version=version)


@pytest.fixture
def make(root: Path, topic: Topic) -> Callable[[str, int], PathTable]:
    def make(columns: str, version: int = 1) -> PathTable:
        about = with_columns(topic, columns, version)
        return PathTable(about, Storage(str(root)), InlineEngine(), Flights())

    return make


def add(table: PathTable, topic: Topic, *bounds: int, partition: int = 0) -> Any:
    before = table.snapshot()
    return table.apply(archive(topic, before, *bounds, partition=partition), before)


def rows(table: PathTable) -> dict[int, dict[str, Any]]:
    """The value columns by offset, as delta-rs reads them."""
    read = DeltaTable(table.path).to_pyarrow_table()
    names = [name for name in read.column_names if name not in OURS]
    return {row["offset"]: {n: row[n] for n in names} for row in read.to_pylist()}


def test_a_table_is_made_with_them_and_says_what_did_not_parse(make, topic: Topic) -> None:
    table = make(FLIGHT)
    applied = add(table, topic, 60, 100)
    assert rows(table) == {n: expected(n, FLIGHT) for n in range(100)}
    unparsed = sum(expected(n, FLIGHT)["value_error"] is not None for n in range(100))
    assert applied.unparsed == {0: unparsed}
    assert unparsed == 9
    fields = {field.name: field for field in DeltaTable(table.path).schema().fields}
    assert fields["flight"].metadata == {"comment": "number"}


def nothing(columns: str) -> dict[str, Any]:
    return dict.fromkeys(expected(1, columns))


def test_columns_are_added_before_the_files_that_have_them(make, topic: Topic) -> None:
    table = make("")
    add(table, topic, 30)
    assert rows(table) == {n: {} for n in range(30)}
    table.mirror(with_columns(topic, FLIGHT, 2))
    assert rows(table) == {n: nothing(FLIGHT) for n in range(30)}
    add(table, topic, 50)
    table.mirror(with_columns(topic, MORE, 3))
    add(table, topic, 70)
    found = rows(table)
    older = dict.fromkeys(("delay", "legs"))
    assert {n: found[n] for n in range(30)} == {n: nothing(MORE) for n in range(30)}
    assert {n: found[n] for n in range(30, 50)} == {
        n: older | expected(n, FLIGHT) for n in range(30, 50)
    }
    assert {n: found[n] for n in range(50, 70)} == {n: expected(n, MORE) for n in range(50, 70)}
    fields = {field.name: field for field in DeltaTable(table.path).schema().fields}
    assert fields["flight"].metadata == {"comment": "of the airline"}


def test_a_rewrite_fills_in_what_older_files_lack_and_readers_of_records_see_no_difference(
    make, topic: Topic
) -> None:
    table = make("")
    add(table, topic, 30)
    table.mirror(with_columns(topic, FLIGHT, 2))
    before = add(table, topic, 50).snapshot
    files = tuple(before.files.files_between(0, 0, 50))
    records = list(table.read(files, 0, 50))
    rewrite = Rewrite(topic.partition(0), 0, files)
    applied = table.apply(Change((rewrite,), files, data_change=False), before)
    assert rows(table) == {n: expected(n, FLIGHT) for n in range(50)}
    assert applied.unparsed[0] == sum(value_of(n) == b"no JSON" for n in range(50))
    again = table.read(applied.snapshot.files.files_between(0, 0, 50), 0, 50)
    assert pa.Table.from_batches(again) == pa.Table.from_batches(records)


def test_an_archiver_with_older_settings_goes_on_without_them(make, topic: Topic) -> None:
    older = make("")
    add(older, topic, 20)
    newer = make(FLIGHT, 2)
    newer.mirror(with_columns(topic, FLIGHT, 2))
    older.mirror(with_columns(topic, "", 1))
    add(older, topic, 40)
    add(newer, topic, 60)
    found = rows(newer)
    assert [found[n]["flight"] for n in (19, 39, 59)] == [None, None, 59]


def test_archivers_and_changed_columns_at_the_same_time_lose_nothing(make, topic: Topic) -> None:
    add(make(""), topic, 1)
    versions = ["", "flight int", FLIGHT, MORE]
    failures: list[BaseException] = []

    def archiver(partition: int) -> None:
        try:
            for version, columns in enumerate(versions, 1):
                table = make(columns, version)
                table.mirror(with_columns(topic, columns, version))
                for _ in range(3):
                    end = table.snapshot().archived_end(partition) + 20
                    add(table, topic, end, partition=partition)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=archiver, args=(n,)) for n in range(topic.partitions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    table = make(MORE, 4)
    read = DeltaTable(table.path).to_pyarrow_table().to_pylist()
    ends = {n: 241 if n == 0 else 240 for n in range(topic.partitions)}
    assert {n: sorted(r["offset"] for r in read if r["partition"] == n) for n in ends} == {
        n: list(range(end)) for n, end in ends.items()
    }
    for row in read:
        if row["offset"] >= 200:
            got = {name: row[name] for name in nothing(MORE)}
            assert got == expected(row["offset"], MORE)


def test_somebody_else_s_column_of_that_name_is_not_taken_for_it(make, topic: Topic) -> None:
    table = make("")
    add(table, topic, 10)
    DeltaTable(table.path).alter.add_columns([Field("Flight", PrimitiveType("string"))])
    with pytest.raises(ContradictionError, match="'Flight' of type string"):
        table.mirror(with_columns(topic, FLIGHT, 2))
    add(table, topic, 20)
    assert rows(table)[15] == {"Flight": None}


def test_files_can_be_skipped_into_by_them(make, topic: Topic) -> None:
    table = make(MORE)
    (file,) = add(table, topic, 50).files
    metadata = pq.ParquetFile(Path(table.path) / file.path).metadata
    group = metadata.row_group(0)
    columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert (columns["flight"].statistics.min, columns["flight"].statistics.max) == (1, 49)
    assert "RLE_DICTIONARY" in columns["legs.list.element.to"].encodings
    assert not columns["value"].is_stats_set
