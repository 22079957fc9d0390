"""Retention of the cold tier: Kafka's three passes, and one commit that nothing tears apart."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lakelog.cleanup.plan import plan_cleanup
from lakelog.cleanup.retention import PartitionRetention, plan_retention, retention_change
from lakelog.cold import contradictions
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart
from lakelog.cold.segment import COLUMNS, UNKNOWN_TIMESTAMP_MS, Segment, SegmentIndex, file_name
from lakelog.cold.table import ColdSnapshot
from lakelog.values.config import DAY_MS, HOUR_MS, TopicConfig
from lakelog.values.offsets import HotSegment, HotSegments
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import OffsetRange

NOW_MS = 1_700_000_000_000
TOPIC_ID = uuid.UUID(int=7)


def a_topic(**config: object) -> Topic:
    return Topic("orders", TOPIC_ID, 2, TopicConfig.of(**config))


@dataclass(frozen=True)
class Made:
    """A segment of one file (or of one a slice) with records of one age; 100 bytes a record."""

    start: int  # below base: a gap comes first
    end: int
    age_ms: int | None = 0  # of the newest record; None: no record has a timestamp
    base: int | None = None
    size_bytes: int | None = None
    modified_ms: int = NOW_MS
    max_timestamp_ms: int | None = None
    files: int = 1
    partition: int = 0
    ours: bool = True

    def rows(self) -> Iterator[dict[str, object]]:
        base = self.start if self.base is None else self.base
        newest = -1 if self.age_ms is None else NOW_MS - self.age_ms
        newest = newest if self.max_timestamp_ms is None else self.max_timestamp_ms
        records = self.end - base
        files = min(self.files, records)
        for part in range(files):
            first = base + records * part // files
            end = base + records * (part + 1) // files
            start = self.start if part == 0 else first
            name = file_name("archive", start, end, uuid.uuid4().hex) if self.ours else f"{first}.p"
            size_bytes = 100 * (end - first)
            if self.size_bytes is not None:
                size_bytes = self.size_bytes if part == 0 else 0
            yield {
                "partition": self.partition,
                "segment": base,
                "path": f"partition={self.partition}/segment={base}/{name}",
                "size_bytes": size_bytes,
                "records": end - first,
                "start_offset": start,
                "end_offset": end,
                "min_timestamp_ms": min(newest, NOW_MS),
                "max_timestamp_ms": newest,
                "modified_ms": self.modified_ms,
                "first": first,
                "last": end - 1,
                "ours": self.ours,
            }


def a_snapshot(*segments: Made, log_start: int = 0, **registers: int) -> ColdSnapshot:
    rows = [row for segment in segments for row in segment.rows()]
    ends = {segment.partition: segment.end for segment in segments}
    return ColdSnapshot(
        1,
        SegmentIndex(pa.Table.from_pylist(rows, schema=COLUMNS)),
        {
            **{ArchivedEnd(partition): end for partition, end in ends.items()},
            LogStart(0): log_start,
            CleanedEnd(0): registers.get("cleaned_end", 0),
        },
    )


def hot_to(end: int, *segments: HotSegment, local_log_start: int = 0) -> HotSegments:
    """A hot tier with these segments; without any, it holds no bytes."""
    return HotSegments(
        local_log_start, end, -1, sum(s.size_bytes for s in segments), segments=segments
    )


def hot_segment(base: int, end: int, size_bytes: int) -> HotSegment:
    return HotSegment(base, end, size_bytes, NOW_MS, NOW_MS, NOW_MS, NOW_MS)


def planned(
    cold: ColdSnapshot, hot: HotSegments | int | None = None, **config: object
) -> PartitionRetention:
    """The plan of partition 0, with a hot tier or the end of one without bytes."""
    seen = hot_to(hot) if isinstance(hot, int) else hot
    (plan,) = plan_retention(a_topic(**config), cold, NOW_MS, None if seen is None else {0: seen})
    return plan


def outcome(plan: PartitionRetention) -> tuple[int, list[tuple[int, str]]]:
    dropped = [(dropped.segment.base_offset, dropped.reason) for dropped in plan.dropped]
    return plan.log_start, dropped


def after(cold: ColdSnapshot, plan: PartitionRetention) -> ColdSnapshot:
    """The snapshot that the plan's change leads to, if it contradicts nothing."""
    change = retention_change([plan])
    gone = {file.path for file in change.removes}
    rows = [row for row in cold.files.columns.to_pylist() if row["path"] not in gone]
    files = SegmentIndex(pa.Table.from_pylist(rows, schema=COLUMNS))
    registers = {**cold.registers, **change.registers}
    contradictions.check("orders", files, registers)
    return ColdSnapshot(2, files, registers)


