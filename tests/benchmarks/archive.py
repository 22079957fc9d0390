"""Archiving on Spark against its limit: reading the same entries raw, and writing the same rows.

The limit is the time to read the entries by XRANGE, the bytes thrown away, plus the time pyarrow
takes to write the rows from memory with the table's settings and an fsync; each on two processes.
Each round fills a new topic of four partitions and takes all of these times. Values are random
text, uncompressed. With them comes how many jobs an archiver has Spark do when there is nothing to
archive. One more archive has its workers watched, which takes a quarter of a core. Then the same
records are archived with each `lakelog.parquet.compression` by turns. There are three rounds at
most.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import redis

from lakelog.archive.archiver import Archiver
from lakelog.archive.copy import HotRows
from lakelog.cold import schema
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.spark import SparkEngine
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.hot.keys import Keys
from lakelog.values.config import GIB, KIB, MIB, PARQUET_COMPRESSION
from lakelog.values.record import Fetched
from lakelog.values.topic import Topic

from .bench import Bench, rates
from .made_records import PARTITIONS, Case, fill_hot
from .measures import BYTES, COUNT, OURS, RECORDS_PER_S, Goal, Row
from .meters import worker_peak
from .processes import PROCESSES, meet, timed_on_processes

#: A million records a partition, as the default flush policy has them, and a GiB of larger ones.
CASES = [Case(100, 4_000_000), Case(KIB, 1_000_000)]
WARM_ROUNDS = 2  # the second meets warm workers

DEFAULT, OTHERS = "zstd", ("lz4_raw", "snappy", "uncompressed")
LIMIT = "reading the entries raw + pyarrow writing the rows"
OF_LIMIT, WORKER_BYTES = 0.90, 512 * MIB


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis({"appendonly": "no"}) as server:
        engine = CountingEngine(SparkEngine(bench.spark.session()))
        for case in CASES:
            yield from of_case(bench, case.scaled(bench), server.url, engine)


def of_case(bench: Bench, case: Case, url: str, engine: CountingEngine) -> Iterator[Row]:
    found = bench.repeated(
        lambda: measured(case, url, bench.new_folder(), engine),
        bench.few,
        min(WARM_ROUNDS, bench.few),
    )
    of = f"archive on Spark by path, {case}"
    samples = rates({OURS: found["archive"], LIMIT: found["limit"]}, case.records)
    yield Row(of, RECORDS_PER_S, samples, (Goal(OF_LIMIT, LIMIT),))
    peak = (peak_bytes(case, url, bench.new_folder(), engine),)
    yield Row(f"{of}: Spark's largest worker", BYTES, {OURS: peak}, (Goal(WORKER_BYTES),))
    yield Row(f"{of}: Spark's jobs when idle", COUNT, {OURS: found["idle jobs"]}, (Goal(0),))
    yield from compressions(bench, case, url, engine)


def compressions(bench: Bench, case: Case, url: str, engine: CountingEngine) -> Iterator[Row]:
    """What each way to compress files takes, and makes of them."""

    def round_() -> dict[tuple[str, str], float]:
        found = {}
        for codec in (DEFAULT, *OTHERS):
            seconds, size_bytes = archived(case, url, bench.new_folder(), engine, codec)
            found["seconds", codec], found["bytes", codec] = seconds, size_bytes
        return found

    found = bench.repeated(round_, bench.few, min(WARM_ROUNDS, bench.few))
    of = f"archive on Spark by path, {case}"
    sides = {DEFAULT: OURS, **{codec: f"`{codec}`" for codec in OTHERS}}
    seconds = {side: found["seconds", codec] for codec, side in sides.items()}
    yield Row(f"{of}: {DEFAULT} and other codecs", RECORDS_PER_S, rates(seconds, case.records))
    sizes = {side: found["bytes", codec] for codec, side in sides.items()}
    yield Row(f"{of}: size of the files", BYTES, sizes)


def measured(case: Case, url: str, folder: Path, engine: CountingEngine) -> Mapping[str, float]:
    """One round on a topic of its own."""
    with filled(case, url, Storage(str(folder)), engine) as (running, topic):
        limit_s = timed_on_processes(read_raw, url, topic)
        limit_s += timed_on_processes(write_from_memory, url, topic, folder)
        archive_s = archiving_s(running, case)
        jobs = engine.jobs
        running.run_once()
        idle_jobs = engine.jobs - jobs
    shutil.rmtree(folder)
    return {"limit": limit_s, "archive": archive_s, "idle jobs": idle_jobs}


def peak_bytes(case: Case, url: str, folder: Path, engine: CountingEngine) -> int:
    """What the largest worker of Spark's takes."""
    with filled(case, url, Storage(str(folder)), engine) as (running, _), worker_peak() as peaks:
        archiving_s(running, case)
    shutil.rmtree(folder)
    return peaks[0]


