"""The explorer's rows in Spark's words are the explorer's rows."""

from __future__ import annotations

import pytest
from spark_log import EPOCH_MS

from lakelog.explore.explorer.shown_code import spark_condition
from lakelog.read.where import parse
from lakelog.values.record import Record

pytestmark = pytest.mark.slow

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


DOCUMENTS = (
    *(b'{"x":%s}' % x for x in (b"70", b'"70"', b"70.5", b"7e1", b"true", b"null", b'"a"')),
    *(
        b'{"x":%s}' % x
        for x in (b'["a",7]', b'{"a":"70"}', b"-1", b'"true"', b"12345678901234567890")
    ),
    *(b'{"y":1}', b'[{"x":70}]', b"{'x':70}", b"\xff", b"", b"not JSON"),
    *(b'{"a b":{"x":1},"it\'s":[{"to":"JFK"},{"to":7}]}', b' {"x" : 70} '),
)
MEMBERS = (
    *("value.x > 60", "value.x = 70", "value.x != 70", "not value.x = 70", "value.x <= 70.5"),
    *('value.x = "70"', 'value.x >= "70"', 'value.x != "a"', "value.x = true", "value.x != true"),
    *("value.x = null", "value.x exists", "not value.x exists", 'value.x in ("a", 70, false)'),
    *('value.x contains "7"', "value.x contains 7", 'value.x starts with "t"', 'value.x.a = "70"'),
    *('value["a b"].x = 1', 'value["it\'s"][0].to = "JFK"', 'value["it\'s"][1].to > 6'),
    "value.y = 1 or value.x > 0 and not value.x > 70",
)


def test_members_of_json_mean_the_same_to_spark(make_log, spark) -> None:
    log = make_log()
    records = [
        Record("orders", 0, n, EPOCH_MS + n, b"k", value) for n, value in enumerate(DOCUMENTS)
    ]
    log.send(*records, Record("orders", 0, 99, EPOCH_MS + 99, b"k", None))
    frame = log.lakelog.dataframe("orders").cache()
    conditions = [spark_condition(parse(text)) for text in MEMBERS]
    assert None not in conditions
    marked = frame.selectExpr("offset", *(f"{one} AS `{n}`" for n, one in enumerate(conditions)))
    rows = marked.collect()
    for number, text in enumerate(MEMBERS):
        assert all(row[str(number)] is not None for row in rows), text  # false, not null
        found = sorted(row["offset"] for row in rows if row[str(number)])
        wanted = log.lakelog.log("orders").search(text).to_arrow()["offset"].to_pylist()
        assert found == sorted(wanted), text


def test_picked_members_are_columns_of_their_types_in_spark_too(make_log, spark) -> None:
    log = make_log()
    values = (b'{"n":%d,"to":"JFK","legs":[{"at":1.5}],"ok":true}' % n for n in range(30))
    log.send(*(Record("orders", 0, n, EPOCH_MS + n, b"k", one) for n, one in enumerate(values)))
    explorer = log.lakelog.explore("orders", where="value.n >= 20")
    explorer.wait()
    plain = explorer.code("Spark DataFrame")
    ui = explorer._screen.ui
    ui.columns.value = True
    ui.code.value = "Spark SQL"
    ui.members.value = ["n", "to", "legs", "ok"]
    assert explorer.code("Spark DataFrame").startswith(f"{plain}.selectExpr(")
    assert "AS `value.ok`" in ui.expression.value
    log.lakelog.dataframe("orders").createOrReplaceTempView("orders")
    for frame in (
        eval(explorer.code("Spark DataFrame"), {"lake": log.lakelog}),
        spark.sql(explorer.code("Spark SQL")),
    ):
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
        assert kinds["value.n"] == "bigint"
        assert kinds["value.to"] == "string"
        assert kinds["value.legs"] == "array<struct<at:double>>"
        assert kinds["value.ok"] == "boolean"
        rows = frame.orderBy("offset").collect()
        assert [row["value.n"] for row in rows] == list(range(20, 30))
        assert {row["value.legs"][0]["at"] for row in rows} == {1.5}
    explorer.close()


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
