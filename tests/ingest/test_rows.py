"""People's rows become records: frames of every library, and lists of every kind of object."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError, UnknownTopicOrPartitionError

AT = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
FRAME = pd.DataFrame(
    {
        "customer": ["ann", "bob", None],
        "at": pd.to_datetime([AT, AT + timedelta(hours=1), AT + timedelta(hours=2)]),
        "amount": [1.5, float("nan"), 3.0],
        "shard": [1, 0, 1],
    }
)


def stored(lake: Lakelog, topic: str = "orders") -> list[dict[str, Any]]:
    rows = lake.log(topic).search().to_arrow().to_pylist()
    return [{**row, "value": json.loads(row["value"])} for row in rows]


@pytest.mark.parametrize(
    "as_other",
    [
        lambda frame: frame,
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: pa.Table.from_pandas(frame).to_reader(),
        lambda frame: duckdb.sql("SELECT * FROM frame"),
        lambda frame: frame.astype(object).where(frame.notna(), None).to_dict("records"),
    ],
    ids=["pandas", "polars", "arrow", "reader", "duckdb", "mappings"],
)
def test_a_frame_of_any_library_is_appended(lake: Lakelog, as_other: Any) -> None:
    lake.topics.create("orders", 2, {"retention.ms": -1})
    told = lake.append("orders", as_other(FRAME), key="customer", timestamp="at", partition="shard")
    assert [(one.partition, one.offset) for one in told] == [(1, 0), (0, 0), (1, 1)]
    rows = stored(lake)
    assert [row["key"] for row in rows] == [b"ann", b"bob", None]
    assert [row["timestamp"] for row in rows] == list(FRAME["at"])
    assert [row["value"]["amount"] for row in rows] == [1.5, None, 3]
    assert [row["value"]["customer"] for row in rows] == ["ann", "bob", None]
    assert all(datetime.fromisoformat(row["value"]["at"][:-1] + "+00:00") for row in rows)


class Colour(Enum):
    RED = "red"


@dataclass
class Inner:
    tags: tuple[str, ...]


@dataclass
class Order:
    id: int
    at: datetime
    price: Decimal
    inner: Inner


class Model(msgspec.Struct):
    id: int


Pair = namedtuple("Pair", "id name")


def test_objects_are_appended_by_their_fields(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, {"retention.ms": -1})
    dumped = SimpleNamespace(model_dump=lambda: {"id": 5})  # as pydantic's models
    rows = [
        Order(1, AT, Decimal("1.10"), Inner(("a", "b"))),
        Model(2),
        Pair(3, "c"),
        {"id": 4, "of": [Colour.RED, UUID(int=1), date(2026, 1, 1), b"\x00", {1: None}]},
        dumped,
        {"id": np.int64(6), "more": np.array([1.5, np.nan]), "none": pd.NA, "not": pd.NaT},
        {"id": 7, "for": timedelta(seconds=-1.5), "naive": AT.replace(tzinfo=None)},
    ]
    lake.append("orders", rows, key="id")
    found = stored(lake)
    assert [row["key"] for row in found] == [b"%d" % n for n in range(1, 8)]
    assert [row["value"] for row in found] == [
        {"id": 1, "at": "2026-07-01T12:00:00Z", "price": 1.1, "inner": {"tags": ["a", "b"]}},
        {"id": 2},
        {"id": 3, "name": "c"},
        {"id": 4, "of": ["red", str(UUID(int=1)), "2026-01-01", "AA==", {"1": None}]},
        {"id": 5},
        {"id": 6, "more": [1.5, None], "none": None, "not": None},
        {"id": 7, "for": "PT-1.500000S", "naive": "2026-07-01T12:00:00"},
    ]


def test_times_are_of_the_zone_that_is_given(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, {"retention.ms": -1})
    noon = AT.replace(tzinfo=None)
    for rows in (
        [{"at": noon}],
        [{"at": "2026-07-01 12:00"}],
        pd.DataFrame({"at": [noon]}),
        pl.DataFrame({"at": ["2026-07-01T12:00:00"]}),
    ):
        with pytest.raises(InvalidArgumentError, match=r"have no zone: .* zone='UTC'"):
            lake.append("orders", rows, timestamp="at")
        lake.append("orders", rows, timestamp="at", zone="Europe/Berlin")
    lake.append("orders", [{"at": "2026-07-01T10:00:00Z"}, {"at": 1782900000000}], timestamp="at")
    assert {row["timestamp"] for row in stored(lake)} == {AT - timedelta(hours=2)}


def test_dates_are_of_the_zone_that_is_given(lake: Lakelog) -> None:
    day, midnight_ms = date(2026, 11, 24), 1_795_474_800_000  # 2026-11-23T23:00:00Z
    lake.topics.create("orders", 1)
    for rows in ([{"at": day}], pa.table({"at": [day]}), [{"at": "2026-11-24"}]):
        lake.append("orders", rows, timestamp="at", zone="Europe/Berlin")
    lake.append("orders", [{"at": day}], timestamp="at")  # else a date is UTC's
    found = lake.log("orders").read(0).to_arrow()["timestamp"].cast("int64").to_pylist()
    assert found == [midnight_ms * 1000] * 3 + [(midnight_ms + 3_600_000) * 1000]


def test_a_field_may_be_the_value_as_it_is(lake: Lakelog) -> None:
    lake.topics.create("orders", 1)
    lake.append("orders", [{"k": "a", "v": b"\xff"}, {"k": "b", "v": None}], key="k", value="v")
    lake.append("orders", pa.table({"k": ["c"], "v": ["text"]}), key="k", value="v", partition=0)
    values = lake.log("orders").read(0).to_arrow()["value"].to_pylist()
    assert values == [b"\xff", None, b"text"]


def test_a_topic_is_made_with_the_columns_of_its_values(lake: Lakelog) -> None:
    lake.append("orders", FRAME, create=True, partitions=3, config={"retention.ms": -1})
    made = lake.topics.get("orders")
    assert made.partitions == 3
    assert made.config.value_columns == "customer string, at timestamp, amount double, shard bigint"
    lake.append("orders", FRAME, create=True, partitions=9)  # it is there
    assert lake.topics.get("orders").partitions == 3
    lake.append("own", FRAME, create=True, config={"lakelog.value.columns": "shard int"})
    assert lake.topics.get("own").config.value_columns == "shard int"
    with pytest.raises(UnknownTopicOrPartitionError, match="create it with"):
        lake.append("none", FRAME)


@pytest.mark.parametrize(
    ("rows", "named", "why"),
    [
        (FRAME, {"key": "custmer"}, "no field 'custmer'; fields are customer, at, amount"),
        ([{"a": 1}, {"b": 1}], {"key": "a"}, "row 1: there is no field 'a'; fields are b"),
        ([{"a": object()}], {}, "row 0: .*object is nothing that JSON has a word for"),
        ([1], {}, "row 0: int has no fields"),
        ("text", {}, r"not one str; lake\.load\(topic, path\) takes a file"),
        (Path("rows.csv"), {}, r"not one PosixPath; lake\.load\(topic, path\) takes a file"),
        ({"a": 1}, {}, "not one dict"),
        (7, {}, "not one int"),
        ([{"at": "soon"}], {"timestamp": "at"}, "row 0: field 'at': 'soon' is no time"),
        (FRAME, {"timestamp": "customer"}, "field 'customer': 'ann' is no time"),
        (FRAME, {"zone": "Berlin"}, "not a time zone"),
        ([{"p": "x"}], {"partition": "p"}, "x"),
    ],
)
def test_what_cannot_be_told_is_refused_and_nothing_appended(
    lake: Lakelog, rows: Any, named: Any, why: str
) -> None:
    lake.topics.create("orders", 1)
    with pytest.raises(InvalidArgumentError, match=why):
        lake.append("orders", rows, **named)
    assert stored(lake) == []


def test_a_producer_takes_rows_too(lake: Lakelog) -> None:
    lake.topics.create("orders", 1)
    with lake.producer() as producer:
        told = producer.send_rows("orders", [{"id": 1}], key="id", partition=0)
    assert [one.offset for one in told] == [0]
