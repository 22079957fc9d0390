"""An archiver by name that is killed as a process, at any moment; what follows finds it in order.

What is killed is all of it: the driver, its JVM in the middle of a write, of a commit or between
two, and the Python workers. What it proves: rows without a commit are nobody's, a commit that
landed is found by whoever looks next, and trimming never goes before it. Spark's own catalog dies
with the process; a Unity Catalog server has the half of a commit that reached it.
"""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from named_process import register
from query_process import start
from spark_log import SparkLog, rows_of

from lakelog.cold.by_name.names import TableName
from lakelog.cold.by_name.table_log import TableLog
from lakelog.cold.log_names import LOG
from lakelog.spark.place.table_location import TableLocation
from lakelog.testing.eventually import eventually
from lakelog.testing.unity_catalog import UnityCatalogServer

PARTITIONS = 2


@dataclass
class Lying:
    """A table seen where it lies, whatever its catalog, by those who have no part in it."""

    location: TableLocation

    def named(self) -> int:
        """How many data files its newest version has."""
        located = self.location.find()
        if located is None:
            return 0
        log = TableLog(located.storage)
        log.refresh(located.newest)
        return len(log.files(log.version)) if log.version >= 0 else 0

    def data_files(self) -> int:
        """How many lie there, also those that no commit names."""
        return sum(LOG not in path for path in self._paths() if path.endswith(".parquet"))

    def log_files(self) -> int:
        """How many commits were written, also those that the catalog has not taken yet."""
        return sum(LOG in path for path in self._paths() if path.endswith(".json"))

    def uncommitted(self) -> int:
        return self.data_files() - self.named()

    def _paths(self) -> list[str]:
        located = self.location.find()
        if located is None:
            return []
        storage = located.storage
        return [info.path for info in storage.list_files(storage.root, recursive=True)]


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 5])
def test_each_record_is_archived_once_however_often_the_archiver_is_killed(
    redis_url: str,
    spark: Any,
    schema: str,
    tables_at: str,
    unity_server: UnityCatalogServer | None,
    tmp_path: Path,
    kills: int,
) -> None:
    log = SparkLog(redis_url, schema).create(
        PARTITIONS, lakelog_flush_rows=1, segment_bytes=2_000_000
    )
    table = Lying(TableLocation(TableName(*schema.split("."), log.name), None, tables_at))
    folder = tmp_path / schema.partition(".")[2]
    conf = {} if unity_server is None else unity_server.spark_conf()
    wanted = {
        "url": redis_url,
        "schema": schema,
        "folder": str(folder),
        "topic": log.name,
        "conf": {"spark.sql.warehouse.dir": str(tmp_path / "warehouse"), **conf},
    }
    seed = random.randrange(2**32)
    print("seed", seed)
    moments = random.Random(seed)
    in_the_middle = 0
    for kill in range(kills):
        for partition in range(PARTITIONS):
            log.append(10_000, partition, batch=5_000, padding=b"-" + bytes(300))
        commits, files, left = table.log_files(), table.data_files(), table.uncommitted()
        process = start("named_process.py", wanted)
        try:

            def is_far_enough(kill=kill, process=process, commits=commits, files=files) -> bool:
                assert process.poll() is None, process.communicate()[0][-4000:]
                if kill:
                    log.append(200, kill % PARTITIONS)
                    return table.log_files() > commits
                return table.data_files() > files

            # The first time as soon as a file is written, then at any moment of what follows.
            eventually(is_far_enough)
            if kill:
                ends = time.monotonic() + moments.uniform(0, 4)
                while time.monotonic() < ends:
                    log.append(200, kill % PARTITIONS)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        in_the_middle += table.uncommitted() > left
    assert in_the_middle

    register(spark, schema, folder)
    try:
        log.archive()
        assert rows_of(spark.table(f"{schema}.{log.name}")) == log.expected()
        offsets = log.lakelog.log(log.name).offsets()
        assert [one.local_log_start for one in offsets.values()] == [
            one.log_end for one in offsets.values()
        ]
        assert rows_of(log.lakelog.dataframe(log.name)) == log.expected()
    finally:
        log.lakelog.close()