FIVE_EACH = (Made(0, 5, 300), Made(5, 10, 200), Made(10, 15, 100))
OFF = {"retention_ms": -1, "retention_bytes": -1}


# -- the rules -------------------------------------------------------------------------------------


def oracle(
    segments: list[Segment],
    log_start: int,
    archived_end: int,
    hot: HotSegments | None,
    config: TopicConfig,
) -> tuple[int, list[tuple[int, str]]]:
    """The rules as they are written, one segment and one pass at a time."""
    alive, gone = list(segments), []
    hot_bytes = 0 if hot is None else sum(_unarchived_bytes(s, archived_end) for s in hot.segments)

    def drop(reason: str) -> None:
        gone.append((alive.pop(0).base_offset, reason))

    def may_grow() -> bool:
        return len(alive) == 1 and (hot is None or _has_unarchived(hot, archived_end, log_start))

    while alive and all(file.end_offset - 1 < log_start for file in alive[0].files):
        drop("log start")
    if "delete" in config["cleanup.policy"]:
        limit_bytes, limit_ms = config["retention.bytes"], config["retention.ms"]
        while (
            limit_bytes != -1
            and alive
            and not may_grow()
            and hot_bytes + sum(segment.size_bytes for segment in alive[1:]) >= limit_bytes
        ):
            drop("retention.bytes")
        while limit_ms != -1 and alive and not may_grow():
            newest = max(file.max_timestamp_ms for file in alive[0].files)
            if newest == -1:
                newest = max(file.modified_ms for file in alive[0].files)
            if not NOW_MS - newest > limit_ms:
                break
            drop("retention.ms")
    if not gone:
        return log_start, []
    rest = alive[0].start_offset if alive else archived_end
    return max(log_start, rest), gone


def _has_unarchived(hot: HotSegments, archived_end: int, log_start: int) -> bool:
    skipped = {offset for gap in hot.gaps for offset in range(gap.start, gap.end)}
    left = set(range(max(archived_end, log_start, hot.local_log_start), hot.log_end))
    return bool(left - skipped)


def _unarchived_bytes(segment: HotSegment, archived_end: int) -> int:
    offsets = range(segment.base_offset, segment.end_offset)
    unarchived = [offset for offset in offsets if offset >= archived_end]
    return segment.size_bytes * len(unarchived) // len(offsets)


@st.composite
def logs(draw: st.DrawFn) -> tuple[ColdSnapshot, dict[str, object], HotSegments | None]:
    """A partition, settings whose limits often just hold or just do not, and a hot tier."""
    segments, end = [], 0
    for _ in range(draw(st.integers(1, 6))):
        start = end
        base = start + draw(st.sampled_from([0, 0, 0, 5]))  # a gap comes first
        end = base + draw(st.integers(1, 9))
        segments.append(
            Made(
                start,
                end,
                draw(st.sampled_from([-1, 1, 2, 3, 3, 3, None])),
                base,
                draw(st.none() | st.integers(0, 500)),
                NOW_MS - draw(st.integers(-1, 3)),
                draw(st.sampled_from([None, None, None, None, UNKNOWN_TIMESTAMP_MS])),
                draw(st.integers(1, 3)),
            )
        )
    edges = sorted({edge for one in segments for edge in (one.start, one.end)})
    log_start = draw(st.just(0) | st.sampled_from(edges) | st.integers(0, end + 5))
    cold = a_snapshot(*segments, log_start=log_start)
    sizes = [segment.size_bytes for segment in cold.files.segments(0)]
    hot = draw(st.none() | hot_tiers(end))
    alone = 0 if hot is None else sum(_unarchived_bytes(one, end) for one in hot.segments)
    rests = [alone + sum(sizes[at:]) for at in range(len(sizes) + 1)]
    config = {
        "cleanup_policy": draw(
            st.sampled_from(["delete", "delete", "compact,delete", "compact", ""])
        ),
        "retention_ms": draw(st.integers(-1, 3)),
        "retention_bytes": draw(st.just(-1) | st.sampled_from(rests) | st.integers(0, 3000)),
    }
    return cold, config, hot


