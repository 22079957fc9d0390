"""How records are cut into arrow entries, and what one weighs."""

from __future__ import annotations

import base64
import random
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec import EntryId, decode, encode
from lakelog.codec.arrow_entry import TARGET_ENTRY_BYTES
from lakelog.codec.crc import crc32c
from lakelog.codec.decoded_size import decoded_bytes
from lakelog.errors import (
    CorruptRecordError,
    InvalidArgumentError,
    InvalidTimestampError,
    RecordTooLargeError,
)
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import HEADERS_TYPE, PRODUCED, Record, produced_batch, to_records
from lakelog.values.topic_partition import TopicPartition

ARROW = EntryFormat.ARROW


def noise(seed: int, size_bytes: int) -> bytes:
    """Bytes that no compression makes smaller."""
    return random.Random(seed).randbytes(size_bytes)


def binary_with_offsets(*offsets: int) -> pa.Array:
    buffers = [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(bytes(100_000))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def decoded(entries) -> pa.RecordBatch:
    end, stored = 0, []
    for entry in entries:
        end += entry.record_count
        stored.append((EntryId(end - 1, entry.record_count), entry.fields))
    return decode(stored)


def test_auto_writes_fields_below_sixteen_records_and_arrow_from_there():
    rows = [(5, None, b"v", [])] * 16

    below = encode(produced_batch(rows[:15]), EntryFormat.AUTO, Compression.NONE)
    at = encode(produced_batch(rows), EntryFormat.AUTO, Compression.NONE)

    assert [entry.fields[0] for entry in below] == [b"__ts"] * 15
    assert [entry.fields[0] for entry in at] == [b"a"]


#: A message of version 0.1.0: entries outlive the lakelog that wrote them.
STORED_MESSAGE = base64.b64decode(
    "/////9gBAAAUAAAAAAAAAAwAFgAGAAUACAAMAAwAAAAAAwQAGAAAAJgAAAAAAAAAAAAKABgADAAEAAgACgAAACwBAA"
    "AQAAAAAgAAAAAAAAAAAAAAEQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAAAAAEAAAAAAAAAABAAAAAAAA"
    "ABgAAAAAAAAADAAAAAAAAAAoAAAAAAAAAAEAAAAAAAAAMAAAAAAAAAABAAAAAAAAADgAAAAAAAAADAAAAAAAAABIAA"
    "AAAAAAAAEAAAAAAAAAUAAAAAAAAAAAAAAAAAAAAFAAAAAAAAAADAAAAAAAAABgAAAAAAAAAAAAAAAAAAAAYAAAAAAA"
    "AAAAAAAAAAAAAGAAAAAAAAAADAAAAAAAAABwAAAAAAAAAAIAAAAAAAAAeAAAAAAAAAABAAAAAAAAAIAAAAAAAAAADA"
    "AAAAAAAACQAAAAAAAAAAEAAAAAAAAAAAAAAAcAAAACAAAAAAAAAAAAAAAAAAAAAgAAAAAAAAABAAAAAAAAAAIAAAAA"
    "AAAAAQAAAAAAAAACAAAAAAAAAAAAAAAAAAAAAgAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAAAAAAAAAAACAAAAAAAAAA"
    "EAAAAAAAAAAGjlz4sBAAD//////////wEAAAAAAAAAAAAAAAEAAAABAAAAAAAAAGsAAAAAAAAAAQAAAAAAAAAAAAAA"
    "AQAAAAEAAAAAAAAAdgAAAAAAAAAAAAAAAgAAAAIAAAAAAAAAAAAAAAEAAAACAAAAAAAAAGhuAAAAAAAAAQAAAAAAAA"
    "AAAAAAAQAAAAEAAAAAAAAAMQAAAAAAAAA="
)


def test_an_entry_that_an_older_version_stored_is_read():
    batch = decode([(EntryId(9, 2), [b"a", STORED_MESSAGE, b"c", b"eba7d453"])])

    assert to_records(TopicPartition("orders", 0), batch) == [
        Record("orders", 0, 8, 1_700_000_000_000, b"k", b"v", (("h", b"1"), ("n", None))),
        Record("orders", 0, 9, -1, None, None, ()),
    ]


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("headers", [[], [("trace", b"0123456789"), ("none", None)]])
def test_entries_fill_their_target_and_stay_below_it(compression, headers):
    rows = [(index, b"key", noise(index, 1000), headers) for index in range(1000)]

    entries = encode(produced_batch(rows), ARROW, compression)

    assert max(entry.size_bytes for entry in entries) <= TARGET_ENTRY_BYTES
    if compression is Compression.NONE:
        assert min(entry.size_bytes for entry in entries[:-1]) > 0.98 * TARGET_ENTRY_BYTES


def test_records_of_very_different_sizes_are_cut_by_their_bytes():
    sizes = [0, 900_000, 1, 0, 200_000, 100_000, 300_000, 5, *[10] * 100, 262_144, 7]
    rows = [(index, None, noise(index, size), []) for index, size in enumerate(sizes)]

    entries = encode(produced_batch(rows), ARROW, Compression.NONE)

    assert [entry.record_count for entry in entries] == [1, 1, 3, 1, 1, 101, 1, 1]
    assert decoded(entries).column("value").to_pylist() == [value for _, _, value, _ in rows]


@pytest.mark.parametrize("entry_format", EntryFormat)
def test_a_record_that_cannot_fit_is_named(entry_format):
    rows = [(5, None, b"small", []), (5, None, noise(1, 50_000), []), (5, None, b"small", [])]

    with pytest.raises(RecordTooLargeError, match=r"record 1 takes 5\d{4} bytes") as raised:
        encode(produced_batch(rows), entry_format, Compression.LZ4, max_entry_bytes=20_000)

    assert raised.value.index == 1
    assert raised.value.max_entry_bytes == 20_000


def test_a_fields_entry_too_large_is_tried_as_a_compressed_arrow_entry():
    rows = [(5, None, b"small", []), (5, None, b"x" * 50_000, [])]

    entries = encode(
        produced_batch(rows), EntryFormat.FIELDS, Compression.LZ4, max_entry_bytes=20_000
    )

    assert [entry.fields[0] for entry in entries] == [b"__ts", b"a"]
    assert decoded(entries).column("value").to_pylist() == [b"small", b"x" * 50_000]


@pytest.mark.parametrize("entry_format", [EntryFormat.ARROW, EntryFormat.FIELDS])
def test_columns_whose_offsets_do_not_begin_at_zero_are_rebased(entry_format):
    far = binary_with_offsets(90_000, 90_003)
    names = pa.StringArray.from_buffers(1, far.buffers()[1], far.buffers()[2])
    item = pa.StructArray.from_arrays([names, far], fields=list(HEADERS_TYPE.value_type))
    first = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), item, type=HEADERS_TYPE)
    third = pa.ListArray.from_arrays(
        pa.array([2, 3], pa.int32()), pa.concat_arrays([item] * 3), type=HEADERS_TYPE
    )
    for headers in (first, third):
        batch = pa.RecordBatch.from_arrays([pa.array([5]), far, far, headers], schema=PRODUCED)

        (entry,) = encode(batch, entry_format, Compression.NONE)

        assert entry.size_bytes < 1000
        assert to_records(TopicPartition("orders", 0), decoded([entry])) == [
            Record("orders", 0, 0, 5, bytes(3), bytes(3), (("\0\0\0", bytes(3)),))
        ]


