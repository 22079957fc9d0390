"""Write-time retention of untiered topics: Kafka's three passes over whole segments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import HotTierFullError
from lakelog.values.config import DAY_MS, KEYSPACE_SETTINGS

NOW_MS = 1_700_000_000_000
CHECK_MS = int(KEYSPACE_SETTINGS["log.retention.check.interval.ms"].default)
RECORD = 100  # bytes, as the tests say they have
UNTIERED = {"remote_storage_enable": False, "retention_ms": -1}
FIVE_A_SEGMENT = {**UNTIERED, "internal_segment_bytes": 5 * RECORD}


def fill(bench, count, timestamp_ms=NOW_MS):
    for _ in range(count):
        bench.append_sized(RECORD, timestamp_ms)


def starts(bench):
    offsets = bench.offsets()
    return offsets.log_start, offsets.local_log_start


# -- time --------------------------------------------------------------------------------------


def test_without_timestamps_the_last_change_counts(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000})
    fill(bench, 4, -1)
    bench.clock.advance(800)
    fill(bench, 2, -1)
    bench.clock.advance(1000)
    assert bench.hot.retain(bench.tp()) == 0
    bench.clock.advance(1)
    assert bench.hot.retain(bench.tp()) == 6


# -- log start ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "bases"), [(4, [0, 5, 10]), (5, [5, 10]), (12, [10]), (15, [10])]
)
def test_a_raised_log_start_drops_segments_wholly_below_it(make_bench, start, bases):
    """Source: Kafka's shouldDeleteStartOffsetBreachedSegmentsWhenPolicyDoesNotIncludeDelete."""
    bench = make_bench(**FIVE_A_SEGMENT, cleanup_policy="")
    fill(bench, 15)
    bench.hot.raise_log_start(bench.tp(), start)
    assert bench.bases() == bases
    assert starts(bench) == (start, start)
    assert bench.read_offsets(start) == list(range(start, 15))
    assert bench.append_sized(RECORD, NOW_MS).log_start == start


def test_size_counts_after_the_log_start_was_raised(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_bytes": 10 * RECORD})
    fill(bench, 14)
    bench.hot.raise_log_start(bench.tp(), 5)
    fill(bench, 5)
    assert bench.bases() == [5, 10, 15]
    fill(bench, 1)
    assert bench.bases() == [10, 15]


# -- entries -----------------------------------------------------------------------------------


def test_entries_limit_is_exact_and_not_by_segment(make_bench):
    bench = make_bench(**FIVE_A_SEGMENT, lakelog_retention_entries=7)
    fill(bench, 20)
    assert bench.client.xlen(bench.keys()[0]) == 7
    assert starts(bench) == (13, 13)
    assert bench.bases() == [10, 15]
    assert bench.read_offsets(13) == list(range(13, 20))


def test_time_and_entries_together(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000}, lakelog_retention_entries=8)
    fill(bench, 10, NOW_MS)
    assert starts(bench) == (2, 2)
    bench.clock.advance(CHECK_MS)
    fill(bench, 1, NOW_MS + CHECK_MS)
    assert starts(bench) == (10, 10)


# -- what is never dropped ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"retention_bytes": 0},
        {"retention_ms": 1},
        {"lakelog_retention_entries": 0},
        {"cleanup_policy": "compact,delete", "retention_ms": 1},
    ],
)
def test_a_tiered_topic_never_drops_by_itself(make_bench, settings):
    bench = make_bench(**{"internal_segment_bytes": 5 * RECORD, **settings})
    fill(bench, 12)
    for _ in range(2):
        bench.clock.advance(30 * DAY_MS)
        assert bench.hot.retain(bench.tp()) == 0
        fill(bench, 1)
    assert bench.read_offsets() == list(range(14))


# -- when ----------------------------------------------------------------------------------


def test_the_keyspace_sets_how_often_is_checked(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000})
    fill(bench, 3, timestamp_ms=10)
    bench.hot.topics().set_defaults({"log.retention.check.interval.ms": 2000})
    bench.clock.advance(1999)
    assert bench.append_sized(RECORD, 10).log_start == 0
    bench.clock.advance(1)
    assert bench.append_sized(RECORD, 10).log_start == 4


def test_a_clock_that_is_set_back_puts_a_check_off_by_an_interval_at_most(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000})
    fill(bench, 3, timestamp_ms=10)
    bench.clock.advance(-DAY_MS)
    assert bench.append_sized(RECORD, 10).log_start == 0
    bench.clock.advance(CHECK_MS)
    assert bench.append_sized(RECORD, 10).log_start == 4


