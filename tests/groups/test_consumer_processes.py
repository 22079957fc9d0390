"""Consumers of a group that are stopped or killed as the system does it, and their Redis, too."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisServer

pytestmark = pytest.mark.slow

GROUP, TOPIC, PARTITIONS = "readers", "orders", 4
SESSION_MS = 1_000
LONG_MS = 60_000


class ConsumerProcess:
    """One of ``consumer_process.py``."""

    def __init__(self, url: str, cold: Path, name: str, session_ms: int, instance_id: str) -> None:
        self.name = name
        program = str(Path(__file__).with_name("consumer_process.py"))
        self.process = subprocess.Popen(
            [sys.executable, program, url, str(cold), name, str(session_ms), instance_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(self, line: str) -> Any:
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def handed(self, most: int = 500) -> dict[int, list[int]]:
        """What one poll gives."""
        return {int(number): offsets for number, offsets in self.told(f"poll {most}").items()}

    def signalled(self, how: signal.Signals) -> None:
        os.kill(self.process.pid, how)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Log:
    """The topic that is read, and what its group has committed."""

    def __init__(self, url: str, cold: Path) -> None:
        self.url = url
        self.cold = cold
        self.lake = Lakelog.connect(url, cold, engine="inline")
        self.lake.topics.create(TOPIC, PARTITIONS, {"retention.ms": -1})
        #: By partition; not all numbers, after Redis was restarted.
        self.offsets: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}

    @property
    def ends(self) -> dict[int, int]:
        return {number: [-1, *offsets][-1] + 1 for number, offsets in self.offsets.items()}

    def append(self, records: int, *partitions: int) -> None:
        """So many to each."""
        with self.lake.producer() as producer:
            for partition in partitions or range(PARTITIONS):
                sent = [producer.send(TOPIC, "order", partition=partition) for _ in range(records)]
                self.offsets[partition] += [one.result().offset for one in sent]

    def committed(self) -> dict[int, int]:
        found = GroupCoordinator(self.lake.hot.connections).committed(GROUP)
        return {tp.partition: one.committed.offset for tp, one in found.items()}

    def close(self) -> None:
        self.lake.close()


@pytest.fixture
def open_log(tmp_path: Path) -> Iterator[Callable[[str], Log]]:
    made: list[Log] = []

    def make(url: str) -> Log:
        made.append(Log(url, tmp_path / "cold"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def log(redis_url: str, open_log: Callable[[str], Log]) -> Log:
    return open_log(redis_url)


@pytest.fixture
def start() -> Iterator[Callable[..., ConsumerProcess]]:
    """Starts a consumer of a log."""
    made: list[ConsumerProcess] = []

    def make(log: Log, name: str, session_ms: int = LONG_MS, instance: str = "") -> ConsumerProcess:
        made.append(ConsumerProcess(log.url, log.cold, name, session_ms, instance))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def all_handed(consumer: ConsumerProcess, log: Log) -> dict[int, list[int]]:
    """What it is given until it has come to the end of all partitions."""
    found: dict[int, list[int]] = defaultdict(list)
    while {number: offsets[-1] + 1 for number, offsets in found.items()} != log.ends:
        for number, offsets in consumer.handed().items():
            found[number] += offsets
    return dict(found)


# -- one that is stopped or killed ---------------------------------------------------------------


def test_a_stopped_consumer_is_fenced_and_goes_on_where_the_other_has_come(
    log: Log, start: Callable[..., ConsumerProcess]
) -> None:
    log.append(10)
    stopped = start(log, "stopped", SESSION_MS)
    assert all_handed(stopped, log) == {n: list(range(10)) for n in range(PARTITIONS)}
    assert stopped.told("commit") == {str(n): 10 for n in range(PARTITIONS)}
    log.append(5)
    handed = stopped.handed()
    stopped.signalled(signal.SIGSTOP)

    other = start(log, "other")
    assert all_handed(other, log) == {n: list(range(10, 15)) for n in range(PARTITIONS)}
    other.told("commit")
    stopped.signalled(signal.SIGCONT)
    assert handed  # it may believe that it has got on
    assert stopped.told("commit") == {"error": "CommitFailedError"}
    assert log.committed() == dict.fromkeys(range(PARTITIONS), 15)

    other.tell("close")  # leaves, and the one that was stopped has all
    assert other.answer() == "closed"
    log.append(1)
    assert all_handed(stopped, log) == {n: [15] for n in range(PARTITIONS)}


def test_a_killed_consumer_is_replaced_from_its_last_commit_on(
    log: Log, start: Callable[..., ConsumerProcess]
) -> None:
    log.append(10)
    killed = start(log, "killed", SESSION_MS)
    all_handed(killed, log)
    killed.told("commit")
    log.append(5)
    assert killed.handed()  # and not committed
    killed.kill()
    other = start(log, "other")
    assert all_handed(other, log) == {n: list(range(10, 15)) for n in range(PARTITIONS)}


def test_a_static_consumer_that_was_killed_goes_on_with_what_it_had(
    log: Log, start: Callable[..., ConsumerProcess]
) -> None:
    log.append(10)
    first, other = start(log, "first", instance="one"), start(log, "other", instance="two")
    first.tell("poll 500")
    other.tell("poll 500")
    seen = {first.name: first.answer(), other.name: other.answer()}
    while sum(map(len, seen.values())) < PARTITIONS or seen["first"].keys() & seen["other"].keys():
        log.append(1)
        first.tell("poll 500")
        other.tell("poll 500")
        seen = {first.name: first.answer(), other.name: other.answer()}
    had = set(first.told("commit"))
    first.kill()
    again = start(log, "again", instance="one")
    log.append(1)
    again.tell("poll 500")
    assert set(again.answer()) <= had
    assert set(again.told("commit")) == had


# -- many, of which some are stopped and killed --------------------------------------------------


class Journal:
    """What all that read into one file have handled and committed, in the order of its lines."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.file.touch()

    def lines(self) -> list[dict[str, Any]]:
        whole = self.file.read_text().rpartition("\n")[0]  # the last may be half written
        return [json.loads(line) for line in whole.split("\n") if line.startswith("{")]

    def handled(self) -> dict[int, list[int]]:
        """All that was, by partition, sorted."""
        found: dict[int, set[int]] = defaultdict(set)
        for line in self.lines():
            if "handled" in line:
                found[line["partition"]].update(line["handled"])
        return {number: sorted(offsets) for number, offsets in sorted(found.items())}


