"""The explorer's rows in Spark's words are the explorer's rows."""

from __future__ import annotations

import pytest
from spark_log import EPOCH_MS

from lakelog.values.record import Record

pytestmark = pytest.mark.slow


def test_picked_members_are_columns_of_their_types_in_spark_too(make_log, spark) -> None:
    log = make_log()
    values = (
        b'{"n":%d,"to":"JFK","legs":[{"at":1.5}],"ok":true,"dep-h\xc3\xb6he.m":7}' % n
        for n in range(30)
    )
    log.send(*(Record("orders", 0, n, EPOCH_MS + n, b"k", one) for n, one in enumerate(values)))
    explorer = log.lakelog.explore("orders", where="value.n >= 20")
    explorer.wait()
    plain = explorer.code("Spark DataFrame")
    ui = explorer._screen.ui
    ui.columns.value = True
    ui.code.value = "Spark SQL"
    ui.members.value = ["n", "to", "legs", "ok", "dep-höhe.m"]
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
        assert {row["value.dep-höhe.m"] for row in rows} == {7}
        assert {row["value.legs"][0]["at"] for row in rows} == {1.5}
    explorer.close()


@pytest.mark.parametrize("where", ["", 'key = "k1"', "offset in (3, 95)", "offset > 99"])
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
