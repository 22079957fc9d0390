"""A log whose topics are archived into tables by name: everything a user does with one."""

from __future__ import annotations

import json

import msgspec
import pytest
from spark_log import SPARKS_OWN, Row, SparkLog, files_read, rows_of

import lakelog.spark
from lakelog import Lakelog
from lakelog.errors import (
    ColdTierError,
    ForeignTableError,
    InvalidArgumentError,
    UnknownTopicOrPartitionError,
)
from lakelog.place import NamedRoot, PathRoot, cold_root
from lakelog.values.offsets import AtTimestamp
from lakelog.values.record import Record
from lakelog.values.topic import Topic

EPOCH_MS = 1_700_000_000_000


def test_a_log_by_name_is_archived_read_sought_and_framed(log: SparkLog, spark, schema) -> None:
    log.create(2)
    for partition in (0, 1):
        log.append(300, partition, batch=150)
    log.archive()
    log.append(50)  # stays hot

    unified = log.lakelog.log("orders")
    offsets = unified.offsets()
    assert (offsets[0].archived_end, offsets[0].log_end) == (300, 350)
    assert offsets[0].local_log_start == 300
    values = [
        value
        for batch in unified.read(0, "earliest", "latest")
        for value in batch.column("value").to_pylist()
    ]
    assert values == [row[3] for row in log.rows if row[0] == 0]
    assert unified.seek(0, AtTimestamp(EPOCH_MS + 123_500)) == 124
    assert rows_of(unified.dataframe()) == log.expected()
    assert rows_of(unified.dataframe({0: 290}, {0: 310})) == [
        row for row in log.expected() if row[0] == 0 and 290 <= row[1] < 310
    ]
    assert rows_of(spark.table(f"{schema}.orders_view")) == [
        row for row in log.expected() if row[1] < 300
    ]
    frame = lakelog.spark.read(spark, log.url, schema, "orders")
    assert rows_of(frame) == log.expected()
    archived = lakelog.spark.read(spark, None, schema, "orders")
    assert rows_of(archived) == [row for row in log.expected() if row[1] < 300]


@pytest.mark.slow
def test_a_topic_is_compacted_and_expires_without_redis(log: SparkLog, spark, schema) -> None:
    log.create(
        1,
        cleanup_policy="compact,delete",
        min_cleanable_dirty_ratio=0,
        internal_segment_bytes=4_000,
        file_delete_delay_ms=0,
    )
    log.append(200, keys=5, batch=20)
    log.archive()
    alone = Lakelog.connect(None, schema)
    segments = log.lakelog.log("orders").table.snapshot().files.segments(0)
    assert len(segments) > 2

    assert any(step.action == "clean" for plan in alone.cleanup_plan() for step in plan.steps)
    (report,) = alone.cleanup()
    assert not report.failures
    assert report.compacted[0].records_dropped > 0
    open_base = segments[-1].base_offset
    kept = {row[2]: row for row in log.rows if row[1] < open_base}
    expected = sorted([*kept.values(), *(row for row in log.rows if row[1] >= open_base)])
    assert rows_of(log.lakelog.dataframe("orders")) == expected
    assert rows_of(spark.table(f"{schema}.orders")) == expected
    (again,) = alone.cleanup(steps=("retain", "compact", "optimize"))
    assert not again

    before = log.lakelog.log("orders").offsets()[0].log_start
    expired = alone.cleanup_plan(settings={"retention.bytes": 1})
    assert any(step.action == "delete" for plan in expired for step in plan.steps)
    log.lakelog.topics.alter("orders", {"retention.bytes": 1})
    log.lakelog.cleanup("orders", steps=("retain",))
    after = log.lakelog.log("orders").offsets()[0].log_start
    assert before < after <= 200
    with pytest.raises(UnknownTopicOrPartitionError, match=schema):
        alone.cleanup("nobody")


@pytest.mark.slow
def test_the_history_says_what_each_commit_did(log: SparkLog, spark, schema) -> None:
    log.create(
        1,
        cleanup_policy="compact,delete",
        min_cleanable_dirty_ratio=0,
        internal_segment_bytes=4_000,
    )
    log.append(200, keys=5, batch=20)
    log.archive()
    log.lakelog.cleanup("orders", steps=("compact",))
    log.lakelog.topics.alter("orders", {"retention.bytes": 1})
    log.lakelog.cleanup("orders", steps=("retain",))
    said = spark.sql(f"DESCRIBE HISTORY {schema}.orders").selectExpr(
        "version", "get_json_object(userMetadata, '$.operation') operation"
    )
    found = [row["operation"] for row in said.orderBy("version").collect() if row["operation"]]
    assert list(dict.fromkeys(found)) == ["archive", "compact", "retain"]


