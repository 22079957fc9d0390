"""A run over many topics does with each what a run of its own does."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.errors import (
    ArchiveFailedError,
    ContradictionError,
)

KEPT = {"retention.ms": -1, "local.retention.ms": -1}


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