@st.composite
def hot_tiers(draw: st.DrawFn, archived_end: int) -> HotSegments:
    """Of the last few offsets that are archived, and of some that are not."""
    base = max(0, archived_end - draw(st.integers(0, 6)))
    segments = []
    for _ in range(draw(st.integers(1, 3))):
        end = base + draw(st.integers(1, 6))
        if archived_end >= end or draw(st.booleans()):
            segments.append(hot_segment(base, end, draw(st.integers(0, 500))))
            base = end
    last = max(archived_end, segments[-1].end_offset if segments else 0)
    skipped = draw(st.sampled_from([0, 0, 7]))
    gaps = (OffsetRange(last, last + skipped),) if skipped else ()
    return replace(hot_to(last + skipped, *segments), gaps=gaps)


@given(logs())
def test_it_does_what_the_rules_say(log):
    cold, config, hot = log

    plan = planned(cold, hot, **config)

    archived_end = cold.archived_end(0)
    expected = oracle(
        cold.files.segments(0), cold.log_start(0), archived_end, hot, TopicConfig.of(**config)
    )
    assert outcome(plan) == expected
    assert plan.log_start_before == cold.log_start(0)
    assert all(file.end_offset <= plan.log_start for file in plan.removes)
    assert plan.records == sum(file.records for file in plan.removes)
    assert plan.size_bytes == sum(file.size_bytes for file in plan.removes)
    again = plan_retention(
        a_topic(**config), after(cold, plan), NOW_MS, {} if hot is None else {0: hot}
    )
    assert not any(partition.dropped for partition in again)


def test_a_gap_belongs_to_the_segment_after_it():
    """A consumer that has read all of what goes stands at its end; it must not fall out."""
    cold = a_snapshot(Made(0, 5, 900), Made(5, 60, 900, base=50), Made(60, 70, 0))
    assert outcome(planned(cold, retention_bytes=2000)) == (5, [(0, "retention.bytes")])
    cold = a_snapshot(*(Made(0, 5, 900), Made(5, 60, 0, base=50)), log_start=40)
    assert outcome(planned(cold, **OFF)) == (40, [(0, "log start")])


def test_where_a_stranger_shortened_a_compacted_segment_no_hole_is_left():
    """Its OPTIMIZEd file says nothing of the offsets that compaction took off its end."""
    cold = a_snapshot(Made(0, 7, 900, ours=False), Made(10, 15, 0), log_start=8, cleaned_end=10)
    plan = planned(cold, **OFF)
    assert outcome(plan) == (10, [(0, "log start")])
    assert after(cold, plan).log_start(0) == 10


def test_partitions_are_planned_apart_and_changed_together():
    cold = a_snapshot(*FIVE_EACH, *(dataclasses.replace(one, partition=1) for one in FIVE_EACH[:2]))
    plans = plan_retention(a_topic(retention_ms=150), cold, NOW_MS, {0: hot_to(15), 1: hot_to(10)})
    assert [outcome(plan)[0] for plan in plans] == [10, 10]
    change = retention_change(plans)
    assert change.registers == {LogStart(0): 10, LogStart(1): 10}
    assert [(file.partition, file.segment) for file in change.removes] == [
        (0, 0),
        (0, 5),
        (1, 0),
        (1, 5),
    ]


# -- what only the hot tier holds ------------------------------------------------------------------


def test_what_was_deleted_before_it_was_archived_does_not_count():
    hot = hot_to(20, hot_segment(15, 20, 500), local_log_start=18)
    assert planned(a_snapshot(*FIVE_EACH, log_start=18), hot).hot_only_bytes == 200


