"""The arrow entry: many records as one Arrow IPC record-batch message.

| field | value                                                                            |
|-------|----------------------------------------------------------------------------------|
| ``a`` | the message, of schema ``record.PRODUCED``; buffers plain, LZ4 or ZSTD           |
| ``c`` | CRC-32C of ``a``, 8 hex digits                                                   |
| ``t`` | only under LogAppendTime: the append time in ms, for all records                 |

No stream header: the schema is fixed, so it would be the same bytes in every entry. The message
itself says whether its buffers are compressed. Its bytes are parsed only once their CRC is right.

Source: Arrow columnar format, "Encapsulated message format" and "RecordBatch message".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..errors import ForeignEntryError, RecordTooLargeError
from ..values.config import INT32_MAX, KIB, Compression
from ..values.record import NO_TIMESTAMP_MS, PRODUCED
from .crc import crc32c
from .decoded_size import MESSAGE_FIELD, buffer_lengths, decoded_bytes
from .entry import Entry, EntryId, append_time_ms, corrupt

CRC_FIELD = b"c"

#: Cuts aim below this. Redis keeps a large entry in one allocation, and jemalloc has no size
#: between 256 and 320 KiB: an entry that just exceeds 256 KiB wastes a fifth of its memory. The
#: 512 bytes are for the stream's own bytes around the fields. Larger entries would make a seek
#: read more, smaller ones cost more round trips through the append script.
TARGET_ENTRY_BYTES = 256 * KIB - 512

# What Arrow adds, for the estimate by which records are cut; rounded up.
_ENTRY_OVERHEAD_BYTES = 704  # metadata, padding of 14 buffers, field names and CRC
_RECORD_OVERHEAD_BYTES = 21  # int64 timestamp, 3 int32 offsets, 2 validity bits
_HEADER_OVERHEAD_BYTES = 9  # 2 int32 offsets, 3 validity bits

_OPTIONS = {
    kind: pa.ipc.IpcWriteOptions(compression=name, use_threads=False)
    for kind, name in {Compression.LZ4: "lz4", Compression.ZSTD: "zstd"}.items()
}
_SCHEMA_BYTES = PRODUCED.serialize().size  # what a stream writer puts before the message
_TIMESTAMP_BYTES = 8


def encode_arrow(
    records: pa.RecordBatch,
    compression: Compression,
    max_entry_bytes: int,
    max_decoded_bytes: int,
    first_index: int = 0,
) -> list[Entry]:
    """The records as arrow entries, in order, each within both bounds.

    Args:
        records: ``PRODUCED``, checked by the caller.
        compression: of the message's buffers.
        max_entry_bytes: bound on `Entry.size_bytes`.
        max_decoded_bytes: bound on `Entry.decoded_bytes`.
        first_index: the first record's index in errors.

    Raises:
        RecordTooLargeError: a record exceeds a bound on its own; ``index`` says which.
    """
    records = _rebased(records)
    entries: list[Entry] = []
    spans = list(_cut(records, min(TARGET_ENTRY_BYTES, max_entry_bytes, max_decoded_bytes)))
    spans.reverse()
    while spans:
        start, end = spans.pop()
        entry = _entry(records.slice(start, end - start), compression)
        if entry.size_bytes <= max_entry_bytes and entry.decoded_bytes <= max_decoded_bytes:
            entries.append(entry)
        elif end - start > 1:  # the estimate was too low
            middle = (start + end) // 2
            spans += [(middle, end), (start, middle)]
        else:
            raise too_large(entry, first_index + start, max_entry_bytes, max_decoded_bytes)
    return entries


def too_large(
    entry: Entry, index: int, max_entry_bytes: int, max_decoded_bytes: int
) -> RecordTooLargeError:
    """The error for an entry of one record that exceeds a bound."""
    if entry.size_bytes > max_entry_bytes:
        holds = (
            f"takes {entry.size_bytes} bytes as an entry, but the largest entry allowed is "
            f"{max_entry_bytes}; make it smaller, compress it, or raise max.message.bytes"
        )
    else:
        holds = (
            f"takes {entry.decoded_bytes} bytes once decompressed, which every reader must hold at "
            f"once, but the largest allowed is {max_decoded_bytes}; make it smaller, or raise "
            "lakelog.max.decoded.bytes"
        )
    return RecordTooLargeError(
        f"record {index} {holds} of the topic",
        index=index,
        size_bytes=entry.size_bytes,
        decoded_bytes=entry.decoded_bytes,
        max_entry_bytes=max_entry_bytes,
        max_decoded_bytes=max_decoded_bytes,
    )


def decode_arrow(entry_id: EntryId, fields: Sequence[bytes]) -> tuple[pa.RecordBatch, int | None]:
    """The records of an arrow entry as ``PRODUCED``, and its append time if it has one.

    Raises:
        ForeignEntryError: a foreign entry whose first field is also named ``a``.
        CorruptRecordError: its bytes are not what was written.
    """
    if len(fields) < 4 or fields[0] != MESSAGE_FIELD or fields[2] != CRC_FIELD:
        raise ForeignEntryError(
            f"entry {entry_id} was not written by lakelog: it has no CRC field {CRC_FIELD!r} after "
            f"its first field",
            entry_id=entry_id,
        )
    message = fields[1]
    if crc32c(message) != fields[3]:
        raise corrupt(entry_id, f"its CRC-32C is {crc32c(message)!r}, stored is {fields[3]!r}")
    time_ms = append_time_ms(entry_id, fields[4:])
    # Arrow reserves what a compressed buffer declares before it looks at the rest of it.
    lengths = buffer_lengths(message) or ()  # none: it is not compressed
    largest = max(lengths, default=0)
    if largest > max(INT32_MAX, _TIMESTAMP_BYTES * entry_id.record_count):
        raise corrupt(entry_id, f"it declares a buffer of {largest} bytes")
    try:
        batch = read_message(message, sum(lengths))
        batch.validate(full=True)  # a right CRC only says that the bytes are the writer's
    except (pa.ArrowException, EOFError, OSError, ValueError, StopIteration) as error:
        raise corrupt(entry_id, f"it is no Arrow record batch ({error})") from error
    if batch.num_rows != entry_id.record_count:
        raise corrupt(
            entry_id, f"it holds {batch.num_rows} records, its id says {entry_id.record_count}"
        )
    flaw = misplaced_null(batch)
    if flaw is not None:
        raise corrupt(entry_id, f"of its records, {flaw}")
    return batch, time_ms


def produced_flaw(records: pa.RecordBatch) -> str | None:
    """What keeps columns of the right types from being sound ``PRODUCED``; None if nothing does.

    Of a slice, it checks only that slice, unlike Arrow's own full validation of lists.
    """
    _, keys, values, headers = records.columns
    try:
        records.validate()
        keys.validate(full=True)
        values.validate(full=True)
        if len(headers.values):  # the parent's; without any, the slice has none either
            if (pc.min(headers.value_lengths()).as_py() or 0) < 0:
                return "a record has fewer than no headers"
            items = headers.flatten()
            items.field(0).validate(full=True)  # UTF-8 as well
            items.field(1).validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        return f"they are no valid Arrow data ({error})"
    return misplaced_null(records)


def misplaced_null(records: pa.RecordBatch) -> str | None:
    """What is null of ``PRODUCED`` records though it must not be; None if nothing is."""
    timestamps, _, _, headers = records.columns
    if timestamps.null_count:
        return "a timestamp is null (say -1 for none)"
    if headers.null_count:
        return "a record's headers are null (say an empty list)"
    if len(headers.values):
        items = headers.flatten()
        if items.null_count or items.field(0).null_count:
            return "a header or its key is null"
    return None


def _entry(records: pa.RecordBatch, compression: Compression) -> Entry:
    message = _message(records, compression)
    crc = crc32c(message)
    fields = [MESSAGE_FIELD, message, CRC_FIELD, crc]
    low_ms, high_ms = timestamp_bounds(records.column(0))
    return Entry(
        record_count=records.num_rows,
        fields=fields,
        size_bytes=sum(map(len, fields)),
        decoded_bytes=decoded_bytes(fields),
        min_timestamp_ms=low_ms,
        max_timestamp_ms=high_ms,
        first_keyless=_first_null(records.column(1)),
    )


def _message(records: pa.RecordBatch, compression: Compression) -> bytes:
    """The IPC message; of a slice, Arrow writes that slice's bytes only."""
    if compression is Compression.NONE:
        return bytes(records.serialize().to_pybytes())
    sink = pa.BufferOutputStream()
    writer = pa.ipc.new_stream(sink, PRODUCED, options=_OPTIONS[compression])
    writer.write_batch(records)
    end = sink.tell()  # before close() adds the end-of-stream mark
    writer.close()
    return bytes(sink.getvalue().slice(_SCHEMA_BYTES, end - _SCHEMA_BYTES).to_pybytes())


