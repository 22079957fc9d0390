"""Archiving on Spark against its limit, on this machine, in one run.

    python tests/benchmarks/archive.py

The limit is the time to read the same entries raw (XRANGE, the bytes thrown away) plus the time
pyarrow takes to write the same rows from memory with the table's settings; each on two processes.
Values are random text, so that no dictionary or codec flatters either side. Each round fills a new
topic and takes all three times; what counts is the best of each, since whatever else runs on the
machine only ever adds. Prints one table; exits with 1 when a goal of it is missed.
"""

from __future__ import annotations

import argparse
import base64
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import redis
from rich.console import Console
from rich.table import Table

from lakelog.archive import Archiver
from lakelog.archive.copy import HotRows
from lakelog.codec import ProducedBatch, encode
from lakelog.cold import schema
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.config import GIB, KIB, MIB, Compression, EntryFormat
from lakelog.engines.spark import SparkEngine
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.hot.keys import Keys
from lakelog.record import PRODUCED, Fetched
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer
from lakelog.topic import Topic

PARTITIONS = 4
PROCESSES = 2
APPEND_RECORDS = 20_000
BARRIER_TIMEOUT_S = 300  # a process that died must not hang the others
RATIO_GOAL = 0.70
WORKER_GOAL_BYTES = 512 * MIB


@dataclass(frozen=True)
class Case:
    value_bytes: int
    records: int


#: A million records a partition, as the default flush policy has them, and a GiB of larger ones.
CASES = [Case(100, 4_000_000), Case(KIB, 1_000_000)]


@dataclass(frozen=True)
class Measured:
    case: Case
    raw_read_s: float
    write_s: float
    archive_s: float
    worker_peak_bytes: int
    idle_jobs: int

    @property
    def ratio(self) -> float:
        return (self.raw_read_s + self.write_s) / self.archive_s


# -- filling the hot tier ----------------------------------------------------------------------


def fill(hot: HotLog, topic: Topic, case: Case) -> None:
    producer_id = random.getrandbits(62)
    per_partition = case.records // PARTITIONS
    for number in range(PARTITIONS):
        for first in range(0, per_partition, APPEND_RECORDS):
            count = min(APPEND_RECORDS, per_partition - first)
            entries = encode(rows(count, case.value_bytes), EntryFormat.ARROW, Compression.NONE)
            batch = ProducedBatch(entries, producer_id, 0, first, first + count - 1)
            hot.append(topic.partition(number), topic.topic_id, batch)


