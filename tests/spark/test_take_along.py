"""The explorer's rows in Spark's words are the explorer's rows."""

from __future__ import annotations

import pytest
from spark_log import EPOCH_MS

from lakelog.explore.explorer.spark_condition import spark_condition
from lakelog.read.where import parse
from lakelog.record import Record

EXPRESSIONS = (
    "",
    "rder 1",
    'key = "k1"',
    'key != "k1"',
    'not key = "k1"',
    'key in ("k1", "", 0x80)',
    'not (key exists) or value = "order 7"',
    'value contains "der 2" or key starts with 0x80',
    "size > 7 and offset < 30",
    "not size > 7",
    f"time >= {EPOCH_MS // 1000 + 5} and partition = 0",
    'not time < "2040-01-01" or offset in (3, 4)',
    "time exists and offset >= 35",
    'header.source = "web"',
    'header.source != "web"',
    'not header.source = "web" and header.trace exists',
    'header.source in ("web", "none") or header["it\'s \\\\"] contains "x"',
    'header.trace < "2" or header.source starts with 0x77',
)


def test_conditions_mean_the_same_to_spark(make_log, spark) -> None:
    log = make_log()
    keys = [b"k0", b"k1", None, b"", b"\x80\xff"]
    headers = [
        (),
        (("source", b"web"), ("trace", b"1")),
        (("source", None), ("source", b"app"), ("trace", b"3")),
        (("it's \\", b"xyz"), ("source", b"")),
    ]
    records = [
        Record(
            *("orders", 0, n, EPOCH_MS + 1000 * n),
            keys[n % 5],
            None if n % 6 == 0 else b"order %d" % n,
            headers[n % 4],
        )
        for n in range(20)
    ]
    log.send(*records)
    log.archive()
    log.send(*records)
    frame = log.lakelog.dataframe("orders")
    for text in EXPRESSIONS:
        condition = spark_condition(parse(text))
        assert condition is not None, text
        found = sorted(row["offset"] for row in frame.where(condition).select("offset").collect())
        wanted = log.lakelog.log("orders").search(text).to_arrow()["offset"].to_pylist()
        assert found == sorted(wanted), text


@pytest.mark.parametrize("where", ["", 'key = "k1"'])
def test_code_for_spark_gives_the_rows(make_log, spark, where) -> None:
    log = make_log()
    log.send(*(Record("orders", 0, n, EPOCH_MS + n, b"k%d" % (n % 3), b"v") for n in range(90)))
    log.archive()
    log.send(*(Record("orders", 0, n, EPOCH_MS + n, b"k%d" % (n % 3), b"v") for n in range(9)))
    explorer = log.lakelog.explore("orders", where=where)
    explorer.wait()
    wanted = explorer.data()["offset"].to_pylist()
    frame = eval(explorer.code("Spark DataFrame"), {"lake": log.lakelog})
    assert sorted(row["offset"] for row in frame.collect()) == wanted
    log.lakelog.dataframe("orders").createOrReplaceTempView("orders")
    rows = spark.sql(explorer.code("Spark SQL")).collect()
    assert sorted(row["offset"] for row in rows) == wanted
    explorer.close()
