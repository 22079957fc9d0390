"""Many entries decoded together are what each of them holds, in their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec import EntryId, decode, decode_together, encode, gap_fields
from lakelog.errors import LakelogError
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch

ROWS = [
    (1_700_000_000_000, b"k0", b'{"a":1,"b":"x"}', [("h", b"1"), ("h", None), ("", b"")]),
    (-1, None, None, []),
    (1_700_000_000_002, b"", b"\x00" * 20, [("h", b"2")]),
]

kinds = st.tuples(
    st.sampled_from([EntryFormat.ARROW, EntryFormat.FIELDS]),
    st.sampled_from([Compression.NONE, Compression.LZ4, Compression.ZSTD]),
    st.lists(st.sampled_from(ROWS), min_size=1, max_size=4),
    st.booleans(),  # whether the server gave the time
    st.integers(0, 1000),  # the first offset
)


def entries_of(drawn):
    found = []
    for entry_format, compression, rows, stamped, at in drawn:
        batch = produced_batch(rows)
        for entry in encode(batch, entry_format, compression, flatten=True):
            tail = [b"t", b"1700000005000"] if stamped else []
            entry_id = EntryId(at + entry.record_count - 1, entry.record_count)
            found.append((entry_id, [*entry.fields, *tail]))
    return found


@given(st.lists(kinds, max_size=12))
def test_they_are_what_each_of_them_holds(drawn):
    entries = entries_of(drawn)
    assert decode_together(entries).equals(decode(entries))


@given(st.lists(kinds, min_size=1, max_size=6), st.data())
def test_one_that_is_not_sound_is_never_passed_over(drawn, data):
    entries = entries_of(drawn)
    row = data.draw(st.integers(0, len(entries) - 1))
    entry_id, fields = entries[row]
    index = data.draw(st.sampled_from([i for i, part in enumerate(fields) if part]))
    part = bytearray(fields[index])
    part[data.draw(st.integers(0, len(part) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    entries[row] = (entry_id, [*fields[:index], bytes(part), *fields[index + 1 :]])
    try:
        expected = decode(entries)
    except LakelogError:
        assert decode_together(entries) is None
    else:  # the server's time alone has no checksum
        assert decode_together(entries).equals(expected)


@pytest.mark.parametrize(
    "odd",
    [
        (EntryId(9, 10), gap_fields(0, 10)),
        (EntryId(0, 1), []),
        (EntryId(0, 1), [b"__v", b"9"]),
        (EntryId(0, 5), [b"x", b"y"]),
    ],
)
def test_one_without_records_of_ours_is_left_to_the_other(odd):
    sound = entries_of([(EntryFormat.ARROW, Compression.LZ4, ROWS, False, 0)])
    assert decode_together([*sound, odd]) is None


def test_a_message_of_another_count_is_never_passed_over():
    (one,) = entries_of([(EntryFormat.ARROW, Compression.NONE, ROWS, False, 0)])
    assert decode_together([one, (EntryId(7, 2), one[1])]) is None
    assert decode_together([]).num_rows == 0


def test_large_messages_stand_among_small_ones():
    drawn = [
        (EntryFormat.ARROW, Compression.LZ4, ROWS, False, 0),
        (EntryFormat.ARROW, Compression.LZ4, [(1, None, b"x" * 100_000, [])], False, 3),
        (EntryFormat.FIELDS, Compression.NONE, ROWS, False, 4),
        (EntryFormat.ARROW, Compression.NONE, [(2, None, b"y" * 100_000, [])], True, 7),
        (EntryFormat.ARROW, Compression.ZSTD, ROWS, False, 8),
    ]
    entries = entries_of(drawn)
    assert decode_together(entries).equals(decode(entries))
    assert len(decode(entries)) == 11


def test_a_very_large_message_is_left_to_the_other():
    (one,) = entries_of(
        [(EntryFormat.ARROW, Compression.LZ4, [(1, None, bytes(17 * 2**20), [])], False, 0)]
    )
    assert decode_together([one]) is None
