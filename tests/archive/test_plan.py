"""The plan covers exactly what is unarchived, whatever the segments, gaps and bounds."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.archive.plan import MAX_FILE_BYTES, WORKERS, FlushLimit, plan
from lakelog.cold.registers import ArchivedEnd, LogStart
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import ContradictionError
from lakelog.values.config import MIB
from lakelog.values.offsets import HotSegment, HotSegments
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import OffsetRange, TopicPartition

NOW_MS = 1_700_000_000_000
TOPIC = Topic("orders", uuid.UUID(int=7), 4)
EVERYTHING = FlushLimit()


def segment(base: int, end: int, size_bytes: int = 0) -> HotSegment:
    return HotSegment(base, end, size_bytes or (end - base) * 100, NOW_MS, NOW_MS, NOW_MS, NOW_MS)


def hot(
    *segments: HotSegment,
    gaps: tuple[OffsetRange, ...] = (),
    local_log_start: int | None = None,
    since_ms: int | None = NOW_MS,
) -> HotSegments:
    ends = [piece.end_offset for piece in segments] + [gap.end for gap in gaps] + [0]
    start = (
        local_log_start
        if local_log_start is not None
        else min([s.base_offset for s in segments] + [g.start for g in gaps])
    )
    return HotSegments(
        start,
        max(ends),
        NOW_MS,
        sum(piece.size_bytes for piece in segments),
        segments=segments,
        gaps=gaps,
        unarchived_since_ms=since_ms,
    )


def cold(archived_end: int = 0, log_start: int = 0, partition: int = 0) -> ColdSnapshot:
    return ColdSnapshot(
        registers={ArchivedEnd(partition): archived_end, LogStart(partition): log_start}
    )


def ranges(change, partition: int = 0) -> list[tuple[int, int, int]]:
    return [(r.segment, r.start_offset, r.end_offset) for r in change.hot_ranges(partition)]


def planned(offsets: HotSegments, snapshot: ColdSnapshot, limit: FlushLimit = EVERYTHING, **more):
    return plan(TOPIC, {0: offsets}, snapshot, limit, NOW_MS, **more)


# -- any log -----------------------------------------------------------------------------------


@st.composite
def logs(draw) -> tuple[HotSegments, ColdSnapshot]:
    """A hot tier of dense segments and gaps, somewhere in which cold ends."""
    segments, gaps, offset = [], [], 0
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            end = offset + draw(st.integers(1, 20))
            gaps.append(OffsetRange(offset, end))
            offset = end
        end = offset + draw(st.integers(0, 30))  # an empty one: rolled, nothing appended yet
        segments.append(segment(offset, end, draw(st.integers(0, 4)) * MIB))
        offset = end
    snapshot = cold(draw(st.integers(0, offset)), draw(st.integers(0, offset)))
    held = max(snapshot.archived_end(0), snapshot.log_start(0))
    local_log_start = draw(st.integers(0, held))
    kept = [s for s in segments if s.end_offset > local_log_start or s is segments[-1]]
    return hot(*kept, gaps=tuple(gaps), local_log_start=local_log_start), snapshot


def records_of(offsets: HotSegments) -> set[int]:
    return {
        offset
        for piece in offsets.segments
        for offset in range(max(piece.base_offset, offsets.local_log_start), piece.end_offset)
    }


@given(logs(), st.one_of(st.none(), st.integers(0, 200)), st.integers(1, 3 * MIB))
def test_ranges_hold_each_unarchived_record_once_and_end_at_one(log, bound, max_file_bytes):
    offsets, snapshot = log
    start = max(snapshot.archived_end(0), snapshot.log_start(0))
    limit = FlushLimit(ends=None if bound is None else {0: bound})
    end = offsets.log_end if bound is None else bound

    change = planned(offsets, snapshot, limit, max_file_bytes=max_file_bytes)

    wanted = {offset for offset in records_of(offsets) if start <= offset < end}
    covered: list[int] = []
    position = start
    for hot_range in change.hot_ranges(0):
        assert hot_range.start_offset == position
        position = hot_range.end_offset
        assert position - 1 in wanted
        holding = [s for s in offsets.segments if s.base_offset < position <= s.end_offset]
        assert [s.base_offset for s in holding] == [hot_range.segment]
        inside = [o for o in range(hot_range.start_offset, position) if o in wanted]
        assert inside[0] >= hot_range.segment  # a range has records of its own segment only
        covered += inside
    assert covered == sorted(wanted)
    assert change.registers == ({ArchivedEnd(0): max(wanted) + 1} if wanted else {})


@given(logs(), st.integers(1, 100), st.integers(0, 1000), st.integers(0, 1000))
def test_a_partition_is_archived_when_either_flush_limit_is_reached(log, rows, interval_ms, age_ms):
    offsets, snapshot = log
    start = max(snapshot.archived_end(0), snapshot.log_start(0))
    unarchived = sum(1 for offset in records_of(offsets) if offset >= start)

    change = plan(TOPIC, {0: offsets}, snapshot, FlushLimit(rows, interval_ms), NOW_MS + age_ms)

    due = unarchived > 0 and (unarchived >= rows or age_ms >= interval_ms)
    assert bool(change.adds) == due


# -- examples ----------------------------------------------------------------------------------


def test_a_large_segment_becomes_equal_files_and_a_small_one_stays_whole():
    offsets = hot(segment(0, 1000, 2048 * MIB), segment(1000, 1100, 200 * MIB))
    assert ranges(planned(offsets, cold())) == [
        *((0, start, start + 125) for start in range(0, 1000, 125)),
        (1000, 1000, 1100),
    ]


def dealt(change, workers: int, size_of: dict[int, float]) -> list[float]:
    """What each worker copies, as `SparkEngine` deals tasks out; sizes are of one record."""
    sizes = [
        (add.end_offset - add.start_offset) * size_of[add.topic_partition.partition]
        for add in change.adds
    ]
    return [sum(sizes[first::workers]) for first in range(workers)]


@pytest.mark.parametrize("run_bytes", [512 * MIB, 1024 * MIB, 8192 * MIB])
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_one_hot_partition_keeps_every_worker_busy(run_bytes, workers):
    """Three of four partitions have five percent of the run."""
    size_of = {0: run_bytes * 0.95 / 10_000, **dict.fromkeys((1, 2, 3), run_bytes * 0.05 / 30_000)}
    offsets = {n: hot(segment(0, 10_000, round(size * 10_000))) for n, size in size_of.items()}

    change = plan(TOPIC, offsets, cold(), EVERYTHING, NOW_MS)

    assert max(dealt(change, workers, size_of)) <= 1.25 * run_bytes / workers
    assert len(change.adds) <= max(WORKERS, run_bytes / MAX_FILE_BYTES) + 3


def test_records_of_unknown_age_are_due():
    offsets = hot(segment(0, 10), since_ms=None)
    assert planned(offsets, cold(), FlushLimit(rows=1000, interval_ms=1000)).adds


@pytest.mark.parametrize("trimmed_to", [60, 100])
def test_unarchived_records_that_are_not_hot_any_more_stop_the_work(trimmed_to):
    offsets = hot(segment(0, 100), local_log_start=trimmed_to)
    with pytest.raises(ContradictionError, match=rf"\[50, {trimmed_to}\) is in neither tier") as e:
        planned(offsets, cold(archived_end=50))
    assert e.value.missing == OffsetRange(50, trimmed_to)
    assert e.value.topic_partition == TopicPartition("orders", 0)


def test_a_hole_between_segments_that_no_gap_declares_stops_the_work():
    with pytest.raises(ContradictionError, match=r"\[12, 20\) is in neither tier"):
        planned(hot(segment(0, 10), segment(20, 30), gaps=(OffsetRange(10, 12),)), cold())


def test_the_largest_tasks_come_first():
    offsets = {n: hot(segment(0, 10, size)) for n, size in enumerate([5, 90, 40])}
    change = plan(TOPIC, offsets, cold(), EVERYTHING, NOW_MS)
    assert [add.topic_partition.partition for add in change.adds] == [1, 2, 0]