def timestamp_bounds(timestamps: pa.Array | np.ndarray) -> tuple[int, int]:
    """The smallest and largest of one or more timestamps, without those of -1; -1 if all are.

    Args:
        timestamps: int64 without nulls.
    """
    times_ms = np.asarray(timestamps)
    low, high = int(times_ms.min()), int(times_ms.max())
    if low == NO_TIMESTAMP_MS != high:
        low = int(times_ms[times_ms != NO_TIMESTAMP_MS].min())
    return low, high


def _first_null(keys: pa.Array) -> int | None:
    if not keys.null_count:
        return None
    return int(pc.index(keys.is_null(), True).as_py())


def _rebased(records: pa.RecordBatch) -> pa.RecordBatch:
    """The records with offsets that begin at 0.

    They may begin elsewhere if another library cut the arrays (slices of Rust's arrow do). Arrow 15
    and 16 write such a column broken, 17 to 19 with all the bytes before it.
    """
    timestamps, *columns = records.columns
    if all(
        offsets is None or not any(memoryview(offsets)[:4])
        for column in columns
        for offsets in column.buffers()[1::3]  # validity, offsets, bytes; a list's and its struct's
    ):
        return records
    rebased = [pa.concat_arrays([column]) for column in columns]
    return pa.RecordBatch.from_arrays([timestamps, *rebased], schema=PRODUCED)


