"""Seeking in random logs, against a plain list of what was appended."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold.change import Change
from lakelog.cold.registers import LogStart
from lakelog.errors import InvalidArgumentError, OffsetOutOfRangeError
from lakelog.read import seek
from lakelog.values.config import EntryFormat
from lakelog.values.offsets import (
    Ago,
    AtTimestamp,
    Earliest,
    EarliestLocal,
    EarliestPendingUpload,
    Latest,
    LatestTiered,
    MaxTimestamp,
)
from lakelog.values.record import OffsetAndTimestamp

# What may happen to a log; numbers say where by proportion, so that shrinking keeps them legal.
share = st.integers(0, 8)
appends = st.tuples(
    st.just("append"),
    st.lists(st.integers(-1, 40), min_size=1, max_size=8),
    st.sampled_from([EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA]),
)
happenings = st.lists(
    st.one_of(
        appends,
        st.tuples(st.just("archive"), share),
        st.tuples(st.just("trim"), share),
        st.tuples(st.just("raise"), share),
    ),
    max_size=8,
)


def happen(bench, steps):
    """Does the steps; returns the log start."""
    log_start = 0
    for kind, *what in steps:
        offsets = bench.log.offsets()[0]
        if kind == "append":
            bench.append(what[0], entry_format=what[1])
            continue
        low, high = {
            "archive": (offsets.archived_end, offsets.log_end),
            "trim": (offsets.local_log_start, offsets.archive_start),
            "raise": (offsets.log_start, offsets.log_end),
        }[kind]
        at = low + max(0, high - low) * what[0] // 8
        if kind == "archive" and bench.table is not None:
            bench.archive(at)
        elif kind == "trim" and bench.table is not None:
            bench.trim(at)
        elif kind == "raise":
            log_start = bench.log.raise_log_start(0, at)
    return log_start


@pytest.mark.parametrize("tiered", [True, False], ids=["tiered", "untiered"])
@given(steps=happenings)
@settings(max_examples=20)
def test_every_seek_and_fetch_agrees_with_a_list(make_bench, tiered, steps):
    bench = make_bench(tiered=tiered)
    log_start = happen(bench, steps)
    everything = bench.appended[0]
    held = everything[log_start:]
    log_end = len(everything)

    assert list(bench.log.read(0).records()) == held
    assert bench.log.seek(0, Earliest()) == log_start
    assert bench.log.seek(0, Latest()) == log_end
    for offset in range(log_start, log_end):
        assert bench.fetched(offset, max_bytes=1) == [everything[offset]]
        assert bench.log.seek(0, offset) == offset
    assert bench.log.fetch(0, log_end).next_offset == log_end
    for offset in {log_start - 1, log_end + 1} - {-1}:
        with pytest.raises(OffsetOutOfRangeError) as refused:
            bench.open().fetch(0, offset)
        assert (refused.value.log_start, refused.value.log_end) == (log_start, log_end)
    for target in range(42):
        found = next((r for r in held if r.timestamp_ms >= target), None)
        expected = found and OffsetAndTimestamp(found.offset, found.timestamp_ms)
        assert bench.log.offset_for_timestamp(0, target) == expected
    largest = max((r.timestamp_ms for r in held), default=-1)
    first = next((r.offset for r in held if r.timestamp_ms == largest >= 0), None)
    assert bench.log.seek(0, MaxTimestamp()) == first


@given(steps=happenings, times=st.lists(st.integers(0, 42), min_size=1, max_size=4))
@settings(max_examples=20)
def test_of_many_partitions_the_indexes_say_first_where_a_time_is(make_bench, steps, times):
    """Which is where a search of each finds it."""
    bench = make_bench(tiered=True)
    happen(bench, steps)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seek, "_ASKED_ONE_BY_ONE", 0)
        found = [bench.log.seek_each(AtTimestamp(time_ms)) for time_ms in times]
    assert found == [{0: bench.log.seek(0, AtTimestamp(time_ms))} for time_ms in times]


def test_names_of_places_in_an_empty_log(bench):
    assert [
        bench.log.seek(0, where)
        for where in (
            Earliest(),
            EarliestLocal(),
            LatestTiered(),
            EarliestPendingUpload(),
            Latest(),
            MaxTimestamp(),
            AtTimestamp(0),
        )
    ] == [0, 0, None, 0, 0, None, None]


def test_a_log_start_raised_in_cold_alone_hides_hot_records(bench):
    """As retention leaves it until the next trim."""
    bench.append([9, 1, 2, 3, 2])
    bench.archive(3)
    bench.table.apply(Change(registers={LogStart(0): 2}), bench.table.snapshot())

    assert bench.log.seek(0, "@0") == 2
    assert bench.log.seek(0, "@3") == 3
    assert bench.log.seek(0, "@4") is None
    assert bench.log.seek(0, "max-timestamp") == 3
    with pytest.raises(OffsetOutOfRangeError):
        bench.log.fetch(0, 1)


def test_ago_is_counted_from_the_given_clock(bench):
    now = bench.clock.now_ms()
    bench.append([now - 700_000, now - 500_000, now - 100_000])
    bench.tier(2, 1)

    assert bench.log.seek(0, "-10m") == 1
    assert bench.log.seek(0, "10 minutes ago") == 1
    assert bench.log.seek(0, timedelta(seconds=100)) == 2
    assert bench.log.seek(0, Ago(timedelta(seconds=1))) is None
    assert bench.log.seek(0, Ago(timedelta(days=99_999))) == 0


@pytest.mark.parametrize(
    "when",
    [
        "2013-12-30T12:00:00Z",
        "2013-12-30T13:00:00+01:00",
        datetime(2013, 12, 30, 12, tzinfo=timezone.utc),
        "@1388404800000",
    ],
)
def test_a_time_may_be_written_in_several_ways(bench, when):
    bench.append([1388404799999, 1388404800000, 1388404800001])

    assert bench.log.seek(0, when) == 1


@pytest.mark.parametrize("naive", [datetime(2013, 12, 30), "2013-12-30T12:00:00", "2013-12-30"])  # noqa: DTZ001
def test_a_time_without_a_zone_is_refused_with_the_way_to_say_utc(bench, naive):
    with pytest.raises(InvalidArgumentError, match="if it is UTC, say"):
        bench.log.seek(0, naive)


def test_a_time_may_lie_far_behind_all_records_but_not_beyond_64_bits(bench):
    bench.append([1388404800000])
    bench.archive(1)

    assert bench.log.seek(0, f"@{2**63 - 1}") is None
    with pytest.raises(InvalidArgumentError, match=r"below 2\^63"):
        bench.log.seek(0, f"@{2**63}")


@pytest.mark.parametrize("offset", [-1, -250, 1.5, True, None, b"1", 2**53 + 1])
def test_what_is_not_an_offset_is_refused(bench, offset):
    for ask in (
        lambda: bench.log.fetch(0, offset),
        lambda: bench.log.seek(0, offset),
        lambda: bench.log.read(0, offset),
    ):
        with pytest.raises(InvalidArgumentError):
            ask()


@pytest.mark.parametrize("offset", [4, 9])
def test_an_offset_outside_the_log_is_refused_with_what_it_holds(bench, offset):
    bench.append(range(8))
    bench.log.raise_log_start(0, 5)

    with pytest.raises(OffsetOutOfRangeError) as refused:
        bench.log.seek(0, offset)

    assert str(refused.value) == (
        f"offset {offset} of {bench.topic.name}-0 is out of range: the log holds [5, 8). Seek to 5 "
        "(earliest) or 8 (latest)"
    )


@pytest.mark.parametrize("typed", ["1372939200", "1372939200000"])
def test_an_offset_that_may_be_a_time_is_refused_with_how_to_say_so(bench, typed):
    bench.append(range(8))

    with pytest.raises(OffsetOutOfRangeError, match=r"meant as a time, write @1372939200000,"):
        bench.log.seek(0, typed)


def test_a_search_misses_nothing_that_is_trimmed_while_it_runs(bench):
    """Archived and trimmed after hot was searched, before cold is looked at."""
    bench.append([1, 2, 3, 4])
    bench.tier(1, 1)

    class Late:
        def __getattr__(self, name):
            return getattr(bench.table, name)

        def snapshot(self, newer_than):
            bench.tier(4, 4)
            return bench.table.snapshot(newer_than)

    for target, offset in [(1, 0), (2, 1), (4, 3)]:
        log = bench.open()
        log._tiers.table = log._tiers.rows = Late()
        assert log.seek(0, AtTimestamp(target)) == offset
    assert log.seek(0, MaxTimestamp()) == 3
