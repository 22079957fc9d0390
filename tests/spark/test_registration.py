"""A table at a path under a name in a catalog: once, for good, and nobody else's."""

from __future__ import annotations

import json
import shutil
from uuid import UUID

import pytest
from spark_log import SPARKS_OWN, SparkLog, rows_of

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.cold.by_name.entry import CatalogEntry, look_up
from lakelog.cold.by_name.names import TableName
from lakelog.cold.schema import COLUMN_COMMENTS
from lakelog.errors import (
    ColdTierError,
    ForeignTableError,
    InvalidArgumentError,
    UnknownTopicOrPartitionError,
)
from lakelog.spark import register_topics
from lakelog.spark.catalog.topic_names import Step, plan
from lakelog.values.topic import Topic

OLD_ID, NEW_ID = UUID(int=1), UUID(int=2)
TOPIC = Topic("orders", NEW_ID, 1, generation=200)
NAME = TableName("main", "logs", "orders")


def test_a_registered_table_is_the_one_at_the_path_and_says_what_its_columns_mean(
    make_log, spark, schema
) -> None:
    log = make_log(2)
    log.append(20)
    log.archive()

    registered = log.lakelog.register("orders", schema, spark=spark)

    assert registered.table == "`" + schema.replace(".", "`.`") + "`.`orders`"
    assert rows_of(spark.table(registered.table)) == log.expected()
    described = spark.sql(f"DESCRIBE {registered.table}").collect()
    comments = {row["col_name"]: row["comment"] for row in described}
    assert {name: comments[name] for name in COLUMN_COMMENTS} == COLUMN_COMMENTS
    log.append(5, 1)
    log.archive()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()


def test_registering_again_changes_nothing_and_dropping_the_name_keeps_the_table(
    make_log, spark, schema
) -> None:
    log = make_log()
    log.append(20)
    log.archive()
    table = log.lakelog.log("orders").table
    version = table.snapshot().version
    first = log.lakelog.register("orders", schema, spark=spark)
    assert log.lakelog.register("orders", schema, spark=spark) == first
    assert table.snapshot().version == version

    spark.sql(f"DROP TABLE {first.table}")
    assert rows_of(log.lakelog.dataframe("orders")) == log.expected()
    log.lakelog.register("orders", schema, spark=spark)
    assert rows_of(spark.table(first.table)) == log.expected()


def test_spark_alters_a_table_of_ours_and_archiving_goes_on(make_log, spark, schema) -> None:
    log = make_log()
    log.append(20)
    log.archive()
    name = log.lakelog.register("orders", schema, spark=spark).table
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN key COMMENT 'the customer'")
    log.append(20)
    log.archive()
    assert rows_of(spark.table(name)) == log.expected()


def test_hostile_names_are_names(make_log, spark, schema, tmp_path) -> None:
    log = make_log(name="Shop.orders-EU_1")
    log.append(3)
    log.archive()
    registered = log.lakelog.register(log.name, schema, spark=spark)
    assert registered.table.endswith("`shop_orders_eu_1`")
    assert registered.latest.endswith("`shop_orders_eu_1_latest`")
    assert rows_of(spark.table(registered.view)) == log.expected()

    other = make_log(name="shop-orders.eu_1")
    other.append(3)
    other.archive()
    with pytest.raises(ForeignTableError, match=r"of topic 'Shop.orders-EU_1'.*differ in case"):
        other.lakelog.register(other.name, schema, spark=spark)
    assert rows_of(spark.table(registered.table)) == log.expected()


def test_a_root_may_have_spaces_and_quotes(redis_url, spark, schema, catalog, tmp_path) -> None:
    log = SparkLog(redis_url, tmp_path / 'it\'s `our` "cold" root').create()
    log.append(3)
    log.archive()
    if catalog != SPARKS_OWN:
        with pytest.raises(ColdTierError, match="Unsupported path"):
            log.lakelog.register("orders", schema, spark=spark)
        return
    for _ in range(2):
        registered = log.lakelog.register("orders", schema, spark=spark)
    assert rows_of(spark.table(registered.table)) == log.expected()
    log.lakelog.close()


def test_the_name_of_a_topic_made_again_moves_to_its_new_table(make_log, spark, schema) -> None:
    log = make_log()
    log.append(20)
    log.archive()
    old = log.lakelog.log("orders").table.path
    log.lakelog.register("orders", schema, spark=spark)
    log.lakelog.topics.delete("orders")
    log.create().append(5)
    log.archive()

    registered = log.lakelog.register("orders", schema, spark=spark)

    assert rows_of(spark.table(registered.table)) == log.expected()
    assert rows_of(spark.table(registered.view)) == log.expected()
    assert spark.read.format("delta").load(old).count() == 20


