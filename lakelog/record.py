"""A record, and the two column shapes that records travel in.

``PRODUCED`` is what a producer hands to the codec; ``RECORDS`` is the one shape after it: hot
reads, cold reads, Spark and consumers all speak it. Python objects (`Record`) exist only at the
two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from itertools import islice, repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

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


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record as read.

    A struct that is made in C, since a dataclass takes nine times as long. The garbage collector
    does not visit it: an object of a deserializer that you have hold its record is not freed.
    """

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


class RecordMetadata(Struct, frozen=True):
    """Where an appended record went."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # the record's own, or the append time under LogAppendTime


class OffsetAndTimestamp(NamedTuple):
    """The answer to a search by timestamp."""

    offset: int
    timestamp_ms: int


class OffsetAndMetadata(NamedTuple):
    """How far a group has come: the offset of the next record, as Kafka's clients have it."""

    offset: int
    metadata: str = ""  # anything, up to 4,096 bytes
    leader_epoch: int = -1  # -1: none; there are no leaders here, it is kept for clients of Kafka


class OffsetRange(NamedTuple):
    """Offsets ``[start, end)``."""

    start: int
    end: int


class Fetched(Struct, frozen=True):
    """One read step of either tier: the records and how far they cover the log."""

    records: pa.RecordBatch  # RECORDS, offsets within [start_offset, next_offset)
    start_offset: int
    next_offset: int  # where to go on; equal to start_offset only at the log end
    gaps: tuple[OffsetRange, ...] = ()  # skipped after an unclean stop, never to be used
    at_log_end: bool = False  # the hot tier had nothing behind it when it was read


class FetchedTogether(Struct, frozen=True, eq=False):
    """One read step of each of several partitions, as columns: there may be thousands."""

    topic_partitions: Sequence[TopicPartition]
    records: pa.RecordBatch  # RECORDS; those of a partition follow those of the one before
    ends: np.ndarray[Any, Any]  # of each partition, its last row plus one
    start_offsets: np.ndarray[Any, Any]  # as of `Fetched`
    next_offsets: np.ndarray[Any, Any]
    next_counts: Sequence[int]  # how many entries are asked for in the step after it

    @classmethod
    def of_none(cls) -> FetchedTogether:
        """Of no partition."""
        none = np.empty(0, np.int64)
        return cls((), empty_records(), none, none, none, ())

    def steps(self) -> dict[TopicPartition, Fetched]:
        """Each by itself."""
        starts = [0, *self.ends.tolist()]
        return {
            one: Fetched(self.records.slice(first, end - first), start, following)
            for one, first, end, start, following in zip(
                self.topic_partitions,
                starts,
                starts[1:],
                self.start_offsets.tolist(),
                self.next_offsets.tolist(),
                strict=False,
            )
        }


def empty_records() -> pa.RecordBatch:
    """A `RECORDS` batch without rows."""
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, field.type) for field in RECORDS], schema=RECORDS
    )


_TYPES = tuple(TimestampType)


def to_records(topic_partition: TopicPartition, batch: pa.RecordBatch | pa.Table) -> list[Record]:
    """The rows of a `RECORDS` batch as Python objects."""
    if isinstance(batch, pa.Table):
        return [row for part in batch.to_batches() for row in to_records(topic_partition, part)]
    topic, partition = topic_partition
    columns: tuple[Iterable[Any], ...] = (  # in the order of the fields
        repeat(topic),
        repeat(partition),
        objects(batch.column("offset")),
        (np.asarray(batch.column("timestamp").view(pa.int64())) // 1000).tolist(),
        objects(batch.column("key")),
        objects(batch.column("value")),
        header_tuples(batch.column("headers")),
        timestamp_types(batch.column("timestampType")),
    )
    return list(map(Record, *columns))


def timestamp_types(column: pa.Array) -> Iterable[TimestampType]:
    """The type of each row's timestamp."""
    numbers = np.asarray(column)
    if not numbers.any():  # as nearly always
        return repeat(TimestampType.CREATE_TIME, len(numbers))
    return map(_TYPES.__getitem__, numbers.tolist())


def objects(column: pa.Array) -> list[Any]:
    """A column's values as `to_pylist` has them, which makes a scalar of each first."""
    return list(column.to_numpy(zero_copy_only=False).tolist())


def header_tuples(column: pa.Array) -> list[Headers]:
    """The headers of each row."""
    if not len(column.values):  # the parent's; without any, a slice has none either
        return [()] * len(column)
    pairs = column.flatten()
    names, values = (objects(pc.struct_field(pairs, name)) for name in ("key", "value"))
    each = zip(names, values, strict=True)
    return [tuple(islice(each, count)) for count in column.value_lengths().to_pylist()]


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