def rows(count: int, value_bytes: int) -> pa.RecordBatch:
    """Records with distinct random values, a key of 8 bytes and timestamps a millisecond apart."""
    text = base64.b64encode(os.urandom(count * value_bytes * 3 // 4 + 3))[: count * value_bytes]
    now_ms = time.time_ns() // 1_000_000
    keys = pa.array([b"%08d" % random.randrange(100_000) for _ in range(count)], pa.binary())
    values = pa.Array.from_buffers(pa.binary(value_bytes), count, [None, pa.py_buffer(text)])
    columns = [
        pa.array(range(now_ms - count, now_ms), pa.int64()),
        keys,
        values.cast(pa.binary()),
        pa.array([[]] * count, PRODUCED.field("headers").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PRODUCED)


# -- the limit ---------------------------------------------------------------------------------


def timed_on_processes(work: Callable[..., None], *arguments: Any) -> float:
    """Seconds from the moment all processes are ready to the moment the last one is done.

    Neither their start nor their end counts: `work` meets the barrier before and after.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES + 1)
    workers = [
        context.Process(target=work, args=(barrier, number, *arguments))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    barrier.wait(BARRIER_TIMEOUT_S)
    started = time.perf_counter()
    barrier.wait(BARRIER_TIMEOUT_S)
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    return seconds


def share(process: int) -> range:
    return range(process, PARTITIONS, PROCESSES)


def read_raw(barrier: Barrier, process: int, url: str, topic: Topic) -> None:
    client = redis.Redis.from_url(url)
    client.ping()
    barrier.wait(BARRIER_TIMEOUT_S)
    for number in share(process):
        stream = Keys().partition(topic.partition(number)).stream
        after = "-"
        while page := client.execute_command("XRANGE", stream, after, "+", "COUNT", 32):
            after = b"(" + page[-1][0]
    barrier.wait(BARRIER_TIMEOUT_S)


def write_from_memory(barrier: Barrier, process: int, url: str, topic: Topic, folder: str) -> None:
    hot = HotLog.connect(url)
    held: dict[int, list[pa.RecordBatch]] = {}
    for number in share(process):
        steps: Iterator[Fetched] = hot.read(topic.partition(number), 0, max_bytes=16 * MIB)
        held[number] = [with_horizon(step.records) for step in steps]
    barrier.wait(BARRIER_TIMEOUT_S)
    for number, batches in held.items():
        table = pa.Table.from_batches(batches, schema.FILE_SCHEMA)
        path = Path(folder) / f"limit-{number}.parquet"
        with pq.ParquetWriter(path, schema.FILE_SCHEMA, **schema.WRITER_OPTIONS) as writer:
            rows_a_group = min(
                schema.ROW_GROUP_ROWS,
                max(1, schema.ROW_GROUP_BYTES * table.num_rows // table.nbytes),
            )
            writer.write_table(table, row_group_size=rows_a_group)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    barrier.wait(BARRIER_TIMEOUT_S)


def with_horizon(records: pa.RecordBatch) -> pa.RecordBatch:
    nothing = pa.nulls(records.num_rows, schema.FILE_SCHEMA.field("delete_horizon").type)
    return pa.RecordBatch.from_arrays([*records.columns, nothing], schema=schema.FILE_SCHEMA)


# -- archiving ---------------------------------------------------------------------------------


class CountingEngine:
    """Spark, counting its jobs."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self.jobs = 0

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        self.jobs += bool(tasks)
        return self._engine.map(function, tasks)


@contextmanager
def worker_peak() -> Iterator[list[int]]:
    """Watches Spark's Python workers; afterwards the list holds the largest resident size seen."""
    peaks = [0]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark.daemon" in " ".join(process.cmdline()):
                        peaks[0] = max(peaks[0], process.memory_info().rss)
                except psutil.Error:  # it ended while we looked
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        stop.set()
        watcher.join()


def archiver(url: str, hot: HotLog, topic: Topic, root: str, engine: CountingEngine) -> Archiver:
    table = PathTable(topic, Storage(root), engine, HotRows(HotSource(url)))
    return Archiver(topic, hot, table)


def measure(case: Case, url: str, folder: str, engine: CountingEngine) -> Measured:
    """One round on a topic of its own."""
    hot = HotLog.connect(url)
    config = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": GIB}
    topic = hot.topics().create("values", PARTITIONS, config)
    fill(hot, topic, case)
    raw_read_s = timed_on_processes(read_raw, url, topic)
    write_s = timed_on_processes(write_from_memory, url, topic, folder)
    running = archiver(url, hot, topic, folder, engine)
    with worker_peak() as peaks:
        started = time.perf_counter()
        report = running.run_once()
        archive_s = time.perf_counter() - started
    if report.records != case.records:
        raise RuntimeError(f"archived {report.records} of {case.records} records:\n{report}")
    jobs = engine.jobs
    running.run_once()
    hot.topics().delete(topic.name)
    hot.close()
    return Measured(case, raw_read_s, write_s, archive_s, peaks[0], engine.jobs - jobs)


def best(rounds: Sequence[Measured]) -> Measured:
    return Measured(
        rounds[0].case,
        min(m.raw_read_s for m in rounds),
        min(m.write_s for m in rounds),
        min(m.archive_s for m in rounds),
        max(m.worker_peak_bytes for m in rounds),
        max(m.idle_jobs for m in rounds),
    )


def show(results: list[Measured]) -> bool:
    """Print the table; whether every goal is reached."""
    table = Table(title="archive on Spark local[2], 4 partitions")
    for name in (
        "value", "records", "raw read", "write", "archive", "records/s", "MB/s",
        f"of limit (≥ {RATIO_GOAL:.0%})", "worker peak (≤ 512 MiB)", "idle jobs (0)",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    reached = True
    for m in results:
        rate = m.case.records / m.archive_s
        table.add_row(
            f"{m.case.value_bytes} B",
            f"{m.case.records:,}",
            f"{m.raw_read_s:.2f} s",
            f"{m.write_s:.2f} s",
            f"{m.archive_s:.2f} s",
            f"{rate:,.0f}",
            f"{rate * m.case.value_bytes / 1e6:,.0f}",
            f"{m.ratio:.0%}",
            f"{m.worker_peak_bytes / MIB:.0f} MiB",
            str(m.idle_jobs),
        )
        reached &= m.ratio >= RATIO_GOAL and m.worker_peak_bytes <= WORKER_GOAL_BYTES
        reached &= m.idle_jobs == 0
    Console(width=160).print(table)
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the record counts")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no"}).start()
        spark = session(cores=PROCESSES)
        try:
            engine = CountingEngine(SparkEngine(spark))
            for _ in range(2):  # the second meets warm workers
                measure(Case(100, 200_000), server.url, folder, engine)
            results = []
            for case in CASES:
                scaled = Case(case.value_bytes, int(case.records * arguments.scale))
                rounds = [
                    measure(scaled, server.url, folder, engine) for _ in range(arguments.rounds)
                ]
                results.append(best(rounds))
        finally:
            spark.stop()
            server.kill()
    return 0 if show(results) else 1


if __name__ == "__main__":
    sys.exit(main())