def test_what_is_asked_when_due_goes_as_an_append_would_have_it(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000})
    fill(bench, 7, timestamp_ms=10)
    assert bench.hot.retain(bench.tp(), when_due=True) == 0
    bench.clock.advance(CHECK_MS)
    assert bench.hot.retain(bench.tp(), when_due=True) == 7
    fill(bench, 1, timestamp_ms=10)
    assert bench.hot.retain(bench.tp(), when_due=True) == 7
    assert bench.hot.retain(bench.tp()) == 8


@pytest.mark.parametrize("numbers", [14, 15])
def test_settings_of_a_lakelog_that_knew_no_interval_are_those_of_the_default(make_bench, numbers):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000})
    settings = bench.state("settings").split()
    assert len(settings) == 16
    bench.client.hset(bench.keys()[1], "settings", b" ".join(settings[:numbers]))
    fill(bench, 1, timestamp_ms=10)
    bench.clock.advance(CHECK_MS - 1)
    assert bench.append_sized(RECORD, 10).log_start == 0
    bench.clock.advance(1)
    assert bench.append_sized(RECORD, 10).log_start == 2


def test_an_interval_that_somebody_else_wrote_begins_anew(make_bench):
    bench = make_bench(**{**FIVE_A_SEGMENT, "retention_ms": 1000})
    for value in ("soon", "nan", "inf", "-inf", "1e300", "5.5"):
        bench.client.hset(bench.keys()[1], "retention_checked", value)
        bench.clock.advance(1)
        fill(bench, 1, timestamp_ms=10)
        assert bench.state("retention_checked") == b"%d" % bench.clock.now_ms()


def test_a_full_redis_makes_room_by_retention(make_redis, make_bench):
    server = make_redis(maxmemory="4mb")
    bench = make_bench(url=server.url, **{**UNTIERED, "internal_segment_bytes": 100_000})
    fill_up = (bench.append(NOW_MS, value_bytes=20_000) for _ in range(1000))
    with pytest.raises(HotTierFullError):
        list(fill_up)
    end = bench.offsets().log_end
    with server.client() as client:
        # as an operator does who shortens retention on a full server
        client.config_set("maxmemory", "64mb")
        bench.hot.topics().alter("orders", {"retention.ms": 1000})
        client.config_set("maxmemory", "4mb")
    bench.clock.advance(1001)
    assert bench.hot.retain(bench.tp()) == end
    assert bench.append(NOW_MS + 1001).base_offset == end


# -- by parts ----------------------------------------------------------------------------------

MANY = 600
A_PART = {
    "by size": ("retention.bytes", RECORD),
    "by time": ("retention.ms", 0),
    "by entries": ("lakelog.retention.entries", 1),
}


@pytest.mark.parametrize("way", A_PART)
def test_no_call_drops_all_of_very_many_and_together_they_do(make_bench, way):
    """A server does nothing else during a call. A part of the oldest is what was legal before."""
    checked_ms = 0 if way == "by time" else -1  # the first check comes an interval later
    settings = {"internal_segment_bytes": RECORD, "retention_ms": checked_ms}
    bench = make_bench(**{**UNTIERED, **settings})
    fill(bench, MANY, timestamp_ms=10)
    bench.hot.topics().alter("orders", dict([A_PART[way]]))
    bench.clock.advance(CHECK_MS)
    seen = [0]
    while seen[-1] < MANY // 2 + 1:  # it comes on by itself, and anybody may look in between
        end = MANY + len(seen)
        seen.append(bench.append_sized(RECORD, 10).log_start)
        assert seen[-2] < seen[-1] < MANY
        assert starts(bench) == (seen[-1], seen[-1])
        assert bench.read_offsets(seen[-1]) == list(range(seen[-1], end))
        assert bench.client.xlen(bench.keys()[0]) == end - seen[-1]
    kept = 0 if way == "by time" else 1
    assert bench.hot.retain(bench.tp()) == end - kept
    assert bench.read_offsets(end - kept) == list(range(end - kept, end))
    assert starts(bench) == (end - kept, end - kept)


@pytest.mark.parametrize("entries", [-1, 1])
def test_what_a_trim_left_that_was_cut_short_goes_by_parts_too(make_bench, entries):
    """It raises the log start before it drops anything."""
    bench = make_bench(**{**UNTIERED, "internal_segment_bytes": RECORD})
    fill(bench, MANY)
    bench.hot.topics().alter("orders", {"lakelog.retention.entries": entries})
    bench.client.hset(bench.keys()[1], "log_start", MANY - 1)
    assert bench.append_sized(RECORD, NOW_MS).log_start == MANY - 1
    kept = bench.hot.retain(bench.tp())
    assert kept == (MANY - 1 if entries < 0 else MANY)
    assert bench.client.zcard(bench.keys()[2]) <= 1
    assert bench.read_offsets(kept) == list(range(kept, MANY + 1))


