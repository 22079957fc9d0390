"""Spark writes and reads encrypted topics: frames over both tiers, the source, the sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from spark_log import SparkLog

from lakelog.config import DATA_KEYS
from lakelog.encryption.keyring import new_data_keys
from lakelog.encryption.of_topic import check_tasks_have_key
from lakelog.encryption.sealed_values import MAGIC
from lakelog.errors import InvalidArgumentError
from lakelog.spark import register


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


def test_a_key_that_tasks_cannot_read_is_refused_where_the_work_is_planned(
    make_log: Callable[..., SparkLog],
) -> None:
    topic = make_log().lakelog.topics.get("orders")
    keys = new_data_keys("databricks:prod/key", bytes(32), clear=False)
    config = topic.config.replace({DATA_KEYS: keys.to_text()})
    check_tasks_have_key(topic)
    with pytest.raises(InvalidArgumentError, match="resolved by Spark's tasks"):
        check_tasks_have_key(replace(topic, config=config))