def test_a_name_whose_table_was_deleted_can_be_dropped_and_taken(make_log, spark, schema) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    name = f"{schema}.orders"
    spark.sql(f"CREATE TABLE {name} (a INT) USING delta LOCATION '{log.cold}/gone'")
    shutil.rmtree(log.cold / "gone")
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    with pytest.raises(ColdTierError, match=r"PATH_DOES_NOT_EXIST.*/gone.*DROP TABLE"):
        log.lakelog.register("orders", schema, spark=spark)
    spark.sql(f"DROP TABLE {name}")
    log.lakelog.register("orders", schema, spark=spark)
    assert rows_of(spark.table(name)) == log.expected()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            "CREATE TABLE {} (a INT) USING delta",
            r"managed table that belongs to no topic.*DROP TABLE",
        ),
        ("CREATE TABLE {} (a INT) USING parquet", r"managed table that belongs to no topic"),
        ("CREATE TABLE {} (a INT) USING delta LOCATION '{at}'", r"external table.*files stay"),
        ("CREATE VIEW {} AS SELECT 1 AS a", r"the view that belongs to no topic.*DROP VIEW"),
    ],
)
def test_what_is_somebody_elses_is_refused_and_stays(
    make_log, spark, schema, catalog, tmp_path, made, said
) -> None:
    if catalog != SPARKS_OWN and "parquet" in made:
        pytest.skip("all its own tables are Delta's")
    log = make_log()
    log.append(3)
    log.archive()
    name = f"{schema}.orders"
    spark.sql(made.format(name, at=tmp_path / "elsewhere"))

    with pytest.raises(ForeignTableError, match=said):
        log.lakelog.register("orders", schema, spark=spark)

    assert spark.table(name).columns == ["a"]
    assert not spark.catalog.tableExists(f"{name}_view")


def test_a_copy_of_the_table_is_not_the_table(make_log, spark, schema, tmp_path) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    shutil.copytree(log.lakelog.log("orders").table.path, tmp_path / "copy")
    spark.sql(f"CREATE TABLE {schema}.orders USING delta LOCATION '{tmp_path}/copy'")
    with pytest.raises(ForeignTableError, match="/copy"):
        log.lakelog.register("orders", schema, spark=spark)


def test_what_cannot_be_registered_says_why(make_log, spark, schema) -> None:
    log = make_log()
    with pytest.raises(ColdTierError, match="nothing of it was archived"):
        log.lakelog.register("orders", schema, spark=spark)
    log.append(3)
    log.archive()
    with pytest.raises(ColdTierError, match=r"SCHEMA_NOT_FOUND.*nowhere"):
        log.lakelog.register("orders", "spark_catalog.nowhere", spark=spark)
    for text in ("orders", "a.b.c", "a/b.c", ""):
        with pytest.raises(InvalidArgumentError, match="two names with a dot"):
            log.lakelog.register("orders", text, spark=spark)
    untiered = make_log(name="untiered", remote_storage_enable=False, local_retention_ms=-2)
    with pytest.raises(InvalidArgumentError, match="no cold tier"):
        untiered.lakelog.register("untiered", schema, spark=spark)


def test_a_column_called_location_is_not_the_location(make_log, spark, schema) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    registered = log.lakelog.register("orders", schema, spark=spark)
    spark.sql(f"ALTER TABLE {registered.table} ADD COLUMNS (Location STRING, Type INT)")
    entry = look_up(spark, TableName(*schema.split("."), "orders"))
    assert entry is not None
    assert (entry.kind, entry.topic_name) == ("EXTERNAL", "orders")
    assert entry.location.endswith(log.lakelog.log("orders").table.path)


def test_tables_are_registered_without_redis(make_redis, tmp_path, spark, schema) -> None:
    server = make_redis()
    log = SparkLog(server.url, tmp_path / "cold").create()
    other = SparkLog(server.url, tmp_path / "cold", "returns").create()
    for one in (log, other):
        one.append(3)
        one.archive()
    server.kill()

    found = register_topics(spark, str(log.cold), schema)
    assert [one.topic for one in found] == ["orders", "returns"]
    assert rows_of(spark.table(f"{schema}.returns_view")) == other.expected()
    assert register_topics(spark, str(log.cold), schema, "orders") == found[:1]
    with pytest.raises(UnknownTopicOrPartitionError, match=r"there are orders, returns"):
        register_topics(spark, str(log.cold), schema, ["nothing"])
    with pytest.raises(InvalidArgumentError, match=r"name the catalog\.schema"):
        register_topics(spark, str(log.cold))


