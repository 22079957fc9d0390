"""Topics that cleanup is measured on: keys evenly random, values random bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from lakelog import Lakelog, Topic
from lakelog.archive.copy import HotRows
from lakelog.base.back_off import POLL, wait_until
from lakelog.base.clock import Clock, SystemClock
from lakelog.cleanup.cleanup import Cleanup
from lakelog.cleanup.report import CleanupReport
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import Engine
from lakelog.engines.spark import SparkEngine
from lakelog.hot.hot_log import HotSource
from lakelog.spark.auto_engine import choose_engine

from .bench import Bench, timed
from .made_records import PARTITIONS, fixed

RECORD_BYTES = 100
KEY_BYTES = len(b"key-000000000")
VALUE_BYTES = RECORD_BYTES - KEY_BYTES
CHUNK_RECORDS = 100_000


def batches(count: int, keys: int, seed: int) -> Iterator[pa.Table]:
    """Columns key, value and partition, which the key decides; the same for the same seed."""
    chance = np.random.default_rng(seed)
    for first in range(0, count, CHUNK_RECORDS):
        rows = min(CHUNK_RECORDS, count - first)
        numbers = pa.array(chance.integers(0, keys, rows))
        digits = pc.utf8_lpad(pc.cast(numbers, pa.string()), KEY_BYTES - len("key-"), "0")
        yield pa.table(
            {
                "key": pc.binary_join_element_wise("key-", digits, "").cast(pa.binary()),
                "value": fixed(chance.bytes(rows * VALUE_BYTES), rows, VALUE_BYTES),
                "partition": pc.bit_wise_and(numbers, PARTITIONS - 1).cast(pa.int32()),
            }
        )


def closing() -> pa.Table:
    """One record a partition: what is appended to close a segment."""
    return pa.table(
        {
            "key": pa.array([b"closing"] * PARTITIONS, pa.binary()),
            "value": pa.array([bytes(VALUE_BYTES)] * PARTITIONS, pa.binary()),
            "partition": pa.array(range(PARTITIONS), pa.int32()),
        }
    )


class Place:
    """Where lakelog keeps things: a Redis, a folder, and a Spark that can be started anew."""

    def __init__(self, bench: Bench, url: str) -> None:
        self.url = url
        self.root = str(bench.new_folder())
        self._bench = bench
        self._connect(bench.spark.session())

    def with_new_workers(self) -> None:
        self.close()
        self._connect(self._bench.spark.restarted())

    def close(self) -> None:
        self.lakelog.close()

    def _connect(self, spark: Any) -> None:
        self.engine = SparkEngine(spark)
        self.lakelog = Lakelog.connect(self.url, self.root, engine=self.engine)

    @contextmanager
    def topic(self, config: Mapping[str, object]) -> Iterator[OneTopic]:
        config = {"retention.ms": -1, "local.retention.ms": 0, **config}
        topic = self.lakelog.topics.create(f"t-{uuid4().hex[:8]}", PARTITIONS, config)
        one = OneTopic(self, topic)
        try:
            yield one
        finally:
            self.lakelog.topics.delete(topic.name)
            shutil.rmtree(Storage(self.root).table_path(topic), ignore_errors=True)


class OneTopic:
    def __init__(self, place: Place, topic: Topic) -> None:
        self.place = place
        self.topic = topic

    def load(self, tables: Iterator[pa.Table], *, close_segments: bool = True) -> None:
        """Append and archive."""
        lakelog, name = self.place.lakelog, self.topic.name
        with lakelog.producer() as producer:
            for table in tables:
                producer.send_batch(name, table)
        if close_segments:
            lakelog.topics.alter(name, {"segment.ms": 1})
            altered_ms = lakelog.hot.now_ms()
            wait_until("a millisecond", lambda: lakelog.hot.now_ms() > altered_ms + 1, POLL)
            with lakelog.producer() as producer:
                producer.send_batch(name, closing())
            lakelog.topics.alter(name, {"segment.ms": None})
        lakelog.archive(name)

    def clean(
        self, step: str, *, on_spark: bool = False, unset: Sequence[str] = (), **defaults: object
    ) -> tuple[float, CleanupReport]:
        """Seconds of one step by a process that has not opened the table yet, but has a Spark.

        Args:
            on_spark: however little there is to do; default: where it is done sooner.
            unset: settings of the topic that are to be as if it had none.
            defaults: of the keyspace, with ``_`` for ``.``.
        """
        topic = self.place.lakelog.topics.get(self.topic.name)  # as it was altered last
        config = topic.config.replace(dict.fromkeys(unset)).with_defaults(
            [(name.replace("_", "."), str(value)) for name, value in defaults.items()]
        )
        topic = replace(topic, config=config)
        rows_of = HotRows(HotSource(self.place.url))
        place = self.place
        engine = place.engine if on_spark else choose_engine()
        return timed_cleanup(topic, place.root, engine, step, SystemClock(), rows_of)


def timed_cleanup(
    topic: Topic, root: str, engine: Engine, step: str, clock: Clock, rows_of: Any = None
) -> tuple[float, CleanupReport]:
    reports: list[CleanupReport] = []

    def run() -> None:
        table = PathTable(topic, Storage(root), engine, rows_of)
        reports.append(Cleanup(topic, table, clock).run((step,)))

    seconds = timed(run)
    (report,) = reports
    if report.failures:
        raise RuntimeError(f"{step} failed:\n{report}")
    return seconds, report
