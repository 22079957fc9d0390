"""Hot drops no record whose file somebody deleted after its commit, as a VACUUM of 0 hours does."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelog.base import failpoints
from lakelog.errors import MissingFileError
from lakelog.values.topic_partition import OffsetRange


def delete_newest(tiers) -> None:
    newest = max(tiers.delta().file_uris(), key=lambda path: Path(path).stat().st_mtime_ns)
    Path(newest).unlink()


def missing(tiers) -> list[str]:
    return [path for path in tiers.delta().file_uris() if not Path(path).exists()]


def appended(make_tiers):
    """Tiers of two partitions: one was archived up to 50, and goes on to 150; the other has 7."""
    tiers = make_tiers(partitions=2, local_retention_ms=0)
    tiers.append(50)
    tiers.archiver().run_once()
    tiers.append(100)
    tiers.append(7, partition=1)
    return tiers


@pytest.mark.parametrize("step", ["archive.after_commit", "archive.before_trim"])
def test_a_file_that_goes_with_its_commit_is_written_again_before_the_trim(make_tiers, step):
    tiers = appended(make_tiers)
    known = set(tiers.parquet_files())

    def vacuum() -> None:
        for path in set(tiers.parquet_files()) - known:
            Path(path).unlink()

    with failpoints.armed(step, vacuum):
        report = tiers.archiver().run_once()

    assert missing(tiers) == []
    assert tiers.archived(0) == tiers.expected(0)
    assert tiers.archived(1) == tiers.expected(1)
    assert report.trimmed == {0: OffsetRange(50, 150), 1: OffsetRange(0, 7)}
    tiers.append(5)
    assert tiers.archiver().run_once().records == 5
    assert tiers.archived(0) == tiers.expected(0)


def test_a_file_that_was_lost_long_ago_is_written_again_when_its_records_are_due(make_tiers):
    tiers = make_tiers()
    tiers.append(100)
    tiers.archiver().run_once()
    delete_newest(tiers)
    tiers.append(20)
    tiers.archiver().run_once()
    assert len(missing(tiers)) == 1  # nothing is due yet

    tiers.topic = tiers.hot.topics().alter(tiers.topic.name, {"local.retention.ms": 0})

    assert tiers.archiver().trim() == {0: OffsetRange(0, 120)}
    assert missing(tiers) == []
    assert tiers.archived() == tiers.expected()


def test_a_report_tells_the_engine_of_what_is_written_again(make_tiers):
    tiers = make_tiers()
    tiers.append(100)
    tiers.archiver().run_once()
    delete_newest(tiers)
    tiers.topic = tiers.hot.topics().alter(tiers.topic.name, {"local.retention.ms": 0})

    report = tiers.archiver().run_once()
    assert report.records == 0
    assert missing(tiers) == []
    assert [choice.engine for choice in report.engines] == ["inline"]


def test_what_is_deleted_again_and_again_stays_in_redis_and_the_error_says_so(make_tiers):
    tiers = appended(make_tiers)
    known = set(tiers.parquet_files())

    def vacuum() -> None:
        for path in set(tiers.parquet_files()) - known:
            if "partition=0" in path:
                Path(path).unlink()

    with (
        failpoints.armed("archive.after_commit", vacuum),
        failpoints.armed("cold.after_commit", vacuum),
    ):
        report, errors = tiers.archiver().attempt()

    assert [type(error) for error in errors] == [MissingFileError]
    assert errors[0].topic_partition == tiers.topic.partition(0)
    assert "[50, 150) of orders-0, are still in Redis" in str(errors[0])
    assert report.trimmed == {1: OffsetRange(0, 7)}  # the other partition goes on
    assert tiers.seen(0).local_log_start == 50

    assert tiers.archiver().trim() == {0: OffsetRange(50, 150)}
    assert tiers.archived(0) == tiers.expected(0)


def test_a_file_that_hot_no_longer_has_as_a_whole_stops_the_trim(make_tiers):
    tiers = make_tiers()
    tiers.append(100)
    tiers.archiver().run_once()
    partition = tiers.topic.partition(0)
    tiers.hot.trim(partition, 40, archived_end=100, topic_id=tiers.topic.topic_id)
    start = tiers.seen().local_log_start
    assert start > 0
    delete_newest(tiers)
    tiers.topic = tiers.hot.topics().alter(tiers.topic.name, {"local.retention.ms": 0})

    with pytest.raises(MissingFileError, match="Put the file back"):
        tiers.archiver().run_once()

    assert tiers.seen().local_log_start == start