def archived(
    case: Case, url: str, folder: Path, engine: CountingEngine, codec: str
) -> tuple[float, int]:
    """Seconds, and the bytes of the files."""
    with filled(case, url, Storage(str(folder)), engine, codec) as (running, _):
        seconds = archiving_s(running, case)
    size_bytes = sum(file.stat().st_size for file in folder.rglob("archive-*.parquet"))
    shutil.rmtree(folder)
    return seconds, size_bytes


@contextmanager
def filled(
    case: Case, url: str, storage: Storage, engine: CountingEngine, codec: str = DEFAULT
) -> Iterator[tuple[Archiver, Topic]]:
    """A topic with its records in Redis, while it lasts, and what archives it."""
    hot = HotLog.connect(url)
    config = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": GIB}
    topic = hot.topics().create("values", PARTITIONS, {**config, PARQUET_COMPRESSION: codec})
    fill_hot(hot, topic, case)
    table = PathTable(topic, storage, engine, HotRows(HotSource(url)))
    yield Archiver(topic, hot, table), topic
    hot.topics().delete(topic.name)
    hot.close()


def archiving_s(running: Archiver, case: Case) -> float:
    started = time.perf_counter()
    report = running.run_once()
    seconds = time.perf_counter() - started
    if report.records != case.records:
        raise RuntimeError(f"archived {report.records} of {case.records} records:\n{report}")
    return seconds


class CountingEngine:
    """Spark, counting its jobs."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self.jobs = 0

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        self.jobs += bool(tasks)
        return self._engine.map(function, tasks)


# -- the limit; each runs in a process of its own ----------------------------------------------


def share(process: int) -> range:
    return range(process, PARTITIONS, PROCESSES)


def read_raw(barrier: Barrier, process: int, url: str, topic: Topic) -> None:
    client = redis.Redis.from_url(url)
    client.ping()
    meet(barrier)
    for number in share(process):
        stream = Keys().partition(topic.partition(number)).stream
        after = "-"
        while page := client.execute_command("XRANGE", stream, after, "+", "COUNT", 32):
            after = b"(" + page[-1][0]
    meet(barrier)


def write_from_memory(barrier: Barrier, process: int, url: str, topic: Topic, folder: Path) -> None:
    hot = HotLog.connect(url)
    held: dict[int, list[pa.RecordBatch]] = {}
    for number in share(process):
        steps: Iterator[Fetched] = hot.read(topic.partition(number), 0, max_bytes=16 * MIB)
        held[number] = [with_horizon(step.records) for step in steps]
    meet(barrier)
    for number, batches in held.items():
        table = pa.Table.from_batches(batches, schema.FILE_SCHEMA)
        path = folder / f"limit-{number}.parquet"
        with pq.ParquetWriter(path, schema.FILE_SCHEMA, **schema.WRITER_OPTIONS) as writer:
            rows_a_group = min(
                schema.ROW_GROUP_ROWS,
                max(1, schema.ROW_GROUP_BYTES * table.num_rows // table.nbytes),
            )
            writer.write_table(table, row_group_size=rows_a_group)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    meet(barrier)


def with_horizon(records: pa.RecordBatch) -> pa.RecordBatch:
    nothing = pa.nulls(records.num_rows, schema.FILE_SCHEMA.field("delete_horizon").type)
    return pa.RecordBatch.from_arrays([*records.columns, nothing], schema=schema.FILE_SCHEMA)
