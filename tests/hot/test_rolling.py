"""Segments roll by Kafka's rules (`LogSegment.shouldRoll`), and the same way whenever asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lakelog.values.config import DAY_MS, HOUR_MS
from lakelog.values.offsets import HotSegment

NOW_MS = 1_700_000_000_000
INT32_MAX = 2**31 - 1
ANY_TIME = {"message_timestamp_after_max_ms": 2**62}


def jitter_ms(topic_id, base_offset, max_jitter_ms):
    """What `common.lua` draws, computed independently."""
    digest = hashlib.sha1(f"{topic_id}:{base_offset}".encode()).hexdigest()
    return int(digest[:8], 16) % max_jitter_ms


# -- Kafka's cases -----------------------------------------------------------------------------


def test_log_append_time_rolls_by_the_wall_clock(make_bench):
    bench = make_bench(segment_ms=HOUR_MS, message_timestamp_type="LogAppendTime")
    bench.append(NOW_MS + 20 * DAY_MS)
    bench.clock.advance(HOUR_MS)
    bench.append(5)
    bench.clock.advance(1)
    bench.append(5)
    assert bench.bases() == [0, 2]


@pytest.mark.parametrize(("policy", "segments"), [("compact", 2), ("delete", 1)])
def test_a_compacted_topic_rolls_within_its_compaction_lag(make_bench, policy, segments):
    bench = make_bench(
        segment_ms=DAY_MS, max_compaction_lag_ms=HOUR_MS, cleanup_policy=policy, **ANY_TIME
    )
    bench.append(NOW_MS)
    bench.append(NOW_MS + HOUR_MS + 1)
    assert len(bench.offsets().segments) == segments


@pytest.mark.parametrize(("beyond", "bases"), [(0, [0]), (1, [0, INT32_MAX + 1])])
def test_offsets_of_a_segment_fit_32_bits(bench, beyond, bases):
    bench.append_sized(1, NOW_MS)
    far = {"log_end": INT32_MAX + beyond, "reserved_end": 2**53}
    bench.client.hset(bench.keys()[1], mapping=far)
    bench.append_sized(1, NOW_MS)
    assert bench.bases() == bases


# -- against a model ---------------------------------------------------------------------------


@dataclass
class ModelRolling:
    """The rule in plain Python."""

    topic_id: object
    segment_bytes: int
    segment_ms: int
    max_jitter_ms: int
    now_ms: int

    def __post_init__(self):
        self.closed, self.log_end = [], 0
        self.open = HotSegment(0, 0, 0, -1, -1, self.now_ms, self.now_ms)

    def append(self, size_bytes, records, max_timestamp_ms):
        segment = self.open
        jitter = self.max_jitter_ms and jitter_ms(
            self.topic_id, segment.base_offset, self.max_jitter_ms
        )
        if segment.first_timestamp_ms >= 0:
            waited_ms = max_timestamp_ms - segment.first_timestamp_ms
        else:
            waited_ms = self.now_ms - segment.created_ms
        if segment.size_bytes + size_bytes > self.segment_bytes or (
            segment.size_bytes > 0 and waited_ms > self.segment_ms - jitter
        ):
            self.closed.append(segment)
            segment = HotSegment(self.log_end, 0, 0, -1, -1, self.now_ms, self.now_ms)
        self.log_end += records
        first = segment.first_timestamp_ms if segment.size_bytes else max_timestamp_ms
        self.open = replace(
            segment,
            end_offset=self.log_end,
            size_bytes=segment.size_bytes + size_bytes,
            first_timestamp_ms=first,
            max_timestamp_ms=max(segment.max_timestamp_ms, max_timestamp_ms),
            modified_ms=self.now_ms,
        )


@given(
    appends=st.lists(
        st.tuples(
            st.integers(1, 600),
            st.lists(
                st.just(-1) | st.integers(NOW_MS - 3000, NOW_MS + 3000), min_size=1, max_size=3
            ),
            st.integers(0, 800),
        ),
        min_size=1,
        max_size=25,
    ),
    segment_ms=st.integers(1, 3000),
    max_jitter_ms=st.sampled_from([0, 1, 500, 5000]),
    segment_bytes=st.integers(600, 2000),
)
def test_rolling_is_the_models(make_bench, appends, segment_ms, max_jitter_ms, segment_bytes):
    bench = make_bench(
        name=f"t{abs(hash((str(appends), segment_ms, max_jitter_ms, segment_bytes)))}",
        segment_ms=segment_ms,
        segment_jitter_ms=max_jitter_ms,
        internal_segment_bytes=segment_bytes,
        **ANY_TIME,
    )
    model = ModelRolling(
        bench.topic.topic_id,
        segment_bytes,
        segment_ms,
        min(max_jitter_ms, segment_ms),
        bench.clock.now_ms(),
    )
    try:
        for size_bytes, timestamps, step_ms in appends:
            bench.clock.advance(step_ms)
            model.now_ms = bench.clock.now_ms()
            bench.append_sized(size_bytes, *timestamps)
            for timestamp_ms in timestamps:  # an entry each
                model.append(size_bytes, 1, timestamp_ms)
        offsets = bench.offsets()
        assert offsets.segments == (*model.closed, model.open)
        assert offsets.size_bytes == sum(s.size_bytes for s in offsets.segments)
    finally:
        bench.hot.topics().delete(bench.topic.name)
        bench.hot.close()


# -- where retention deleted the open segment ----------------------------------------------------


def test_what_is_appended_after_all_was_deleted_is_of_a_segment_of_its_own(make_bench):
    """Kafka rolls its active segment before it deletes it; what follows is not as old."""
    bench = make_bench(segment_ms=HOUR_MS, **ANY_TIME)
    bench.append(NOW_MS)
    hot, topic_id = bench.hot, bench.topic.topic_id
    assert not hot.roll(bench.tp(), 1, topic_id)  # the record is still there
    hot.trim(bench.tp(), 1, archived_end=1)
    assert not hot.roll(bench.tp(), 0, topic_id)  # something was appended since
    assert hot.roll(bench.tp(), 1, topic_id)
    assert not hot.roll(bench.tp(), 1, topic_id)  # there is nothing to begin anew
    bench.append(NOW_MS - 9 * HOUR_MS)
    bench.append(NOW_MS - 8 * HOUR_MS + 1)
    assert bench.bases() == [1, 2]
    assert bench.read_offsets(1) == [1, 2]