# -- gaps --------------------------------------------------------------------------------------


def skip(bench):
    """A gap at the end, as a recovery leaves it."""
    return bench.hot.recover(bench.tp(), bench.offsets().log_end + 1).log_end


def test_the_entries_of_gaps_are_none_of_those_that_are_kept(make_bench):
    bench = make_bench(**UNTIERED, lakelog_retention_entries=2)
    fill(bench, 2)
    end = skip(bench)
    assert bench.hot.retain(bench.tp()) == 0
    assert bench.read_offsets() == [0, 1]
    fill(bench, 1)
    assert bench.read_offsets(1) == [1, end]
    next_end = skip(bench)
    assert bench.hot.retain(bench.tp()) == 1
    fill(bench, 2)
    assert bench.offsets().log_start > end
    assert bench.read_offsets(next_end) == [next_end, next_end + 1]
    fill(bench, 3)
    assert bench.read_offsets(next_end + 3) == [next_end + 3, next_end + 4]


@pytest.mark.parametrize("limit", [("retention.ms", 1000), ("retention.bytes", 0)])
def test_who_waits_at_the_end_of_what_goes_stays_in_the_log(make_bench, limit):
    """No record lies between the records that go and those that come after a gap."""
    bench = make_bench(**FIVE_A_SEGMENT)
    fill(bench, 3)
    end = skip(bench)
    bench.hot.topics().alter("orders", dict([limit]))
    bench.clock.advance(CHECK_MS)
    assert bench.hot.retain(bench.tp()) == 3
    assert starts(bench) == (3, 3)
    assert bench.bases() == [end]
    assert bench.offsets().size_bytes == 0
    assert bench.read_offsets(3) == []
    bench.hot.topics().alter("orders", {"retention.bytes": -1})
    fill(bench, 1, bench.clock.now_ms())
    assert bench.read_offsets(3) == [end]


# -- against a model ---------------------------------------------------------------------------


@given(
    steps=st.lists(
        st.tuples(
            st.integers(1, 5),
            st.integers(-1500, 500),
            st.integers(0, 900) | st.sampled_from([CHECK_MS - 1, CHECK_MS]),
        ),
        min_size=1,
        max_size=20,
    ),
    retention_ms=st.sampled_from([-1, 0, 500, 2000]),
    retention_bytes=st.sampled_from([-1, 0, 300, 1000]),
)
def test_the_passes_are_the_models(make_bench, steps, retention_ms, retention_bytes):
    bench = make_bench(
        name=f"t{abs(hash((str(steps), retention_ms, retention_bytes)))}",
        remote_storage_enable=False,
        internal_segment_bytes=4 * RECORD,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
    )
    # segments as (base, bytes, largest timestamp); the last is open
    segments, end, checked_ms = [(0, 0, -1)], 0, bench.clock.now_ms() + steps[0][2]
    try:
        for count, distance_ms, step_ms in steps:
            bench.clock.advance(step_ms)
            now_ms = bench.clock.now_ms()
            if now_ms - checked_ms >= CHECK_MS:
                checked_ms = now_ms
                while (
                    retention_ms >= 0 and segments[0][1] and now_ms - segments[0][2] > retention_ms
                ):
                    segments = segments[1:] or [(end, 0, -1)]
            bench.append_sized(RECORD, *[now_ms + distance_ms] * count)
            for _ in range(count):
                if segments[-1][1] + RECORD > 4 * RECORD:
                    segments.append((end, 0, -1))
                base, size, largest = segments[-1]
                segments[-1] = (base, size + RECORD, max(largest, now_ms + distance_ms))
                end += 1
            excess = sum(size for _, size, _ in segments) - retention_bytes
            while retention_bytes >= 0 and segments[0][1] and excess - segments[0][1] >= 0:
                excess -= segments.pop(0)[1]
                segments = segments or [(end, 0, -1)]
            seen = bench.offsets()
            assert [
                (s.base_offset, s.size_bytes, s.max_timestamp_ms) for s in seen.segments
            ] == segments
            assert seen.log_start == seen.local_log_start == segments[0][0]
            assert bench.client.xlen(bench.keys()[0]) == end - segments[0][0]
            assert seen.size_bytes == sum(size for _, size, _ in segments)
    finally:
        bench.hot.topics().delete(bench.topic.name)
        bench.hot.close()
