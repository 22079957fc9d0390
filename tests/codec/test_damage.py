"""What is not as it was written is a clear error that names the entry, and nothing else."""

from __future__ import annotations

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec import EntryId, decode, encode, gap_fields
from lakelog.codec.crc import crc32c, crc32c_of_parts
from lakelog.errors import CorruptRecordError, ForeignEntryError
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch, to_records
from lakelog.values.topic_partition import TopicPartition

ROWS = [
    (1_700_000_000_000, b"k0", b'{"a":1,"b":"x"}', [("h", b"1"), ("h", None), ("", b"")]),
    (-1, None, None, []),
    (1_700_000_000_002, b"", b"\x00" * 20, [("h", b"2")]),
]


def stored(entry_format, compression=Compression.NONE, rows=ROWS, flatten=True):
    """An entry of the rows, as appended at offset 40."""
    batch = produced_batch(rows)
    entry = encode(batch, entry_format, compression, flatten=flatten)[0]
    return EntryId(39 + entry.record_count, entry.record_count), entry.fields


ENTRIES = {
    "plain": stored(EntryFormat.ARROW),
    "lz4": stored(EntryFormat.ARROW, Compression.LZ4),
    "zstd": stored(EntryFormat.ARROW, Compression.ZSTD),
    "flattened": stored(EntryFormat.FIELDS),
    "fields": stored(EntryFormat.FIELDS, flatten=False),
    "gap": (EntryId(39, 40), gap_fields(0, 40)),
}
entries = st.sampled_from(sorted(ENTRIES))


@given(entries, st.data())
def test_a_flipped_bit_of_any_name_or_value_is_noticed(which, data):
    entry_id, fields = ENTRIES[which]
    index = data.draw(st.sampled_from([i for i, part in enumerate(fields) if part]))
    part = bytearray(fields[index])
    part[data.draw(st.integers(0, len(part) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    damaged = [*fields[:index], bytes(part), *fields[index + 1 :]]

    with pytest.raises(CorruptRecordError) as raised:
        decode([(entry_id, damaged)])

    assert raised.value.entry_id == entry_id
    assert str(entry_id) in str(raised.value)
    if index % 2:
        assert type(raised.value) is CorruptRecordError


@given(entries, st.data())
def test_cut_off_bytes_and_fields_are_noticed(which, data):
    entry_id, fields = ENTRIES[which]
    if data.draw(st.booleans()):
        damaged = fields[: data.draw(st.integers(0, len(fields) - 1))]
    else:
        index = data.draw(st.sampled_from([i for i, part in enumerate(fields) if part]))
        end = data.draw(st.integers(0, len(fields[index]) - 1))
        damaged = [*fields[:index], fields[index][:end], *fields[index + 1 :]]

    with pytest.raises(CorruptRecordError):
        decode([(entry_id, damaged)])


@pytest.mark.parametrize("which", ["plain", "fields"])
@pytest.mark.parametrize("count", [1, 2, 4, 40])
def test_another_record_count_than_the_ids_is_noticed(which, count):
    entry_id, fields = ENTRIES[which]
    if count == entry_id.record_count:
        count += 1

    with pytest.raises(CorruptRecordError, match="its id says"):
        decode([(EntryId(entry_id.last_offset, count), fields)])


@pytest.mark.parametrize(
    "tail",
    [
        [b"t"],
        [b"t", b""],
        [b"t", b"-5"],
        [b"t", b"12x"],
        [b"t", b"9223372036854776"],
        [b"u", b"5"],
        [b"t", b"5", b"t", b"5"],
    ],
)
@pytest.mark.parametrize("which", ["plain", "fields"])
def test_what_follows_the_crc_is_an_append_time_or_damage(which, tail):
    entry_id, fields = ENTRIES[which]

    with pytest.raises(CorruptRecordError):
        decode([(entry_id, fields + tail)])


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [b"", b""],
        [b"message", b"hello"],
        [b"a", b"1"],
        [b"a", b"1", b"b", b"2"],
        [b"__tsx", b"1"],
        [b"\xff" * 100, b""],
    ],
)
def test_an_entry_of_someone_else_is_foreign(fields):
    with pytest.raises(ForeignEntryError) as raised:
        decode([(EntryId(4, 1), fields)])

    assert raised.value.entry_id == EntryId(4, 1)


@pytest.mark.parametrize(
    "entry_id", [EntryId(5, 0), EntryId(3, 5), EntryId(1_700_000_000_000, 0), EntryId(2**53, 1)]
)
def test_an_id_that_lakelog_never_gives_is_foreign(entry_id):
    with pytest.raises(ForeignEntryError):
        decode([(entry_id, ENTRIES["plain"][1])])


@given(st.sampled_from(["plain", "lz4", "zstd"]), st.data())
def test_odd_bytes_under_a_right_crc_are_an_error_or_sound_records(which, data):
    entry_id, fields = ENTRIES[which]
    message = bytearray(fields[1])
    message[data.draw(st.integers(0, len(message) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    forged = [b"a", bytes(message), b"c", crc32c(bytes(message))]

    batch = None
    with contextlib.suppress(CorruptRecordError):
        batch = decode([(entry_id, forged)])

    if batch is not None:
        batch.validate(full=True)
        assert len(to_records(TopicPartition("orders", 0), batch)) == entry_id.record_count


@given(st.binary(max_size=200))
def test_any_bytes_under_a_right_crc_are_an_error(message):
    with pytest.raises(CorruptRecordError):
        decode([(EntryId(0, 1), [b"a", message, b"c", crc32c(message)])])


@pytest.mark.parametrize(
    "fields",
    [
        [b"__ts", b"soon"],
        [b"__ts", b"-2"],
        [b"__ts", b"9223372036854776"],
        [b"__ts", b"5", b"__header.\xff", b""],
        [b"__ts", b"5", b"\xff", b"1"],
    ],
)
def test_fields_that_no_version_wrote_under_a_right_crc_are_damage(fields):
    with pytest.raises(CorruptRecordError) as raised:
        decode([(EntryId(0, 1), [*fields, b"__crc", crc32c_of_parts(fields)])])

    assert type(raised.value) is CorruptRecordError


def test_the_damaged_entry_of_a_run_is_the_one_named():
    entry_id, fields = ENTRIES["lz4"]
    next_id = EntryId(entry_id.last_offset + 3, 3)

    with pytest.raises(CorruptRecordError) as raised:
        decode([(entry_id, fields), (next_id, [*fields[:3], b"00000000"])])

    assert raised.value.entry_id == next_id
    assert pickle.loads(pickle.dumps(raised.value)).entry_id == next_id
