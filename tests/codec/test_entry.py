"""Entry ids, produced batches and gap entries."""

from __future__ import annotations

import pytest

from lakelog.codec import EntryId, gap_fields, gap_of
from lakelog.errors import CorruptRecordError, ForeignEntryError
from lakelog.values.topic_partition import OffsetRange


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


@pytest.mark.parametrize(
    "fields", [[b"__gap"], [b"__gap", b""], [b"__gap", b"0-11"], [b"__gap", b"0-10", b"t", b"5"]]
)
def test_a_gap_entry_that_contradicts_its_id_is_damage(fields):
    with pytest.raises(CorruptRecordError) as raised:
        gap_of(EntryId(9, 10), fields)

    assert raised.value.entry_id == EntryId(9, 10)