@pytest.mark.slow
def test_value_columns_are_in_the_table(log: SparkLog, spark, schema) -> None:
    log.create(1, lakelog_value_columns="id bigint, city string")
    with log.lakelog.producer() as producer:
        for value in (b'{"id": 1, "city": "Oslo"}', b"no JSON", None):
            producer.send("orders", value, key=b"k")
    (report,) = log.lakelog.archive("orders")
    assert report.unparsed == 1
    rows = spark.table(f"{schema}.orders").orderBy("offset").collect()
    assert [(row["id"], row["city"]) for row in rows] == [(1, "Oslo"), (None, None), (None, None)]
    assert [row["value_error"] is None for row in rows] == [True, False, True]

    columns = "id bigint, city string, vip boolean"
    log.lakelog.topics.alter("orders", {"lakelog.value.columns": columns})
    with log.lakelog.producer() as producer:
        producer.send("orders", b'{"id": 2, "vip": true}', key=b"k")
    log.lakelog.archive("orders")
    rows = spark.table(f"{schema}.orders").orderBy("offset").collect()
    assert [row["vip"] for row in rows] == [None, None, None, True]
    assert files_read(spark.table(f"{schema}.orders")) == 2
    for where in ("id = 2", "id > 1", "city = 'Oslo'", "value_error is not null"):
        assert files_read(spark.table(f"{schema}.orders").where(where)) == 1


@pytest.mark.slow
def test_values_of_another_format_are_columns_of_the_table(log: SparkLog, spark, schema) -> None:
    log.create(1, lakelog_value_columns="id bigint", lakelog_value_format="messagepack")
    with log.lakelog.producer() as producer:
        for value in (msgspec.msgpack.encode({"id": 1}), b"\xc1", None):
            producer.send("orders", value, key=b"k")
    (report,) = log.lakelog.archive("orders")
    assert report.unparsed == 1
    rows = spark.table(f"{schema}.orders").orderBy("offset").collect()
    assert [row["id"] for row in rows] == [1, None, None]
    assert [row["value_error"] is None for row in rows] == [True, False, True]


