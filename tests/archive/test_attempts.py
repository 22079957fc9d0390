"""A run over many topics looks at them together, and does with each what a run of its own does."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.archive import topics_run
from lakelog.archive.archiver import Archiver
from lakelog.base import failpoints
from lakelog.errors import ArchiveFailedError, ContradictionError, UnknownTopicIdError
from lakelog.hot.connection import Command, Wire
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


def test_a_run_asks_redis_as_often_however_many_topics_are_idle(lake, monkeypatch):
    exchange, asked = Wire.exchange, []

    def counted(wire: Wire, commands: Sequence[Command], **more: Any) -> list[Any]:
        asked.append(len(commands))
        return exchange(wire, commands, **more)

    monkeypatch.setattr(Wire, "exchange", counted)
    taken = []
    for names in ("ab", "cdefg"):
        make(lake, *names)
        send(lake, *names)
        lake.archive()
        asked.clear()
        lake.archive()
        taken.append(len(asked))
    assert taken[0] == taken[1]


@pytest.mark.parametrize("lot", [1, 4, 1_000])
def test_what_there_is_is_archived_however_many_are_looked_at_together(lake, monkeypatch, lot):
    monkeypatch.setattr(topics_run, "BATCH_PARTITIONS", lot)
    make(lake, *"abcd")
    send(lake, *"abcd")
    assert archived(lake) == dict.fromkeys("abcd", 2)
    send(lake, *"bd")
    assert archived(lake) == {"a": 0, "b": 2, "c": 0, "d": 2}
    assert archived(lake) == dict.fromkeys("abcd", 0)


def test_threads_are_for_topics_that_have_something_to_archive(lake, monkeypatch):
    attempt, in_callers = Archiver.attempt, {}

    def noted(archiver: Archiver, *given: Any) -> Any:
        in_callers[archiver.topic.name] = threading.current_thread() is threading.main_thread()
        return attempt(archiver, *given)

    monkeypatch.setattr(Archiver, "attempt", noted)
    make(lake, *"abcd")
    send(lake, *"abcd")
    lake.archive()
    assert in_callers == dict.fromkeys("abcd", False)
    send(lake, *"bd")
    lake.archive()
    assert in_callers == {"a": True, "b": False, "c": True, "d": False}


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

    def meanwhile() -> None:
        if any(topic.name == "c" for topic in lake.topics.list()):
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
