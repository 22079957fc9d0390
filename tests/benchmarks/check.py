"""Checking a whole log, every record read, judged and compared, against bare pyarrow's reading.

A topic of 4 partitions with keys, and random values of 100 bytes, is archived, and kept in Redis: a
check of the cold tier alone, by this process and on Spark, and one of both tiers, in which each
record is read twice and compared. Bare pyarrow reads the same files with their pages' checksums,
which is the least a check of the cold tier could take; the Spark was there before, as on
Databricks. What a check holds in memory at most is what a process of its own says.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from lakelog import Lakelog
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.engines.spark import SparkEngine

from .bench import Bench, rates, timed
from .made_records import PARTITIONS, Case, appends, random_table
from .measures import BYTES, OURS, RECORDS_PER_S, Goal, Row

TOPIC = "checked"
CASE = Case(100, 4_000_000)
GOAL_PER_S = 2_000_000
BARE = "bare pyarrow reading the files"

#: Prints the most bytes that the process held.
ALONE = """
import resource, sys
from lakelog import Lakelog
with Lakelog.connect(None, sys.argv[1], engine="inline") as lake:
    assert lake.check().sound
print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def rows(bench: Bench) -> Iterator[Row]:
    case, root = CASE.scaled(bench), str(bench.new_folder())
    with bench.redis({"appendonly": "no"}) as server:
        fill(server.url, root, case)
        inline, spark = InlineEngine(), SparkEngine(bench.spark.session())
        found = bench.interleaved(
            {
                "in one process": lambda: check_s(None, root, inline, case.records),
                "on Spark": lambda: check_s(None, root, spark, case.records),
                "both tiers": lambda: check_s(server.url, root, inline, 2 * case.records),
                BARE: lambda: bare(root),
            }
        )
    for way in ("in one process", "on Spark"):
        samples = rates({OURS: found[way], BARE: found[BARE]}, case.records)
        what = f"check of {case}, cold, {way}"
        yield Row(what, RECORDS_PER_S, samples, (Goal(GOAL_PER_S),))
    both = rates({OURS: found["both tiers"]}, 2 * case.records)
    yield Row(f"check of {case}, in both tiers, in one process", RECORDS_PER_S, both)
    command = [sys.executable, "-c", ALONE, root]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    yield Row(f"check of {case}, cold: memory", BYTES, {OURS: (float(said),)})


def fill(url: str, root: str, case: Case) -> None:
    """The topic, in Redis and archived."""
    with Lakelog.connect(url, root, engine="inline") as lake:
        lake.topics.create(TOPIC, PARTITIONS, {"retention.ms": -1})
        with lake.producer(compression_type="none") as producer:
            for partition in range(PARTITIONS):
                for count in appends(case.records // PARTITIONS):
                    batch = random_table(count, case.value_bytes)
                    producer.send_batch(TOPIC, batch, partition=partition)
        lake.archive()


def check_s(url: str | None, root: str, engine: Engine, records: int) -> float:
    """How long it takes, on a log that is opened anew."""
    reports = []
    with Lakelog.connect(url, root, engine=engine) as lake:
        took_s = timed(lambda: reports.append(lake.check()))
    (report,) = reports
    read = sum(one.records for one in report.partitions)
    if not report.sound or read != records:
        raise RuntimeError(f"{read} of {records} records were read: {report.findings[:3]}")
    return took_s


def bare(root: str) -> None:
    for path in sorted(Path(root).rglob("partition=*/**/*.parquet")):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for _ in file.iter_batches(use_threads=False):
            pass
