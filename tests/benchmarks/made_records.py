"""Records made up for benchmarks: random text, so that no dictionary or codec flatters anybody."""

from __future__ import annotations

import base64
import os
import random
import time

import pyarrow as pa

from lakelog.record import PRODUCED

PARTITIONS = 4


def made_batch(count: int, value_bytes: int) -> pa.RecordBatch:
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
