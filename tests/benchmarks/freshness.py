"""How long until an appended record is in the Delta table, while an archiver runs continuously.

A process appends records at a steady rate; an archiver works on Spark; this process looks at the
table's registers ten times a second. A record counts from the moment its append returned to the
look that found it archived. So all of it, Redis and the looks too, shares the machine's cores. By
path the archiver is `lakelog archive --continuous`, as users start it, with a Spark of its own; by
name the looks and the archiver share one Spark, since a session catalog that lives in memory cannot
be shared: the archiver is a thread then. It is measured once, for three minutes and for one, after
a minute of warming up from the first commit on: Spark's first ones take long, until what runs often
is compiled.

Lag is what is appended and not archived yet, in records, at each look: of the last third of the
time against the first, it must not grow.
"""

from __future__ import annotations

import multiprocessing
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import numpy as np
import pyarrow as pa

from lakelog import Lakelog, Topic
from lakelog.archive.continuous import TIDY_RUNS
from lakelog.errors import ArchiveUnfinishedError

from .bench import Bench
from .made_records import PARTITIONS, made_batch
from .measures import COUNT, OURS, SECONDS, Goal, Row

VALUE_BYTES = 100
RATE = 20_000
SECONDS_BY_PATH, SECONDS_BY_NAME, WARM_S = 180, 60, 60
BATCH_S = 0.1
LOOK_S = 0.1
FLUSH_INTERVAL_MS = 1000
GIVEN_UP_S = 300  # without a first commit

P95_S = 3.0
#: Between two runs of tidying, each run adds a file a partition; tidying leaves about log2(runs).
FILES_AT_MOST = 3 * TIDY_RUNS
GROWTH = 1.5


def rows(bench: Bench) -> Iterator[Row]:
    per_batch = bench.scaled(round(RATE * BATCH_S / PARTITIONS))
    rate = round(per_batch * PARTITIONS / BATCH_S)
    for way, most_s in (("path", SECONDS_BY_PATH), ("name", SECONDS_BY_NAME)):
        seconds = bench.scaled(most_s, 3)
        seen = measured(bench, way, per_batch, seconds)
        of = f"append → visible in Delta by {way}, {rate:,} records/s for {seconds} s"
        for share in (0.5, 0.95, 0.99):
            goals = (Goal(P95_S),) if share == 0.95 else ()
            yield Row(f"{of}, p{share * 100:.0f}", SECONDS, {OURS: (seen.wait(share),)}, goals)
        files = (float(max(seen.files)),)
        yield Row(f"{of}: most files in a segment", COUNT, {OURS: files}, (Goal(FILES_AT_MOST),))
        growth = (seen.growth(),)
        yield Row(f"{of}: how many times the lag grew", COUNT, {OURS: growth}, (Goal(GROWTH),))


@dataclass
class Appended:
    """What the producer says of each batch: where it ended, and when it was in."""

    partition: int
    end_offset: int
    records: int
    at_s: float


@dataclass
class Seen:
    """What the looks at the table saw."""

    waits_s: list[float] = field(default_factory=list)  # of each appended batch
    records: list[int] = field(default_factory=list)  # likewise
    lags: list[int] = field(default_factory=list)  # records, at each look
    files: list[int] = field(default_factory=list)  # of the segment that has most, at each look

    def wait(self, share: float) -> float:
        """Seconds that such a share of the records waited at most."""
        order = np.argsort(self.waits_s)
        total = np.cumsum(np.asarray(self.records)[order])
        return float(np.asarray(self.waits_s)[order][np.searchsorted(total, share * total[-1])])

    def growth(self) -> float:
        third = max(1, len(self.lags) // 3)
        first, last = statistics.mean(self.lags[:third]), statistics.mean(self.lags[-third:])
        return last / max(1.0, first)


def measured(bench: Bench, way: str, per_batch: int, seconds: float) -> Seen:
    keyspace = f"freshness-by-{way}"
    by_name = way == "name"
    cold = bench.spark.new_schema() if by_name else str(bench.new_folder())
    context = multiprocessing.get_context("spawn")
    hears, says = context.Pipe(duplex=False)
    stop = context.Event()
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(
            server.url, cold, keyspace=keyspace, engine="spark" if by_name else "inline"
        ) as log,
    ):
        settings = {"lakelog.flush.interval.ms": FLUSH_INTERVAL_MS, "local.retention.ms": 60_000}
        topic = log.topics.create("values", PARTITIONS, settings)
        archiving: AbstractContextManager[None] = (
            archiving_thread(log) if by_name else archiving_process(server.url, cold, keyspace)
        )
        with archiving:
            producer = context.Process(
                target=produce, args=(server.url, keyspace, per_batch, stop, says)
            )
            producer.start()
            says.close()
            try:
                return watch(log, topic, hears, stop, bench.scaled(WARM_S, 2), seconds)
            finally:
                stop.set()
                producer.join()


