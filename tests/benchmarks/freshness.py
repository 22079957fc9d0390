"""How long until an appended record is in the Delta table, while an archiver runs continuously.

    python tests/benchmarks/freshness.py
    python tests/benchmarks/freshness.py --cold spark_catalog.default

A process appends records at a steady rate; `lakelog archive --continuous`, as users start it, works
on Spark local[2]; this process looks at the table's registers ten times a second. A record counts
from the moment its append returned to the look that found it archived. So all of it, Redis and the
looks too, shares the machine's cores. By name, the looks and the archiver share one Spark, since a
session catalog that lives in memory cannot be shared: the archiver is a thread then.

Lag is what is appended and not archived yet, in records, at each look: of the last third of the run
against the first, it must not grow. Prints one Markdown table; exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
from archive import PROCESSES, rows

from lakelog import Lakelog, Topic
from lakelog.archive.continuous import TIDY_RUNS
from lakelog.errors import ArchiveUnfinishedError
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

PARTITIONS = 4
VALUE_BYTES = 100
BATCH_S = 0.1
LOOK_S = 0.1
#: Spark starts, and its first commits take long, until what runs often is compiled: not counted.
WARM_S = 60
FLUSH_INTERVAL_MS = 1000

P95_GOAL_S = 3.0
#: Between two runs of tidying, each run adds a file a partition; tidying leaves about log2(runs).
FILES_GOAL = 3 * TIDY_RUNS
GROWTH_GOAL = 1.5


@dataclass
class Appended:
    """What the producer says of each batch: where it ended, and when it was in."""

    partition: int
    end_offset: int
    records: int
    at_s: float


def produce(url: str, keyspace: str, rate: int, seconds: float, says: Connection) -> None:
    """Appends at a steady rate, a batch for all partitions each `BATCH_S`."""
    with Lakelog.connect(url, cold="unused", keyspace=keyspace, engine="inline") as log:
        count = int(rate * BATCH_S / PARTITIONS)
        tables = [pa.Table.from_batches([rows(count, VALUE_BYTES)]) for _ in range(8)]
        tables = [table.drop_columns(["timestamp_ms"]) for table in tables]
        with log.producer(compression_type="none") as producer:
            started_s = time.monotonic()
            for tick in range(int(seconds / BATCH_S)):
                time.sleep(max(0.0, started_s + tick * BATCH_S - time.monotonic()))
                for partition in range(PARTITIONS):
                    done = producer.send_batch("values", tables[tick % 8], partition=partition)
                    end = done[-1].offset + 1
                    says.send(Appended(partition, end, count, time.monotonic()))
    says.close()


@dataclass
class Watched:
    """What the looks at the table saw."""

    waits_s: list[float] = field(default_factory=list)  # of each appended batch
    weights: list[int] = field(default_factory=list)
    lags: list[int] = field(default_factory=list)  # records, at each look
    files: list[int] = field(default_factory=list)  # of the segment that has most, at each look


def watch(log: Lakelog, topic: Topic, says: Connection) -> Watched:
    """Looks at the table until all that was appended is there."""
    table = log.log(topic).table
    assert table is not None
    waiting: list[list[Appended]] = [[] for _ in range(PARTITIONS)]
    seen = Watched()
    ended = False
    appended = 0
    from_s = time.monotonic() + WARM_S
    while not ended or any(waiting):
        time.sleep(LOOK_S)
        while not ended and says.poll():
            try:
                batch = says.recv()
            except EOFError:
                ended = True
                break
            waiting[batch.partition].append(batch)
            appended += batch.records
        snapshot = table.snapshot()
        now_s = time.monotonic()
        for partition, batches in enumerate(waiting):
            end = snapshot.archived_end(partition)
            while batches and batches[0].end_offset <= end:
                done = batches.pop(0)
                if done.at_s >= from_s:
                    seen.waits_s.append(now_s - done.at_s)
                    seen.weights.append(done.records)
        if now_s >= from_s and not ended:
            seen.lags.append(sum(batch.records for batches in waiting for batch in batches))
            seen.files.append(
                max(
                    (
                        len(one.files)
                        for n in range(PARTITIONS)
                        for one in snapshot.files.segments(n)
                    ),
                    default=0,
                )
            )
    return seen


@contextmanager
def archiving_process(url: str, cold: str, keyspace: str) -> Iterator[None]:
    command = [sys.executable, "-m", "lakelog.cli.main", "--redis", url, "--cold", cold]
    command += ["--keyspace", keyspace, "--engine", "spark", "archive", "--continuous"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


@contextmanager
def archiving_thread(log: Lakelog) -> Iterator[None]:
    stop = threading.Event()

    def run() -> None:
        with suppress(ArchiveUnfinishedError):  # a commit of Spark's may take longer than a stop
            for _ in log.archive_continuously(stop=stop):
                pass

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure(url: str, cold: str, rate: int, seconds: float, *, by_name: bool) -> Watched:
    keyspace = "freshness"
    context = multiprocessing.get_context("spawn")
    hears, says = context.Pipe(duplex=False)
    with Lakelog.connect(
        url, cold, keyspace=keyspace, engine="spark" if by_name else "inline"
    ) as log:
        settings = {
            "lakelog.flush.interval.ms": FLUSH_INTERVAL_MS,
            "local.retention.ms": 60_000,
        }
        topic = log.topics.create("values", PARTITIONS, settings)
        archiving: Callable[[], object] = (
            (lambda: archiving_thread(log))
            if by_name
            else (lambda: archiving_process(url, cold, keyspace))
        )
        with archiving():  # type: ignore[attr-defined]
            producer = context.Process(
                target=produce, args=(url, keyspace, rate, WARM_S + seconds, says)
            )
            producer.start()
            says.close()
            try:
                return watch(log, topic, hears)
            finally:
                producer.join()


def weighted_quantile(values: list[float], weights: list[int], share: float) -> float:
    order = np.argsort(values)
    total = np.cumsum(np.asarray(weights)[order])
    return float(np.asarray(values)[order][np.searchsorted(total, share * total[-1])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cold", help="catalog.schema; default: a folder of its own")
    parser.add_argument("--rate", type=int, default=20_000, help="records/s")
    parser.add_argument("--seconds", type=float, default=180.0, help="after warming up")
    parser.add_argument("--dir", help="where the tables go")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        server = RedisServer(folder / "redis", {"appendonly": "no"}).start()
        by_name = arguments.cold is not None
        spark = None
        if by_name:
            conf = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
            spark = session(cores=PROCESSES, conf=conf)
        try:
            cold = arguments.cold or str(folder / "cold")
            seen = measure(server.url, cold, arguments.rate, arguments.seconds, by_name=by_name)
        finally:
            if spark is not None:
                spark.stop()
            server.kill()
    p50, p95, p99 = (weighted_quantile(seen.waits_s, seen.weights, q) for q in (0.5, 0.95, 0.99))
    third = len(seen.lags) // 3
    first, last = np.mean(seen.lags[:third]), np.mean(seen.lags[-third:])
    way = "by name" if by_name else "by path"
    print("| what | measured | goal |\n|---|---:|---:|")
    print(
        f"| append → visible in Delta, {way}, {arguments.rate:,} records/s for "
        f"{arguments.seconds:g} s, p50 / p95 / p99 | {p50:.1f} / {p95:.1f} / {p99:.1f} s "
        f"| p95 ≤ {P95_GOAL_S:g} s |"
    )
    print(f"| most files in a segment | {max(seen.files)} | ≤ {FILES_GOAL} |")
    print(f"| lag, last third / first third | {last / first:.2f} | ≤ {GROWTH_GOAL} |")
    good = p95 <= P95_GOAL_S and max(seen.files) <= FILES_GOAL and last <= GROWTH_GOAL * first
    return 0 if good else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
