"""Records made up for benchmarks: random, so that no dictionary or codec flatters anybody."""

from __future__ import annotations

import base64
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog import Topic
from lakelog.codec import ProducedBatch, encode
from lakelog.hot import HotLog
from lakelog.values.config import KIB, Compression, EntryFormat
from lakelog.values.record import PRODUCED

from .bench import Bench

PARTITIONS = 4
APPEND_RECORDS = 20_000
KEY_BYTES = 8


@dataclass(frozen=True)
class Case:
    """So many records of one size, in `PARTITIONS` partitions."""

    value_bytes: int
    records: int

    @property
    def size_bytes(self) -> int:
        return self.records * (self.value_bytes + KEY_BYTES)

    def scaled(self, bench: Bench) -> Case:
        each = bench.scaled(self.records // PARTITIONS, 4)
        return Case(self.value_bytes, each * PARTITIONS)

    def __str__(self) -> str:
        return f"{counted(self.records)} of {size(self.value_bytes)}"


def counted(records: int) -> str:
    return f"{records / 1e6:g} M records" if records >= 100_000 else f"{records:,} records"


def size(value_bytes: int) -> str:
    return f"{value_bytes} B" if value_bytes < KIB else f"{value_bytes // KIB} KiB"


def random_text(count: int, value_bytes: int) -> pa.Array:
    """So many distinct values, as ``pa.binary()``."""
    text = base64.b64encode(os.urandom(count * value_bytes * 3 // 4 + 3))[: count * value_bytes]
    values = pa.Array.from_buffers(pa.binary(value_bytes), count, [None, pa.py_buffer(text)])
    return values.cast(pa.binary())


def made_batch(count: int, value_bytes: int) -> pa.RecordBatch:
    """Records of distinct random text, a key of 8 bytes and timestamps a millisecond apart."""
    now_ms = time.time_ns() // 1_000_000
    keys = pa.array([b"%08d" % random.randrange(100_000) for _ in range(count)], pa.binary())
    columns = [
        pa.array(range(now_ms - count, now_ms), pa.int64()),
        keys,
        random_text(count, value_bytes),
        pa.array([[]] * count, PRODUCED.field("headers").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PRODUCED)


def fixed(data: bytes | np.ndarray, count: int, width: int) -> pa.Array:
    """So many values of as many bytes each, cut out of the data."""
    buffers = [None, pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(width), count, buffers).cast(pa.binary())


def fill_hot(hot: HotLog, topic: Topic, case: Case) -> None:
    """Appends the case's records, uncompressed, past the producer."""
    producer_id = random.getrandbits(62)
    for number in range(PARTITIONS):
        first = 0
        for count in appends(case.records // PARTITIONS):
            batch = made_batch(count, case.value_bytes)
            entries = encode(batch, EntryFormat.ARROW, Compression.NONE)
            produced = ProducedBatch(entries, producer_id, 0, first, first + count - 1)
            hot.append(topic.partition(number), topic.topic_id, produced)
            first += count


def appends(records: int) -> Iterator[int]:
    """How many records each append of a partition has."""
    for first in range(0, records, APPEND_RECORDS):
        yield min(APPEND_RECORDS, records - first)


def made_frame(spark: Any, folder: Path, case: Case) -> Any:
    """Keys and values of the case's records as Spark reads them from a file in the folder."""
    source = folder / "made.parquet"
    with pq.ParquetWriter(source, PRODUCED) as writer:
        for count in appends(case.records):
            writer.write_batch(made_batch(count, case.value_bytes))
    return spark.read.parquet(str(source)).select("key", "value")
