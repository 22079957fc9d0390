"""Typed columns in DataFrames: the same from either tier, whatever Spark type they have."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from spark_log import EPOCH_MS, SparkLog, files_read

from lakelog.values.record import Record

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


def test_columns_are_made_of_values_of_another_format(make_log, spark) -> None:
    log = make_log(
        name="flights", lakelog_value_columns=COLUMNS, lakelog_value_format="messagepack"
    )
    send(log, msgspec.msgpack.encode(VALUE), None, b"\xc1", msgspec.msgpack.encode({"flight": 7}))
    wanted = [ROW, NOTHING, NOTHING | {"value_error": "not decoded as messagepack"}, ROWS[4]]

    def told(frame: Any) -> list[dict[str, Any]]:
        found = rows(frame)
        for row in found:
            row["value_error"] = row["value_error"] and row["value_error"].split(":")[0]
        return found

    hot = log.lakelog.log("flights").dataframe(spark=spark)
    assert told(hot) == wanted
    batch = spark.read.format("lakelog").options(**log.options(valueColumns=COLUMNS))
    assert told(batch.load()) == wanted
    log.archive()
    assert told(log.lakelog.log("flights").dataframe(spark=spark)) == wanted
    assert told(batch.load()) == wanted
    stream = spark.readStream.format("lakelog").options(
        **log.options(valueColumns=COLUMNS, startingOffsets="earliest")
    )
    query = (
        stream.load()
        .writeStream.format("memory")
        .queryName("decoded")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert told(spark.table("decoded")) == wanted


TEXTS = ["", "short", "x" * 40, "x" * 32 + "\U0010ffff!", "\U0010ffff" * 33, "é", None]
TIMES = ["0001-01-01T00:00:00Z", "2013-01-01T00:00:00.123456Z", "9999-12-31T23:59:59.999999Z"]
LITERALS = {
    "n bigint": ([-(2**63), 0, 2**63 - 1, None], str),
    "x double": ([-1e300, -0.0, 0.1, None], lambda value: f"{value}D"),
    "f float": ([0.1, 3e38, None], lambda value: f"cast({value} as float)"),
    "price decimal(38,2)": (["-0.01", f"{10**35}.25", None], lambda value: f"{value}BD"),
    "note string": (TEXTS, lambda value: f"'{value}'"),
    "day date": (["0001-01-01", "9999-12-31", None], lambda value: f"date'{value}'"),
    "at timestamp": ([*TIMES, None], lambda value: f"timestamp'{value}'"),
}


#: This type is asked for each time; the others when asked for.
QUICK = {"n bigint"}


@pytest.mark.parametrize(
    "column",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in LITERALS],
)
def test_a_filter_on_a_column_opens_the_files_that_hold_the_value(make_log, spark, column) -> None:
    values, literal = LITERALS[column]
    name = column.split()[0]
    log = make_log(lakelog_value_columns=column)
    for value in values:  # each in a file of its own
        send(log, json.dumps({name: value}).encode())
        log.archive()
    send(log, b"no JSON")
    log.archive()

    def frame(where: str) -> Any:
        return log.lakelog.dataframe("orders").where(where).select("offset")

    for offset, value in enumerate(values):
        where = f"{name} is null" if value is None else f"{name} = {literal(value)}"
        expected = [offset, len(values)] if value is None else [offset]
        assert sorted(row["offset"] for row in frame(where).collect()) == expected
        # Strings may begin alike, and Delta keeps a file whose upper bound could not be written.
        more = {"note": 2, "at": 1}.get(name, 0)
        assert 1 <= files_read(frame(where)) <= len(expected) + more
    assert [row["offset"] for row in frame("value_error is not null").collect()] == [len(values)]
    assert files_read(frame("value_error is not null")) == 1


def test_one_of_many_files_is_opened(make_log, spark) -> None:
    log = make_log(lakelog_value_columns="flight int, origin string")
    for hour in range(24):
        send(log, *(b'{"flight": %d, "origin": "O%d"}' % (10 * hour + n, hour) for n in range(5)))
        log.archive()
    frame = log.lakelog.dataframe("orders")
    assert files_read(frame) == 24
    assert files_read(frame.where("flight = 42")) == 1
    assert files_read(frame.where("flight between 95 and 110")) == 2
    assert files_read(frame.where("origin = 'O7'")) == 1
    assert frame.where("flight > 200").count() == 19
