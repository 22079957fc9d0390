"""Record batches of Kafka's: what is kept as it was sent, refused, and made of Arrow columns."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from base64 import b64decode

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recorded_batches import BATCHES, ROWS

from lakelog.codec import Entry, EntryId, decode, decoded_bytes, encode, kafka_records
from lakelog.codec.description import describe
from lakelog.codec.kafka_batch import (
    CODECS,
    HEADER_BYTES,
    BatchHeader,
    batch_of,
    compressed,
    crc_of,
    empty_batches,
    placed,
)
from lakelog.codec.kafka_entry import (
    MAX_HEADERS,
    batches_of,
    check_batch,
    encode_kafka,
    kafka_entry,
)
from lakelog.codec.kafka_records import RecordBytes, parse_records
from lakelog.codec.kafka_rows import RecordFlawError, Section, parse_rows, rows_section
from lakelog.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    NewerVersionError,
    RecordTooLargeError,
)
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import (
    RECORDS,
    TimestampType,
    no_headers,
    produced_batch,
    to_records,
)
from lakelog.values.topic_partition import TopicPartition

TP = TopicPartition("orders", 0)
MIB = 1 << 20

times_ms = st.one_of(
    st.sampled_from([-1, 0, 1_700_000_000_000]),
    st.integers(-1, 2**53),
    st.integers(1_700_000_000_000, 1_700_000_000_100),
)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=70)), max_size=4)
values = st.none() | st.binary(max_size=80) | st.integers(60, 20_000).map(bytes)
rows = st.tuples(times_ms, st.none() | st.binary(max_size=9), values, headers)
some_rows = st.lists(rows, min_size=1, max_size=40)
codecs = st.sampled_from(Compression)


def batch(made: list, **changes) -> bytes:
    """A batch of the rows, as nobody would send it where something is changed."""
    stamps = [row[0] for row in made]
    said = {
        "record_count": len(made),
        "last_offset_delta": len(made) - 1,
        "base_timestamp_ms": stamps[0],
        "max_timestamp_ms": max(stamps),
    }
    section = changes.pop("section", None)
    return batch_of(rows_section(made) if section is None else section, **said | changes)


def rewritten(sent: bytes, at: int, octets: bytes) -> bytes:
    """The bytes with others there, and a right CRC."""
    made = bytearray(sent)
    made[at : at + len(octets)] = octets
    made[17:21] = struct.pack(">I", google_crc32c.value(bytes(made[21:])))
    return bytes(made)


def as_rows(records: pa.RecordBatch) -> list:
    return [
        (row.offset, row.timestamp_ms, row.key, row.value, list(row.headers))
        for row in to_records(TP, records)
    ]


def stored(entry: Entry, base_offset: int = 0, *tail: bytes):
    last = base_offset + entry.record_count - 1
    return EntryId(last, entry.record_count), [*entry.fields, *tail]


# -- what is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "codec"), BATCHES)
def test_what_a_client_sent_is_kept_byte_for_byte(client, codec):
    sent = b64decode(BATCHES[client, codec])

    entry = kafka_entry(sent)

    assert entry.fields[:4] == [b"__v", b"3", b"k", sent]
    assert as_rows(decode([stored(entry, 40)])) == [
        (40 + index, *row) for index, row in enumerate(ROWS)
    ]
    assert check_batch(sent) == BatchHeader.parse(sent)
    assert entry == Entry(
        record_count=4,
        fields=entry.fields,
        size_bytes=sum(map(len, entry.fields)),
        decoded_bytes=decoded_bytes(entry.fields),
        min_timestamp_ms=1_699_999_999_990,
        max_timestamp_ms=1_700_000_000_005,
        first_keyless=1,
    )
    said = describe([*entry.fields, b"t", b"5"])
    assert said.format == "kafka"
    assert said.compression == (None if codec == "none" else codec)
    assert said.size_bytes == entry.size_bytes
    assert (said.crc, said.crc_holds) == (f"{crc_of(sent):08x}", True)


def test_decoded_bytes_are_those_of_the_same_records_uncompressed():
    plain, *others = (kafka_entry(b64decode(BATCHES["java", codec])) for codec in CODECS)

    assert plain.decoded_bytes == plain.size_bytes
    for entry in others:
        assert entry.decoded_bytes == plain.decoded_bytes + len(b"d122")
        assert entry.fields[4:] == [b"d", b"122"]


def test_a_wrong_largest_timestamp_is_put_right_as_a_broker_does():
    sent = batch(ROWS, max_timestamp_ms=-1)

    entry = kafka_entry(sent)

    assert entry.fields[3] == batch(ROWS)
    assert entry.max_timestamp_ms == 1_700_000_000_005


@given(some_rows, codecs)
@example([(-1, None, None, [])] * 40, Compression.NONE)
@example([(2**53, b"", b"", [("", None)]), (-1, b"", b"", [])] * 20, Compression.ZSTD)
def test_what_is_encoded_would_be_taken_from_a_client(made, compression):
    entries = encode(made, EntryFormat.KAFKA, compression)

    assert [kafka_entry(entry.fields[3]) for entry in entries] == list(entries)


# -- one by one, and side by side --------------------------------------------------------------


@given(some_rows)
def test_records_are_written_alike_one_by_one_and_side_by_side(made):
    columns = produced_batch(made)
    stamps = columns.column(0).to_numpy()
    written = RecordBytes(stamps, np.arange(len(made)), *columns.columns[1:])

    ((_, section),) = written.sections([(0, len(made))])

    assert bytes(section) == rows_section(made)


def outcome(read, data, section):
    try:
        return read(data, section)
    except RecordFlawError:
        return "refused"


def side_by_side(data: bytes, section: Section) -> list:
    found = []
    for part in parse_records(data, [section]):
        columns = part.columns()
        columns.validate(full=True)
        found += [
            (*row[:3], [(item["key"], item["value"]) for item in row[3]])
            for row in zip(*(column.to_pylist() for column in columns.columns), strict=True)
        ]
    return found


def one_by_one(data: bytes, section: Section) -> list:
    return [(*row[:3], list(row[3])) for row in parse_rows(data, section)]


@given(some_rows, st.data())
def test_records_are_read_alike_one_by_one_and_side_by_side(made, data):
    section = rows_section(made)
    where = Section(0, len(section), len(made), made[0][0])

    assert one_by_one(section, where) == side_by_side(section, where) == made

    damaged = bytearray(section)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, min(len(section), 120) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        )
    cut = bytes(damaged[: len(damaged) - data.draw(st.sampled_from([0, 0, 0, 1, 5]))])
    where = where._replace(end=len(cut))
    assert outcome(one_by_one, cut, where) == outcome(side_by_side, cut, where)


@given(st.lists(some_rows, min_size=1, max_size=3), st.integers(1, 9), st.integers(1, 300))
def test_records_that_are_read_in_parts_are_the_same(calls, records_at_once, bytes_at_once):
    data = b"".join(map(rows_section, calls))
    sections, start = [], 0
    for made in calls:
        end = start + len(rows_section(made))
        sections.append(Section(start, end, len(made), made[0][0]))
        start = end
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_records, "_RECORDS_AT_ONCE", records_at_once)
        patch.setattr(kafka_records, "_BYTES_AT_ONCE", bytes_at_once)

        parts = [part.columns() for part in parse_records(data, sections)]
        columns = produced_batch(calls[0])
        stamps = columns.column(0).to_numpy()
        written = RecordBytes(stamps, np.arange(len(stamps)), *columns.columns[1:])
        halves = [(0, len(stamps) // 2), (len(stamps) // 2, len(stamps))]
        again = [bytes(section) for _, section in written.sections(halves[not halves[0][1] :])]

    assert max(part.num_rows for part in parts) <= records_at_once
    table = pa.Table.from_batches(parts)
    assert table.equals(pa.Table.from_batches(map(produced_batch, calls)))
    first, *_ = again
    assert first == rows_section(calls[0][: len(stamps) // 2 or len(stamps)])


@pytest.mark.parametrize("count", [3, 200_000])
def test_a_record_without_a_key_or_with_a_flaw_is_found_in_any_part(count):
    made = [(5, b"k", b"v", [])] * (count - 1) + [(5, None, b"v", [])]
    assert kafka_entry(batch(made)).first_keyless == count - 1
    section = rows_section(made)[:-3] + b"\x7f\x00\x00"

    with pytest.raises(InvalidRecordError) as raised:
        kafka_entry(batch(made, section=section))

    assert raised.value.index == count - 1


def test_a_record_of_more_headers_than_are_taken_is_refused():
    for count in (MAX_HEADERS, MAX_HEADERS + 1):
        sent = batch([(5, None, None, [("", None)] * count)])
        if count == MAX_HEADERS:
            assert kafka_entry(sent).record_count == 1
            continue
        with pytest.raises(InvalidRecordError, match="100001 headers, and at most 100000"):
            kafka_entry(sent)


def test_many_small_records_take_little_memory_to_check():
    count = 1_000_000
    nulls = pa.nulls(count, pa.binary())
    same = RecordBytes(np.full(count, 5), np.arange(count), nulls, nulls, no_headers(count))
    ((_, section),) = same.sections([(0, count)])
    said = {"record_count": count, "last_offset_delta": count - 1}
    sent = batch_of(section, base_timestamp_ms=5, max_timestamp_ms=5, **said)
    tracemalloc.start()

    assert kafka_entry(sent).first_keyless == 0

    assert tracemalloc.get_traced_memory()[1] < 60 * MIB
    tracemalloc.stop()


@given(st.binary(max_size=300), st.integers(1, 40))
def test_any_bytes_are_records_for_both_or_for_neither(data, count):
    where = Section(0, len(data), count, 0)

    assert outcome(one_by_one, data, where) == outcome(side_by_side, data, where)


@pytest.mark.parametrize("count", [1, 40])
def test_very_many_headers_of_a_record_take_no_call_each(count):
    many = [(f"h{number}", None) for number in range(20_000)]
    made = [(5, None, None, many if index == 0 else []) for index in range(count)]

    (entry,) = encode(made, EntryFormat.KAFKA, Compression.NONE, max_entry_bytes=MIB)

    assert as_rows(decode([stored(entry)])) == [(index, *row) for index, row in enumerate(made)]


@given(st.lists(some_rows, min_size=2, max_size=6), codecs)
def test_entries_of_a_run_are_read_at_once(calls, compression):
    run, expected = [], []
    for made in calls:
        for entry in encode(made, EntryFormat.KAFKA, compression):
            run.append(stored(entry, len(expected)))
            start = len(expected)
            part = made[: entry.record_count]
            expected += [(start + index, *row) for index, row in enumerate(part)]
            made = made[entry.record_count :]

    assert as_rows(decode(run)) == expected


def test_the_damaged_entry_of_a_run_is_the_one_named():
    made = [(5, b"k", b"v", [])] * 40
    good = kafka_entry(batch(made))
    section = bytearray(rows_section(made))
    section[3] = 2  # the first record's offset delta
    fields = [b"__v", b"3", b"k", batch(made, section=bytes(section))]

    with pytest.raises(CorruptRecordError, match="offset delta") as raised:
        decode([stored(good), (EntryId(79, 40), fields), stored(good, 80)])

    assert raised.value.entry_id == EntryId(79, 40)


# -- what is refused ---------------------------------------------------------------------------

ONE = [(5, b"k", b"v", [])]
KEY = 61 + 5  # where the key of `ONE` lies


@pytest.mark.parametrize(
    ("sent", "error", "why"),
    [
        (b"", CorruptRecordError, "the header alone takes 61"),
        (batch(ROWS)[:60], CorruptRecordError, "the header alone takes 61"),
        (batch(ROWS)[:-1], CorruptRecordError, "it is cut off"),
        (batch(ROWS) + b"x", InvalidRecordError, "takes one record batch a call"),
        (batch(ROWS) * 2, InvalidRecordError, "takes one record batch a call"),
        (batch(ROWS)[:16] + b"\x01" + batch(ROWS)[17:], InvalidRecordError, "format v1.*only v2"),
        (batch(ROWS)[:16] + b"\x00" + batch(ROWS)[17:], InvalidRecordError, "format v0.*only v2"),
        (batch(ROWS)[:16] + b"\x03" + batch(ROWS)[17:], InvalidRecordError, "magic is 3"),
        (batch(ROWS)[:-1] + b"x", CorruptRecordError, "CRC-32C.*send it again"),
        (batch(ROWS, record_count=0), InvalidRecordError, "has 0 records"),
        (batch(ROWS, record_count=-1), InvalidRecordError, "has -1 records"),
        (batch(ROWS, record_count=3), InvalidRecordError, "last offset delta is 3, not 2"),
        (batch(ROWS, last_offset_delta=7), InvalidRecordError, "last offset delta is 7, not 3"),
        (
            batch(ROWS, record_count=3, last_offset_delta=2),
            InvalidRecordError,
            "record 2 is the last",
        ),
        (batch(ROWS, record_count=5, last_offset_delta=4), InvalidRecordError, "beyond the batch"),
        (batch(ROWS, attributes=0x10), InvalidRecordError, "transaction"),
        (batch(ROWS, attributes=0x30), InvalidRecordError, "transaction"),
        (batch(ROWS, attributes=0x08), InvalidTimestampError, "only the log can say"),
        (batch(ROWS, attributes=0x05), InvalidRecordError, "codec 5"),
        (batch(ROWS, attributes=0x01), InvalidRecordError, "decompressed by gzip"),
        (batch(ROWS, attributes=0x02), InvalidRecordError, "decompressed by snappy"),
        (batch(ROWS, attributes=0x03), InvalidRecordError, "decompressed by lz4"),
        (batch(ROWS, attributes=0x04), InvalidRecordError, "decompressed by zstd"),
        (batch(ROWS, base_timestamp_ms=-2), InvalidTimestampError, "-2 of record 0"),
        (batch(ROWS, base_timestamp_ms=2**54), InvalidTimestampError, "of record 0"),
        (batch(ROWS, base_timestamp_ms=2**63 - 1), InvalidRecordError, "beyond all times"),
        (
            batch(
                ONE, section=rows_section([(5, None, None, [("h", b"")])])[:-3] + b"\x02\xff\x01"
            ),
            InvalidRecordError,
            "header's key that is no UTF-8",
        ),
        (batch(ONE * 40, section=b"\x80" * 500), InvalidRecordError, "beyond the batch"),
    ],
)
def test_a_batch_is_refused_with_what_is_wrong(sent, error, why):
    with pytest.raises(error, match=why) as raised:
        check_batch(sent)

    assert type(raised.value) is error


@pytest.mark.parametrize("count", [3, 40])
def test_a_refused_record_is_named(count):
    made = [(5, b"k", b"v", [])] * count
    section = bytearray(rows_section(made))
    section[2 * (len(section) // count) + 3] = 2 * 7  # of the third record

    with pytest.raises(InvalidRecordError, match="record 2 has") as raised:
        check_batch(batch(made, section=bytes(section)))

    assert raised.value.index == 2


def bomb(codec: str, size: int) -> bytes:
    """A record section of zeros in few bytes."""
    zeros = bytes(size)
    if codec == "gzip":
        return gzip.compress(zeros)
    if codec == "snappy":
        return pa.compress(zeros, "snappy", asbytes=True)
    if codec == "xerial":
        block = pa.compress(zeros[: 1 << 15], "snappy", asbytes=True)
        blocks = (struct.pack(">I", len(block)) + block) * (size >> 15)
        return b"\x82SNAPPY\x00" + struct.pack(">II", 1, 1) + blocks
    return compressed(zeros, Compression(codec))[0]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "xerial", "lz4", "zstd"])
def test_no_more_is_decompressed_than_is_allowed(codec):
    number = CODECS.index("snappy" if codec == "xerial" else codec)
    sent = batch(ONE, section=bomb(codec, 64 * MIB), attributes=number)
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()

    with pytest.raises(RecordTooLargeError, match=r"takes more than 1048576 once") as raised:
        check_batch(sent, MIB)

    assert raised.value.max_decoded_bytes == MIB
    assert raised.value.size_bytes == len(sent)
    assert pool.bytes_allocated() - before < 8 * MIB


def test_a_block_of_snappy_that_claims_to_be_huge_is_refused():
    sent = batch(ONE, section=b"\xff\xff\xff\xff\x07" + b"x" * 20, attributes=2)

    with pytest.raises(RecordTooLargeError):
        check_batch(sent, MIB)


@pytest.mark.parametrize("codec", CODECS)
def test_the_bound_holds_to_the_byte(codec):
    sent = b64decode(BATCHES["java", codec])
    exact = kafka_entry(sent).decoded_bytes

    assert kafka_entry(sent, exact).decoded_bytes == exact
    with pytest.raises(RecordTooLargeError):
        kafka_entry(sent, exact - 1)


HARMLESS = {*range(8), *range(12, 16)}  # base offset and leader epoch


@pytest.mark.parametrize("codec", CODECS)
def test_any_byte_that_is_another_is_refused_or_means_nothing(codec):
    sent = b64decode(BATCHES["java", codec])
    entry = kafka_entry(sent)
    entry_id, fields = stored(entry, 40)
    expected = decode([(entry_id, fields)])
    for at in range(len(sent)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(sent)
            damaged[at] ^= mask
            damaged = bytes(damaged)
            one = [*fields[:3], damaged, *fields[4:]]
            if at in HARMLESS:
                assert decode([(entry_id, one)]).equals(expected)
                assert kafka_entry(damaged).fields[3] == damaged
                continue
            with pytest.raises((CorruptRecordError, InvalidRecordError)):
                kafka_entry(damaged)
            with pytest.raises(CorruptRecordError) as raised:
                decode([(entry_id, one)])
            assert raised.value.entry_id == entry_id
            assert at < 17 or not describe(one).crc_holds


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda fields: fields[:3], CorruptRecordError),
        (lambda fields: fields[:2], CorruptRecordError),
        (lambda fields: [b"__v", b"3", b"q", *fields[3:]], CorruptRecordError),
        (lambda fields: [b"__v", b"9", *fields[2:]], NewerVersionError),
        (lambda fields: fields[:4], CorruptRecordError),
        (lambda fields: fields[:5], CorruptRecordError),
        (lambda fields: [*fields[:5], b"121"], CorruptRecordError),
        (lambda fields: [*fields[:5], b"123"], CorruptRecordError),
        (lambda fields: [*fields[:5], b"-1"], CorruptRecordError),
        (lambda fields: [*fields[:5], b"99999999999"], CorruptRecordError),
        (lambda fields: [*fields, b"t"], CorruptRecordError),
        (lambda fields: [*fields, b"t", b"x"], CorruptRecordError),
        (lambda fields: [*fields, b"u", b"5"], CorruptRecordError),
        (lambda fields: [*fields, *fields[4:]], CorruptRecordError),
    ],
)
def test_other_fields_than_were_written_are_noticed(change, error):
    entry = kafka_entry(b64decode(BATCHES["java", "zstd"]))
    entry_id, fields = stored(entry)

    with pytest.raises(error):
        decode([(entry_id, change(fields))])
    describe(change(fields))
    decoded_bytes(change(fields))


def test_a_length_beside_a_batch_that_is_not_compressed_is_noticed():
    entry_id, fields = stored(kafka_entry(batch(ROWS)))

    with pytest.raises(CorruptRecordError, match="not compressed"):
        decode([(entry_id, [*fields, b"d", b"122"])])


@pytest.mark.parametrize("count", [1, 3, 5])
def test_another_count_than_the_ids_is_noticed(count):
    with pytest.raises(CorruptRecordError, match="its id says"):
        decode([(EntryId(9, count), kafka_entry(batch(ROWS)).fields)])


@given(st.binary(min_size=HEADER_BYTES, max_size=200), st.integers(0, 4))
def test_any_bytes_under_a_right_crc_are_an_error_or_records(octets, codec):
    head = struct.pack(">qiibI", 0, len(octets) - 12, 0, 2, 0)
    sent = rewritten(head + octets[21:], 21, struct.pack(">hi", codec, 0))
    sent = rewritten(sent, 57, struct.pack(">i", 1))

    try:
        entry = kafka_entry(sent, MIB)
    except LakelogError:
        return
    assert decode([stored(entry)]).num_rows == 1


# -- of a log ----------------------------------------------------------------------------------


def log_records(made: list, offsets: list[int], kinds: list[int]) -> pa.RecordBatch:
    produced = produced_batch(made)
    stamps = [row[0] * 1000 for row in made]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(offsets, pa.int64()),
            pa.array(stamps, pa.int64()).view(RECORDS.field("timestamp").type),
            pa.array(kinds, pa.int32()),
            *produced.columns[1:],
        ],
        schema=RECORDS,
    )


def read_back(batches: list[bytes]) -> list:
    """The records of batches as they lie in a log, with holes or without."""
    found = []
    for one in batches:
        header = BatchHeader.parse(one)
        assert crc_of(one) == header.crc
        assert header.length == len(one) - 12
        is_appended = bool(header.attributes & 0x08)
        at = HEADER_BYTES
        for _ in range(header.record_count):
            start, at = at, at
            size, at = varint_at(one, at)
            end = at + size
            delta_ms, at = varint_at(one, at + 1)
            offset_delta, _ = varint_at(one, at)
            record = one[start:end]
            stamp_ms = header.base_timestamp_ms + delta_ms
            time_ms = header.max_timestamp_ms if is_appended else stamp_ms
            found.append((header.base_offset + offset_delta, time_ms, int(is_appended), record))
            at = end
        assert found[-1][0] == header.base_offset + header.last_offset_delta
        assert header.max_timestamp_ms == max(
            stamp for _, stamp, _, _ in found[-header.record_count :]
        )
        assert at == len(one)
    return found


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        raw |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return (raw >> 1) ^ -(raw & 1), at


@given(some_rows, st.data())
def test_batches_of_a_log_have_its_offsets_and_timestamps(made, data):
    steps = data.draw(
        st.lists(
            st.sampled_from([1, 1, 1, 2, 300, 2**31 - 1, 2**31, 2**40]),
            min_size=len(made),
            max_size=len(made),
        )
    )
    offsets = np.cumsum(steps).tolist()
    kinds = data.draw(st.lists(st.integers(0, 1), min_size=len(made), max_size=len(made)))
    records = log_records(made, offsets, kinds)

    batches = batches_of(records, max_bytes=data.draw(st.sampled_from([100, 1000, MIB])))

    found = read_back(batches)
    assert [one[:3] for one in found] == [
        (offset, row[0], kind) for offset, row, kind in zip(offsets, made, kinds, strict=True)
    ]
    assert all(BatchHeader.parse(one).last_offset_delta < 2**31 for one in batches)
    assert all(BatchHeader.parse(one).producer_id == -1 for one in batches)


def test_batches_are_bounded_and_few():
    made = [(5, b"k", bytes(1000), [])] * 100
    records = log_records(made, list(range(100)), [0] * 100)

    batches = batches_of(records, max_bytes=10_200)

    assert [BatchHeader.parse(one).record_count for one in batches] == [10] * 10
    assert max(map(len, batches)) <= 10_200
    assert len(batches_of(records)) == 1
    assert len(batches_of(records, max_bytes=100)) == 100  # one is larger than the bound
    assert batches_of(records.slice(0, 0)) == []


def test_the_records_of_one_append_are_one_batch_under_log_append_time():
    made = [(time_ms, None, b"v", []) for time_ms in (7, 7, 8, 8, 8, 3)]
    records = log_records(made, list(range(6)), [TimestampType.LOG_APPEND_TIME] * 6)

    counts = [BatchHeader.parse(one).record_count for one in batches_of(records)]

    assert counts == [2, 3, 1]


@given(some_rows, st.integers(0, 2**53), codecs)
def test_a_placed_batch_differs_in_its_place_alone(made, base_offset, compression):
    (entry, *_) = encode(made, EntryFormat.KAFKA, compression)
    sent = entry.fields[3]

    there = b"".join(placed(sent, base_offset))

    assert there[16:] == sent[16:]
    header = BatchHeader.parse(there)
    assert header == BatchHeader.parse(sent)._replace(base_offset=base_offset)
    assert len(there) == len(sent)


def test_a_placed_batch_may_have_the_append_time():
    sent = b64decode(BATCHES["java", "lz4"])

    pieces = placed(sent, 40, 1_800_000_000_000)

    there = b"".join(pieces)
    header = BatchHeader.parse(there)
    assert header.crc == crc_of(there)
    assert header == BatchHeader.parse(sent)._replace(
        base_offset=40,
        leader_epoch=0,
        crc=header.crc,
        attributes=0x0B,
        max_timestamp_ms=1_800_000_000_000,
    )
    assert there[HEADER_BYTES:] == sent[HEADER_BYTES:]
    assert isinstance(pieces[-1], memoryview)  # the records are not copied


@pytest.mark.parametrize(
    ("start", "end", "spans"),
    [
        (5, 5, []),
        (5, 6, [(5, 6)]),
        (0, 2**31 - 1, [(0, 2**31 - 1)]),
        (7, 2**31 + 7, [(7, 2**31 + 6), (2**31 + 6, 2**31 + 7)]),
    ],
)
def test_empty_batches_cover_a_gap(start, end, spans):
    found = [BatchHeader.parse(one) for one in empty_batches(start, end)]

    assert [
        (one.base_offset, one.base_offset + one.last_offset_delta + 1) for one in found
    ] == spans
    assert all(one.record_count == 0 and one.magic == 2 for one in found)


def test_large_calls_are_cut_and_a_record_that_cannot_fit_is_named():
    made = [(5, b"k", bytes(3000), [])] * 400
    records = produced_batch(made)

    entries = encode_kafka(records, Compression.NONE, MIB, MIB)

    assert len(entries) == 5
    assert max(entry.size_bytes for entry in entries) < 256 * 1024 - 512
    with pytest.raises(RecordTooLargeError) as raised:
        encode_kafka(records, Compression.LZ4, 2000, 2000, first_index=7)
    assert raised.value.index == 7
    small = encode_kafka(records, Compression.ZSTD, 2000, MIB)  # it fits once it is compressed
    assert sum(entry.record_count for entry in small) == 400


def test_the_checksum_of_an_lz4_frames_header_is_right():
    xxhash = pytest.importorskip("xxhash")
    made, _ = compressed(bytes(1000), Compression.LZ4)

    assert made[6] == xxhash.xxh32(made[4:6]).intdigest() >> 8 & 0xFF
