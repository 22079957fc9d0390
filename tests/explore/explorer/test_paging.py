from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.explore.explorer.opened_topic import OpenedTopic, likely_start, stretches_of
from lakelog.explore.explorer.paging import page_before, page_from
from lakelog.read.stretches import Stretch
from lakelog.values.config import EntryFormat


@st.composite
def stretches(draw):
    found, at = [], draw(st.integers(0, 5))
    for gap, length, share in draw(
        st.lists(st.tuples(st.integers(0, 99), st.integers(1, 99), st.integers(1, 99)), max_size=6)
    ):
        records = max(1, min(length, length * share // 99))
        found.append(Stretch(0, at + gap, at + gap + length, records))
        at += gap + length
    return found


@given(found=stretches(), log_start=st.integers(0, 300), more=st.integers(1, 300), data=st.data())
def test_from_a_likely_start_on_the_log_start_is_reached(found, log_start, more, data):
    end = log_start + more
    records = data.draw(st.integers(1, 50))
    steps = 0
    while end > log_start:
        start = likely_start(found, log_start, end, records)
        assert log_start <= start < end
        end, steps = start, steps + 1
    assert steps <= 1 + sum(stretch.records for stretch in found) + len(found)


@given(found=stretches(), records=st.integers(1, 50))
def test_dense_stretches_are_counted_exactly(found, records):
    dense = [Stretch(0, one.start, one.end, one.end - one.start) for one in found]
    offsets = [offset for one in dense for offset in range(one.start, one.end)]
    end = offsets[-1] + 1 if offsets else 1
    expected = offsets[-records] if len(offsets) >= records else 0
    assert likely_start(dense, 0, end, records) == expected


@pytest.fixture
def wide(make_bench):
    """40 records of 300 bytes or so."""
    bench = make_bench()
    bench.append(list(range(40)), entry_format=EntryFormat.FIELDS, value_bytes=300)
    return bench.log


def offsets(table):
    return table["offset"].to_pylist()


def test_a_page_holds_no_more_bytes_than_it_may(wide):
    page = page_from(wide, 0, 0, 40, 40, max_bytes=2_000)
    assert 1 < page.num_rows < 8
    assert page.nbytes <= 2_000
    assert offsets(page) == list(range(page.num_rows))

    opened = OpenedTopic(wide)
    page = page_before(wide, 0, stretches_of(opened.look([0])), 0, 40, 40, max_bytes=2_000)
    assert 1 < page.num_rows < 8
    assert page.nbytes <= 2_000
    assert offsets(page) == list(range(40 - page.num_rows, 40))


def test_a_record_larger_than_a_page_is_a_page(wide):
    opened = OpenedTopic(wide)
    assert offsets(page_from(wide, 0, 7, 40, 40, max_bytes=10)) == [7]
    assert offsets(page_before(wide, 0, stretches_of(opened.look([0])), 0, 40, 9, 10)) == [39]
