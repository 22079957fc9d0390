"""The statistics of value columns in add actions: no value lies outside them."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import archive, batch_of
from pyarrow.compute import field

from lakelog.codec.value_columns import value_schema
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.file_statistics import ValueStatistics
from lakelog.cold.properties import STATISTICS_PROPERTY
from lakelog.cold.schema import MOST_WITH_STATISTICS, with_statistics
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.config import TopicConfig
from lakelog.values.record import Record
from lakelog.values.topic import Topic

NEWEST = datetime(9999, 12, 31, 23, 59, 59, 999_999, timezone.utc)
VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.decimal128(38, 6): st.decimals(-(10**31), 10**31, places=6),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(timezone.utc)),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.ChunkedArray:
    """Values of one type, in the row groups of a file."""
    kind = draw(st.sampled_from(list(VALUES)))
    values = st.lists(st.none() | VALUES[kind], max_size=5)
    return pa.chunked_array(draw(st.lists(values, min_size=1, max_size=3)), kind)


def read_back(text: str, kind: pa.DataType) -> Any:
    """A bound as Delta's readers take it."""
    value = json.loads(text, parse_float=Decimal if pa.types.is_decimal(kind) else float)
    if pa.types.is_string(kind):
        return value
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    return Decimal(value) if pa.types.is_decimal(kind) else pa.scalar(value, kind).as_py()


@given(columns())
@example(pa.chunked_array([["a" * 32 + "\U0010ffff" * 2]], pa.string()))
@example(pa.chunked_array([["\ud7ff" * 32 + "\U0010ffff" * 2]], pa.string()))
@example(pa.chunked_array([["\U0010ffff" * 34]], pa.string()))
@example(pa.chunked_array([[NEWEST]], pa.timestamp("us", "UTC")))
@example(pa.chunked_array([[Decimal("9" * 31 + ".999999")]], pa.decimal128(38, 6)))
def test_no_value_lies_outside_the_bounds(column: pa.ChunkedArray) -> None:
    statistics = ValueStatistics(pa.schema([("v", column.type)]))
    for row_group in column.chunks:
        statistics.count(pa.table({"v": row_group}))

    values = column.drop_null().to_pylist()
    assert statistics.nulls == {"v": column.null_count}
    assert statistics.least.keys() == ({"v"} if values else set())
    assert statistics.largest.keys() == statistics.least.keys()
    for text in statistics.least.values():
        assert read_back(text, column.type) <= min(values)
    for text in statistics.largest.values():
        assert read_back(text, column.type) >= max(values)


def test_bounds_are_close_and_left_out_only_where_nothing_is_larger() -> None:
    texts = ["a" * 40, "b" * 40]
    statistics = ValueStatistics(pa.schema([("v", pa.string())]))
    statistics.count(pa.table({"v": texts}))
    assert json.loads(statistics.least["v"]) == "a" * 32
    assert json.loads(statistics.largest["v"]) == "b" * 32 + "\U0010ffff"


def test_nested_columns_and_truth_values_have_none() -> None:
    schema = value_schema("a int, b boolean, c array<int>, d struct<e int>, f map<string,int>")
    assert with_statistics(schema) == ["value_error", "a"]


def test_of_many_columns_the_first_have_statistics() -> None:
    many = value_schema(", ".join(f"c{n} int" for n in range(100)))
    assert with_statistics(many) == ["value_error", *(f"c{n}" for n in range(31))]
    assert len(with_statistics(many)) == MOST_WITH_STATISTICS
    long = value_schema(", ".join(f"{'c' * 60}{n} int" for n in range(9)))
    assert with_statistics(long) == ["value_error", *(f"{'c' * 60}{n}" for n in range(3))]


COLUMNS = "`dep-delay` int, price decimal(38,2), note string"


def of_offset(offset: int) -> dict[str, Any]:
    return {"dep-delay": offset, "price": f"{10**30 + offset}.25", "note": None}


def value_rows(hot_range: Any) -> Any:
    tp = hot_range.topic_partition
    yield batch_of(
        [
            Record(*tp, n, n, b"k", json.dumps(of_offset(n)).encode())
            for n in range(hot_range.start_offset, hot_range.end_offset)
        ]
    )


def opened(root: Path, topic: Topic, ddl: str, version: int) -> PathTable:
    config = TopicConfig.of({"lakelog.value.columns": ddl})
    about = Topic(topic.name, topic.topic_id, topic.partitions, config, version)
    return PathTable(about, Storage(str(root)), InlineEngine(), value_rows)


