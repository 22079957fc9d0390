"""Checking a whole log: every record of both tiers read, judged and compared.

    python tests/benchmarks/check.py

A topic of 4 partitions with keys, and random values of 100 bytes, is archived, and kept in Redis: a
check of the cold tier alone, by this process and on Spark local[2], and one of both tiers, in which
each record is read twice and compared. Beside them stands what bare pyarrow takes to read the same
files in the same round, which is the least a check could take; a Spark that was there before is
checked with, as on Databricks. The best of some rounds counts: whatever else runs on the machine
only ever adds.

Prints one Markdown table, with the most memory this process held; exits with 1 when the cold tier
was checked at less than the goal.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from engines import APPEND_RECORDS, PARTITIONS, rows

from lakelog import Lakelog
from lakelog.config import MIB
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.engines.spark import SparkEngine
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

TOPIC = "checked"
VALUE_BYTES = 100
RECORDS = 4_000_000
GOAL_PER_S = 2_000_000


def fill(url: str, root: str, records: int) -> None:
    """The topic, in Redis and archived."""
    with Lakelog.connect(url, root, engine="inline") as lake:
        lake.topics.create(TOPIC, PARTITIONS, {"retention.ms": -1})
        with lake.producer(compression_type="none") as producer:
            for partition in range(PARTITIONS):
                for start in range(0, records // PARTITIONS, APPEND_RECORDS):
                    batch = rows(min(APPEND_RECORDS, records // PARTITIONS - start), VALUE_BYTES)
                    producer.send_batch(TOPIC, batch, partition=partition)
        lake.archive()


def check_s(url: str | None, root: str, engine: Engine, records: int) -> float:
    """How long it takes, on a log that is opened anew."""
    with Lakelog.connect(url, root, engine=engine) as lake:
        began_s = time.perf_counter()
        report = lake.check()
        took_s = time.perf_counter() - began_s
    read = sum(one.records for one in report.partitions)
    if not report.sound or read != records:
        raise SystemExit(f"{read} of {records} records were read: {report.findings[:3]}")
    return took_s


def bare_s(root: str) -> float:
    """How long bare pyarrow takes to read all files, with the CRC of each page."""
    began_s = time.perf_counter()
    for path in sorted(Path(root).rglob("partition=*/**/*.parquet")):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for _ in file.iter_batches(use_threads=False):
            pass
    return time.perf_counter() - began_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of four million records")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    records = max(PARTITIONS, round(RECORDS * arguments.scale / PARTITIONS) * PARTITIONS)
    best: dict[str, float] = {}

    def timed(name: str, work: Callable[[], float]) -> None:
        best[name] = min(work(), best.get(name, float("inf")))

    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/cold"
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no"}).start()
        try:
            fill(server.url, root, records)
            inline = InlineEngine()
            for _ in range(arguments.rounds):
                timed("bare pyarrow reads the files", lambda: bare_s(root))
                timed("cold, in this process", lambda: check_s(None, root, inline, records))
                timed(
                    "both tiers, in this process",
                    lambda: check_s(server.url, root, inline, 2 * records),
                )
            peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
            spark = session(cores=2)
            try:
                engine = SparkEngine(spark)
                for _ in range(arguments.rounds):
                    timed("cold, on Spark local[2]", lambda: check_s(None, root, engine, records))
            finally:
                spark.stop()
        finally:
            server.kill()
    print("| what | records read | seconds | M records/s | goal | of bare pyarrow |")
    print("|---|---:|---:|---:|---:|---:|")
    least_s = best["bare pyarrow reads the files"]
    cold = [name for name in best if name.startswith("cold")]
    for name, seconds in best.items():
        read = records * (1 + name.startswith("both"))
        goal = f"{GOAL_PER_S / 1e6:.1f}" if name in cold else ""
        print(
            f"| {name} | {read:,} | {seconds:.2f} | {read / seconds / 1e6:.2f} | {goal} "
            f"| {seconds / least_s:.1f} × |"
        )
    print(f"\nThis process held {peak_mib:,.0f} MiB at most.")
    return 0 if records / min(best[name] for name in cold) >= GOAL_PER_S else 1


if __name__ == "__main__":
    sys.exit(main())
