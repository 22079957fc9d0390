"""Archiving on Spark to an object store each of whose answers takes 30 ms, against a folder.

The store is a Python program with S3's API that keeps everything in memory, behind a proxy that
waits; both take their CPU from the machine's cores, as Redis and Spark do, so the same store
without the wait is measured, too. Each round fills four partitions and archives them into a table
that is there, by turns.

Then a continuous archiver, by a flush interval of a second, has records to archive all the time:
what counts is how many commits a second it makes.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from lakelog import Lakelog
from lakelog.cold.store.storage import Storage
from lakelog.config import KIB
from lakelog.engines.spark import SparkEngine
from lakelog.testing.object_store import Fault, FaultyFront, S3Server, s3_options

from .archive import WARM_ROUNDS, CountingEngine, filled
from .bench import Bench, rates, timed
from .made_records import PARTITIONS, Case, made_batch
from .measures import COUNT, OURS, RECORDS_PER_S, Goal, Row

CASES = [Case(100, 1_000_000), Case(KIB, 250_000)]
CALL_S = 0.03
METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
FOLDER, AT_HAND = "a folder", "the store without the wait"
OF_FOLDER, COMMITS_A_SECOND = 0.70, 1.0
CONTINUOUS_S = 20
FIRST = 100  # so many records of each partition make the table


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis({"appendonly": "no"}) as server, store() as (far, near):
        engine = CountingEngine(SparkEngine(bench.spark.session()))
        for case in (case.scaled(bench) for case in CASES):

            def once(case: Case = case) -> Mapping[str, float]:
                folder = bench.new_folder()
                places = {FOLDER: Storage(str(folder)), AT_HAND: near, OURS: far}
                found = {}
                for side, storage in places.items():
                    with filled(case, server.url, storage, engine) as (running, _):
                        running.run_once(FIRST)  # the table is there
                        found[side] = timed(running.run_once)
                shutil.rmtree(folder)
                return found

            taken = bench.repeated(once, bench.few, min(WARM_ROUNDS, bench.few))
            of = f"archive on Spark to a store of {CALL_S * 1000:.0f} ms a call, {case}"
            goals = (Goal(OF_FOLDER, FOLDER),)
            yield Row(of, RECORDS_PER_S, rates(taken, case.records), goals)
        made = commits_a_second(server.url, far, bench.scaled(CONTINUOUS_S, 3))
        of = "a continuous archive there, flush interval 1 s: commits a second of a topic"
        yield Row(of, COUNT, {OURS: (made,)}, (Goal(COMMITS_A_SECOND),))


@contextmanager
def store() -> Iterator[tuple[Storage, Storage]]:
    """The store as it is far away, and at hand; through one proxy each."""
    server = S3Server().start()
    fronts = [FaultyFront(server.port).start() for _ in range(2)]
    fronts[0].inject(*(Fault(method, "", delay_s=CALL_S, times=None) for method in METHODS))
    try:
        url = server.make_bucket("lake")
        far, near = (
            Storage(f"{url}/{name}", s3_options(front.url))
            for name, front in zip(("far", "near"), fronts, strict=True)
        )
        yield far, near
    finally:
        for front in fronts:
            front.stop()
        server.stop()


def commits_a_second(url: str, storage: Storage, seconds: int) -> float:
    """Of an archiver that is never without something to archive."""
    options = dict(storage.store_options)
    with Lakelog.connect(
        url, storage.root, keyspace="far-store", storage_options=options, engine="inline"
    ) as log:
        log.topics.create("values", PARTITIONS, {"lakelog.flush.interval.ms": 1000})
        stop, over = threading.Event(), threading.Event()

        def produce() -> None:
            table = pa.Table.from_batches([made_batch(1_000, 100)]).drop_columns(["timestamp_ms"])
            with log.producer() as producer:
                while not over.wait(0.05):
                    producer.send_batch("values", table)
                    producer.flush()

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            reports = log.archive_continuously(stop=stop)
            next(reports)  # the table is there
            began = time.monotonic()
            commits = 0
            for _ in reports:
                commits += 1
                if time.monotonic() - began >= seconds:
                    break
            taken = time.monotonic() - began
            stop.set()
            for _ in reports:
                pass
        finally:
            over.set()
            thread.join()
        return commits / taken
