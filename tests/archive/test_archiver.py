"""Archiving on a real Redis into a real Delta table: once, exactly, and only then trimmed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lakelog.archive.report import PartitionArchived
from lakelog.base import failpoints
from lakelog.errors import (
    CommitUnknownError,
    ContradictionError,
    CorruptRecordError,
    InvalidArgumentError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.offsets import Ago, Earliest
from lakelog.values.topic_partition import OffsetRange, TopicPartition


def test_a_run_archives_everything_reports_it_and_trims(make_tiers):
    tiers = make_tiers(partitions=2, local_retention_ms=0)
    tiers.append(250)
    tiers.append(7, partition=1)

    report = tiers.archiver().run_once()

    assert tiers.archived(0) == tiers.expected(0)
    assert tiers.archived(1) == tiers.expected(1)
    assert [
        (p.topic_partition, p.start_offset, p.end_offset, p.records, p.files)
        for p in report.partitions
    ] == [
        (TopicPartition("orders", 0), 0, 250, 250, 1),
        (TopicPartition("orders", 1), 0, 7, 7, 1),
    ]
    assert report.trimmed == {0: OffsetRange(0, 250), 1: OffsetRange(0, 7)}
    assert all(isinstance(p, PartitionArchived) and p.size_bytes > 0 for p in report.partitions)
    assert [tiers.seen(n).local_log_start for n in (0, 1)] == [250, 7]


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        ("latest", (40, 40)),
        (25, (25, 25)),
        ({1: 10}, (0, 10)),
        ({0: 3, 1: "latest"}, (3, 40)),
        (99, (40, 40)),
        ("@1700000005000", (10, 10)),  # the clock's start and 5 s: between the appends
        (Ago(timedelta(seconds=15)), (20, 20)),
        (timedelta(days=30_000), (0, 0)),
    ],
)
def test_a_bound_is_kept(make_tiers, until, ends):
    tiers = make_tiers(partitions=2)
    for _ in range(4):
        tiers.append(10)
        tiers.append(10, partition=1)
        tiers.clock.advance(10_000)
    tiers.clock.advance(-5_000)

    report = tiers.archiver().run_once(until=until)

    assert report.records == sum(ends)
    for number, end in enumerate(ends):
        archived = tiers.archived(number) if sum(ends) else []
        assert archived == tiers.expected(number)[:end]


def test_a_time_bound_means_the_whole_log_not_just_what_is_hot(make_tiers):
    tiers = make_tiers(local_retention_ms=0)
    tiers.clock.advance(10_000)
    tiers.append(10)
    late_ms = tiers.clock.now_ms()
    tiers.archiver().run_once()
    tiers.clock.advance(-5_000)
    tiers.append(10)  # older than what is archived already

    assert not tiers.archiver().run_once(until=f"@{late_ms - 1_000}")
    assert tiers.archiver().run_once(until=f"@{late_ms + 1}").records == 10


def test_what_a_bound_leaves_stays_as_old_as_it_is(make_tiers):
    tiers = make_tiers()
    tiers.append(10)
    appended_ms = tiers.seen().unarchived_since_ms
    tiers.clock.advance(5_000)
    tiers.archiver().run_once(until=4)
    assert tiers.seen().unarchived_since_ms == appended_ms


def test_a_position_that_bounds_nothing_and_a_partition_that_is_not_are_refused(make_tiers):
    tiers = make_tiers()
    with pytest.raises(InvalidArgumentError, match="give 'latest', an offset or a time"):
        tiers.archiver().run_once(until=Earliest())
    with pytest.raises(UnknownTopicOrPartitionError):
        tiers.archiver().run_once(until={5: 1})


# -- races and faults --------------------------------------------------------------------------


def test_a_commit_whose_reply_is_lost_is_neither_repeated_nor_trimmed_too_early(make_tiers):
    tiers = make_tiers(local_retention_ms=0)
    tiers.append(100)

    def lose_reply() -> None:
        raise CommitUnknownError("the store did not answer")

    with (
        failpoints.armed("archive.after_commit", lose_reply),
        pytest.raises(CommitUnknownError),
    ):
        tiers.archiver().run_once()
    assert tiers.seen().local_log_start == 0

    report = tiers.archiver().run_once()

    assert report.partitions == ()
    assert report.trimmed == {0: OffsetRange(0, 100)}
    assert tiers.archived() == tiers.expected()


def test_records_trimmed_by_hand_while_they_are_copied_stop_the_work(make_tiers):
    tiers = make_tiers()
    tiers.append(100)
    with (
        failpoints.armed(
            "archive.after_plan", lambda: tiers.hot.trim(TopicPartition("orders", 0), 50)
        ),
        pytest.raises(ContradictionError, match=r"\[0, 50\) is in neither tier"),
    ):
        tiers.archiver().run_once()


def test_a_stale_archiver_neither_copies_nor_trims_the_topics_next_creation(make_tiers):
    tiers = make_tiers(local_retention_ms=0)
    tiers.append(100)
    stale = tiers.archiver()
    stale.run_once()
    tiers.hot.topics().delete("orders")
    again = make_tiers(local_retention_ms=0)
    again.append(30)

    with pytest.raises(UnknownTopicIdError):
        stale.run_once()

    seen = again.seen()
    assert (seen.local_log_start, seen.log_end, seen.gaps) == (0, 30, ())
    assert again.archiver().run_once().records == 30
    assert again.archived() == again.expected()
    assert tiers.archived() == tiers.expected()


@pytest.mark.parametrize("step", ["archive.after_plan", "archive.before_trim"])
def test_a_topic_created_again_under_a_running_archiver_is_left_alone(make_tiers, step):
    tiers = make_tiers(local_retention_ms=0)
    tiers.append(100)
    again = []

    def recreate() -> None:
        tiers.hot.topics().delete("orders")
        again.append(make_tiers(local_retention_ms=0))
        again[0].append(130)

    with failpoints.armed(step, recreate), pytest.raises(UnknownTopicIdError):
        tiers.archiver().run_once()

    assert again[0].seen().local_log_start == 0
    again[0].archiver().run_once()
    assert again[0].archived() == again[0].expected()


# -- a server that lost its tail ---------------------------------------------------------------


class DamagedStore:
    """An engine on which every task meets a cold file that is damaged."""

    def map(self, function, tasks):
        raise CorruptRecordError("cold/orders/x.parquet is not what was written", path="x.parquet")


def test_a_damaged_cold_file_is_named_although_it_belongs_to_no_partition_of_the_run(make_tiers):
    tiers = make_tiers(partitions=2)
    tiers.append(10)

    with pytest.raises(CorruptRecordError, match="is not what was written"):
        tiers.archiver(DamagedStore()).run_once()


def test_it_trims_all_segments_that_are_due(make_tiers):
    config = {"retention_ms": -1, "local_retention_ms": 1_000}
    tiers = make_tiers(internal_segment_bytes=5_000, **config)
    tiers.append(600)
    archiver = tiers.archiver()
    archiver.run_once()
    bases = [segment.base_offset for segment in tiers.seen().segments]
    assert len(bases) > 5
    tiers.append(3)
    archiver.run_once()
    assert [one.base_offset for one in tiers.seen().segments][: len(bases)] == bases
    tiers.clock.advance(5_000)
    tiers.append(30)
    archiver.run_once()
    newest = tiers.seen().segments[0].base_offset
    assert tiers.seen().local_log_start == newest > bases[-2]
    assert tiers.archived() == tiers.expected()
