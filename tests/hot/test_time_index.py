"""Searching by timestamp: the earliest offset at or after the target, whatever the order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import TrimmedError, UnknownTopicIdError, UnknownTopicOrPartitionError
from lakelog.hot.fetch import Fetcher
from lakelog.values.config import EntryFormat
from lakelog.values.record import OffsetAndTimestamp
from lakelog.values.topic_partition import TopicPartition

NOW_MS = 1_700_000_000_000
ANY_TIME = {"message_timestamp_after_max_ms": 2**62}


def found(bench, timestamp_ms):
    return bench.hot.offset_for_timestamp(bench.tp(), timestamp_ms)


def index_of(bench):
    """(offset, score) of the time index."""
    pairs = bench.client.zrange(bench.keys()[3], 0, -1, withscores=True)
    return [(int(offset), int(score)) for offset, score in pairs]


def test_an_unknown_partition_and_a_deleted_topic(bench):
    with pytest.raises(UnknownTopicOrPartitionError):
        bench.hot.offset_for_timestamp(TopicPartition("orders", 9), 0)
    bench.hot.topics().delete("orders")
    with pytest.raises(UnknownTopicIdError):
        bench.hot.offset_for_timestamp(bench.tp(), 0, topic_id=bench.topic.topic_id)
    bench.hot.topics().create("orders")
    with pytest.raises(UnknownTopicIdError, match="created again"):
        bench.hot.offset_for_timestamp(bench.tp(), 0, topic_id=bench.topic.topic_id)


def test_a_trim_between_the_look_and_the_read_is_no_error(make_bench, monkeypatch):
    bench = make_bench()
    for number in range(10):
        bench.append(NOW_MS + number)
    read = Fetcher.read
    trims = [3, 6]

    def read_after_a_trim(self, *args, **more):
        if trims:
            bench.hot.trim(bench.tp(), trims.pop(0))
        return read(self, *args, **more)

    monkeypatch.setattr(Fetcher, "read", read_after_a_trim)
    assert found(bench, NOW_MS + 1) == OffsetAndTimestamp(6, NOW_MS + 6)
    with pytest.raises(TrimmedError):
        bench.read(2)


TIMES = st.lists(
    st.one_of(
        st.just(-1),
        st.integers(0, 30),
        st.integers(NOW_MS, NOW_MS + 40),
        st.sampled_from([NOW_MS + 10**9, 0, NOW_MS]),  # outliers and equals
    ),
    min_size=1,
    max_size=6,
)


@given(
    calls=st.lists(
        st.tuples(
            TIMES, st.sampled_from([EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA])
        ),
        min_size=1,
        max_size=15,
    ),
    trims=st.lists(st.integers(0, 60), max_size=3),
    interval=st.sampled_from([0, 1, 100, 4096]),
    segment_bytes=st.sampled_from([1000, 3000, 2**30]),
    targets=st.lists(
        st.integers(0, 32) | st.integers(NOW_MS - 2, NOW_MS + 42) | st.just(NOW_MS + 10**9),
        min_size=1,
        max_size=6,
    ),
)
def test_the_search_is_the_naive_one(make_bench, calls, trims, interval, segment_bytes, targets):
    bench = make_bench(
        name=f"t{abs(hash((str(calls), str(trims), interval, segment_bytes, str(targets))))}",
        index_interval_bytes=interval,
        internal_segment_bytes=segment_bytes,
        **ANY_TIME,
    )
    try:
        times_ms = []
        for i, (call, entry_format) in enumerate(calls):
            bench.append(*call, entry_format=entry_format)
            times_ms += call
            if i < len(trims):
                bench.hot.trim(bench.tp(), min(trims[i], len(times_ms)))
        start = bench.offsets().local_log_start
        hot = list(enumerate(times_ms))[start:]
        for target in targets:
            naive = next((OffsetAndTimestamp(o, t) for o, t in hot if t >= target), None)
            assert found(bench, target) == naive
        first_largest = max(hot, key=lambda pair: (pair[1], -pair[0]), default=None)
        assert bench.hot.max_timestamp(bench.tp()) == first_largest
        scores = [score for _, score in index_of(bench)]
        assert scores == sorted(set(scores))
        assert all(offset >= start for offset, _ in index_of(bench))
    finally:
        bench.hot.topics().delete(bench.topic.name)
        bench.hot.close()
