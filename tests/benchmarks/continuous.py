"""What a continuous archiver costs: a first archive of many partitions, and many idle topics.

    python tests/benchmarks/continuous.py

Each round has a Redis and a cold root of its own, and archives inline. The first archive: 2,000
partitions with ten records each, of one topic and of 500, as `archive` and as `archive
--continuous` do it; from the first look to the last commit, tables made and orphans looked for. The
idle topics: all archived, watched for a while; CPU time of the archiver's process (`getrusage`) and
of Redis (`/proc`), as a share of one core. The latency: a record appended to one of the idle
topics, until a report says that it was archived (``lakelog.flush.rows=1``).

Prints one Markdown table. Takes about five minutes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakelog import Lakelog
from lakelog.testing.servers import RedisServer

PARTITIONS = 2_000
RECORDS = 10  # a partition


@contextmanager
def fresh_log() -> Iterator[tuple[Lakelog, RedisServer]]:
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis").start()
        try:
            with Lakelog.connect(server.url, Path(folder) / "cold", engine="inline") as log:
                yield log, server
        finally:
            server.kill()


def fill(log: Lakelog, topics: int, partitions: int, records: int) -> None:
    config = {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1}
    for number in range(topics):
        log.topics.create(f"t{number}", partitions, config)
    with log.producer() as producer:
        for number in range(topics):
            for partition in range(partitions):
                for record in range(records):
                    producer.send(f"t{number}", b"%d" % record, partition=partition)


def first_archive(topics: int, *, continuous: bool) -> float:
    """Seconds."""
    with fresh_log() as (log, _):
        fill(log, topics, PARTITIONS // topics, RECORDS)
        started_s = time.perf_counter()
        if not continuous:
            found = sum(report.records for report in log.archive())
        else:
            stop, found, took_s = threading.Event(), 0, 0.0
            for report in log.archive_continuously(stop=stop):
                found += report.records
                if found == PARTITIONS * RECORDS:
                    took_s = time.perf_counter() - started_s
                    stop.set()
            assert found == PARTITIONS * RECORDS
            return took_s
        assert found == PARTITIONS * RECORDS
        return time.perf_counter() - started_s


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(topics: int, seconds: float) -> tuple[float, float, int, float]:
    """Cores of the archiver and of Redis, threads, and median latency in seconds."""
    with fresh_log() as (log, server):
        fill(log, topics, 1, 1)
        log.archive()
        stop, archived = threading.Event(), threading.Semaphore(0)

        def run() -> None:
            for report in log.archive_continuously(stop=stop):
                for _ in range(report.records):
                    archived.release()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        time.sleep(15)  # each topic is looked at once in the beginning
        before, redis_before = resource.getrusage(resource.RUSAGE_SELF), cpu_s(server.pid)
        time.sleep(seconds)
        after, redis_after = resource.getrusage(resource.RUSAGE_SELF), cpu_s(server.pid)
        threads = threading.active_count() - 2  # this one, and the caller's of the archiver
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        latencies = []
        with log.producer() as producer:
            for number in range(20):
                began_s = time.perf_counter()
                producer.send(f"t{number % topics}", b"v").result()
                assert archived.acquire(timeout=60)
                latencies.append(time.perf_counter() - began_s)
        stop.set()
        thread.join()
        return (
            used / seconds,
            (redis_after - redis_before) / seconds,
            threads,
            statistics.median(latencies),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle-topics", type=int, default=1_000)
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=["first", "idle"], help="default: both")
    given = parser.parse_args()
    print("| what | measured |")
    print("|---|---|")
    for topics in (1, 500) if given.only != "idle" else ():
        for continuous in (False, True):
            name = "continuous" if continuous else "once"
            took_s = first_archive(topics, continuous=continuous)
            of = f"{topics} topic{'' if topics == 1 else 's'}"
            print(
                f"| first archive of {PARTITIONS:,} partitions of {of}, {name} | {took_s:.1f} s |"
            )
    if given.only == "first":
        return
    archiver, redis, threads, latency_s = idle(given.idle_topics, given.idle_seconds)
    print(f"| {given.idle_topics:,} idle topics, archiver | {archiver:.1%} of a core |")
    print(f"| {given.idle_topics:,} idle topics, Redis | {redis:.1%} of a core |")
    print(f"| {given.idle_topics:,} idle topics, Python threads | {threads} |")
    print(f"| append → archived among them, p50 | {latency_s * 1000:.0f} ms |")


if __name__ == "__main__":
    main()
