"""`lakelog erase` of a topic whose table has a name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis
import strangers
from dead_letters import reject_all
from spark_log import SparkLog, rows_of

import lakelog.spark

pytestmark = pytest.mark.slow


def test_records_go_from_both_tiers_and_the_catalog_has_the_rest(
    log: SparkLog, spark: Any, schema: str
) -> None:
    log.create()
    log.append(20)
    log.archive()
    log.append(20)
    where = "offset in (3, 4, 19, 25)"
    assert log.lakelog.erase("orders", where=where, dry_run=True).records == 4

    erased = log.lakelog.erase("orders", where=where)

    assert erased.records == 4
    left = [row for row in log.expected() if row[1] not in (3, 4, 19, 25)]
    orders = log.lakelog.log("orders")
    assert [record.offset for record in orders.read(0).records()] == [row[1] for row in left]
    assert rows_of(spark.table(f"{schema}.orders")) == left
    assert rows_of(log.lakelog.dataframe("orders")) == left
    assert rows_of(lakelog.spark.read(spark, None, schema, "orders")) == left
    assert erased.hot is not None
    assert erased.hot.ends[0] == 40
    assert any("VACUUM once they were removed" in one for one in erased.beyond)
    assert log.lakelog.erase("orders", where=where).records == 0
    log.append(5)
    log.archive()
    assert orders.offsets()[0].archived_end == 45


def test_after_a_vacuum_no_byte_is_left_of_a_key_and_its_dead_letters(
    log: SparkLog, spark: Any, schema: str, tmp_path: Path
) -> None:
    """The topic and its group's dead letters, both by name, hot and cold."""
    key, value = b"ada-7f3a9c51e2", b"GEHEIM-b81d04f7aa"
    log.create(local_retention_ms=-1)
    log.lakelog.topics.create("failed", 1, {"retention.ms": -1, "local.retention.ms": -1})
    with log.lakelog.producer() as producer:
        for of, what in ((b"a", b"v"), (key, value), (b"b", b"w")):
            producer.send("orders", what, key=of).result()
    reject_all(log.lakelog, "orders", "failed")
    log.lakelog.archive()
    folder = tmp_path / schema.split(".")[1]
    if not strangers.is_managed(f"{schema}.orders"):
        file = next(folder.rglob("partition=0/**/*.parquet"))
        overtaken = shutil.copy(file, file.with_name(f"left-{file.name}"))

    where = f'key = "{key.decode()}"'
    told = log.lakelog.erase("orders", where=where)
    there = f'header["__dlq.errors.topic"] = "orders" and {where}'
    erased = log.lakelog.erase("failed", where=there)

    assert any("share groups shippers" in one for one in told.beyond)
    assert (told.records, erased.records) == (1, 1)
    left = [record.key for record in log.lakelog.log("failed").read(0).records()]
    assert left == [b"a", b"b"]
    with redis.Redis.from_url(log.url) as client:
        found = [
            name
            for name in client.scan_iter()
            if any(one in (client.dump(name) or b"") for one in (key, value))
        ]
    assert found == []
    if strangers.is_managed(f"{schema}.orders"):
        return  # its VACUUM is the catalog's, when it likes
    assert any("a full VACUUM (without LITE" in one for one in told.beyond)
    log.lakelog.cleanup("orders", steps=["vacuum"])
    assert overtaken.exists()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        for topic in ("orders", "failed"):
            spark.sql(f"VACUUM {schema}.{topic} RETAIN 0 HOURS").collect()
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    held = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".parquet" for file in held)
    for file in held:
        contents = [file.read_bytes()]
        if file.suffix == ".parquet" and "_delta_log" not in file.parts:
            contents.append(repr(pq.read_table(file, partitioning=None).to_pylist()).encode())
        assert not any(one in content for one in (key, value) for content in contents), file
