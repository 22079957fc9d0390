"""An archiver by name that is killed as a process, at any moment; what follows finds it in order.

What is killed is all of it: the driver, its JVM in the middle of a write, of a commit or between
two, and the Python workers. What it proves: rows without a commit are nobody's, a commit that
landed is found by whoever looks next, and trimming never goes before it. What it does not: how a
catalog in a server of its own behaves, since Spark's own one dies with the process; see
`test_connect`.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from named_process import register
from query_process import start
from spark_log import SparkLog, rows_of

from lakelog.testing.eventually import eventually

PARTITIONS = 2


def uncommitted(table: Path) -> int:
    """How many data files no commit names."""
    there = sum(1 for _ in table.glob("partition=*/**/*.parquet"))
    if not any((table / "_delta_log").glob("*.json")):
        return there
    return there - len(DeltaTable(str(table)).file_uris())


def commits(table: Path) -> int:
    return sum(1 for _ in (table / "_delta_log").glob("*.json"))


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_each_record_is_archived_once_however_often_the_archiver_is_killed(
    redis_url: str, spark: Any, tmp_path: Path, kills: int
) -> None:
    schema = f"killed_{kills}"
    name, folder = f"spark_catalog.{schema}", tmp_path / schema
    log = SparkLog(redis_url, name).create(
        PARTITIONS, lakelog_flush_rows=1, segment_bytes=2_000_000
    )
    wanted = {
        "url": redis_url,
        "schema": name,
        "folder": str(folder),
        "topic": log.name,
        "conf": {"spark.sql.warehouse.dir": str(tmp_path / "warehouse")},
    }
    seed = random.randrange(2**32)
    print("seed", seed)
    moments = random.Random(seed)
    table = folder / log.name
    in_the_middle = 0
    for kill in range(kills):
        for partition in range(PARTITIONS):
            log.append(10_000, partition, batch=5_000, padding=b"-" + bytes(300))
        before, left = commits(table), uncommitted(table)
        process = start("named_process.py", wanted)
        try:

            def is_far_enough(kill=kill, process=process, before=before, left=left) -> bool:
                assert process.poll() is None, process.communicate()[0][-4000:]
                if kill:
                    log.append(200, kill % PARTITIONS)
                return commits(table) != before if kill else uncommitted(table) > left

            # The first time as soon as a file is written, then at any moment of what follows.
            eventually(is_far_enough)
            if kill:
                ends = time.monotonic() + moments.uniform(0, 4)
                while time.monotonic() < ends:
                    log.append(200, kill % PARTITIONS)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        in_the_middle += uncommitted(table) > left
    assert in_the_middle

    register(spark, name, folder)
    try:
        log.archive()
        assert rows_of(spark.table(f"{name}.{log.name}")) == log.expected()
        offsets = log.lakelog.log(log.name).offsets()
        assert [one.local_log_start for one in offsets.values()] == [
            one.log_end for one in offsets.values()
        ]
        assert rows_of(log.lakelog.dataframe(log.name)) == log.expected()
    finally:
        log.lakelog.close()
        spark.sql(f"DROP SCHEMA {schema} CASCADE")
