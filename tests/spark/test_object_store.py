"""Spark and a log whose cold tier lies in S3: executors write it, the JVM reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any
from uuid import uuid4

import pytest
from spark_log import EPOCH_MS, rows_of

from lakelog import Lakelog
from lakelog.cold.store.storage import Storage
from lakelog.engines.spark import SparkEngine
from lakelog.errors import InvalidArgumentError, SparkUnavailableError
from lakelog.place import LogPlace, PathRoot
from lakelog.spark.options import log_place
from lakelog.values.topic import Topic

SECRET = "a secret word"


@pytest.fixture
def log(spark: Any, redis_url: str, s3_storage: Storage) -> Iterator[Lakelog]:
    """Its secret is given by reference."""
    options = {**s3_storage.store_options, "AWS_SECRET_ACCESS_KEY": "env:LAKELOG_TEST_SECRET"}
    with Lakelog.connect(
        redis_url, s3_storage.root, engine=SparkEngine(spark), storage_options=options
    ) as opened:
        opened.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": 0})
        yield opened


def fill(log: Lakelog, start: int, end: int) -> None:
    with log.producer() as producer:
        for n in range(start, end):
            producer.send(
                "orders",
                b"%d" % n,
                key=b"k%d" % (n % 3),
                partition=n % 2,
                timestamp_ms=EPOCH_MS + n,
            )


def test_executors_write_to_s3_and_frames_read_it(log, spark):
    fill(log, 0, 400)
    (report,) = log.archive("orders")
    assert report.records == 400
    fill(log, 400, 420)

    frame = log.dataframe("orders", spark=spark)

    expected = sorted((n % 2, n // 2, b"k%d" % (n % 3), b"%d" % n) for n in range(420))
    assert rows_of(frame) == expected
    shown = io.StringIO()
    with redirect_stdout(shown):
        frame.explain("extended")
    assert "s3://lakelog/" in shown.getvalue()
    assert SECRET not in shown.getvalue()


def test_the_data_source_opens_the_store_by_options_without_a_secret(
    log, spark, redis_url, s3_storage
):
    fill(log, 0, 100)
    log.archive("orders")
    options = {**s3_storage.store_options, "AWS_SECRET_ACCESS_KEY": "env:LAKELOG_TEST_SECRET"}

    frame = (
        spark.read.format("lakelog")
        .option("redis", redis_url)
        .option("cold", s3_storage.root)
        .option("storageOptions", json.dumps(options))
        .option("subscribe", "orders")
        .load()
    )

    assert sorted(row.offset for row in frame.select("offset").collect()) == sorted(
        n // 2 for n in range(100)
    )


def test_sql_reads_the_table_by_settings_of_the_session(log, spark, s3_storage):
    fill(log, 0, 100)
    log.archive("orders")
    topic = log.topics.get("orders")
    settings = s3_storage.spark_options()
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        table = s3_storage.table_path(topic)
        rows = spark.sql(f"SELECT count(*) AS records FROM delta.`{table}`").collect()
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert [row.records for row in rows] == [100]


@pytest.mark.parametrize(
    ("storage_options", "why"),
    [
        ('{"AWS_SECRET_ACCESS_KEY": "a secret word"}', "secret in clear"),
        ('{"AWS_SECRET_ACCESS_KEY": "a secret word"', "should be JSON"),
        ('["a secret word"]', "should be JSON"),
        ('{"AWS_SECRET_KEY": "a secret word"}', "did you mean AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_secrets_in_options_are_refused_and_not_repeated(storage_options, why):
    options = {"redis": "redis://host", "cold": "s3://bucket/log"}
    with pytest.raises(InvalidArgumentError, match=why) as refused:
        log_place({**options, "storageOptions": storage_options})
    assert SECRET not in str(refused.value)


def test_a_secret_given_in_clear_does_not_reach_a_plan():
    given = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET}
    made = LogPlace.of("redis://host", "s3://bucket/log", storage_options=given)
    with pytest.raises(InvalidArgumentError, match="secret in clear") as refused:
        made.options()
    assert SECRET not in str(refused.value) + repr(made)


def test_over_connect_a_plan_message_has_no_secret_and_no_key() -> None:
    from pyspark.sql.connect.session import SparkSession

    client = SparkSession.__new__(SparkSession)  # plans are made without a server
    given = {"AWS_ACCESS_KEY_ID": "a key", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "here"}
    root = PathRoot(Storage("s3://bucket/log", given))
    table = root.table(Topic("orders", uuid4(), 1))
    message = root.frame(client, table, 0)._plan.plan(None).SerializeToString()
    assert table.path.encode() in message
    assert SECRET.encode() not in message
    assert b"fs.s3" not in message


def test_a_spark_without_the_jars_says_where_they_come_from(spark):
    root = PathRoot(Storage("abfss://box@account.dfs.core.windows.net/logs"))
    table = root.table(Topic("orders", uuid4(), 1))
    with pytest.raises(SparkUnavailableError, match=r"object_stores=\['s3'\]"):
        root.frame(spark, table, 0)


def test_a_place_hands_on_references_and_what_is_no_secret():
    given = {"AWS_ENDPOINT_URL": "https://host:9", "AWS_SECRET_ACCESS_KEY": "env:WORD"}
    options = {"redis": "redis://host", "cold": "s3://bucket/log", "keyspace": "lakelog"}
    options["storageOptions"] = json.dumps(given)
    assert log_place(options).options() == options
    assert log_place(options).cold == PathRoot(Storage("s3://bucket/log", given))
