"""The views of a topic: what each column says of every kind of bytes, and which record is last."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from spark_log import EPOCH_MS, SparkLog, files_read, rows_of

from lakelog.cold.by_name import entry
from lakelog.errors import ForeignTableError
from lakelog.spark.catalog import views
from lakelog.values.record import Record

pytestmark = pytest.mark.slow

Key = bytes | None


def record(offset: int, key: Key, value: Key, headers: Any = (), timestamp_ms: int = 0) -> Record:
    return Record("orders", 0, offset, EPOCH_MS + timestamp_ms, key, value, headers)


def test_text_json_and_headers_are_shown_where_the_bytes_are_that(make_log, spark, schema) -> None:
    log = make_log()
    log.send(
        record(0, b"ada", b'{"a": [1, null]}', (("h", b"x"), ("h", None), ("i", b"\xff"))),
        record(1, None, None),
        record(2, b"", b""),
        record(3, b"\xff", b"\xc3\x28"),
        record(4, "ä€𝄞".encode(), b'{"a": 1'),
        record(5, b"k", b'{"a": 1, "a": 2}'),
        record(6, b"k", b"12"),
        record(7, b"k\x00", b'"\x00"'),
        record(8, b"k", b"null"),
    )
    log.archive()

    view = spark.table(log.lakelog.register("orders", schema, spark=spark).view)

    assert view.dtypes == [
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("key", "binary"),
        ("key_text", "string"),
        ("value", "binary"),
        ("value_text", "string"),
        ("value_json", "variant"),
        ("headers", "array<struct<key:string,value:binary>>"),
        ("headers_text", "array<struct<key:string,value:string>>"),
    ]
    shown = view.selectExpr("key_text", "value_text", "to_json(value_json)").orderBy("offset")
    assert [tuple(row) for row in shown.collect()] == [
        ("ada", '{"a": [1, null]}', '{"a":[1,null]}'),
        (None, None, None),
        ("", "", None),
        (None, None, None),
        ("ä€𝄞", '{"a": 1', None),
        ("k", '{"a": 1, "a": 2}', None),
        ("k", "12", "12"),
        ("k\x00", '"\x00"', None),
        ("k", "null", "null"),
    ]
    assert view.where("offset = 0").first()["headers_text"] == [
        ("h", "x"),
        ("h", None),
        ("i", None),
    ]
    assert view.where("variant_get(value_json, '$.a[0]', 'int') = 1").count() == 1
    assert rows_of(view) == rows_of(log.lakelog.dataframe("orders"))


ENDS = [
    "",
    "\u00a0",
    " ",
    "\n",
    "x",
    " {}",
    ",",
    ",1",
    ',"a":1',
    "]",
    "}",
    "]]",
    "}}",
    "\0",
    "//c",
    "\ufeff",
]
DOCUMENTS = [
    "{}",
    '{"a":1}',
    "[]",
    "1",
    "null",
    "true",
    '"]"',
    '""',
    "NaN",
    "01",
    "",
    "{a:1}",
    "-0",
]


def test_json_is_what_python_reads_as_json_to_the_end(make_log, spark, schema) -> None:
    texts = [document + end for document in DOCUMENTS for end in ENDS]
    texts += [end + document for document in ("{}", "1") for end in ENDS[1:]]
    log = make_log()
    log.send(*(record(n, b"k", text.encode()) for n, text in enumerate(texts)))
    log.archive()

    view = spark.table(log.lakelog.register("orders", schema, spark=spark).view)

    rows = view.selectExpr("value_text", "to_json(value_json)").orderBy("offset").collect()
    assert [text for text, _ in rows] == texts
    for text, shown in rows:
        try:
            found = json.loads(text, parse_constant=refuse)
        except ValueError:
            assert shown is None, text
        else:
            assert shown is not None, text
            assert json.loads(shown) == found, text


def refuse(constant: str) -> None:
    raise ValueError(constant)


def test_the_views_say_what_they_are(make_log, spark, schema) -> None:
    log = make_log()
    log.append(1)
    log.archive()
    registered = log.lakelog.register("orders", schema, spark=spark)
    for name in (registered.view, registered.latest):
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        rows = [(row["col_name"], row["comment"]) for row in described]
        columns = dict(rows[: rows.index(("", ""))])
        assert list(columns) == spark.table(name).columns
        assert all(columns.values()), columns
    about = {row["col_name"]: row["data_type"] for row in described}["Comment"]
    assert "by offset within a partition, by timestamp across partitions" in about


def test_the_last_of_a_key_is_by_offset_and_across_partitions_by_time(
    make_log, spark, schema
) -> None:
    log = make_log(3)
    a, b, gone, bytes_1, bytes_2 = b"a", b"A", b"gone", b"\xff", b"\xfe"
    for partition, key, value, at_ms in (
        (0, a, b"0 early", 10),
        (0, a, b"0 last although older", 5),
        (1, b, b"another case is another key", 1),
        (0, gone, b"was there", 1),
        (0, gone, None, 2),
        (1, None, b"no key", 1),
        (0, b"", b"an empty key is a key", 1),
        (0, bytes_1, b"not text", 1),
        (1, bytes_2, b"not text either", 1),
        (0, b"moved", b"before it moved", 10),
        (2, b"moved", b"after it moved", 11),
        (0, b"moved and deleted", b"before", 10),
        (2, b"moved and deleted", None, 11),
        (0, b"deleted, then moved", None, 10),
        (2, b"deleted, then moved", b"after", 11),
        (1, b"at once", b"in the lower", 20),
        (2, b"at once", b"in the higher", 20),
        (0, b"empty", b"", 1),
    ):
        log.send(Record("orders", partition, 0, EPOCH_MS + at_ms, key, value))
    log.archive()

    latest = spark.table(log.lakelog.register("orders", schema, spark=spark).latest)

    assert {bytes(row["key"]): bytes(row["value"]) for row in latest.collect()} == {
        a: b"0 last although older",
        b: b"another case is another key",
        b"": b"an empty key is a key",
        bytes_1: b"not text",
        bytes_2: b"not text either",
        b"moved": b"after it moved",
        b"deleted, then moved": b"after",
        b"at once": b"in the higher",
        b"empty": b"",
    }
    assert [row["value_text"] for row in latest.where("key_text = 'moved'").collect()] == [
        "after it moved"
    ]


def test_the_last_values_are_the_models_and_compaction_changes_none(
    make_log, spark, schema
) -> None:
    drawn = random.Random(7)
    log = make_log(3, cleanup_policy="compact", segment_ms=40, min_cleanable_dirty_ratio=0.01)
    last: dict[tuple[bytes, int], tuple[int, int, Key]] = {}
    for number in range(400):
        key, partition = b"k%d" % drawn.randrange(40), drawn.randrange(3)
        value = None if drawn.random() < 0.2 else b"%d" % number
        at_ms = number + drawn.randrange(30)
        log.send(Record("orders", partition, 0, EPOCH_MS + at_ms, key, value))
        last[key, partition] = (at_ms, partition, value)
    log.archive()
    by_key = {key: max(found for (k, _), found in last.items() if k == key) for key, _ in last}
    wanted = {key: value for key, (_, _, value) in by_key.items() if value is not None}

    name = log.lakelog.register("orders", schema, spark=spark).latest

    assert latest_values(spark.table(name)) == wanted
    (report,) = log.lakelog.cleanup("orders")
    assert sum(done.records_read - done.records_kept for done in report.compacted) > 0
    assert latest_values(spark.table(name)) == wanted


def latest_values(frame: Any) -> dict[bytes, bytes]:
    rows = frame.select("key", "value").collect()
    assert len({bytes(row["key"]) for row in rows}) == len(rows)
    return {bytes(row["key"]): bytes(row["value"]) for row in rows}


def test_a_filter_on_a_view_leaves_out_files(make_log, spark, schema, catalog) -> None:
    log = make_log(2, segment_ms=10_000)
    for partition in (0, 1):
        log.append(60, partition, batch=5)
    log.archive()
    files = len(log.lakelog.log("orders").table.snapshot().files)
    assert files >= 10
    registered = log.lakelog.register("orders", schema, spark=spark)
    view, latest = spark.table(registered.view), spark.table(registered.latest)

    assert files_read(view) == files
    assert files_read(view.where("partition = 1")) == files / 2
    assert files_read(view.where("partition = 0 AND offset = 33")) == 1
    assert files_read(view.where(f"timestamp = timestamp_millis({EPOCH_MS + 33_000})")) == 2
    assert files_read(view.where("offset >= 55").select("value_json")) == 2
    one_key = latest.where("key_text = 'k1'")
    plan = one_key._jdf.queryExecution().optimizedPlan().toString()
    # Each reading of the table leaves out other keys, also the one that groups them.
    assert plan.count("= k1") == plan.count(f"Relation {catalog}.") >= 2
    assert one_key.count() == 1


def test_columns_that_the_table_got_are_shown_after_registering_again(
    make_log, spark, schema
) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    registered = log.lakelog.register("orders", schema, spark=spark)
    spark.sql(
        f"ALTER TABLE {registered.table} ADD COLUMNS "
        "(amount INT COMMENT 'in cents, it\\'s \"gross\"', `at-time` STRUCT<header: INT>, last INT)"
    )
    assert "amount" not in spark.table(registered.view).columns

    assert log.lakelog.register("orders", schema, spark=spark) == registered

    for name in (registered.view, registered.latest):
        fields = {field.name: field for field in spark.table(name).schema}
        assert list(fields)[-3:] == ["amount", "at-time", "last"]
        assert fields["amount"].metadata["comment"] == 'in cents, it\'s "gross"'
        assert spark.table(name).where("`at-time`.header IS NULL AND last IS NULL").count() == 3


def test_views_are_made_again_only_if_they_would_be_others(
    make_log: Any, spark: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: SparkLog = make_log()
    log.append(3)
    log.archive()
    made: list[str] = []

    def run(session: Any, statement: str) -> list[Any]:
        made.append(statement)
        return list(entry.run(session, statement))

    monkeypatch.setattr(views, "run", run)
    registered = log.lakelog.register("orders", schema, spark=spark)
    assert len(made) == 2
    assert log.lakelog.register("orders", schema, spark=spark) == registered
    assert len(made) == 2
    spark.sql(f"DROP VIEW {registered.latest}")
    log.lakelog.register("orders", schema, spark=spark)
    assert len(made) == 3
    spark.sql(f"ALTER TABLE {registered.table} ADD COLUMNS (amount INT)")
    log.lakelog.register("orders", schema, spark=spark)
    assert len(made) > 4
    assert spark.table(registered.latest).columns[-1] == "amount"


@pytest.mark.parametrize("second", ["view", "latest"])
def test_a_topic_called_as_a_view_of_another_is_refused_by_name(
    make_log, spark, schema, second
) -> None:
    orders, other = make_log(), make_log(name=f"orders_{second}")
    for log in (orders, other):
        log.append(3)
        log.archive()
    other.lakelog.register(other.name, schema, spark=spark)
    with pytest.raises(
        ForeignTableError,
        match=rf"`orders_{second}` should be a view of topic 'orders', but is the external table "
        rf"of topic 'orders_{second}'.*another schema",
    ):
        orders.lakelog.register("orders", schema, spark=spark)
    assert rows_of(spark.table(f"{schema}.orders_{second}")) == other.expected()
    assert not spark.catalog.tableExists(f"{schema}.orders_{second}_{second}_{second}")


def test_a_table_called_as_a_view_of_another_topic_is_refused_by_name(
    make_log, spark, schema
) -> None:
    orders, other = make_log(), make_log(name="orders_view")
    for log in (orders, other):
        log.append(3)
        log.archive()
    orders.lakelog.register("orders", schema, spark=spark)
    with pytest.raises(ForeignTableError, match=r"but is the view of topic 'orders'.*are views"):
        other.lakelog.register("orders_view", schema, spark=spark)
    assert rows_of(spark.table(f"{schema}.orders_view")) == orders.expected()


def test_a_view_of_somebody_else_stays(make_log, spark, schema) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    spark.sql(f"CREATE VIEW {schema}.orders_latest AS SELECT 1 AS a")
    with pytest.raises(
        ForeignTableError, match=r"orders_latest.*is the view that belongs to no topic"
    ):
        log.lakelog.register("orders", schema, spark=spark)
    assert spark.table(f"{schema}.orders_latest").columns == ["a"]
    assert not spark.catalog.tableExists(f"{schema}.orders_view")


def test_an_engine_without_variant_has_no_such_column(
    make_log: Any, spark: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: SparkLog = make_log()
    log.append(3)
    log.archive()
    monkeypatch.setattr(views, "VARIANT", "no_such_function(value)")
    registered = log.lakelog.register("orders", schema, spark=spark)
    assert "value_json" not in spark.table(registered.view).columns
    assert spark.table(registered.latest).where("value_text = '0/2'").count() == 1


def test_an_empty_topic_has_empty_views(make_log, spark, schema) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    orders = log.lakelog.log("orders")
    orders.raise_log_start(0, 3)
    log.lakelog.topics.alter("orders", {"retention.bytes": 1})
    log.lakelog.cleanup("orders")
    registered = log.lakelog.register("orders", schema, spark=spark)
    assert spark.table(registered.view).count() == 0
    assert spark.table(registered.latest).count() == 0
