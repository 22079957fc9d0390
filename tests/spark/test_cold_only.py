"""What needs the cold tier alone never opens Redis, so it runs where Redis cannot be reached."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from spark_log import SparkLog, rows_of

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.hot import connection
from lakelog.spark import read, register_topics
from tests.support.servers import RedisServer

COMPACT = {
    "cleanup_policy": "compact",
    "segment_ms": 60_000,
    "min_cleanable_dirty_ratio": "0.01",
    "file_delete_delay_ms": 0,
}


@pytest.fixture
def archived(make_redis, tmp_path, monkeypatch) -> SparkLog:
    """Two partitions of two segments and seven keys, archived; then Redis is gone, and this
    process can connect to none. Spark's workers would find nobody at its port.
    """
    server: RedisServer = make_redis()
    log = SparkLog(server.url, tmp_path / "cold").create(2, **COMPACT)
    for partition in (0, 1):
        log.append(100, partition, keys=7, batch=25)
    log.archive()
    log.lakelog.close()
    server.kill()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something cold opened Redis")

    monkeypatch.setattr(redis.connection.AbstractConnection, "connect", refuse)
    monkeypatch.setattr(connection, "connect", refuse)
    return log


def test_frames_of_the_cold_tier(archived: SparkLog, spark) -> None:
    cold = str(archived.cold)
    assert rows_of(read(spark, None, cold, "orders")) == archived.expected()
    assert rows_of(read(spark, None, cold, "orders", 15, 45, partitions=[1])) == [
        row for row in archived.expected(15, 45) if row[0] == 1
    ]
    some = read(spark, None, cold, "orders", "2023-11-14T22:13:50Z", "latest")
    assert rows_of(some) == archived.expected(30)


def test_spark_reads_an_exported_folder_without_lakelog(
    archived: SparkLog, spark, tmp_path
) -> None:
    cold = Lakelog.connect(None, archived.cold, engine="inline")
    cold.export(tmp_path / "export", "orders")
    (path,) = (tmp_path / "export" / "orders").iterdir()
    assert rows_of(spark.read.format("delta").load(str(path))) == archived.expected()


@pytest.mark.slow
def test_tables_get_names_and_views(archived: SparkLog, spark, schema) -> None:
    (found,) = register_topics(spark, str(archived.cold), schema)
    assert rows_of(spark.table(found.view)) == archived.expected()
    assert spark.table(found.latest).count() == 7  # a key in two partitions is one key


def test_cleanup_and_doctor_on_spark(archived: SparkLog, spark, capsys) -> None:
    cold = str(archived.cold)
    where = ["--cold", cold, "--output", "json", "--engine", "spark"]
    assert cli.main([*where, "cleanup", "plan"]) == 0
    assert {row["step"] for row in json.loads(capsys.readouterr().out)["plan"]} == {"compact"}
    assert cli.main([*where, "cleanup", "run"]) == 0
    assert capsys.readouterr().out
    assert rows_of(read(spark, None, cold, "orders")) == archived.expected(68)
    assert cli.main(["doctor", "--spark", "--cold", cold, "--output", "json"]) == 0
    found = {row["what"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert [state for what, state in found.items() if f"→ {cold}" in what] == ["ok", "ok"]
