"""What a continuous archiver costs: a first archive of many partitions, and many idle topics.

Each round has a Redis and a cold root of its own, and archives inline. The first archive: 2,000
partitions with ten records each, of one topic and of 500, as `archive` and as `archive
--continuous` do it; from the first look to the last commit, tables made and orphans looked for,
three rounds at most. The idle topics, once: all archived, watched for a minute; CPU time of the
archiver's process and of Redis, as a share of one core. The latency: a record appended to one of
the idle topics, until a report says that it was archived (``lakelog.flush.rows=1``).
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from lakelog import Lakelog
from tests.support.servers import RedisServer

from .bench import Bench, timed
from .measures import CORES, COUNT, OURS, SECONDS, Row
from .meters import cpu_s

PARTITIONS = 2_000
RECORDS = 10  # a partition
TOPICS = (1, 500)
IDLE_TOPICS = 1_000
FIRST_LOOK_S, IDLE_S = 15, 60  # each topic is looked at once in the beginning
LATENCIES = 20


def rows(bench: Bench) -> Iterator[Row]:
    for most in TOPICS:
        topics = bench.scaled(most)
        partitions = bench.scaled(PARTITIONS // most) * topics
        of = f"{partitions:,} partitions of {topics} topic{'' if topics == 1 else 's'}"
        for way, continuous in (("once", False), ("continuously", True)):
            first = partial(first_archive, bench, topics, partitions, continuous)
            samples = bench.interleaved({OURS: first}, bench.few)
            yield Row(f"first archive of {of}, {way}", SECONDS, samples)
    yield from idle(bench)


@contextmanager
def fresh_log(bench: Bench) -> Iterator[tuple[Lakelog, RedisServer]]:
    with (
        bench.redis() as server,
        Lakelog.connect(server.url, bench.new_folder(), engine="inline") as log,
    ):
        yield log, server


def fill(log: Lakelog, topics: int, partitions: int, records: int) -> None:
    config = {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1}
    for number in range(topics):
        log.topics.create(f"t{number}", partitions, config)
    with log.producer() as producer:
        for number in range(topics):
            for partition in range(partitions):
                for record in range(records):
                    producer.send(f"t{number}", b"%d" % record, partition=partition)


def first_archive(bench: Bench, topics: int, partitions: int, continuous: bool) -> float:
    """Seconds."""
    found = 0
    with fresh_log(bench) as (log, _):
        fill(log, topics, partitions // topics, RECORDS)

        def once() -> None:
            nonlocal found
            found = sum(report.records for report in log.archive())

        def until_all() -> None:
            nonlocal found
            stop = threading.Event()
            for report in log.archive_continuously(stop=stop):
                found += report.records
                if found == partitions * RECORDS:
                    stop.set()

        seconds = timed(until_all if continuous else once)
    if found != partitions * RECORDS:
        raise RuntimeError(f"archived {found} of {partitions * RECORDS} records")
    return seconds


def idle(bench: Bench) -> Iterator[Row]:
    topics, seconds = bench.scaled(IDLE_TOPICS, 3), bench.scaled(IDLE_S, 1)
    with fresh_log(bench) as (log, server):
        fill(log, topics, 1, 1)
        log.archive()
        stop, archived = threading.Event(), threading.Semaphore(0)

        def run() -> None:
            for report in log.archive_continuously(stop=stop):
                for _ in range(report.records):
                    archived.release()

        before = threading.active_count()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        time.sleep(bench.scaled(FIRST_LOOK_S, 1))
        used_s = {pid: cpu_s(pid) for pid in (os.getpid(), server.pid)}
        time.sleep(seconds)
        used = [(cpu_s(pid) - before_s) / seconds for pid, before_s in used_s.items()]
        threads = threading.active_count() - before - 1  # the one here that waits for reports
        latencies = []
        with log.producer() as producer:
            for number in range(LATENCIES):
                began_s = time.perf_counter()
                producer.send(f"t{number % topics}", b"v").result()
                if not archived.acquire(timeout=60):
                    raise RuntimeError("a record was not archived within a minute")
                latencies.append(time.perf_counter() - began_s)
        stop.set()
        thread.join()
    of = f"a continuous archive of {topics:,} idle topics"
    yield Row(f"{of}: the archiver", CORES, {OURS: (used[0],)})
    yield Row(f"{of}: Redis", CORES, {OURS: (used[1],)})
    yield Row(f"{of}: Python threads", COUNT, {OURS: (float(threads),)})
    p50 = statistics.median(latencies)
    yield Row("append → archived among these, p50", SECONDS, {OURS: (p50,)})