def check(journal: Journal, log: Log) -> None:
    """Everything was handled; by one member a partition and generation, in order."""
    assert journal.handled() == log.offsets
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    last: dict[tuple[str, int, int], int] = {}
    for line in journal.lines():
        if "handled" not in line:
            continue
        member, generation, partition = line["member"], line["generation"], line["partition"]
        owners[generation, partition].add(member)
        ranks = [log.offsets[partition].index(offset) for offset in line["handled"]]
        first = last.get((member, generation, partition), ranks[0] - 1) + 1
        assert ranks == list(range(first, first + len(ranks))), line
        last[member, generation, partition] = ranks[-1]
    assert {key: names for key, names in owners.items() if len(names) > 1} == {}


def reaches_the_end(journal: Journal, log: Log) -> None:
    eventually(
        lambda: log.committed() == log.ends,
        said=lambda: (log.committed(), log.ends, journal.lines()[-5:]),
    )


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_and_no_generation_has_two_owners(
    seed: int, log: Log, start: Callable[..., ConsumerProcess], tmp_path: Path
) -> None:
    """Three consumers; one after the other is stopped for longer than its session, or killed."""
    draws = random.Random(seed)
    journal = Journal(tmp_path / "journal.jsonl")
    count = 0

    def join() -> ConsumerProcess:
        nonlocal count
        count += 1
        consumer = start(log, f"consumer-{count}", SESSION_MS)
        assert consumer.told(f"read {journal.file} {draws.choice([3, 500])}") == "reads"
        return consumer

    reading = [join() for _ in range(3)]
    for _ in range(6):
        log.append(draws.randrange(20, 200))
        chosen = draws.choice(reading)
        so_far = len(journal.lines())
        eventually(lambda so_far=so_far: len(journal.lines()) > so_far + draws.randrange(3, 30))
        if draws.random() < 0.4:
            chosen.kill()
            reading[reading.index(chosen)] = join()
        else:
            chosen.signalled(signal.SIGSTOP)
            log.append(50)
            # The others take its partitions, which takes its session.
            eventually(lambda: log.committed() == log.ends)
            chosen.signalled(signal.SIGCONT)
    reaches_the_end(journal, log)
    check(journal, log)


