"""A record, and the two column shapes that records travel in.

``PRODUCED`` is what a producer hands to the codec; ``RECORDS`` is the one shape after it: hot
reads, cold reads, Spark and consumers all speak it. Python objects (`Record`) exist only at the
two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from itertools import islice, repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..errors import InvalidTimestampError
from .topic_partition import OffsetRange, TopicPartition

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
        """The timestamp as an aware UTC datetime.

        Raises:
            InvalidTimestampError: it lies after the year 9999, where datetimes end.
        """
        try:
            return _EPOCH + timedelta(milliseconds=self.timestamp_ms)
        except OverflowError:
            raise InvalidTimestampError(
                f"offset {self.offset} of {self.topic}-{self.partition} has the timestamp "
                f"{self.timestamp_ms}, after the year 9999, where Python's datetimes end; use "
                "timestamp_ms"
            ) from None

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


class Fetched(Struct, frozen=True):
    """One read step of either tier: the records and how far they cover the log."""

    records: pa.RecordBatch  # RECORDS, offsets within [start_offset, next_offset)
    start_offset: int
    next_offset: int  # where to go on; equal to start_offset only at the log end
    gaps: tuple[OffsetRange, ...] = ()  # skipped after an unclean stop, never to be used
    at_log_end: bool = False  # the log, not just what a server has left of it, ended there then


def no_headers(count: int) -> pa.ListArray:
    """A headers column of empty lists."""
    # By numpy, as Arrow's own repeat takes several times as long.
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    return pa.Array.from_buffers(HEADERS_TYPE, count, [None, offsets], children=[_NO_HEADER])


_NO_HEADER = pa.nulls(0, HEADERS_TYPE.value_type)


def empty_records() -> pa.RecordBatch:
    """A `RECORDS` batch without rows."""
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, field.type) for field in RECORDS], schema=RECORDS
    )


_TYPES = tuple(TimestampType)

#: Where records are handed out one by one, so many are made at a time: few enough to stay in a
#: processor's cache, and enough that what a call of Arrow takes does not count.
RECORDS_AT_ONCE = 500


class RecordRows:
    """Rows of a `RECORDS` batch, made objects when they are asked for.

    A slice shares the columns, which are looked at once a batch: it takes no call of Arrow. Keys
    and values are copies, so that one that is kept does not hold the batch.
    """

    __slots__ = ("_columns", "_end", "_start")

    def __init__(self, columns: _Columns, start: int, end: int) -> None:
        self._columns, self._start, self._end = columns, start, end

    @classmethod
    def of(cls, topic_partition: TopicPartition, batch: pa.RecordBatch) -> RecordRows:
        """All rows of a batch."""
        return cls(_Columns(topic_partition, batch), 0, batch.num_rows)

    def __len__(self) -> int:
        return self._end - self._start

    def first(self, rows: int) -> RecordRows:
        """At most so many of the first."""
        return RecordRows(self._columns, self._start, min(self._start + rows, self._end))

    def after(self, rows: int) -> RecordRows:
        """Without so many of the first."""
        return RecordRows(self._columns, min(self._start + rows, self._end), self._end)

    @property
    def last_offset(self) -> int:
        """The offset of the last of them, of which there is one."""
        return int(self._columns.offsets[self._end - 1])

    @property
    def nbytes(self) -> int:
        """What they take, as Arrow counts it, but for what marks nulls."""
        return self._columns.nbytes(self._start, self._end)

    def batch(self) -> pa.RecordBatch:
        """As Arrow."""
        return self._columns.batch.slice(self._start, len(self))

    def records(self) -> list[Record]:
        """As objects."""
        return self._columns.records(self._start, self._end)

    def in_parts(self) -> Iterator[list[Record]]:
        """As objects, of which the caller has `RECORDS_AT_ONCE` at a time."""
        for start in range(self._start, self._end, RECORDS_AT_ONCE):
            yield self._columns.records(start, min(start + RECORDS_AT_ONCE, self._end))


class _Columns:
    """The columns of a `RECORDS` batch, as what any of its rows are quickly made of."""

    def __init__(self, topic_partition: TopicPartition, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._topic, self._partition = topic_partition
        named = map(batch.column, RECORDS.names)  # there may be more
        offsets, times, types, self._keys, self._values, self._headers = named
        self.offsets = np.asarray(offsets)
        # As nearly always; a file that a stranger wrote anew may have its rows in any order.
        self._ascend = bool((self.offsets[1:] > self.offsets[:-1]).all())
        self._times_ms = np.asarray(times.view(pa.int64())) // 1000
        self._types = types if np.asarray(types).any() else None  # None: as nearly always
        self._has_headers = len(self._headers.values) > 0  # the parent's, if this is a slice
        self._ends: list[np.ndarray[Any, Any]] | None = None

    def records(self, start: int, end: int) -> list[Record]:
        count = end - start
        if count <= 0:
            return []
        columns: tuple[Iterable[Any], ...] = (  # in the order of the fields
            repeat(self._topic),
            repeat(self._partition),
            self._offsets(start, end),
            self._times_ms[start:end].tolist(),
            objects(self._keys.slice(start, count)),
            objects(self._values.slice(start, count)),
            header_tuples(self._headers.slice(start, count)) if self._has_headers else repeat(()),
            repeat(TimestampType.CREATE_TIME)
            if self._types is None
            else timestamp_types(self._types.slice(start, count)),
        )
        return list(map(Record, *columns))

    def nbytes(self, start: int, end: int) -> int:
        if start >= end:
            return 0
        if self._ends is None:
            self._ends = [value_ends(self._keys), value_ends(self._values)]
        size = (end - start) * _ROW_BYTES
        for ends in self._ends:
            size += int(ends[end]) - int(ends[start])
        if self._has_headers:
            size += int(self._headers.slice(start, end - start).flatten().nbytes)
        return size

    def _offsets(self, start: int, end: int) -> Iterable[int]:
        first, last = int(self.offsets[start]), int(self.offsets[end - 1])
        if self._ascend and last - first == end - start - 1:  # none is left out
            return range(first, last + 1)
        found: list[int] = self.offsets[start:end].tolist()
        return found


#: Of a row's offset, timestamp and type, and of where its key, value and headers end.
_ROW_BYTES = 8 + 8 + 4 + 3 * 4


def to_records(topic_partition: TopicPartition, batch: pa.RecordBatch | pa.Table) -> list[Record]:
    """The rows of a `RECORDS` batch as Python objects."""
    if isinstance(batch, pa.Table):
        return [row for part in batch.to_batches() for row in to_records(topic_partition, part)]
    return RecordRows.of(topic_partition, batch).records()


def timestamp_types(column: pa.Array) -> Iterable[TimestampType]:
    """The type of each row's timestamp."""
    return map(_TYPES.__getitem__, np.asarray(column).tolist())


def objects(column: pa.Array) -> list[Any]:
    """A column's values as `to_pylist` has them, which makes a scalar of each first."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found


def value_ends(column: pa.Array) -> np.ndarray[Any, Any]:
    """Where the values of a binary column end in its bytes, after where the first begins."""
    _, ends, _ = column.buffers()
    if ends is None or not ends.size:  # Arrow allows it of a column without rows
        return np.zeros(1, np.int32)
    return np.frombuffer(ends, np.int32, len(column) + 1, column.offset * 4)


def header_tuples(column: pa.Array) -> list[Headers]:
    """The headers of each row."""
    if not len(column.values):  # the parent's; without any, a slice has none either
        return [()] * len(column)
    pairs = column.flatten()
    names, values = (objects(pc.struct_field(pairs, name)) for name in ("key", "value"))
    each = zip(names, values, strict=True)
    counts = np.asarray(column.value_lengths())
    if len(counts) and counts[0] and (counts == counts[0]).all():  # as nearly always
        return list(zip(*repeat(each, int(counts[0])), strict=True))
    return [tuple(islice(each, count)) for count in counts.tolist()]


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