@pytest.mark.parametrize("entry_format", EntryFormat)
@pytest.mark.parametrize("timestamp_ms", [-2, -(2**63), 2**63 - 1, (2**63 - 1) // 1000 + 1])
def test_a_timestamp_that_readers_cannot_count_is_refused(entry_format, timestamp_ms):
    rows = [(-1, None, b"v", []), (timestamp_ms, None, b"v", []), (5, None, b"v", [])]

    with pytest.raises(InvalidTimestampError) as raised:
        encode(produced_batch(rows), entry_format, Compression.NONE)

    assert [error[:2] for error in raised.value.record_errors] == [(1, timestamp_ms)]


def column(index: int, array: pa.Array) -> pa.RecordBatch:
    columns = produced_batch([(5, b"k", b"v", [("h", b"1")])] * len(array)).columns
    columns[index] = array
    return pa.RecordBatch.from_arrays(columns, schema=PRODUCED)


def header_keyed(key: bytes) -> pa.Array:
    keys = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, len(key)], pa.int32()).buffers()[1], pa.py_buffer(key)]
    )
    items = pa.StructArray.from_arrays(
        [keys, pa.array([b"1"], pa.binary())], fields=list(HEADERS_TYPE.value_type)
    )
    return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), items, type=HEADERS_TYPE)


@pytest.mark.parametrize(
    ("batch", "flaw"),
    [
        (pa.RecordBatch.from_pydict({"value": [b"v"]}), "columns"),
        (column(0, pa.nulls(1, pa.int64())), "a timestamp is null"),
        (column(3, pa.nulls(1, HEADERS_TYPE)), "headers are null"),
        (column(3, pa.array([[None]], HEADERS_TYPE)), "a header or its key is null"),
        (column(3, header_keyed(b"\xff")), "UTF8"),
        (column(2, binary_with_offsets(0, -9, 1)), "no valid Arrow data"),
    ],
)
@pytest.mark.parametrize("entry_format", [EntryFormat.ARROW, EntryFormat.FIELDS])
def test_records_that_no_reader_could_read_are_refused(batch, flaw, entry_format):
    with pytest.raises(InvalidArgumentError, match=flaw):
        encode(batch, entry_format, Compression.NONE)


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.ZSTD])
def test_a_record_that_is_too_large_once_decompressed_is_named(compression):
    rows = [(1, None, b"x", ()), (2, None, bytes(3_000_000), ())]
    with pytest.raises(RecordTooLargeError, match=r"lakelog\.max\.decoded\.bytes") as raised:
        encode(produced_batch(rows), ARROW, compression, max_decoded_bytes=2_000_000)
    assert raised.value.index == 1
    assert raised.value.decoded_bytes > 3_000_000 > raised.value.size_bytes


@given(st.binary(max_size=400))
def test_no_bytes_keep_their_size_from_being_told(data):
    assert decoded_bytes([b"a", data, b"c", b""]) >= 0


@pytest.mark.parametrize("length", [2**31, 2**62])
def test_a_buffer_that_declares_more_than_any_can_hold_is_refused_unread(length):
    (entry,) = encode(produced_batch([(1, None, bytes(9_000), ())]), ARROW, Compression.ZSTD)
    before, declared, after = entry.fields[1].rpartition(struct.pack("<q", 9_000))
    assert declared
    message = before + struct.pack("<q", length) + after
    with pytest.raises(CorruptRecordError, match="declares a buffer of"):
        decode([(EntryId(0, 1), [b"a", message, b"c", crc32c(message)])])
