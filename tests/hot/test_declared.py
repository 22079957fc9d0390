"""Which offsets of a stream are whose: gaps may lie side by side, with an entry or without."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from lakelog.codec import EntryId
from lakelog.hot.declared import Declared, cover
from lakelog.values.topic_partition import OffsetRange, TopicPartition

TP = TopicPartition("orders", 0)
RECORDS, GAP, MOVED = "records", "a gap", "a gap without an entry, as a skip leaves it"

pieces = st.lists(
    st.tuples(st.sampled_from([RECORDS, RECORDS, GAP, MOVED]), st.integers(1, 5)),
    min_size=1,
    max_size=8,
)


@given(pieces, st.data())
@example([(RECORDS, 1), (GAP, 2), (GAP, 3), (RECORDS, 1)], None)
@example([(RECORDS, 1), (MOVED, 2), (GAP, 3), (MOVED, 1), (RECORDS, 1)], None)
def test_every_offset_is_a_records_or_a_gaps(drawn, data):
    entries, gaps, records, at = [], [], [], 0
    for kind, count in drawn:
        span = OffsetRange(at, at + count)
        at += count
        entry_id = EntryId(at - 1, count)
        if kind == RECORDS:
            records.append(entry_id)
            entries.append((entry_id, [b"__ts", b"1"]))
            continue
        gaps.append(span)
        if kind == GAP:
            entries.append((entry_id, [b"__gap", b"%d-%d" % span]))
    for offset in range(at) if data is None else [data.draw(st.integers(0, at - 1))]:
        asked = [entry for entry in entries if entry[0].last_offset >= offset]  # as XRANGE does it
        covered = cover(TP, asked, offset, Declared(at, tuple(gaps)))
        assert [entry_id for entry_id, _ in covered.entries] == [
            one for one in records if one.last_offset >= offset
        ]
        told = [gap for gap in gaps if gap.end > offset and gap.start < covered.next_offset]
        assert covered.gaps == told
        assert covered.skipped == []
        assert covered.next_offset >= (asked[-1][0].end_offset if asked else offset + 1)
