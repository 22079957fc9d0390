"""Members of a share group that are stopped or killed as the system does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog, TopicPartition
from lakelog.groups.share.share_partitions import SharePartitions
from lakelog.testing.eventually import eventually

pytestmark = pytest.mark.slow

RECORDS = 60


class Worker:
    """One of ``share_process.py``, and the lines it said."""

    def __init__(self, url: str, cold: Path, lock_ms: int, hold: bool) -> None:
        program = str(Path(__file__).with_name("share_process.py"))
        self.process = subprocess.Popen(
            [sys.executable, program, url, str(cold), str(lock_ms), "hold" if hold else ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[tuple[str, int, int]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, partition, offset = line.split()
            self.lines.append((word, int(partition), int(offset)))

    def said(self, word: str) -> list[tuple[int, int]]:
        return [line[1:] for line in [*self.lines] if line[0] == word]


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("jobs", 2, {"retention.ms": -1, "local.retention.ms": 0})
        with lake.producer() as producer:
            for n in range(RECORDS):
                producer.send("jobs", f"job {n}", partition=n % 2)
        yield lake


@pytest.fixture
def start(lake: Lakelog, redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    made: list[Worker] = []

    def make(lock_ms: int = 1_000, *, hold: bool = False) -> Worker:
        made.append(Worker(redis_url, tmp_path / "cold", lock_ms, hold))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()


ALL = sorted((n % 2, n // 2) for n in range(RECORDS))


def said(word: str, *workers: Worker) -> list[tuple[int, int]]:
    return sorted(place for worker in workers for place in worker.said(word))


def is_done(lake: Lakelog) -> bool:
    """Whether the group is done with all records, whoever said so."""
    shares = SharePartitions(lake.hot.connections, "workers")
    found = [shares.describe(TopicPartition("jobs", number)) for number in range(2)]
    return all(one is not None and one.start_offset == RECORDS // 2 for one in found)


def test_what_a_killed_member_held_is_delivered_to_another(
    start: Callable[..., Worker], lake: Lakelog
) -> None:
    killed = start(hold=True)
    eventually(lambda: len(killed.said("got")) == RECORDS)
    killed.process.kill()
    worker = start()
    eventually(lambda: is_done(lake))
    eventually(lambda: said("done", worker) == ALL)


def test_a_stopped_member_accepts_nothing_that_another_has(
    start: Callable[..., Worker], lake: Lakelog
) -> None:
    stopped, worker = start(), start()
    eventually(lambda: len(stopped.said("got")) > 3)
    os.kill(stopped.process.pid, signal.SIGSTOP)
    lake.archive("jobs")
    eventually(lambda: is_done(lake))
    os.kill(stopped.process.pid, signal.SIGCONT)
    eventually(lambda: said("done", stopped, worker) == ALL)  # each once, by one of them


def test_members_that_die_in_turn_lose_nothing(start: Callable[..., Worker], lake: Lakelog) -> None:
    workers = [start(500) for _ in range(3)]
    for one in workers[:2]:
        eventually(lambda one=one: one.said("got") or is_done(lake))
        one.process.kill()
    eventually(lambda: is_done(lake))
    assert set(said("got", *workers)) == set(ALL)
    assert len(set(said("done", *workers))) == len(said("done", *workers))
