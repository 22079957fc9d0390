"""Local retention by Kafka's rules, and never above what cold holds."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.archive.local_retention import trim_points
from lakelog.cold.registers import ArchivedEnd, LogStart
from lakelog.cold.table import ColdSnapshot
from lakelog.values.config import TopicConfig
from lakelog.values.offsets import HotSegment, HotSegments
from lakelog.values.topic import Topic

NOW_MS = 1_000_000


def topic(**config: object) -> Topic:
    return Topic("orders", uuid.UUID(int=7), 1, TopicConfig.of(**config))


def hot(*segments: tuple[int, int, int], local_log_start: int = 0, **more: int) -> HotSegments:
    """Segments of (base, end, age of the newest record); 100 bytes a record."""
    made = tuple(
        HotSegment(base, end, (end - base) * 100, 0, NOW_MS - age_ms, 0, NOW_MS)
        for base, end, age_ms in segments
    )
    size_bytes = sum(segment.size_bytes for segment in made)
    return HotSegments(
        local_log_start, made[-1].end_offset, NOW_MS, size_bytes, segments=made, **more
    )


def points(topic: Topic, offsets: HotSegments, archived_end: int, log_start: int = 0):
    registers = {ArchivedEnd(0): archived_end, LogStart(0): log_start}
    return trim_points(topic, {0: offsets}, ColdSnapshot(registers=registers), NOW_MS)


THREE = [(0, 10, 300), (10, 20, 200), (20, 30, 100)]


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(-500, 500)), min_size=1, max_size=6),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 200),
    st.sampled_from([-2, -1, 0, 1, 250]),
    st.sampled_from([-2, -1, 0, 1, 1500]),
)
def test_nothing_that_only_redis_holds_is_trimmed(
    sizes, archived_end, log_start, local_log_start, local_ms, local_bytes
):
    segments, base = [], 0
    for records, age_ms in sizes:
        segments.append((base, base + records, age_ms))
        base += records
    offsets = hot(*segments, local_log_start=local_log_start)
    config = {
        "retention_ms": -1,
        "local_retention_ms": local_ms,
        "local_retention_bytes": local_bytes,
    }

    found = points(topic(**config), offsets, archived_end, log_start)

    for point in found.values():
        assert local_log_start < point <= max(archived_end, log_start)
        assert point <= offsets.log_end


def test_minus_two_follows_the_topics_own_retention():
    assert points(topic(retention_ms=150), hot(*THREE), archived_end=30) == {0: 20}
    assert points(topic(retention_ms=-1, retention_bytes=2000), hot(*THREE), archived_end=30) == {
        0: 10
    }


def test_zero_milliseconds_frees_everything_archived_even_part_of_a_segment():
    just_now = hot((0, 10, 0), (10, 30, -60_000))  # the newest lies ahead of the clock
    assert points(topic(local_retention_ms=0), just_now, archived_end=17) == {0: 17}


def test_records_without_timestamps_age_by_their_last_append():
    segment = HotSegment(0, 10, 1000, -1, -1, 0, NOW_MS - 300)
    offsets = HotSegments(0, 10, -1, 1000, segments=(segment,))
    assert points(topic(local_retention_ms=299), offsets, archived_end=10) == {0: 10}
    assert points(topic(local_retention_ms=300), offsets, archived_end=10) == {}


def test_a_gap_after_the_last_archived_record_stays_until_it_is_covered():
    both = [
        HotSegment(base, end, 1000, 0, NOW_MS - 500, 0, NOW_MS) for base, end in ((0, 10), (50, 60))
    ]
    offsets = HotSegments(0, 60, NOW_MS, 2000, segments=tuple(both))
    assert points(topic(local_retention_ms=100), offsets, archived_end=10) == {0: 10}
    assert points(topic(local_retention_ms=100), offsets, archived_end=60) == {0: 60}


def test_what_is_trimmed_already_is_not_trimmed_again():
    offsets = hot(*THREE, local_log_start=20)
    assert points(topic(local_retention_ms=150), offsets, archived_end=30) == {}


@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete", ""])
def test_the_policy_does_not_keep_copies_of_what_cold_holds(policy):
    offsets = hot(*THREE)
    for config in (
        {"local_retention_ms": 150},
        {"retention_ms": 150},  # local.retention.ms=-2
        {"retention_ms": -1, "local_retention_bytes": 1000},
        {"retention_ms": -1, "retention_bytes": 1000},
    ):
        assert points(topic(cleanup_policy=policy, **config), offsets, archived_end=30) == {0: 20}
        assert points(topic(cleanup_policy=policy, **config), offsets, archived_end=5) == {}


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-2, 4)), min_size=1, max_size=6),
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(-1, 3).filter(bool),
    st.integers(-1, 40),
)
def test_the_passes_are_kafkas(sizes, archived_end, log_start, limit_ms, limit_records):
    segments, base = [], 0
    for records, age_ms in sizes:
        segments.append((base, base + records, age_ms))
        base += records
    limit_bytes = -1 if limit_records < 0 else 100 * limit_records
    config = topic(retention_ms=-1, local_retention_ms=limit_ms, local_retention_bytes=limit_bytes)

    found = points(config, hot(*segments), archived_end, log_start).get(0, 0)

    held, kept = max(archived_end, log_start), list(segments)
    while kept and kept[0][1] <= log_start:
        kept.pop(0)
    while (
        limit_bytes >= 0
        and kept
        and kept[0][1] <= held
        and sum(100 * (end - start) for start, end, _ in kept[1:]) >= limit_bytes
    ):
        kept.pop(0)
    while limit_ms >= 0 and kept and kept[0][1] <= held and kept[0][2] > limit_ms:
        kept.pop(0)
    start = kept[0][0] if kept else base
    assert found == max(start, min(log_start, base))
