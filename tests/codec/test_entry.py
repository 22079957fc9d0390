"""Entry ids, produced batches and gap entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec import Entry, EntryId, ProducedBatch, decode, gap_fields, gap_of
from lakelog.errors import CorruptRecordError, ForeignEntryError, InvalidArgumentError
from lakelog.values.record import RECORDS
from lakelog.values.topic_partition import OffsetRange


@given(st.integers(0, 2**53 - 1), st.data())
def test_an_id_reads_back_from_its_text(last_offset, data):
    count = data.draw(st.integers(1, last_offset + 1))
    entry_id = EntryId(last_offset, count)

    assert EntryId.parse(str(entry_id)) == EntryId.parse(str(entry_id).encode()) == entry_id
    assert range(entry_id.base_offset, entry_id.end_offset)[-1] == last_offset
    assert entry_id.end_offset - entry_id.base_offset == count


@pytest.mark.parametrize(
    "text",
    ["", "5", "5-", "-5-1", "5-0", "5-7", "a-b", "5-1-1", " 5-1", "5-1\n", "٥-1", b"\xff-1",
     "9007199254740992-1", "1700000000000-0", "18446744073709551615-18446744073709551615"],
)  # fmt: skip
def test_an_id_that_names_no_offsets_is_foreign(text):
    with pytest.raises(ForeignEntryError) as raised:
        EntryId.parse(text)

    assert str(raised.value.entry_id) == (text if isinstance(text, str) else "\xff-1")


def test_a_gap_entry_says_which_offsets_are_lost():
    fields = gap_fields(100, 16_777_316)

    assert fields == [b"__gap", b"100-16777316"]
    assert gap_of(EntryId(16_777_315, 2**24), fields) == OffsetRange(100, 16_777_316)


def test_a_gap_entry_has_no_records():
    batch = decode([(EntryId(9, 10), gap_fields(0, 10))])

    assert batch.num_rows == 0
    assert batch.schema == RECORDS


def test_other_entries_are_no_gap():
    assert gap_of(EntryId(0, 1), [b"__ts", b"5"]) is None
    assert gap_of(EntryId(0, 1), []) is None


@pytest.mark.parametrize(
    "fields", [[b"__gap"], [b"__gap", b""], [b"__gap", b"0-11"], [b"__gap", b"0-10", b"t", b"5"]]
)
def test_a_gap_entry_that_contradicts_its_id_is_damage(fields):
    with pytest.raises(CorruptRecordError) as raised:
        gap_of(EntryId(9, 10), fields)

    assert raised.value.entry_id == EntryId(9, 10)


def entry(record_count: int) -> Entry:
    return Entry(record_count, [b"a", b""], 1, 1, -1, -1, None)


def test_a_produced_batch_counts_its_entries_records():
    assert ProducedBatch((entry(3), entry(4)), 1, 0, 10, 16).record_count == 7


@pytest.mark.parametrize(("entries", "last"), [((), 9), ((entry(3),), 13), ((entry(3),), 11)])
def test_sequences_that_do_not_count_the_records_are_refused(entries, last):
    with pytest.raises(InvalidArgumentError):
        ProducedBatch(entries, 1, 0, 10, last)
