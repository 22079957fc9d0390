"""The oracle's own rules of cleanup, on cases small enough to check by eye."""

from __future__ import annotations

import pytest

from lakelog.testing.cleaning import (
    ColdSegment,
    dirty,
    eligible,
    hot_only_bytes,
    retained,
    superseded,
)
from lakelog.values.config import TopicConfig
from lakelog.values.offsets import HotSegment, HotSegments
from lakelog.values.record import Record

NOW_MS = 100_000


def record(offset: int, key: bytes = b"k", value: bytes | None = b"v", at_ms: int = 0) -> Record:
    return Record("orders", 0, offset, at_ms, key, value, ())


def segments(*times_ms: int, size_bytes: int = 10) -> list[ColdSegment]:
    """One a time, with one record each."""
    return [
        ColdSegment(base, base + 1, size_bytes, NOW_MS - 500, (record(base, at_ms=at_ms),))
        for base, at_ms in enumerate(times_ms)
    ]


def kept(
    given: list[ColdSegment],
    log_start: int = 0,
    *,
    closed: bool = False,
    hot_only: int = 0,
    **settings,
):
    config = TopicConfig.of(**{"retention_ms": -1, **settings})
    found = retained(
        given,
        config,
        log_start,
        len(given),
        NOW_MS,
        all_archived=closed,
        hot_only_bytes=hot_only,
    )
    return [segment.base_offset for segment in found.kept], found.lowest


def test_a_young_segment_shields_those_after_it():
    old = NOW_MS - 2_000
    given = segments(old, old, NOW_MS, old, old)
    assert kept(given, retention_ms=1_000) == ([2, 3, 4], 2)


def test_age_and_size_are_judged_strictly():
    given = segments(*[NOW_MS - 1_000] * 4)
    assert kept(given, retention_ms=1_000) == ([0, 1, 2, 3], 0)
    assert kept(given, retention_ms=999) == ([3], 3)
    assert kept(given, retention_bytes=20) == ([2, 3], 2)
    assert kept(given, retention_bytes=21) == ([1, 2, 3], 1)


def test_what_only_hot_holds_counts_and_a_segment_archived_in_part_by_its_share():
    given = segments(0, 0, 0, 0)
    assert kept(given, hot_only=10, retention_bytes=30) == ([2, 3], 2)
    assert kept(given, hot_only=9, retention_bytes=30) == ([1, 2, 3], 1)
    hot = (HotSegment(2, 6, 41, 0, 0, 0, 0), HotSegment(6, 8, 7, 0, 0, 0, 0))
    assert hot_only_bytes(HotSegments(2, 8, 0, 48, segments=hot), 4) == 20 + 7
    assert hot_only_bytes(HotSegments(7, 8, 0, 48, segments=hot), 4) == 3


def test_the_newest_segment_goes_only_when_it_is_known_to_be_closed():
    given = segments(0, 0)
    assert kept(given, retention_ms=1) == ([1], 1)
    assert kept(given, retention_ms=1, closed=True) == ([], 2)
    assert kept(given, log_start=2, cleanup_policy="compact") == ([], 2)


def test_a_segment_without_timestamps_is_as_old_as_its_file():
    given = segments(-1, -1, -1)  # written half a second ago
    assert kept(given, retention_ms=499) == ([2], 2)
    assert kept(given, retention_ms=500) == ([0, 1, 2], 0)


def test_without_delete_only_the_log_start_counts():
    for policy in ("compact", ""):
        settings = {"cleanup_policy": policy, "retention_ms": 1, "retention_bytes": 0}
        assert kept(segments(0, 0, 0), log_start=1, **settings) == ([1, 2], 1)


def found(given: list[ColdSegment], log_start: int = 0, cleaned_end: int = 0, **settings):
    config = TopicConfig.of(**{"cleanup_policy": "compact", **settings})
    part = dirty(given, config, log_start, cleaned_end, NOW_MS)
    if part is None:
        return None
    bases = [[segment.base_offset for segment in some] for some in (part.clean, part.dirty)]
    return *bases, part.cleaned_end, eligible(part, config, NOW_MS)


def test_the_dirty_part_ends_at_the_newest_segment_or_at_a_young_one():
    assert found(segments(0, 0, 0), cleaned_end=1) == ([0], [1], 2, False)
    assert found(segments(0, 0), cleaned_end=1) is None
    assert found(segments(0, NOW_MS, 0, 0), min_compaction_lag_ms=9) == ([], [0], 1, True)
    assert found(segments(-1, 0, 0), min_compaction_lag_ms=501) is None
    assert found(segments(0, 0), cleanup_policy="delete") is None


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, False), (0.49, True)])
def test_the_ratio_is_strict(ratio: float, expected: bool):
    given = segments(1, 1, 1)
    assert found(given, cleaned_end=1, min_cleanable_dirty_ratio=ratio)[-1] is expected


def test_an_overdue_record_makes_a_partition_eligible():
    settings = {"cleaned_end": 1, "min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": 50_000}
    assert found(segments(1, 49_999, 1), **settings)[-1] is True
    assert found(segments(1, 50_000, 1), **settings)[-1] is False


def test_of_each_key_the_latest_stays_and_a_tombstone_until_its_horizon():
    records = [
        record(0, b"a"),
        record(1, b"b", None),
        record(2, b"c", None),
        record(3, b"b"),
        record(4, b"a"),
        record(5, b"", b""),
    ]
    assert superseded(records, {}, 0, NOW_MS) == {0, 1}
    assert superseded(records, {2: NOW_MS}, 0, NOW_MS) == {0, 1, 2}
    assert superseded(records, {2: NOW_MS + 1}, 0, NOW_MS) == {0, 1}
    assert superseded(records, {}, 4, NOW_MS) == {0}  # 1 and 3 are clean: not compared
