"""A run over many topics does with each what a run of its own does."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.errors import (
    ArchiveFailedError,
    ContradictionError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot.keys import Keys

KEPT = {"retention.ms": -1, "local.retention.ms": -1}


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        yield log


def make(lake: Lakelog, *names: str) -> None:
    for name in names:
        lake.topics.create(name, 2, KEPT)


def send(lake: Lakelog, *names: str) -> None:
    with lake.producer() as producer:
        for name in names:
            for partition in range(2):
                producer.send(name, b"a value", partition=partition)


def archived(lake: Lakelog) -> dict[str, int]:
    return {report.topic: report.records for report in lake.archive()}


def test_what_there_is_is_archived_of_each(lake):
    make(lake, *"abcd")
    send(lake, *"abcd")
    assert archived(lake) == dict.fromkeys("abcd", 2)
    send(lake, *"bd")
    assert archived(lake) == {"a": 0, "b": 2, "c": 0, "d": 2}
    assert archived(lake) == dict.fromkeys("abcd", 0)


def test_hot_records_whose_time_is_over_go_in_an_idle_run(lake):
    make(lake, *"abc")
    send(lake, *"abc")
    lake.archive()
    lake.topics.alter("b", {"local.retention.ms": 0})
    trimmed = {report.topic: len(report.trimmed) for report in lake.archive()}
    assert trimmed == {"a": 0, "b": 2, "c": 0}


def test_another_process_settings_reach_the_tables_in_an_idle_run(lake, redis_url):
    """It has no cold root to write them into."""
    make(lake, *"ab")
    send(lake, *"ab")
    lake.archive()
    with Lakelog.connect(redis_url) as other:
        other.topics.alter("a", {"cleanup.policy": "compact"})
    lake.archive()
    table = lake._table(lake.topics.get("a"))
    assert table.mirrored().config.text("cleanup.policy") == "compact"


def test_a_topic_that_cannot_be_looked_at_hides_no_other(lake, redis_client):
    make(lake, *"abc")
    send(lake, *"abc")
    keys = Keys(lake.hot.keyspace).partition(lake.topics.get("b").partition(0))
    redis_client.hset(keys.state, "segment", "no segment")
    with pytest.raises(ArchiveFailedError) as failed:
        lake.archive()
    assert set(failed.value.errors) == {"b"}
    found = {report.topic: report.records for report in failed.value.reports}
    assert found == {"a": 2, "c": 2}


def test_a_table_that_went_back_is_told_and_hides_no_other(lake, tmp_path):
    """The archivers of a run remember what they saw in the one before."""
    make(lake, *"ab")
    send(lake, *"ab")
    lake.archive()
    shutil.copytree(tmp_path / "cold" / "a", tmp_path / "old")
    send(lake, *"ab")
    lake.archive()
    shutil.rmtree(tmp_path / "cold" / "a")
    shutil.move(tmp_path / "old", tmp_path / "cold" / "a")
    send(lake, *"ab")
    with pytest.raises(ArchiveFailedError) as failed:
        lake.archive()
    assert [type(error) for error in failed.value.errors["a"]] == [ContradictionError]
    assert {report.topic: report.records for report in failed.value.reports}["b"] == 2


def test_a_topic_that_is_deleted_meanwhile_is_told(lake):
    make(lake, *"abc")
    send(lake, *"abc")

    def meanwhile() -> None:  # in the thread of each topic
        with contextlib.suppress(UnknownTopicOrPartitionError):
            lake.topics.delete("c")

    with (
        failpoints.armed("archive.after_plan", meanwhile),
        pytest.raises(ArchiveFailedError) as failed,
    ):
        lake.archive()
    found = {name: type(errors[0]) for name, errors in failed.value.errors.items()}
    assert found == {"c": UnknownTopicIdError}
    make(lake, "c")
    send(lake, "c")
    assert archived(lake)["c"] == 2


def test_two_runs_of_a_process_share_no_archiver(lake):
    """Each archives what there is; what both plan, one of them commits."""
    make(lake, *"abcd")
    for _ in range(5):
        send(lake, *"abcd")
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(archived, lake) for _ in range(2)]
        assert sum(sum(run.result().values()) for run in runs) == 8


class Crash(BaseException):
    pass


def test_a_run_that_died_is_taken_up_by_the_next_of_the_process(lake):
    make(lake, *"ab")
    send(lake, *"ab")

    def die() -> None:
        raise Crash

    with failpoints.armed("cold.after_files", die), pytest.raises(Crash):
        lake.archive()
    assert sum(archived(lake).values()) == 4