def test_a_table_s_files_have_them_also_when_columns_come_later(root: Path, topic: Topic) -> None:
    table = opened(root, topic, "", 1)
    table.apply(archive(topic, before := table.snapshot(), 10), before)
    plain = DeltaTable(table.path).metadata().configuration[STATISTICS_PROPERTY]
    table = opened(root, topic, COLUMNS, 2)
    table.mirror(table._topic)
    table.apply(archive(topic, before := table.snapshot(), 15), before)

    log = DeltaTable(table.path)
    assert plain == "offset,timestamp"
    assert log.metadata().configuration[STATISTICS_PROPERTY] == (
        "offset,timestamp,`value_error`,`dep-delay`,`price`,`note`"
    )
    actions = pa.table(log.get_add_actions(flatten=True)).sort_by("min.offset").to_pydict()
    assert actions["min.dep-delay"] == [None, 10]
    assert actions["max.dep-delay"] == [None, 14]
    assert actions["min.price"] == [None, Decimal(f"{10**30 + 10}.25")]
    assert actions["null_count.note"] == [None, 5]
    assert actions["null_count.value_error"] == [None, 5]


ENDS = {
    "timestamp": ["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"],
    "string": ["a" * 40, "b" * 40, "c" * 31 + "\U0010ffff" * 40],
}


def read_by(path: str, column: str, value: Any) -> dict[str, tuple[list[int], list[int]]]:
    """The offsets at or above a value, and below it, as delta-rs finds them in two ways."""
    ops = (">=", "<")
    log = DeltaTable(path)
    frames = [pa.Table.from_pandas(log.to_pandas(filters=[(column, op, value)])) for op in ops]
    text = value.isoformat() if isinstance(value, datetime) else value
    sql = QueryBuilder().register("t", log)
    queried = [
        pa.table(sql.execute(f"SELECT * FROM t WHERE {column} {op} '{text}'").read_all())
        for op in ops
    ]
    return {
        name: (sorted(above["offset"].to_pylist()), sorted(below["offset"].to_pylist()))
        for name, (above, below) in {"filters": frames, "sql": queried}.items()
    }


@pytest.mark.parametrize("kind", ENDS)
def test_readers_filter_a_column_that_holds_the_largest_value(root, topic, kind) -> None:
    def rows(hot_range: Any) -> Any:
        tp = hot_range.topic_partition
        values = [json.dumps({"v": value}).encode() for value in ENDS[kind]]
        yield batch_of([Record(*tp, n, n, b"k", value) for n, value in enumerate(values)])

    config = TopicConfig.of({"lakelog.value.columns": f"v {kind}"})
    about = Topic(topic.name, topic.topic_id, topic.partitions, config)
    table = PathTable(about, Storage(str(root)), InlineEngine(), rows)
    table.apply(archive(topic, before := table.snapshot(), 3), before)

    middle = datetime(2024, 6, 1, tzinfo=timezone.utc) if kind == "timestamp" else "b"
    found = read_by(table.path, "v", middle)
    assert found == dict.fromkeys(found, ([1, 2], [0]))


def test_readers_filter_a_file_with_a_record_beyond_the_year_9999(root, topic) -> None:
    times = [0, 1_700_000_000_000, 253_402_300_800_000]

    def rows(hot_range: Any) -> Any:
        tp = hot_range.topic_partition
        records = [Record(*tp, n, times[n % 3], b"k", b'{"v": 1}') for n in range(3)]
        yield batch_of(records)

    config = TopicConfig.of({"lakelog.value.columns": "v int"})
    about = Topic(topic.name, topic.topic_id, topic.partitions, config)
    table = PathTable(about, Storage(str(root)), InlineEngine(), rows)
    table.apply(archive(topic, before := table.snapshot(), 3), before)

    log = DeltaTable(table.path)
    middle = datetime(2000, 1, 1, tzinfo=timezone.utc)
    dataset = log.to_pyarrow_dataset()
    for condition, expected in (
        (field("timestamp") >= middle, [1, 2]),
        (field("timestamp") < middle, [0]),
        (field("v") == 1, [0, 1, 2]),
        (field("offset") >= 1, [1, 2]),
    ):
        found = dataset.to_table(filter=condition, columns=["offset"])
        assert found["offset"].to_pylist() == expected
    seen = PathTable(about, Storage(str(root)), InlineEngine(), rows)
    cold = seen.snapshot()
    assert [row.offset for row in [seen.offset_for_timestamp(cold, 0, 10**12, 0)] if row] == [1]
    assert [batch["offset"].to_pylist() for batch in seen.read(cold.files, 1, 3)] == [[1, 2]]