def test_the_plan_tells_what_was_counted_beside_the_files():
    topic = a_topic(retention_ms=-1, retention_bytes=1000)
    hot = {0: hot_to(20, hot_segment(15, 20, 1500))}
    (step,) = plan_cleanup(topic, a_snapshot(*FIVE_EACH), NOW_MS, hot).steps
    assert (step.segments, step.size_bytes) == (2, 1000)
    assert step.why == "retention.bytes=1000, counting 1,500 bytes that only Redis holds"


# -- warnings --------------------------------------------------------------------------------------


def test_a_timestamp_in_the_future_is_named_with_what_it_blocks_and_the_way_out():
    ahead = Made(5, 10, -3650 * DAY_MS)
    cold = a_snapshot(Made(0, 5, 8 * DAY_MS), ahead, Made(10, 15, 9 * DAY_MS))
    plan = planned(cold)
    assert outcome(plan)[0] == 5
    assert plan.warnings == (
        "segment 5 of orders-0 holds a record with the timestamp 2033-11-11T22:13:20.000+00:00, "
        "which is yet to come. retention.ms counts from then, so the segment and all after it "
        "stay; no record is lost by that. `lakelog delete-records orders -p 0 --before "
        "2023-11-07T22:13:20.000+00:00` deletes what has expired by now, up to the first record "
        "that has not. If that timestamp is wrong, `--before 10` in its place deletes all records "
        "of the segment and before it, however young.",
    )


def test_the_way_out_of_a_future_timestamp_is_one():
    cold = a_snapshot(Made(0, 5, -DAY_MS), Made(5, 10, 9 * DAY_MS), Made(10, 15, 0), log_start=5)
    plan = planned(cold)
    assert outcome(plan) == (10, [(0, "log start"), (5, "retention.ms")])
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("config", "warns"),
    [
        ({}, True),
        ({"retention_ms": -1}, False),
        ({"retention_ms": -1, "retention_bytes": 10}, False),
        ({"cleanup_policy": "compact"}, False),
        ({"cleanup_policy": "compact", "min_compaction_lag_ms": 1}, True),
        ({"cleanup_policy": ""}, False),
        ({"message_timestamp_after_max_ms": 2**63 - 1}, True),
    ],
)
def test_only_what_a_future_timestamp_blocks_is_warned_about(config, warns):
    cold = a_snapshot(Made(0, 5, -HOUR_MS - 1), Made(5, 10, 0))
    assert bool(planned(cold, **config).warnings) == warns


@pytest.mark.parametrize(("limit_ms", "ahead_ms"), [(HOUR_MS, HOUR_MS), (0, 0), (1000, 1000)])
def test_clocks_that_differ_as_much_as_the_topic_takes_are_not_warned_about(limit_ms, ahead_ms):
    for more, warns in ((0, False), (1, True)):
        cold = a_snapshot(Made(0, 5, -ahead_ms - more))
        plan = planned(cold, message_timestamp_after_max_ms=limit_ms)
        assert bool(plan.warnings) == warns


def test_a_timestamp_after_the_last_year_there_is_can_be_told():
    cold = a_snapshot(Made(0, 5, max_timestamp_ms=10**17))
    assert "the timestamp @100000000000000000 (after the year 9999" in planned(cold).warnings[0]


def test_a_file_of_ours_without_a_largest_timestamp_holds_one_after_the_year_9999():
    cold = a_snapshot(Made(0, 5, max_timestamp_ms=UNKNOWN_TIMESTAMP_MS), Made(5, 10, 9 * DAY_MS))
    (warning,) = planned(cold, 10).warnings
    assert "segment 0 of orders-0 holds a record with a timestamp after the year 9999" in warning
    assert planned(cold, 10, retention_ms=-1).warnings == ()


def test_a_file_of_which_nobody_knows_the_age_stays_and_is_named():
    foreign = Made(0, 5, max_timestamp_ms=UNKNOWN_TIMESTAMP_MS, ours=False)
    cold = a_snapshot(foreign, Made(5, 10, 9 * DAY_MS))
    plan = planned(cold, 10)
    assert outcome(plan) == (0, [])
    (warning,) = plan.warnings
    assert "/0.p" in warning
    assert "ANALYZE TABLE" in warning
    assert planned(cold, 10, retention_ms=-1).warnings == ()
