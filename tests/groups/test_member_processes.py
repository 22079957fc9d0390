"""Members that are stopped or killed as the system does it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from group_bench import GroupBench

from lakelog.testing.eventually import eventually
from lakelog.values.topic_partition import TopicPartition

pytestmark = pytest.mark.slow

GROUP = "readers"
ALL = [f"orders-{n}" for n in range(4)]


class MemberProcess:
    """One of ``member_process.py``."""

    def __init__(self, url: str, session_ms: int, instance_id: str = "") -> None:
        program = str(Path(__file__).with_name("member_process.py"))
        self.process = subprocess.Popen(
            [sys.executable, program, url, GROUP, str(session_ms), instance_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(self, line: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def signalled(self, how: signal.Signals) -> None:
        os.kill(self.process.pid, how)


@pytest.fixture
def start(redis_url: str) -> Iterator[Callable[..., MemberProcess]]:
    made: list[MemberProcess] = []

    def make(session_ms: int, instance_id: str = "") -> MemberProcess:
        made.append(MemberProcess(redis_url, session_ms, instance_id))
        return made[-1]

    yield make
    for one in made:
        one.process.kill()
        one.process.wait()


@pytest.fixture
def bench(make_groups: Callable[..., GroupBench]) -> GroupBench:
    return make_groups(clock=False)


def committed(bench: GroupBench) -> set[int]:
    return {one.committed.offset for one in bench.coordinator.committed(GROUP).values()}


def test_a_stopped_member_is_out_and_finds_that_it_lost_all(
    start: Callable[..., MemberProcess], bench: GroupBench
) -> None:
    stopped, other = start(1_000), start(60_000)
    assert stopped.told("attend")["partitions"] == ALL
    assert stopped.told("commit 5") == {"committed": True}
    stopped.signalled(signal.SIGSTOP)
    assert other.told("attend")["partitions"] == ALL
    assert other.told("commit 8") == {"committed": True}
    stopped.signalled(signal.SIGCONT)
    assert stopped.told("commit 6") == {"error": "CommitFailedError"}
    assert committed(bench) == {8}
    assert stopped.told("commit 7") == {"error": "CommitFailedError"}


def test_a_killed_member_is_replaced(
    start: Callable[..., MemberProcess], bench: GroupBench
) -> None:
    killed, other = start(1_000), start(60_000)
    assert killed.told("attend")["partitions"] == ALL
    killed.process.kill()
    assert other.told("attend")["partitions"] == ALL
    assert len(bench.admin.describe(GROUP).members) == 1


def test_a_stopped_static_member_whose_place_was_taken_is_fenced(
    start: Callable[..., MemberProcess], bench: GroupBench
) -> None:
    stopped, other = start(60_000, "one"), start(60_000, "one")
    assert stopped.told("attend")["partitions"] == ALL
    stopped.signalled(signal.SIGSTOP)
    assert other.told("attend") == {"partitions": ALL, "has_lost": False}
    assert other.told("commit 8") == {"committed": True}
    stopped.signalled(signal.SIGCONT)
    fenced = {"error": "FencedInstanceIdError"}
    assert stopped.told("commit 6") in (fenced, {"error": "CommitFailedError"})
    assert stopped.told("attend") == fenced
    assert other.told("commit 9") == {"committed": True}
    assert committed(bench) == {9}


def test_a_static_member_that_was_killed_comes_back_to_what_it_had(
    start: Callable[..., MemberProcess], bench: GroupBench
) -> None:
    killed = start(60_000, "one")
    assert killed.told("attend")["partitions"] == ALL
    assert killed.told("commit 5") == {"committed": True}
    generation_id = bench.admin.describe(GROUP).generation_id
    killed.process.kill()
    again = start(60_000, "one")
    assert again.told("attend")["partitions"] == ALL
    assert again.told("commit 6") == {"committed": True}
    assert bench.admin.describe(GROUP).generation_id == generation_id


def test_a_member_that_only_sends_heartbeats_is_one(
    start: Callable[..., MemberProcess], bench: GroupBench
) -> None:
    """Its session is much shorter than it is quiet."""
    quiet = start(2_000)
    assert quiet.told("attend")["partitions"] == ALL
    clock = bench.servers.for_key(GROUP)
    begin = int(clock.call(("TIME",))[0][0])
    eventually(lambda: int(clock.call(("TIME",))[0][0]) > begin + 4)
    assert quiet.told("commit 5") == {"committed": True}
    assert bench.coordinator.committed(GROUP)[TopicPartition("orders", 3)].committed.offset == 5
