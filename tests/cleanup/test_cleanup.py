"""A whole run: its steps, what it reports, and what others may do meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakelog.base import failpoints
from lakelog.cleanup.cleanup import Cleanup, clean_all
from lakelog.errors import (
    CleanupFailedError,
    ColdTierError,
    InvalidArgumentError,
    InvalidConfigError,
)
from lakelog.values.config import DAY_MS
from lakelog.values.offsets import HotSegments

BOTH = {
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "0",
    "retention.ms": str(DAY_MS),
}


def cleanup(log, **more) -> Cleanup:
    return Cleanup(log.topic, log.table, log.clock, **more)


def filled(cold_log, partitions: int = 1, **settings: str):
    """Per partition: an expired segment, two with superseded records, one in two files, an open."""
    log = cold_log(partitions=partitions, **{**BOTH, **settings})
    now_ms = log.clock.now_ms()
    log.times_ms.update({0: now_ms - 3 * DAY_MS, 1: now_ms - 2 * DAY_MS})
    for partition in range(partitions):
        log.segment([(b"old", b"1"), (b"old", b"2")], partition=partition)
        log.segment([(b"a", b"1"), (b"b", b"1")], partition=partition)
        log.segment([(b"a", b"2"), (b"c", b"1")], partition=partition)
        log.segment([(b"d", b"1")], [(b"e", b"1")], partition=partition)
        log.segment([(b"open", b"1")], partition=partition)
    return log


def test_a_run_retains_compacts_optimizes_and_vacuums(cold_log):
    log = filled(cold_log)
    report = cleanup(log).run()
    assert log.table.snapshot().log_start(0) == 2
    assert log.left() == [
        (3, b"b", b"1"),
        (4, b"a", b"2"),
        (5, b"c", b"1"),
        (6, b"d", b"1"),
        (7, b"e", b"1"),
        (8, b"open", b"1"),
    ]
    (retained,) = report.retained
    assert [dropped.reason for dropped in retained.dropped] == ["retention.ms"]
    (compacted,) = report.compacted
    assert (compacted.records_read, compacted.records_kept) == (6, 5)
    assert (compacted.dirty_ratio_before, compacted.dirty_ratio_after) == (1.0, 0.0)
    (optimized,) = report.optimized
    assert (optimized.files_before, optimized.files_after, optimized.records) == (2, 1, 2)
    assert report.vacuumed is not None
    assert report.failures == ()
    assert report
    text = str(report)
    assert "orders-0: retain: 1 segment, 2 records" in text
    assert "orders-0: compact: dirty 100%, 6 records → 5" in text
    assert "orders-0: optimize: 2 files → 1" in text


def test_only_the_steps_that_were_asked_for_are_done(cold_log):
    log = filled(cold_log)
    report = cleanup(log).run(("optimize",))
    assert (report.retained, report.compacted, report.vacuumed) == ((), (), None)
    assert len(report.optimized) == 1
    with pytest.raises(InvalidArgumentError, match="'shrink' is not a step of cleanup"):
        cleanup(log).run(("shrink",))


def test_the_plan_says_what_a_run_does(cold_log):
    log = filled(cold_log, partitions=2)
    before = log.table.snapshot().version
    plan = cleanup(log).plan()
    assert log.table.snapshot().version == before
    assert [
        (one.topic_partition.partition, one.step, one.action, one.segments, one.records)
        for one in plan.steps
    ] == [
        (0, "retain", "delete", 1, 2),
        (0, "compact", "clean", 3, 6),
        (0, "optimize", "merge", 1, 2),
        (1, "retain", "delete", 1, 2),
        (1, "compact", "clean", 3, 6),
        (1, "optimize", "merge", 1, 2),
    ]
    assert plan.steps[0].why == f"retention.ms={DAY_MS}"
    assert plan.steps[1].why == "dirty ratio 1.00 > min.cleanable.dirty.ratio=0"
    assert "orders-0: retain: delete 1 segment in 1 file, 2 records" in str(plan)


def test_a_plan_under_changed_settings_changes_nothing_else(cold_log):
    log = filled(cold_log)
    plan = cleanup(log).plan({"retention.ms": -1, "min.cleanable.dirty.ratio": 1})
    assert [(one.step, one.action) for one in plan.steps] == [
        ("compact", "keep"),
        ("optimize", "merge"),
    ]
    with pytest.raises(InvalidConfigError, match=r"retention\.ms='x' is not legal"):
        cleanup(log).plan({"retention.ms": "x"})
    assert log.topic.config["retention.ms"] == DAY_MS


def test_a_paused_cleaner_compacts_nothing_and_says_so(cold_log):
    log = filled(cold_log)
    log.topic = log.topic.__class__(
        "orders",
        log.topic.topic_id,
        1,
        log.topic.config.with_defaults([("log.cleaner.enable", "false")]),
    )
    report = cleanup(log).run(("compact",))
    assert not report.compacted
    assert cleanup(log).plan().compaction[0].why == "compaction is paused: log.cleaner.enable=false"


def test_an_open_segment_expires_only_when_hot_says_that_it_is_archived(cold_log):
    log = cold_log(**{"retention.ms": "1000"})
    log.segment([(b"a", b"1")])
    log.clock.advance(1001)
    assert not cleanup(log).run(("retain",))
    assert not cleanup(log, hot=lambda: {0: HotSegments(1, 2, -1, 0)}).run(("retain",))
    assert cleanup(log, hot=lambda: {0: HotSegments(1, 1, -1, 0)}).run(("retain",)).retained
    assert log.table.snapshot().log_start(0) == 1
    assert log.left() == []


def test_another_cleanup_at_any_step_does_not_disturb(cold_log):
    for step in ("cleanup.after_plan", "cleanup.after_find", "cold.after_files"):
        log = filled(cold_log, partitions=2)
        once = iter([True])

        def meanwhile(log=log, once=once) -> None:
            if next(once, False):
                Cleanup(log.topic, log.open(), log.clock).run()

        with failpoints.armed(step, meanwhile):
            report = cleanup(log).run()
        assert not report.failures, step
        expected = filled(cold_log, partitions=2)
        cleanup(expected).run()
        for partition in (0, 1):
            assert log.left(partition) == expected.left(partition), step


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_what_cannot_be_done_is_named_and_the_rest_is_done(cold_log, damage):
    log = filled(cold_log, partitions=2)
    bad = log.table.snapshot().files.of_partition(1)[1].path
    file = Path(log.table.path) / bad
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    with pytest.raises(CleanupFailedError) as raised:
        clean_all([cleanup(log)])
    (report,) = raised.value.reports
    assert bad in str(raised.value)
    assert [str(failure.topic_partition) for failure in report.failures] == ["orders-1"]
    assert [one.topic_partition.partition for one in report.compacted] == [0]
    assert {one.topic_partition.partition for one in report.retained} == {0, 1}
    assert {one.topic_partition.partition for one in report.optimized} == {0, 1}
    assert bad in str(report)


def test_a_full_disk_stops_no_vacuum(cold_log, monkeypatch):
    log = filled(cold_log, **{"file.delete.delay.ms": "0"})
    cleanup(log).run(["retain"])

    def full(*_args: object) -> None:
        raise ColdTierError("no space left")

    monkeypatch.setattr("lakelog.cleanup.cleanup.compact", full)
    report = cleanup(log).run()
    assert [(failure.step, str(failure.error)) for failure in report.failures] == [
        ("compact", "no space left")
    ]
    assert report.optimized
    assert report.vacuumed is not None
    assert report.vacuumed.files


def test_a_table_that_contradicts_itself_stops_its_own_topic_only(cold_log):
    broken, sound = filled(cold_log), filled(cold_log)
    DeltaTable(broken.table.path).delete("offset = 3")
    broken.table = broken.open()
    with pytest.raises(CleanupFailedError, match="contradicts itself") as raised:
        clean_all([cleanup(broken), cleanup(sound)])
    assert [bool(report) for report in raised.value.reports] == [False, True]
    assert sound.table.snapshot().log_start(0) == 2