# -- cuts --------------------------------------------------------------------------------------


def _cut(records: pa.RecordBatch, target_bytes: int) -> Iterator[tuple[int, int]]:
    """Spans of records whose entries come out at about ``target_bytes`` at most, uncompressed; a
    larger record gets a span of its own.
    """
    rows = records.num_rows
    room = target_bytes - _ENTRY_OVERHEAD_BYTES
    if not rows:
        return
    upto = _bytes_upto(records)
    start, start_bytes = 0, 0
    while start < rows:
        end = max(int(upto.searchsorted(start_bytes + room, side="right")), start + 1)
        yield start, end
        start, start_bytes = end, int(upto[end - 1])


def _bytes_upto(records: pa.RecordBatch) -> np.ndarray:
    """For each record, the estimated bytes of all records up to it, itself included (int64)."""
    _, keys, values, headers = records.columns
    count = np.arange(1, records.num_rows + 1)
    upto: np.ndarray = _ends(keys) + _ends(values) + count * _RECORD_OVERHEAD_BYTES
    offsets = headers.offsets.to_numpy()
    items = headers.values.slice(offsets[0], offsets[-1] - offsets[0])
    if not len(items):
        return upto
    count = np.arange(1, len(items) + 1) * _HEADER_OVERHEAD_BYTES
    items_upto = _ends(items.field(0)) + _ends(items.field(1)) + count
    upto += np.concatenate(([0], items_upto))[offsets[1:] - offsets[0]]
    return upto


def _ends(column: pa.Array) -> np.ndarray:
    """Where each value ends, counted from the first one's start (int64)."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    first = column.offset
    ends = offsets[first + 1 : first + 1 + len(column)].astype(np.int64)
    ends -= offsets[first]
    return ends


# -- messages ------------------------------------------------------------------------------------

# `read_record_batch` takes a message by itself, but hands each compressed buffer to a pool of
# threads, and to wake them takes longer than to decompress all of an entry. A stream can be told
# not to. So there are streams that never end, and the next message is laid into one of them.

_BY_THIS_THREAD = pa.ipc.IpcReadOptions(use_threads=False)


def read_message(message: bytes, compressed_bytes: int) -> pa.RecordBatch:
    """The message's ``PRODUCED`` records; what is not compressed still lies in the message.

    Args:
        compressed_bytes: what its compressed buffers hold; 0: none is compressed.

    Raises:
        ArrowException, EOFError, OSError, ValueError, StopIteration: it is no such message.
    """
    if not compressed_bytes:
        return pa.ipc.read_record_batch(pa.py_buffer(message), PRODUCED)
    try:
        stream = _idle.pop()
    except IndexError:
        stream = _Endless()
    batch = stream.read(message)
    _idle.append(stream)  # not after an error, which leaves it in the middle of a message
    return batch


class _Endless:
    """A stream of messages that are given one by one."""

    def __init__(self) -> None:
        self._bytes = _Bytes(_schema())
        file = pa.PythonFile(self._bytes, "r")
        self._stream = pa.ipc.open_stream(file, options=_BY_THIS_THREAD)

    def read(self, message: bytes) -> pa.RecordBatch:
        self._bytes.left = memoryview(message)
        try:
            return self._stream.read_next_batch()
        finally:
            self._bytes.left = _NOTHING  # the batch holds what it needs


class _Bytes:
    """What a stream reads from: views, so that it copies nothing."""

    closed = False

    def __init__(self, first: bytes) -> None:
        self.left = memoryview(first)

    def read(self, size: int) -> memoryview:
        given, self.left = self.left[:size], self.left[size:]
        return given


_NOTHING = memoryview(b"")


#: Of all threads. As a thread's own they would be let go of while it ends, and Arrow crashes there.
_idle: deque[_Endless] = deque(maxlen=8)


@cache
def _schema() -> bytes:
    """What a stream of ``PRODUCED`` begins with."""
    return bytes(PRODUCED.serialize().to_pybytes())
