"""lakelog over Spark Connect: `over_connect.py`, run by a client that has no JVM.

In a process of its own, since pyspark is either classic or Connect for all of a process. So the
server's catalog outlives its clients: here archivers by name are processes that come and go.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from query_process import start
from spark_log import SparkLog

from lakelog.testing.eventually import eventually
from tests.support.connect_server import connect_server

HERE = Path(__file__).parent

pytestmark = pytest.mark.slow  # a server, a client and Spark's Java for both


@pytest.fixture(scope="module")
def connect_url() -> Iterator[str]:
    with connect_server(HERE / "connect_server.py") as url:
        yield url


def test_everything_works_over_connect(connect_url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", str(HERE / "over_connect.py")),
            *("-p", "no:cacheprovider", f"--basetemp={tmp_path / 'client'}"),
        ],
        env={**os.environ, "SPARK_REMOTE": connect_url},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]


def test_archivers_that_share_a_catalog_archive_each_record_once_though_they_are_killed(
    connect_url: str, redis_url: str, tmp_path: Path
) -> None:
    schema = "shared"
    log = SparkLog(redis_url, f"spark_catalog.{schema}").create(
        2, lakelog_flush_rows=40, internal_segment_bytes=200_000
    )
    folder = tmp_path / schema
    wanted = {
        "url": redis_url,
        "schema": f"spark_catalog.{schema}",
        "folder": str(folder),
        "topic": log.name,
        "conf": {},
    }
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    hot = log.lakelog.hot
    topic = log.lakelog.topics.get(log.name)
    everything = [topic.partition(partition) for partition in (0, 1)]

    def archiver() -> subprocess.Popen[str]:
        return start("named_process.py", wanted, SPARK_REMOTE=connect_url)

    def archived() -> int:
        return sum(one.local_log_start for one in hot.offsets(everything).values())

    archivers = [archiver(), archiver()]
    try:
        for _ in range(6):
            seen = archived()
            deadline = time.monotonic() + 300
            # Both work, and one of them is somewhere on its way.
            while archived() < seen + 200:
                for partition in (0, 1):
                    log.append(25, partition, padding=bytes(100))
                assert all(one.poll() is None for one in archivers), _said(archivers)
                assert time.monotonic() < deadline, _said(archivers)
            time.sleep(chance.uniform(0, 2))  # the moment is drawn, not waited for
            killed = archivers.pop(chance.randrange(2))
            os.killpg(killed.pid, signal.SIGKILL)
            killed.communicate()
            archivers.append(archiver())
        eventually(lambda: archived() >= len(log.rows), said=lambda: _said(archivers))
    finally:
        _said(archivers)
        log.lakelog.close()
    table = DeltaTable(str(folder / log.name)).to_pyarrow_table(
        columns=["partition", "offset", "key", "value"]
    )
    assert sorted(zip(*(column.to_pylist() for column in table.columns), strict=True)) == (
        log.expected()
    )


def _said(archivers: list[subprocess.Popen[str]]) -> str:
    """Ends them, and what they said."""
    for one in archivers:
        if one.poll() is None:
            os.killpg(one.pid, signal.SIGKILL)
    return "\n".join(one.communicate()[0][-4000:] for one in archivers if not one.stdout.closed)