def produce(
    url: str, keyspace: str, per_batch: int, stop: threading.Event, says: Connection
) -> None:
    """Appends at a steady rate, a batch for each partition each `BATCH_S`, until it is stopped."""
    with Lakelog.connect(url, cold="unused", keyspace=keyspace, engine="inline") as log:
        tables = [pa.Table.from_batches([made_batch(per_batch, VALUE_BYTES)]) for _ in range(8)]
        tables = [table.drop_columns(["timestamp_ms"]) for table in tables]
        with log.producer(compression_type="none") as producer:
            due_s, tick = time.monotonic(), 0
            while not stop.wait(max(0.0, due_s - time.monotonic())):
                for partition in range(PARTITIONS):
                    done = producer.send_batch("values", tables[tick % 8], partition=partition)
                    end = done[-1].offset + 1
                    says.send(Appended(partition, end, per_batch, time.monotonic()))
                due_s, tick = due_s + BATCH_S, tick + 1
    says.close()


def watch(
    log: Lakelog,
    topic: Topic,
    says: Connection,
    stop: threading.Event,
    warm_s: float,
    seconds: float,
) -> Seen:
    """Looks at the table, warms up, measures, and goes on until all that was appended is there."""
    table = log.log(topic).table
    assert table is not None
    waiting: list[list[Appended]] = [[] for _ in range(PARTITIONS)]
    seen = Seen()
    ended = False
    given_up_s, from_s, until_s = time.monotonic() + GIVEN_UP_S, float("inf"), float("inf")
    while not ended or any(waiting):
        time.sleep(LOOK_S)
        while not ended and says.poll():
            try:
                batch = says.recv()
            except EOFError:
                ended = True
                break
            waiting[batch.partition].append(batch)
        snapshot = table.snapshot()
        now_s = time.monotonic()
        if from_s == float("inf"):
            if any(snapshot.archived_end(number) for number in range(PARTITIONS)):
                from_s = now_s + warm_s
                until_s = from_s + seconds
            elif now_s > given_up_s:
                raise RuntimeError(f"nothing was archived within {GIVEN_UP_S} s")
        if now_s >= until_s:
            stop.set()
        for partition, batches in enumerate(waiting):
            end = snapshot.archived_end(partition)
            while batches and batches[0].end_offset <= end:
                done = batches.pop(0)
                if done.at_s >= from_s:
                    seen.waits_s.append(now_s - done.at_s)
                    seen.records.append(done.records)
        if from_s <= now_s < until_s:
            seen.lags.append(sum(batch.records for batches in waiting for batch in batches))
            segments = (
                len(one.files)
                for number in range(PARTITIONS)
                for one in snapshot.files.segments(number)
            )
            seen.files.append(max(segments, default=0))
    return seen


@contextmanager
def archiving_process(url: str, cold: str, keyspace: str) -> Iterator[None]:
    command = [sys.executable, "-m", "lakelog", "--redis", url, "--cold", cold]
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