def test_archiving_to_a_schema_with_a_location_registers_and_follows_typed_columns(
    redis_url, tmp_path, spark, schema
) -> None:
    topic = {"retention.ms": -1, "local.retention.ms": 0, "lakelog.value.columns": "a INT"}
    with Lakelog.connect(redis_url, schema, location=tmp_path / "cold", engine="inline") as log:
        log.topics.create("orders", 1, topic)

        def send(value: str) -> None:
            with log.producer() as producer:
                producer.send("orders", value, key="k").result()

        send('{"a": 1}')
        log.archive()
        assert [row["a"] for row in spark.table(f"{schema}.orders_view").collect()] == [1]
        log.topics.alter("orders", {"lakelog.value.columns": "a INT, b STRING COMMENT 'the b'"})
        send('{"a": 2, "b": "two"}')
        log.archive()

    latest = spark.table(f"{schema}.orders_latest")
    assert latest.select("a", "b", "value_text").collect() == [(2, "two", '{"a": 2, "b": "two"}')]
    assert latest.schema["b"].metadata["comment"] == "the b"
    assert (tmp_path / "cold" / "orders").is_dir()


@pytest.mark.slow
def test_a_table_by_name_has_its_views_beside_it(redis_url, spark, schema) -> None:
    with Lakelog.connect(redis_url, schema) as log:
        log.topics.create("orders", 1, {"retention.ms": -1, "local.retention.ms": 0})
        for value in ("old", "new"):
            with log.producer() as producer:
                producer.send("orders", value, key="k").result()
            log.archive()
        with pytest.raises(InvalidArgumentError, match=r"archived to the catalog's own table"):
            log.register("orders", "spark_catalog.default")
        assert log.register("orders").view.endswith("`orders_view`")
        (again,) = register_topics(spark, schema)
        assert again == log.register("orders")

    table = spark.table(f"{schema}.orders")
    comments = {field.name: field.metadata.get("comment") for field in table.schema}
    assert comments == COLUMN_COMMENTS
    assert spark.table(f"{schema}.orders_view").count() == 2
    assert [row["value_text"] for row in spark.table(f"{schema}.orders_latest").collect()] == [
        "new"
    ]


def test_the_command_registers_and_refuses_names_that_would_not_last(
    make_log, spark, schema, catalog, monkeypatch, capsys
) -> None:
    log = make_log()
    log.append(3)
    log.archive()
    command = ["--cold", str(log.cold), "register", "--in", schema, "--output", "json"]
    if catalog == SPARKS_OWN:
        assert cli.main(command) == 1
        assert "keeps its catalog in memory" in capsys.readouterr().err
        assert not spark.catalog.tableExists(f"{schema}.orders")
        monkeypatch.setattr("lakelog.cli.register._check_lasting", lambda spark, schema: None)
    assert cli.main(command) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["topic"] == "orders"
    assert rows_of(spark.table(shown["view"])) == log.expected()
    assert cli.main(["--redis", log.url, *command[:3], "orders", *command[3:]]) == 0
    assert json.loads(capsys.readouterr().out) == [shown]


def external(location: str, **topic: object) -> CatalogEntry:
    properties = {f"lakelog.topic.{name}": str(value) for name, value in topic.items()}
    return CatalogEntry("EXTERNAL", location, properties)


@pytest.mark.parametrize(
    ("entry", "step"),
    [
        (None, Step.CREATE),
        (external(f"s3://cold/orders/{NEW_ID}/"), Step.NOTHING),
        (external(f"s3a://cold//orders/{NEW_ID}", name="orders", id=NEW_ID), Step.NOTHING),
        (external("s3://other/place", name="orders", id=OLD_ID, generation=100), Step.MOVE),
    ],
)
def test_what_makes_a_name_stand_for_a_table(entry: CatalogEntry | None, step: Step) -> None:
    assert plan(entry, NAME, f"s3://cold/orders/{NEW_ID}", TOPIC) is step


@pytest.mark.parametrize(
    "entry",
    [
        external("s3://copy/orders", name="orders", id=NEW_ID, generation=200),
        external(f"s3://cold/orders/{OLD_ID}", name="orders", id=OLD_ID, generation=300),
        external(f"s3://cold/orders/{OLD_ID}"),
        external(f"s3://cold/orders/{OLD_ID}", name="Orders", id=OLD_ID, generation=100),
        CatalogEntry("MANAGED", f"s3://cold/orders/{NEW_ID}"),
        CatalogEntry("VIEW"),
    ],
)
def test_what_a_name_may_not_be_taken_from(entry: CatalogEntry) -> None:
    with pytest.raises(ForeignTableError, match=r"`main`.`logs`.`orders` should be the table of"):
        plan(entry, NAME, f"s3://cold/orders/{NEW_ID}", TOPIC)
