"""Typed columns in DataFrames: the same from either tier, whatever Spark type they have."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from spark_log import EPOCH_MS, SparkLog

from lakelog.record import Record

COLUMNS = (
    "flight int COMMENT 'number', `dep-delay` double, at timestamp, day date, price decimal(10,2), "
    "late boolean, small tinyint, ratio float, legs array<struct<to string, on date>>, "
    "tags map<string,bigint>, note string"
)
VALUE = {
    "flight": 1545,
    "dep-delay": 2.5,
    "at": "2013-01-01T05:15:00.25-05:00",
    "day": "2013-01-01",
    "price": "12.50",
    "late": True,
    "small": -128,
    "ratio": 0.1,
    "legs": [{"to": "IAH", "on": "2013-01-02"}, None, {}],
    "tags": {"a": 2**40, "b": None},
    "note": {"free": [1.10]},
}
ROW = {
    "flight": 1545,
    "dep-delay": 2.5,
    "at": datetime(2013, 1, 1, 10, 15, 0, 250000, timezone.utc),
    "day": date(2013, 1, 1),
    "price": Decimal("12.50"),
    "late": True,
    "small": -128,
    "ratio": 0.10000000149011612,
    "legs": [{"to": "IAH", "on": date(2013, 1, 2)}, None, {"to": None, "on": None}],
    "tags": {"a": 2**40, "b": None},
    "note": '{"free":[1.1]}',
    "value_error": None,
}
NOTHING = dict.fromkeys(ROW)
VALUES = [
    json.dumps(VALUE).encode(),
    None,
    b"not JSON",
    b'{"flight": 1.5}',
    b'{"flight": 7}',
]
ROWS = [
    ROW,
    NOTHING,
    NOTHING | {"value_error": "not a JSON object"},
    NOTHING | {"value_error": "flight: not an int"},
    NOTHING | {"flight": 7},
]


def send(log: SparkLog, *values: bytes | None) -> None:
    log.send(
        *(Record(log.name, 0, 0, EPOCH_MS, key=b"k", value=value, headers=()) for value in values)
    )


def rows(frame: Any, names: Any = tuple(ROW)) -> list[dict[str, Any]]:
    """The value columns by offset."""
    found = frame.select("offset", *(f"`{name}`" for name in names)).orderBy("offset").toArrow()
    read = found.to_pylist()
    for row in read:
        row.pop("offset")
        if row.get("tags") is not None:
            row["tags"] = dict(row["tags"])
    return read


def test_a_frame_has_the_same_columns_before_and_after_archiving(make_log, spark) -> None:
    log = make_log(name="flights", lakelog_value_columns=COLUMNS)
    assert log.lakelog.log("flights").dataframe(spark=spark).columns[8:] == list(ROW)
    send(log, *VALUES)
    unified = log.lakelog.log("flights")
    hot = unified.dataframe(spark=spark)
    assert rows(hot) == ROWS
    log.archive()
    send(log, *VALUES)
    both = log.lakelog.log("flights").dataframe(spark=spark)
    assert rows(both) == ROWS + ROWS
    assert rows(hot) == ROWS
    log.archive()
    cold = log.lakelog.log("flights").dataframe(spark=spark)
    assert rows(cold) == ROWS + ROWS
    assert [(f.name, f.dataType) for f in cold.schema] == [(f.name, f.dataType) for f in hot.schema]
    assert cold.where("value_error IS NOT NULL").count() == 4
    assert [r.offset for r in cold.where("flight = 7").orderBy("offset").collect()] == [4, 9]


def test_columns_that_came_later_are_null_in_what_was_archived_before(make_log, spark) -> None:
    log = make_log(name="flights")
    send(log, VALUES[4])
    log.archive()
    log.lakelog.topics.alter("flights", {"lakelog.value.columns": "flight int"})
    send(log, VALUES[4])
    names = ("flight", "value_error")
    wanted = [{"flight": None, "value_error": None}, {"flight": 7, "value_error": None}]
    # The table lacks them until the next archive run.
    assert rows(log.lakelog.log("flights").dataframe(spark=spark), names) == wanted
    log.archive()
    assert rows(log.lakelog.log("flights").dataframe(spark=spark), names) == wanted


def test_the_data_source_makes_columns_that_are_asked_for(make_log, spark) -> None:
    log = make_log(name="flights")
    send(log, *VALUES)
    read = spark.read.format("lakelog").options(**log.options(valueColumns=COLUMNS))
    assert rows(read.load()) == ROWS
    with pytest.raises(Exception, match="a type should stand here"):
        spark.read.format("lakelog").options(**log.options(valueColumns="a itn")).load()
