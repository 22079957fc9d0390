"""Archiving on Spark to an object store each of whose answers takes 30 ms, against a folder.

The store is a server with S3's API that runs already (`--s3`), else a Python program that keeps
everything in memory. Before it is a relay that waits. Both take their CPU from the machine's cores,
as Redis and Spark do, so the same store without the wait is measured, too. Each round fills four
partitions and archives them into a table that is there, by turns, and sends the files that were
written to the store once more, from memory, by two processes at once: no archive takes less. There
are as many records as in `archive`, and a quarter of them, of which the answers that an archive
waits for once are a larger part.

Then a continuous archiver, by a flush interval of a second, has records to archive all the time:
what counts is how many commits a second it makes.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs

from lakelog import Lakelog
from lakelog.cold.store.storage import Storage
from lakelog.engines.spark import SparkEngine
from lakelog.values.config import MIB
from tests.support.object_store import S3Server, s3_options

from .archive import CASES, WARM_ROUNDS, CountingEngine, filled
from .bench import Bench, rates, timed
from .made_records import PARTITIONS, Case, made_batch
from .measures import COUNT, OURS, RECORDS_PER_S, Goal, Row
from .processes import PROCESSES, meet, timed_on_processes
from .relay import relayed

FEWER = [Case(case.value_bytes, case.records // 4) for case in CASES]
CALL_S = 0.03
FOLDER, AT_HAND = "a folder", "the store without the wait"
BARE = "sending the files alone"
OF_FOLDER, COMMITS_A_SECOND = 0.70, 1.0
CONTINUOUS_S = 20
FIRST = 100  # so many records of each partition make the table


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis({"appendonly": "no"}) as server, store(bench.s3) as (far, near):
        engine = CountingEngine(SparkEngine(bench.spark.session()))
        goals = {case: (Goal(OF_FOLDER, FOLDER),) for case in CASES} | dict.fromkeys(FEWER, ())
        for case, goal in ((case.scaled(bench), goal) for case, goal in goals.items()):

            def once(case: Case = case) -> Mapping[str, float]:
                folder = bench.new_folder()
                places = {FOLDER: Storage(str(folder)), AT_HAND: near, OURS: far}
                found = {}
                for side, storage in places.items():
                    with filled(case, server.url, storage, engine) as (running, _):
                        running.run_once(FIRST)  # the table is there
                        found[side] = timed(running.run_once)
                found[BARE] = timed_on_processes(send, far, folder)
                near.delete_files(f"{near.root}/{path}" for path in near.files_below(near.root))
                shutil.rmtree(folder)
                return found

            taken = bench.repeated(once, bench.few, min(WARM_ROUNDS, bench.few))
            of = f"archive on Spark to a store of {CALL_S * 1000:.0f} ms a call, {case}"
            yield Row(of, RECORDS_PER_S, rates(taken, case.records), goal)
        made = commits_a_second(server.url, far, bench.scaled(CONTINUOUS_S, 3))
        of = "a continuous archive there, flush interval 1 s: commits a second of a topic"
        yield Row(of, COUNT, {OURS: (made,)}, (Goal(COMMITS_A_SECOND),))


@contextmanager
def store(url: str | None = None) -> Iterator[tuple[Storage, Storage]]:
    """The store as it is far away, and at hand; through one relay each.

    Args:
        url: of a server with S3's API that runs, whose credentials are in the environment; None:
            one is started.
    """
    with ExitStack() as stack:
        options = {}
        if url is None:
            server = S3Server().start()
            stack.callback(server.stop)
            url, options = server.url, s3_options(server.url)
        bucket = f"lakelog-{uuid4().hex}"
        far, near = (
            Storage(
                f"s3://{bucket}",
                {**options, "AWS_ENDPOINT_URL": stack.enter_context(relayed(url, delay_s))},
            )
            for delay_s in (CALL_S, 0.0)
        )
        maker = bucket_maker(near)
        maker.create_dir(bucket, recursive=False)
        stack.callback(remove_bucket, maker, bucket)
        yield far, near


def remove_bucket(maker: pafs.FileSystem, bucket: str) -> None:
    """With all in it. A store on a file system keeps the folder of a file for the next time."""
    with suppress(OSError):
        maker.delete_dir(bucket)
        return
    maker.delete_dir(bucket)


def bucket_maker(storage: Storage) -> pafs.FileSystem:
    """Which also makes buckets."""
    values = storage.store_options.resolved()
    return pafs.S3FileSystem(
        access_key=values["AWS_ACCESS_KEY_ID"],
        secret_key=values["AWS_SECRET_ACCESS_KEY"],
        session_token=values.get("AWS_SESSION_TOKEN"),
        region=values.get("AWS_REGION", "us-east-1"),
        scheme="http",
        endpoint_override=values["AWS_ENDPOINT_URL"].removeprefix("http://"),
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )


def send(barrier: Barrier, process: int, to: Storage, folder: Path) -> None:
    """Of the files of an archive those that are this process's, all at once."""
    paths = sorted(folder.rglob("archive-*.parquet"))[process::PROCESSES]
    files = {path.name: path.read_bytes() for path in paths}
    filesystem = to.filesystem()

    def send_one(name: str) -> None:
        with filesystem.open_output_stream(to.arrow_path(f"{to.root}/sent/{name}")) as out:
            for at in range(0, len(files[name]), MIB):
                out.write(files[name][at : at + MIB])

    meet(barrier)
    with ThreadPoolExecutor(len(files)) as threads:
        list(threads.map(send_one, files))
    meet(barrier)


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