# -- a Redis that stops --------------------------------------------------------------------------


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis()


def test_after_a_restart_of_redis_the_group_goes_on_where_it_was(
    server: RedisServer,
    open_log: Callable[[str], Log],
    start: Callable[..., ConsumerProcess],
    tmp_path: Path,
) -> None:
    log = open_log(server.url)
    journal = Journal(tmp_path / "journal.jsonl")
    log.append(100)
    for name in ("one", "two"):
        start(log, name).told(f"read {journal.file} 7")
    reaches_the_end(journal, log)
    server.restart()
    assert log.committed() == log.ends
    log.append(100)
    reaches_the_end(journal, log)
    check(journal, log)


def test_a_lost_tail_takes_commits_back_but_never_beyond_what_was_handed_out(
    server: RedisServer,
    open_log: Callable[[str], Log],
    start: Callable[..., ConsumerProcess],
) -> None:
    log = open_log(server.url)
    log.append(20)
    consumer = start(log, "one")
    handed: dict[int, list[int]] = defaultdict(list)

    def poll() -> None:
        for number, offsets in consumer.handed(8).items():
            handed[number] += offsets

    poll()
    early = {int(number): offset for number, offset in consumer.told("commit").items() if offset}
    size = server.append_only_size()
    poll()
    late = {int(number): offset for number, offset in consumer.told("commit").items()}
    assert late != early
    server.cut_append_only_file(to_size=size)
    server.start()

    back = log.committed()
    assert all(back[number] <= early.get(number, 0) for number in back)
    assert consumer.told("commit")["error"] in ("CommitFailedError", "RebalanceInProgressError")
    assert log.committed() == back
    again = all_handed(consumer, log)  # it joins anew, and begins at what is committed
    assert {number: offsets[0] for number, offsets in again.items()} == {
        number: back.get(number, 0) for number in range(PARTITIONS)
    }
    assert consumer.told("commit") == {str(number): end for number, end in log.ends.items()}


def test_after_a_failover_the_group_goes_on_from_what_the_replica_had(
    server: RedisServer,
    make_redis: Callable[..., RedisServer],
    open_log: Callable[[str], Log],
    start: Callable[..., ConsumerProcess],
) -> None:
    log = open_log(server.url)
    log.append(20)
    replica = make_redis(replicaof=f"127.0.0.1 {server.port}")
    consumer = start(log, "one")
    consumer.handed(8)
    early = {int(number): offset for number, offset in consumer.told("commit").items() if offset}
    with replica.client() as client, server.client() as primary:
        eventually(lambda: primary.wait(1, 100))
        client.replicaof("NO", "ONE")  # it lacks all that follows
    consumer.handed(8)
    consumer.told("commit")
    server.kill()
    replica.stop()
    replica.conf.pop("replicaof")
    replica.port = server.port  # as behind a name, or a proxy
    replica.start()

    assert log.committed().items() >= early.items()
    assert consumer.told("commit")["error"] in ("CommitFailedError", "RebalanceInProgressError")
    again = all_handed(consumer, log)
    assert {number: offsets[0] for number, offsets in again.items()} == {
        number: early.get(number, 0) for number in range(PARTITIONS)
    }
    assert consumer.told("commit") == {str(number): end for number, end in log.ends.items()}


def test_a_consumer_that_was_stopped_while_redis_restarted_is_fenced(
    server: RedisServer,
    open_log: Callable[[str], Log],
    start: Callable[..., ConsumerProcess],
) -> None:
    log = open_log(server.url)
    log.append(10)
    stopped = start(log, "stopped")
    stopped.handed(8)
    stopped.signalled(signal.SIGSTOP)
    server.restart(clean=False)
    stopped.signalled(signal.SIGCONT)
    assert stopped.told("commit")["error"] in ("CommitFailedError", "RebalanceInProgressError")
    assert log.committed() == {}
    assert all_handed(stopped, log) == {n: list(range(10)) for n in range(PARTITIONS)}
