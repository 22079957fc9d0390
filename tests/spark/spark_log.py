"""A log on a real Redis and a real Delta table, for the tests that read it with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog import Lakelog
from lakelog.spark.datasource import HAS_READ_LIMITS
from lakelog.values.record import Record
from tests.support.unity_catalog import SPARKS_OWN as SPARKS_OWN

EPOCH_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z

HOUR_MS = 3_600_000
APPENDS_PER_MS = 16_384  # offsets of a gap, as in hot/recovery.lua

Row = tuple[int, int, bytes | None, bytes | None]


class SparkLog:
    """A lakelog, and what was appended to one of its topics, told as (partition, offset, …)."""

    def __init__(self, url: str, cold: Path, name: str = "orders") -> None:
        self.url = url
        self.cold = cold
        self.name = name
        self.lakelog = Lakelog.connect(url, cold, engine="inline")
        self.rows: list[Row] = []

    def create(self, partitions: int = 1, **settings: object) -> SparkLog:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        config = {"retention.ms": -1, "local.retention.ms": 0, **config}
        self.lakelog.topics.create(self.name, partitions, config)
        self.rows = []
        return self

    def append(
        self,
        count: int,
        partition: int = 0,
        *,
        step_ms: int = 1000,
        keys: int = 5,
        padding: bytes = b"",
        batch: int = 1_000_000,
    ) -> None:
        """Records whose values say their partition and offset, a step of time apart.

        A segment rolls between batches.
        """
        first = sum(row[0] == partition for row in self.rows)
        topic_partition = self.lakelog.topics.get(self.name).partition(partition)
        base = self.lakelog.hot.offsets([topic_partition])[topic_partition].log_end
        numbers = range(first, first + count)
        rows = [
            (partition, offset, b"k%d" % (n % keys), b"%d/%d" % (partition, n) + padding)
            for offset, n in enumerate(numbers, base)
        ]
        table = pa.table(
            {
                "key": pa.array([row[2] for row in rows], pa.binary()),
                "value": pa.array([row[3] for row in rows], pa.binary()),
                "timestamp": pa.array([EPOCH_MS + step_ms * n for n in numbers], pa.int64()),
            }
        )
        with self.lakelog.producer() as producer:
            for start in range(0, count, batch):
                producer.send_batch(self.name, table.slice(start, batch), partition=partition)
        self.rows += rows

    def skip(self, partition: int = 0, milliseconds: int = HOUR_MS) -> None:
        """The gap that a server leaves which comes back so much later without being stopped."""
        log = self.lakelog.log(self.name)
        log_end = log.offsets([partition])[partition].log_end
        log.recover(partition, log_end + milliseconds * APPENDS_PER_MS)

    def send(self, *records: Record) -> None:
        with self.lakelog.producer() as producer:
            for record in records:
                producer.send(
                    record.topic,
                    record.value,
                    key=record.key,
                    headers=record.headers,
                    timestamp_ms=record.timestamp_ms,
                    partition=record.partition,
                ).result()

    def archive(self) -> None:
        self.lakelog.archive(self.name)

    def options(self, **more: Any) -> dict[str, str]:
        """Of the data source."""
        given = {"redis": self.url, "cold": str(self.cold), **more}
        if not {"assign", "subscribePattern"} & given.keys():
            given = {"subscribe": self.name, **given}
        return {name: str(value) for name, value in given.items()}

    def expected(self, start: int = 0, end: int | None = None) -> list[Row]:
        return sorted(row for row in self.rows if start <= row[1] and (end is None or row[1] < end))


def limited(records: int) -> dict[str, int]:
    """``maxOffsetsPerTrigger``, where this Spark has it."""
    return {"maxOffsetsPerTrigger": records} if HAS_READ_LIMITS else {}


def rows_of(frame: Any) -> list[Row]:
    """(partition, offset, key, value) of a frame's rows, in order."""
    return sorted(
        (row["partition"], row["offset"], _bytes(row["key"]), _bytes(row["value"]))
        for row in frame.select("partition", "offset", "key", "value").collect()
    )


def files_read(frame: Any) -> int:
    """How many files Spark's Delta scan of an executed frame opened."""
    plan = frame._jdf.queryExecution().executedPlan()
    frame.collect()

    def scans(node: Any) -> Iterator[Any]:
        if node.nodeName().startswith("AdaptiveSparkPlan"):
            node = node.executedPlan()
        if node.nodeName().startswith("Scan parquet"):
            yield node
        children = node.children()
        for i in range(children.size()):
            yield from scans(children.apply(i))

    return sum(node.metrics().apply("numFiles").value() for node in scans(plan))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
