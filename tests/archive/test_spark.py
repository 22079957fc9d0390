"""The same archiving with the copying done by Spark's workers."""

from __future__ import annotations

import pytest

from lakelog.base import failpoints
from lakelog.engines.spark import SparkEngine
from lakelog.errors import UnknownTopicIdError


@pytest.mark.slow
def test_spark_workers_copy_what_the_plan_says(make_tiers, spark):
    tiers = make_tiers(partitions=3, local_retention_ms=0, internal_segment_bytes=10_000)
    for number in range(3):
        tiers.append(400 + number, partition=number)

    report = tiers.archiver(SparkEngine(spark)).run_once()

    assert report.records == 1203
    assert report.files > 3
    for number in range(3):
        assert tiers.archived(number) == tiers.expected(number)
        assert tiers.seen(number).local_log_start == 400 + number


@pytest.mark.slow
def test_what_a_worker_finds_trimmed_is_planned_again(make_tiers, spark):
    tiers = make_tiers(local_retention_ms=0)
    tiers.append(100)
    races = iter([True])

    def race() -> None:
        if next(races, False):
            tiers.archiver().run_once(until=60)

    with failpoints.armed("archive.after_plan", race):
        report = tiers.archiver(SparkEngine(spark)).run_once()

    assert report.records == 40
    assert tiers.archived() == tiers.expected()


def test_a_worker_does_not_read_the_topics_next_creation(make_tiers, spark):
    tiers = make_tiers()
    tiers.append(100)

    def recreate() -> None:
        tiers.hot.topics().delete("orders")
        make_tiers().append(100)

    with (
        failpoints.armed("archive.after_plan", recreate),
        pytest.raises(UnknownTopicIdError, match="deleted and created again"),
    ):
        tiers.archiver(SparkEngine(spark)).run_once()
