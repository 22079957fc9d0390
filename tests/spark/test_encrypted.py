"""Spark writes and reads encrypted topics: frames over both tiers, the source, the sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from msgspec.structs import replace
from spark_log import SparkLog, rows_of

import lakelog.spark
from lakelog.codec.encryption.keyring import new_data_keys
from lakelog.codec.encryption.of_topic import check_tasks_have_key
from lakelog.codec.encryption.sealed_values import MAGIC
from lakelog.errors import ContradictionError, InvalidArgumentError
from lakelog.spark import register
from lakelog.spark.datasource import HAS_READ_LIMITS
from lakelog.values.config import DATA_KEYS, ENCRYPTION_KEY


def test_spark_reads_and_writes_values_that_lie_nowhere_in_the_clear(
    make_log: Callable[..., SparkLog], spark, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("55" * 32)
    log = make_log(lakelog_encryption_key=f"file:{tmp_path}/key")
    lake = log.lakelog
    register(spark)
    rows = [(b"k%d" % number, b"secret %d" % number) for number in range(20)]
    frame = spark.createDataFrame(rows, "key binary, value binary")
    options = {"redis": log.url, "topic": log.name}
    frame.write.format("lakelog").options(**options).mode("append").save()
    log.archive()
    with lake.producer() as producer:
        for number in range(20, 30):
            producer.send(log.name, b"secret %d" % number, key=b"k%d" % number)

    expected = sorted(b"secret %d" % number for number in range(30))
    held = lake.dataframe(log.name)
    assert sorted(bytes(row.value) for row in held.collect()) == expected
    assert [bytes(row.value) for row in held.where("key = 'k3'").collect()] == [b"secret 3"]
    assert held.where("value = 'secret 25' or value = 'secret 5'").count() == 2
    assert held.where("partition = 0").count() == 30
    stored = lake.log(log.name, stored_values=True).dataframe()
    assert all(bytes(row.value).startswith(MAGIC) for row in stored.collect())
    source = spark.read.format("lakelog").options(**log.options())
    assert sorted(bytes(row.value) for row in source.load().collect()) == expected


@pytest.mark.slow
def test_a_stream_goes_from_one_encrypted_topic_to_another_while_keys_are_rotated(
    make_log: Callable[..., SparkLog], spark, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("66" * 32)
    log = make_log(2, lakelog_encryption_key=f"file:{tmp_path}/key")
    lake = log.lakelog
    lake.topics.create("copies", 1, {ENCRYPTION_KEY: f"file:{tmp_path}/key", "retention.ms": -1})
    register(spark)
    limit = {"maxOffsetsPerTrigger": "15"} if HAS_READ_LIMITS else {}
    options = log.options(startingOffsets="earliest", **limit)
    frame = spark.readStream.format("lakelog").options(**options)
    target = {"redis": log.url, "topic": "copies", "checkpointLocation": str(tmp_path / "c")}
    writer = frame.load().select("key", "value").writeStream.format("lakelog").options(**target)
    for first in (0, 40):
        with lake.producer() as producer:
            for number in range(first, first + 40):
                producer.send(log.name, b"secret %d" % number, key=b"k%d" % number)
                if number == first + 20:
                    producer.flush()
                    log.archive()
        writer.trigger(availableNow=True).start().awaitTermination()
        lake.topics.rotate_key(log.name)
        lake.topics.rotate_key("copies")

    def found(*, stored: bool) -> list[bytes | None]:
        records = lake.log("copies", stored_values=stored).read(0).records()
        return [record.value for record in records]

    assert sorted(found(stored=False)) == sorted(b"secret %d" % number for number in range(80))
    assert all(value is not None and value.startswith(MAGIC) for value in found(stored=True))


@pytest.mark.slow
def test_a_table_by_name_holds_what_it_takes_a_key_to_read(
    redis_url: str, schema: str, spark, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("99" * 32)
    log = SparkLog(redis_url, schema)
    with log.lakelog as lake:
        log.create(1, lakelog_encryption_key=f"file:{tmp_path}/key")
        log.append(20)
        log.archive()
        lake.topics.rotate_key("orders")
        log.append(20)
        log.archive()
        log.append(20)
        assert rows_of(lake.dataframe("orders")) == log.expected()
        assert rows_of(lakelog.spark.read(spark, None, schema, "orders")) == log.expected()[:40]
        archived = lake.archived.log("orders")
        found = [record.value for record in archived.read(0).records()]
        assert found == [row[3] for row in log.rows[:40]]
        mirrored = archived.table.mirrored()
        assert mirrored.config[DATA_KEYS] == lake.topics.get("orders").config[DATA_KEYS]
        for row in spark.table(f"{schema}.orders_view").collect():
            assert bytes(row.value).startswith(MAGIC)
            assert (row.value_text, row.value_json) == (None, None)


@pytest.mark.slow
def test_a_key_that_redis_loses_comes_back_from_a_table_by_name(
    redis_url: str, schema: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("aa" * 32)
    log = SparkLog(redis_url, schema)
    with log.lakelog as lake:
        log.create(1, lakelog_encryption_key=f"file:{tmp_path}/key")
        log.append(20)
        before = redis_client.dump("lakelog:topics")
        lake.topics.rotate_key("orders")
        log.append(20)
        log.archive()
        lost = lake.topics.get("orders").config[DATA_KEYS]
    redis_client.restore("lakelog:topics", 0, before, replace=True)
    again = SparkLog(redis_url, schema)
    again.rows, log = log.rows, again
    with log.lakelog as lake:
        lake.topics.alter("orders", {"retention.ms": 10**12})
        log.append(20)
        with pytest.raises(ContradictionError, match="lakelog topics rotate-key orders"):
            lake.archiver("orders").run_once()
        found = lake.topics.rotate_key("orders").config[DATA_KEYS]
        assert found.keeps(lost)
        assert found.current == lost.current + 1
        log.archive()
        assert rows_of(lake.dataframe("orders")) == log.expected()
        redis_client.flushall()
        lake.restore()
        assert lake.topics.get("orders").config[DATA_KEYS] == found
        assert rows_of(lake.dataframe("orders")) == log.expected()


def test_a_key_that_tasks_cannot_read_is_refused_where_the_work_is_planned(
    make_log: Callable[..., SparkLog],
) -> None:
    topic = make_log().lakelog.topics.get("orders")
    keys = new_data_keys("databricks:prod/key", bytes(32), clear=False)
    config = topic.config.replace({DATA_KEYS: keys.to_text()})
    check_tasks_have_key(topic)
    with pytest.raises(InvalidArgumentError, match="resolved by Spark's tasks"):
        check_tasks_have_key(replace(topic, config=config))
