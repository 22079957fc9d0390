"""Archiving by the flush policy: when it is time, not before, and for nothing when idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from lakelog.archive.report import ArchiveReport
from lakelog.cold.properties import mirrored_topic
from lakelog.engines.engine import InlineEngine

POLICY = {"lakelog_flush_rows": 100, "lakelog_flush_interval_ms": 60_000}


def look(tiers: Any, *before_each: Callable[[], None], engine: Any = None) -> list[ArchiveReport]:
    """A new archiver's reports over a few looks, with something done before each."""
    archiver = tiers.archiver(engine, current_topic=lambda: tiers.topic)
    reports = []
    for step in before_each or (nothing,):
        step()
        reports.append(archiver.flush().report)
    return [report for report in reports if report is not None]


def nothing() -> None:
    pass


def test_the_age_of_an_idle_topics_records_outlives_the_archiver_and_the_server(
    make_tiers, make_redis
):
    server = make_redis(appendfsync="always")
    tiers = make_tiers(url=server.url, **POLICY)
    tiers.append(3)
    assert look(tiers, nothing) == []
    tiers.clock.advance(60_000)
    server.restart()
    reports = look(tiers, nothing, nothing)
    assert [report.records for report in reports] == [3]


def test_records_that_came_after_a_commit_start_a_new_interval(make_tiers):
    tiers = make_tiers(**POLICY)
    tiers.append(100)
    look(tiers, nothing)
    tiers.clock.advance(59_000)
    tiers.append(1)
    tiers.clock.advance(59_999)
    assert look(tiers, nothing) == []
    tiers.clock.advance(1)
    assert [report.records for report in look(tiers, nothing)] == [1]


class CountingEngine(InlineEngine):
    def __init__(self) -> None:
        self.jobs = 0

    def map(self, function: Any, tasks: Sequence[Any]) -> Iterator[Any]:
        self.jobs += 1
        return super().map(function, tasks)


@pytest.mark.parametrize("unarchived", [0, 1], ids=["all archived", "not due yet"])
def test_an_idle_topic_costs_no_job_no_commit_and_no_look_at_the_table(
    make_tiers, monkeypatch, unarchived
):
    tiers = make_tiers(**POLICY)
    tiers.append(100)
    tiers.archiver().run_once()
    if unarchived:
        tiers.append(unarchived)
    version, engine, looks = tiers.version(), CountingEngine(), []
    table = tiers.table(engine)
    real_snapshot = table.snapshot
    monkeypatch.setattr(tiers, "table", lambda *_: table)
    monkeypatch.setattr(table, "snapshot", lambda **k: looks.append(k) or real_snapshot(**k))

    assert look(tiers, *[nothing] * 10) == []

    # One at the start, and one that judges what an earlier process may have left.
    assert (engine.jobs, tiers.version(), len(looks)) == (0, version, 2)


def test_expired_segments_are_trimmed_although_nothing_is_to_be_archived(make_tiers):
    tiers = make_tiers(retention_ms=-1, local_retention_ms=1_000, **POLICY)
    tiers.append(100)
    tiers.archiver().run_once()
    assert tiers.seen().local_log_start == 0
    (report,) = look(tiers, nothing, lambda: tiers.clock.advance(1_001), nothing)
    assert report.partitions == ()
    assert tiers.seen().local_log_start == 100


def test_what_is_not_due_is_archived_at_the_end(make_tiers):
    tiers = make_tiers(**POLICY)
    tiers.append(5)
    flushed = tiers.archiver().drain()
    assert flushed.report.records == 5
    assert (flushed.settled_ends, flushed.is_final) == ({0: 5}, True)
    assert tiers.archiver().drain().report is None


def test_a_run_says_when_the_next_is_due(make_tiers):
    tiers = make_tiers(retention_ms=-1, local_retention_ms=500_000, **POLICY)
    archiver = tiers.archiver()
    assert archiver.flush().next_ms is None
    tiers.append(1)
    appended_ms = tiers.clock.now_ms()
    assert archiver.flush().next_ms == appended_ms + 60_000
    tiers.clock.advance(60_000)
    assert archiver.flush().next_ms == appended_ms + 500_001  # when Redis may forget it
    tiers.clock.advance(440_001)
    assert archiver.flush().report.trimmed
    assert archiver.flush().next_ms is None


def test_partitions_and_settings_added_while_it_runs_count(make_tiers):
    tiers = make_tiers(**POLICY)

    def grow() -> None:
        tiers.hot.topics().add_partitions("orders", 2)
        tiers.topic = tiers.hot.topics().alter("orders", {"lakelog.flush.rows": 5})
        tiers.append(5, partition=1)

    (report,) = look(tiers, nothing, grow, nothing)
    assert [(p.topic_partition.partition, p.records) for p in report.partitions] == [(1, 5)]
    assert tiers.archived(1) == tiers.expected(1)


def test_the_table_says_changed_settings_although_nothing_is_to_be_archived(make_tiers):
    tiers = make_tiers(**POLICY)
    tiers.append(100)
    look(tiers)
    version = tiers.version()
    assert mirrored_topic(tiers.delta().metadata().configuration) == tiers.topic

    def alter() -> None:
        changes = {"retention.ms": 7 * 86_400_000}
        tiers.topic = tiers.hot.topics().alter(tiers.topic.name, changes)

    assert look(tiers, nothing, alter, nothing) == []
    assert mirrored_topic(tiers.delta().metadata().configuration) == tiers.topic
    tiers.archiver().run_once()
    assert tiers.version() == version + 1  # once, and a run that changes nothing adds nothing