@pytest.mark.slow
def test_settings_and_registers_may_be_longer_than_a_catalog_keeps_of_a_property(
    log: SparkLog, schema: str
) -> None:
    lake = log.lakelog
    partitions = 30
    longer = f"id bigint COMMENT '{'its the number ' * 30}'"
    log.create(partitions, lakelog_value_columns=longer)
    alone = Lakelog.connect(None, schema)
    for columns in (longer, longer.replace("the", "no"), "id bigint COMMENT 'short'", longer):
        lake.topics.alter("orders", {"lakelog.value.columns": columns})
        for partition in range(partitions):
            log.append(1, partition)
        log.archive()
        assert alone.cleanup()  # lists the place
        found = alone.topics.get("orders")
        assert found.config == lake.topics.get("orders").config
        with Lakelog.connect(log.url, schema) as other:
            ends = {n: one.archived_end for n, one in other.log("orders").offsets().items()}
        assert ends == dict.fromkeys(range(partitions), len(log.rows) // partitions)


def test_a_table_at_a_path_with_long_settings_gets_its_name(redis_url, spark, schema, tmp_path):
    at = tmp_path / "cold"
    with Lakelog.connect(redis_url, schema, location=at, engine="inline") as lake:
        log = SparkLog(redis_url, at)
        log.create(1, lakelog_value_columns=f"id bigint COMMENT '{'long ' * 100}'")
        log.append(5)
        (report,) = lake.archive("orders")
        assert report.troubles == ()
        assert rows_of(spark.table(f"{schema}.orders_view")) == log.expected()
        log.lakelog.close()


@pytest.mark.slow
def test_value_columns_of_any_legal_name_are_archived_registered_and_framed(
    log: SparkLog, spark, schema
) -> None:
    odd = ["a.b", "a.b.c", "lakelog_key", "lakelog_last", "_lakelog_measure", "é", "1st", "a'\"\\"]
    columns = ", ".join(f"`{name}` int" for name in odd)
    nested = "`x.y` struct<`z.w`: int, `select-from`: array<struct<`é`: int>>>"
    log.create(1, lakelog_value_columns=f"{columns}, {nested}")
    inside = {"z.w": 7, "select-from": [{"é": 8}]}
    value = json.dumps({**dict.fromkeys(odd, 5), "x.y": inside})
    for _ in range(2):  # the second finds the columns there
        with log.lakelog.producer() as producer:
            producer.send("orders", value, key=b"k")
        log.lakelog.archive("orders")
    with log.lakelog.producer() as producer:
        producer.send("orders", value, key=b"k")
    registered = log.lakelog.register("orders", schema, spark=spark)
    frames = {
        3: log.lakelog.dataframe("orders"),
        2: spark.table(registered.view),
        1: spark.table(registered.latest),
    }
    for count, frame in frames.items():
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        assert [{name: row[name] for name in [*odd, "x.y"]} for row in rows] == [
            json.loads(value)
        ] * count


@pytest.mark.slow
def test_a_lost_redis_comes_back_from_tables_by_name(log: SparkLog, redis_client) -> None:
    topic = log.create(2).lakelog.topics.get("orders")
    log.append(120)
    log.archive()
    archived = log.expected()
    log.append(5)  # lost
    redis_client.flushall()
    assert [one.topic_id for one in log.lakelog.restorable()] == [topic.topic_id]

    (restored,) = log.lakelog.restore()

    assert (restored.topic.topic_id, restored.topic.config) == (topic.topic_id, topic.config)
    assert restored.partitions[0].archived_end == 120
    assert restored.partitions[0].log_end >= 125
    assert log.lakelog.restorable() == log.lakelog.restore() == []
    with log.lakelog.producer() as producer:
        sent = producer.send("orders", b"after", partition=0).result()
    assert sent.offset == restored.partitions[0].log_end
    log.lakelog.archive()
    rows = rows_of(log.lakelog.dataframe("orders"))
    assert rows == [*archived, (0, sent.offset, None, b"after")]

    log.lakelog.topics.delete("orders")
    assert log.lakelog.restorable() == []


@pytest.mark.slow
def test_a_deleted_topic_by_name_comes_back_and_is_dropped(
    log: SparkLog, spark, schema, redis_client
) -> None:
    lake = log.create(2).lakelog
    log.append(120)
    log.archive()
    log.append(5)
    expected = log.expected()
    assert rows_of(lake.dataframe("orders")) == expected
    deleted = lake.topics.delete("orders")
    (told,) = NamedRoot(schema, lambda: spark).catalogue().deleted
    assert (told.topic_id, told.deleted_ms) == (deleted.topic_id, deleted.deleted_ms)
    assert lake.cleanup() == []

    assert lake.undelete("orders").kept_hot
    assert rows_of(lake.dataframe("orders")) == expected
    log.append(3)
    log.archive()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()

    lake.topics.delete("orders")
    purged = lake.purge("orders", deleted.topic_id)
    assert purged.cold is not None
    assert purged.cold.files > 0
    assert purged.cold.left == ()
    assert spark.sql(f"SHOW TABLES IN {schema}").collect() == []
    log.create(1, file_delete_delay_ms=0)
    log.append(2)
    log.archive()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()
    lake.topics.delete("orders")
    (report,) = lake.cleanup()
    assert report.purged is not None
    assert spark.sql(f"SHOW TABLES IN {schema}").collect() == []
    assert redis_client.keys("*stream:orders*") == []


def test_a_purge_at_a_location_takes_the_names_too(redis_url, spark, schema, tmp_path) -> None:
    with Lakelog.connect(redis_url, schema, location=tmp_path / "cold", engine="inline") as lake:
        log = SparkLog(redis_url, tmp_path / "cold")
        log.create(1)
        log.append(20)
        lake.archive("orders")
        assert len(spark.sql(f"SHOW TABLES IN {schema}").collect()) == 3
        lake.topics.delete("orders")
        assert len(spark.sql(f"SHOW TABLES IN {schema}").collect()) == 3
        assert lake.purge("orders").cold.files > 1
        assert spark.sql(f"SHOW TABLES IN {schema}").collect() == []
        log.lakelog.close()


def tables(spark, schema: str) -> set[str]:
    """The names of a schema, without its views."""
    views = {row[1] for row in spark.sql(f"SHOW VIEWS IN {schema}").collect()}
    return {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()} - views


class Creations:
    """A topic that was archived, deleted and made again, and archived."""

    def __init__(self, log: SparkLog, spark, schema: str) -> None:
        self.log, self.spark, self.schema, self.lake = log, spark, schema, log.lakelog
        self.first = self._made()
        self.first_rows = log.expected()
        self.lake.topics.delete("orders")
        self.second = self._made()
        self.second_rows = log.expected()
        self.names = ("orders", f"orders_{self.second.topic_id.hex[:8]}")

    def _made(self) -> Topic:
        self.log.create(1).append(10 if not self.log.rows else 3)
        self.log.archive()
        return self.lake.topics.get("orders")

    def check(self, rows: list[Row]) -> None:
        """Every way to the topic that is there has these rows."""
        assert rows_of(self.lake.dataframe("orders")) == rows
        alone = Lakelog.connect(None, self.schema)
        assert [topic.name for topic in alone.topics.list()] == ["orders"]
        assert rows_of(alone.dataframe("orders")) == rows
        assert rows_of(self.spark.table(f"{self.schema}.orders_view")) == rows

    def check_tables(self, *rows: list[Row] | None) -> None:
        """The tables of the first and the second creation, each with its rows; None: it is gone."""
        there = dict(zip(self.names, rows, strict=True))
        assert tables(self.spark, self.schema) == {name for name in there if there[name]}
        for name, expected in there.items():
            if expected:
                assert rows_of(self.spark.table(f"{self.schema}.{name}")) == expected


@pytest.fixture
def creations(log: SparkLog, spark, schema) -> Creations:
    return Creations(log, spark, schema)


@pytest.mark.slow
def test_a_topic_made_again_has_a_table_of_its_own(creations: Creations) -> None:
    lake, first, second = creations.lake, creations.first, creations.second
    creations.check_tables(creations.first_rows, creations.second_rows)
    creations.check(creations.second_rows)
    assert not lake.cleanup()[0].failures
    alone = Lakelog.connect(None, creations.schema)
    assert [topic.topic_id for topic in alone.deleted()] == [first.topic_id]
    registered = lake.register("orders")
    assert registered.table.endswith(f"`{creations.names[1]}`")

    purged = lake.purge("orders")
    assert purged.topic.topic_id == first.topic_id
    creations.check_tables(None, creations.second_rows)
    creations.log.append(2)
    creations.log.archive()
    creations.check_tables(None, creations.log.expected())
    creations.check(creations.log.expected())
    assert lake.topics.get("orders").topic_id == second.topic_id


@pytest.mark.slow
def test_each_creation_comes_back_to_its_own_table(creations: Creations) -> None:
    lake, log = creations.lake, creations.log
    lake.topics.delete("orders")
    lake.undelete("orders", creations.first.topic_id)
    log.rows = list(creations.first_rows)
    log.append(4)
    log.archive()
    creations.check(log.expected())
    creations.check_tables(log.expected(), creations.second_rows)

    first_rows = log.expected()
    lake.topics.delete("orders")
    lake.undelete("orders", creations.second.topic_id)
    log.rows = list(creations.second_rows)
    log.append(4)
    log.archive()
    creations.check(log.expected())
    creations.check_tables(first_rows, log.expected())
    lake.topics.delete("orders")
    lake.purge("orders", creations.second.topic_id)
    creations.check_tables(first_rows, None)


@pytest.mark.slow
def test_a_lost_redis_comes_back_to_the_newest_creation(creations: Creations, redis_client) -> None:
    redis_client.flushall()
    (restored,) = creations.lake.restore()
    assert restored.topic.topic_id == creations.second.topic_id
    creations.log.send(Record("orders", 0, 0, EPOCH_MS, b"k", b"after"))
    creations.log.archive()
    rows = rows_of(creations.lake.dataframe("orders"))
    assert rows[:-1] == creations.second_rows
    creations.check(rows)
    creations.check_tables(creations.first_rows, rows)


@pytest.mark.slow
def test_what_has_the_name_is_not_touched_and_there_is_a_way_on(
    log: SparkLog, spark, schema, redis_client
) -> None:
    lake = log.create(1).lakelog
    log.append(10)
    log.archive()
    old = log.expected()

    def refused(match: str, name: str = "orders") -> None:
        lake.topics.create(name, 1, {"local.retention.ms": 0})
        with lake.producer() as producer:
            producer.send(name, b"new").result()
        with pytest.raises(ForeignTableError, match=match):
            lake.archive(name)
        assert rows_of(spark.table(f"{schema}.orders")) == old
        lake.topics.delete(name)
        lake.purge(name)

    refused("differ in .* case .*another schema", "Orders")
    redis_client.flushall()
    refused(r"`lakelog restore orders`.*`lakelog topics create orders --anew`")
    lake.restore()
    lake.topics.delete("orders")
    redis_client.flushall()
    refused(r"which was deleted\. `lakelog topics purge orders --id .*--anew`")

    lake.topics.create("orders", 1, {"local.retention.ms": 0}, anew=True)
    with lake.producer() as producer:
        producer.send("orders", b"new").result()
    lake.archive("orders")
    assert rows_of(spark.table(f"{schema}.orders")) == old
    assert rows_of(lake.dataframe("orders")) == [(0, 0, None, b"new")]


def test_a_table_of_somebody_else_is_refused(log: SparkLog, spark, schema) -> None:
    spark.sql(f"CREATE TABLE {schema}.orders (a INT) USING delta")
    log.create(1).append(3)
    with pytest.raises(ForeignTableError, match="a table that lakelog did not make"):
        log.archive()
    assert spark.table(f"{schema}.orders").columns == ["a"]


@pytest.mark.slow
def test_tables_at_a_location_are_known_by_name(redis_url, spark, schema, tmp_path) -> None:
    log = SparkLog(redis_url, tmp_path / "cold")
    with Lakelog.connect(
        redis_url, schema, location=tmp_path / "cold", engine="inline"
    ) as external:
        log.create(1)
        log.append(20)
        external.archive("orders")
        assert rows_of(spark.table(f"{schema}.orders")) == log.expected()
        assert rows_of(spark.table(f"{schema}.orders_view")) == log.expected()
    for url in (redis_url, None):
        frame = lakelog.spark.read(
            spark, url, schema, "orders", 5, 15, location=str(tmp_path / "cold")
        )
        assert rows_of(frame) == log.expected(5, 15)
        with pytest.raises(ForeignTableError, match=r"committed to by path.*location='…'"):
            lakelog.spark.read(spark, url, schema, "orders")
    by_name = SparkLog(redis_url, schema)
    with pytest.raises(ForeignTableError, match="--location"):
        by_name.archive()
    by_name.lakelog.close()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()
    log.lakelog.close()


@pytest.mark.slow
@pytest.mark.usefixtures("through_spark")
def test_where_tasks_cannot_read_what_was_archived_under_a_frames_tail_it_is_an_error(
    log: SparkLog, catalog: str
) -> None:
    if catalog != SPARKS_OWN:
        pytest.skip("tasks ask the server by themselves")
    log.create(1)
    log.append(20)
    log.archive()
    log.append(20)
    frame = log.lakelog.dataframe("orders")
    assert frame.count() == 40
    log.archive()  # and trimmed
    with pytest.raises(Exception, match=r"only Spark itself can read, not its tasks.*tablesAt"):
        frame.count()


def test_a_place_is_a_path_a_schema_or_a_schema_at_a_location(tmp_path) -> None:
    assert cold_root("main.logs") == NamedRoot("main.logs")
    assert str(cold_root("main.logs")) == "main.logs"
    for path in ("./a.b", "/data/a.b", "plain", tmp_path / "a.b"):
        place = cold_root(path)
        assert isinstance(place, PathRoot)
        assert place.schema is None
    external = cold_root("main.logs", tmp_path)
    assert (external.schema, external.storage.root) == ("main.logs", str(tmp_path))
    assert isinstance(external, PathRoot)
    assert cold_root(None) is None
    for wrong in (
        lambda: cold_root(tmp_path, tmp_path),
        lambda: cold_root(None, tmp_path),
        lambda: cold_root("main.logs", None, {"AWS_REGION": "eu-north-1"}),
    ):
        with pytest.raises(InvalidArgumentError):
            wrong()
    with pytest.raises(ColdTierError, match="no_such_schema"):
        NamedRoot("spark_catalog.no_such_schema").catalogue()
