"""Reading: every step follows the one before, and nothing is missing without an error."""

from __future__ import annotations

import pytest

from lakelog.errors import (
    CorruptRecordError,
    ForeignEntryError,
    TrimmedError,
)
from lakelog.values.config import EntryFormat

NOW_MS = 1_700_000_000_000


@pytest.fixture
def mixed(make_bench):
    """100 records in entries of 1, 10, 1, 10 … records."""
    bench = make_bench()
    while bench.offsets().log_end < 99:
        bench.append(NOW_MS)
        bench.append(*[NOW_MS] * 10, entry_format=EntryFormat.ARROW)
    bench.append(NOW_MS)
    assert bench.offsets().log_end == 100
    return bench


def steps(bench, start, end=None, **more):
    return list(bench.hot.read(bench.tp(), start, end, **more))


@pytest.mark.parametrize("start", [0, 1, 5, 10, 11, 12, 57, 98, 99, 100, 101, 10**9])
@pytest.mark.parametrize("length", [None, 0, 1, 3, 10, 40, 1000])
def test_steps_cover_the_range_densely(mixed, start, length):
    end = None if length is None else start + length
    expected = list(range(start, min(100, 10**10 if end is None else end)))
    at = start
    for step in steps(mixed, start, end, max_bytes=1):
        assert step.start_offset == at
        assert step.next_offset > at
        at = step.next_offset
    assert at == max(start, min(100, 10**10 if end is None else end))
    assert mixed.read_offsets(start, end) == expected


def test_trimmed_before_and_midway(mixed):
    reading = mixed.hot.read(mixed.tp(), 0, max_bytes=1)
    first = next(reading)
    mixed.hot.trim(mixed.tp(), first.next_offset + 3)
    with pytest.raises(TrimmedError) as caught:
        next(reading)
    assert caught.value.offset == first.next_offset
    assert caught.value.local_log_start == first.next_offset + 3


def test_trimmed_to_the_end_is_no_silent_end(mixed):
    mixed.hot.trim(mixed.tp(), 100)
    with pytest.raises(TrimmedError):
        mixed.read(99)
    assert mixed.read(100) == []


def test_what_is_appended_while_reading_is_read(mixed):
    reading = mixed.hot.read(mixed.tp(), 90, max_bytes=1)
    next(reading)
    mixed.append(NOW_MS, NOW_MS)
    assert [step.next_offset for step in reading][-1] == 102


@pytest.mark.parametrize("victim", [0, 1, 5, -1])
def test_a_deleted_entry_is_an_error_that_names_the_hole(mixed, victim):
    ids = [entry_id for entry_id, _ in mixed.client.xrange(mixed.keys()[0])]
    last, count = map(int, ids[victim].split(b"-"))
    mixed.client.xdel(mixed.keys()[0], ids[victim])
    start = last - count + 1
    with pytest.raises(CorruptRecordError, match="orders-0") as caught:
        mixed.read()
    if victim != -1:
        assert caught.value.offset == start
        assert caught.value.end_offset == last + 1
    assert mixed.read_offsets(0, start) == list(range(start))
    with pytest.raises(CorruptRecordError):
        mixed.read(start, start + 1)


def test_a_deleted_stream_below_the_log_end_is_an_error(mixed):
    mixed.client.delete(mixed.keys()[0])
    with pytest.raises(CorruptRecordError, match=r"0\.\.99"):
        mixed.read()


@pytest.mark.parametrize("entry_id", ["3-0", "3-9", "3-1"])
def test_an_entry_of_somebody_else_is_named(make_bench, entry_id):
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS)
    bench.client.xadd(bench.keys()[0], {"field": "value"}, id=entry_id)
    bench.client.hset(bench.keys()[1], "log_end", 4)
    with pytest.raises((ForeignEntryError, CorruptRecordError), match=r"orders-0.*") as caught:
        bench.read(2)
    assert caught.value.topic_partition == bench.tp()
    assert "lakelog skip add orders -p 0 --entry" in str(caught.value)


@pytest.mark.parametrize("entry_id", ["5-0", "2-9", "12-3"])
def test_an_entry_past_the_log_end_is_skipped_and_named(make_bench, entry_id, caplog):
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS)
    bench.client.xadd(bench.keys()[0], {"field": "value"}, id=entry_id)
    for _ in range(3):
        assert bench.read_offsets() == [0, 1]
    (said,) = [line for line in caplog.messages if entry_id in line]
    assert "skipped" in said


def test_a_copied_entry_is_not_read_twice(make_bench):
    """One of ours under another id: its bytes are sound, its place is not."""
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS, entry_format=EntryFormat.ARROW)
    ((_, fields),) = bench.client.xrange(bench.keys()[0])
    bench.client.xadd(bench.keys()[0], fields, id="2-2")
    assert bench.read_offsets() == [0, 1]
