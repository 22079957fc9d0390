"""Any records, through any format, come back byte for byte."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from lakelog.codec import Entry, EntryId, decode, encode, gap_fields
from lakelog.codec.decoded_size import decoded_bytes
from lakelog.codec.entry import MAX_TIMESTAMP_MS
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import RECORDS, Record, TimestampType, produced_batch, to_records
from lakelog.values.topic_partition import TopicPartition

TP = TopicPartition("orders", 0)
BUFFERS = 14  # of a PRODUCED batch

timestamps = st.one_of(
    st.just(-1), st.just(0), st.just(MAX_TIMESTAMP_MS), st.integers(-1, MAX_TIMESTAMP_MS)
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
json_objects = st.builds(
    lambda members, layout, ascii_only: json.dumps(
        members, separators=layout, ensure_ascii=ascii_only
    ).encode(errors="surrogatepass"),
    st.dictionaries(
        st.text(max_size=6) | st.sampled_from(["value", "__key", "__x", "a", "t", "__ts"]),
        json_values,
        max_size=5,
    ),
    st.sampled_from([None, (",", ":"), (", ", ":"), (",", ": "), (" , ", " : ")]),
    st.booleans(),
)
values = st.one_of(
    st.none(),
    st.binary(max_size=40),
    json_objects,
    st.binary(min_size=1, max_size=3).map(lambda piece: piece * 3000),
)
headers = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
        | st.sampled_from(["a", "a", "__key", "value", "\x00"]),
        st.none() | st.binary(max_size=12),
    ),
    max_size=4,
)
rows = st.tuples(timestamps, st.none() | st.binary(max_size=20), values, headers)


def as_stored(
    entries: tuple[Entry, ...], base_offset: int = 0, append_time_ms: int | None = None
) -> list[tuple[EntryId, list[bytes]]]:
    """What a reader gets back for entries appended at ``base_offset``."""
    stored = []
    end = base_offset
    for entry in entries:
        end += entry.record_count
        tail = [] if append_time_ms is None else [b"t", b"%d" % append_time_ms]
        stored.append((EntryId(end - 1, entry.record_count), entry.fields + tail))
    return stored


@given(
    st.lists(rows, max_size=25),
    st.sampled_from(EntryFormat),
    st.sampled_from(Compression),
    st.booleans(),
    st.integers(0, 2**52),
    st.none() | st.integers(0, MAX_TIMESTAMP_MS),
    st.integers(12_000, 40_000),
)
@example([(-1, None, None, [])] * 16, EntryFormat.AUTO, Compression.LZ4, False, 0, None, 12_000)
@example(
    [(5, b"", b"", [("", b""), ("", None)])], EntryFormat.AUTO, Compression.NONE, True, 7, 9, 12_000
)
@example([(5, b"k", b"{}", [])], EntryFormat.FIELDS, Compression.NONE, True, 0, None, 12_000)
def test_records_come_back_byte_for_byte(
    produced, entry_format, compression, flatten, base_offset, append_time_ms, max_entry_bytes
):
    columns, from_rows = (
        encode(records, entry_format, compression, max_entry_bytes=max_entry_bytes, flatten=flatten)
        for records in (produced_batch(produced), produced)
    )
    assert from_rows == columns
    batch = decode(as_stored(columns, base_offset, append_time_ms))

    batch.validate(full=True)
    assert batch.schema == RECORDS
    kind = TimestampType.CREATE_TIME if append_time_ms is None else TimestampType.LOG_APPEND_TIME
    assert to_records(TP, batch) == [
        Record(
            "orders",
            0,
            base_offset + index,
            timestamp_ms if append_time_ms is None else append_time_ms,
            key,
            value,
            tuple(record_headers),
            kind,
        )
        for index, (timestamp_ms, key, value, record_headers) in enumerate(produced)
    ]


@given(
    st.lists(rows, max_size=25),
    st.sampled_from(EntryFormat),
    st.sampled_from(Compression),
    st.integers(12_000, 40_000),
)
def test_an_entry_says_what_append_must_know(produced, entry_format, compression, max_entry_bytes):
    entries = encode(
        produced_batch(produced), entry_format, compression, max_entry_bytes=max_entry_bytes
    )

    start = 0
    for entry in entries:
        of_entry = produced[start : start + entry.record_count]
        start += entry.record_count
        stamped = [timestamp_ms for timestamp_ms, *_ in of_entry if timestamp_ms != -1]
        keyless = [index for index, (_, key, *_) in enumerate(of_entry) if key is None]
        assert entry == Entry(
            record_count=len(of_entry),
            fields=entry.fields,
            size_bytes=sum(map(len, entry.fields)),
            decoded_bytes=decoded_bytes(entry.fields),
            min_timestamp_ms=min(stamped, default=-1),
            max_timestamp_ms=max(stamped, default=-1),
            first_keyless=keyless[0] if keyless else None,
        )
        assert 1 <= entry.size_bytes <= max_entry_bytes
        assert all(type(part) is bytes for part in entry.fields)
    assert start == len(produced)


@given(
    st.lists(rows, min_size=1, max_size=25),
    st.data(),
    st.sampled_from(EntryFormat),
    st.sampled_from(Compression),
)
def test_a_slice_is_encoded_like_the_same_records_alone(produced, data, entry_format, compression):
    start = data.draw(st.integers(0, len(produced)))
    end = data.draw(st.integers(start, len(produced)))
    part = produced_batch(produced).slice(start, end - start)

    entries = encode(part, entry_format, compression)

    alone = encode(produced_batch(produced[start:end]), entry_format, compression)
    assert decode(as_stored(entries)).equals(decode(as_stored(alone)))
    # Arrow leaves a buffer of a slice uncut when that spares less than its padding of 64 bytes.
    spare = 64 * BUFFERS * len(entries)
    assert sum(e.size_bytes for e in entries) <= spare + sum(e.size_bytes for e in alone)


@given(
    st.lists(
        st.tuples(
            st.lists(rows, min_size=1, max_size=3),
            st.sampled_from(["arrow", "fields", "gap"]),
            st.none() | st.just(1_700_000_000_000),
        ),
        max_size=8,
    )
)
def test_a_mixed_run_gives_one_batch_in_offset_order(calls):
    stored, expected, offset = [], [], 0
    for produced, kind, append_time_ms in calls:
        if kind == "gap":
            stored.append((EntryId(offset + 99, 100), gap_fields(offset, offset + 100)))
            offset += 100
            continue
        entries = encode(produced_batch(produced), EntryFormat(kind), Compression.LZ4)
        stored += as_stored(entries, offset, append_time_ms)
        for timestamp_ms, key, value, record_headers in produced:
            expected.append(
                Record(
                    "orders",
                    0,
                    offset,
                    timestamp_ms if append_time_ms is None else append_time_ms,
                    key,
                    value,
                    tuple(record_headers),
                    TimestampType(int(append_time_ms is not None)),
                )
            )
            offset += 1

    batch = decode(iter(stored))

    assert isinstance(batch, pa.RecordBatch)
    assert to_records(TP, batch) == expected
