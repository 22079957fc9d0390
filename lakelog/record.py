"""A record, and the two column shapes that records travel in.

``PRODUCED`` is what a producer hands to the codec; ``RECORDS`` is the one shape after it: hot
reads, cold reads, Spark and consumers all speak it. Python objects (`Record`) exist only at the
two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa

HEADERS_TYPE = pa.list_(
    pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
)

#: What a producer hands over. ``timestamp_ms`` is UTC epoch milliseconds, or -1 for "none".
PRODUCED = pa.schema(
    [
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE, nullable=False),
    ]
)

#: What every reader gets: the names of Spark's Kafka source, sorted by offset.
RECORDS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE, nullable=False),
    ]
)

NO_TIMESTAMP_MS = -1  # Kafka's RecordBatch.NO_TIMESTAMP

#: One past the largest offset: Lua numbers and sorted-set scores are doubles, exact below 2^53.
MAX_OFFSET = 1 << 53

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TimestampType(IntEnum):
    """Who set a record's timestamp (Kafka's numbers)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka does, ``orders-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record as read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # UTC epoch; -1: none
    key: bytes | None = None  # None is not b""
    value: bytes | None = None  # None is a tombstone, b"" is not
    headers: Headers = ()  # in the order they were added; keys may repeat
    timestamp_type: TimestampType = TimestampType.CREATE_TIME

    @property
    def timestamp(self) -> datetime:
        """The timestamp as an aware UTC datetime."""
        return _EPOCH + timedelta(milliseconds=self.timestamp_ms)

    def header(self, key: str) -> bytes | None:
        """The value of the last header of that key, None if there is none."""
        return next((value for name, value in reversed(self.headers) if name == key), None)


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where an appended record went."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # the record's own, or the append time under LogAppendTime


class OffsetAndTimestamp(NamedTuple):
    """The answer to a search by timestamp."""

    offset: int
    timestamp_ms: int


class OffsetRange(NamedTuple):
    """Offsets ``[start, end)``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """One read step of either tier: the records and how far they cover the log."""

    records: pa.RecordBatch  # RECORDS, offsets within [start_offset, next_offset)
    start_offset: int
    next_offset: int  # where to go on; equal to start_offset only at the log end
    gaps: tuple[OffsetRange, ...] = ()  # skipped after an unclean stop, never to be used


def empty_records() -> pa.RecordBatch:
    """A `RECORDS` batch without rows."""
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, field.type) for field in RECORDS], schema=RECORDS
    )


def to_records(topic_partition: TopicPartition, batch: pa.RecordBatch | pa.Table) -> list[Record]:
    """The rows of a `RECORDS` batch as Python objects."""
    columns = [
        batch.column("offset").to_pylist(),
        batch.column("timestamp").cast(pa.int64()).to_pylist(),
        batch.column("timestampType").to_pylist(),
        batch.column("key").to_pylist(),
        batch.column("value").to_pylist(),
        batch.column("headers").to_pylist(),
    ]
    topic, partition = topic_partition
    return [
        Record(
            topic,
            partition,
            offset,
            time_us // 1000,
            key,
            value,
            tuple((h["key"], h["value"]) for h in headers) if headers else (),
            TimestampType(kind),
        )
        for offset, time_us, kind, key, value, headers in zip(*columns, strict=True)
    ]


def produced_batch(
    rows: Iterable[tuple[int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]],
) -> pa.RecordBatch:
    """Rows of (timestamp_ms, key, value, headers) as a `PRODUCED` batch."""
    timestamps, keys, values, headers = [], [], [], []
    for timestamp_ms, key, value, record_headers in rows:
        timestamps.append(timestamp_ms)
        keys.append(key)
        values.append(value)
        headers.append([{"key": name, "value": data} for name, data in record_headers])
    return pa.RecordBatch.from_arrays(
        [
            pa.array(timestamps, pa.int64()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(headers, HEADERS_TYPE),
        ],
        schema=PRODUCED,
    )
