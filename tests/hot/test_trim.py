"""Trimming: stream, time index and segments go together, and only forward."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import (
    OffsetOutOfRangeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.config import EntryFormat
from lakelog.values.topic_partition import TopicPartition

NOW_MS = 1_700_000_000_000


def filled(make_bench, **config):
    """20 records: 5 entries of 4, a segment every 2 entries."""
    bench = make_bench(**{"internal_segment_bytes": 2000, "index_interval_bytes": 0, **config})
    for number in range(5):
        bench.append(*[NOW_MS + number] * 4, entry_format=EntryFormat.ARROW, value_bytes=40)
    return bench


def test_trim_beyond_the_log_end_is_refused(make_bench):
    """Or what is appended next would lie below the local log start."""
    bench = filled(make_bench, remote_storage_enable=False, retention_ms=-1)
    dump = bench.dump()
    with pytest.raises(OffsetOutOfRangeError) as caught:
        bench.hot.trim(bench.tp(), 21)
    assert (caught.value.offset, caught.value.log_end) == (21, 20)
    with pytest.raises(OffsetOutOfRangeError):
        bench.hot.raise_log_start(bench.tp(), 21)
    assert bench.dump() == dump


def test_trim_tells_apart_no_partition_and_another_creation(make_bench):
    bench = filled(make_bench)
    with pytest.raises(UnknownTopicOrPartitionError):
        bench.hot.trim(TopicPartition("orders", 4), 1)
    with pytest.raises(UnknownTopicIdError):
        bench.hot.trim(bench.tp(), 8, topic_id=uuid.uuid4())
    bench.hot.trim(bench.tp(), 8, topic_id=bench.topic.topic_id)
    assert bench.offsets().local_log_start == 8


def test_the_log_start_of_a_tiered_topic_is_not_moved_by_trim(make_bench):
    bench = filled(make_bench)
    bench.hot.trim(bench.tp(), 8)
    assert bench.offsets().log_start == 0


# -- what is archived ---------------------------------------------------------------------------


def test_unarchived_since_is_the_first_append_that_is_not_archived(make_bench):
    bench = make_bench()
    assert bench.offsets().unarchived_since_ms is None
    bench.append(NOW_MS)
    bench.clock.advance(100)
    bench.append(NOW_MS)
    assert bench.offsets().unarchived_since_ms == NOW_MS
    planned_at_ms = bench.hot.now_ms()
    bench.clock.advance(50)
    bench.append(NOW_MS)
    bench.hot.trim(bench.tp(), 0, archived_end=2, planned_at_ms=planned_at_ms)
    assert bench.offsets().unarchived_since_ms == planned_at_ms
    bench.hot.trim(bench.tp(), 0, archived_end=3)
    assert bench.offsets().unarchived_since_ms is None
    bench.clock.advance(50)
    bench.append(NOW_MS)
    assert bench.offsets().unarchived_since_ms == NOW_MS + 200


def test_an_older_plan_does_not_move_unarchived_since_back(make_bench):
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS)
    bench.hot.trim(bench.tp(), 0, archived_end=1, planned_at_ms=NOW_MS + 100)
    bench.hot.trim(bench.tp(), 0, archived_end=1, planned_at_ms=NOW_MS + 50)
    bench.hot.trim(bench.tp(), 0, archived_end=1)
    assert bench.offsets().unarchived_since_ms == NOW_MS + 100


# -- against a list ------------------------------------------------------------------------------


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 40), st.booleans()), min_size=1, max_size=15
    )
)
def test_trim_keeps_exactly_what_is_at_or_above_it(make_bench, steps):
    bench = make_bench(
        name=f"t{abs(hash(str(steps)))}", internal_segment_bytes=1500, index_interval_bytes=0
    )
    try:
        end = start = 0
        for count, before, is_arrow in steps:
            entry_format = EntryFormat.ARROW if is_arrow else EntryFormat.FIELDS
            bench.append(*[NOW_MS + end] * count, entry_format=entry_format)
            end += count
            before = min(before, end)
            bench.hot.trim(bench.tp(), before)
            start = max(start, before)
            offsets = bench.offsets()
            assert (offsets.local_log_start, offsets.log_end) == (start, end)
            assert bench.read_offsets(start) == list(range(start, end))
            assert offsets.segments[-1].end_offset == end
            assert offsets.segments[0].base_offset <= start
            assert all(
                one.end_offset == other.base_offset
                for one, other in zip(offsets.segments, offsets.segments[1:], strict=False)
            )
    finally:
        bench.hot.topics().delete(bench.topic.name)
        bench.hot.close()
