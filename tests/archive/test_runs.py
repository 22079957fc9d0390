"""A continuous run in this process: how it begins, what ends it, what it leaves."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.archive import continuous
from lakelog.errors import (
    ArchiveUnfinishedError,
)

AT_ONCE = {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1}
LATER = {"lakelog.flush.interval.ms": 3_600_000}


@pytest.fixture
def open_log(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Lakelog]]:
    opened: list[Lakelog] = []

    def connect(url: str = redis_url, cold: Path | None = tmp_path / "cold") -> Lakelog:
        opened.append(Lakelog.connect(url, cold, engine="inline"))
        return opened[-1]

    yield connect
    for log in opened:
        log.close()


@pytest.fixture
def log(open_log: Callable[..., Lakelog]) -> Lakelog:
    return open_log()


def append(log: Lakelog, topic: str, count: int = 1) -> None:
    with log.producer() as producer:
        for number in range(count):
            producer.send(topic, str(number))


def archived(log: Lakelog, topic: str) -> int:
    offsets = log.log(topic).offsets()
    return sum(one.archived_end for one in offsets.values())


def own_threads() -> set[str]:
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if name.startswith(("lakelog-waiter", "lakelog-keeper"))}


def damage(folder: Path) -> None:
    for file in folder.rglob("_delta_log/*.json"):
        file.write_text("no JSON")


def test_a_cluster_is_watched_by_a_waiter_a_server(redis_cluster, open_log):
    log = open_log(redis_cluster.url)
    for number in range(6):
        log.topics.create(f"t{number}", 4, AT_ONCE)
    stop, count = threading.Event(), 0
    for number in range(6):
        append(log, f"t{number}", 10)
    for report in log.archive_continuously(stop=stop):
        count += report.records
        waiters = {name for name in own_threads() if "waiter" in name}
        if count == 60:
            assert len(waiters) == 3
            stop.set()
    assert count == 60


def test_one_topic_deleted_and_another_failing_do_not_hold_up_the_end(log, open_log, tmp_path):
    for name in ("deleted", "broken", "well"):
        log.topics.create(name, 1, AT_ONCE)
        append(log, name)
    log.archive()
    damage(tmp_path / "cold" / "broken")
    for name in ("broken", "well"):
        append(log, name)
    anew = open_log()
    run = anew.archive_continuously(max_duration=timedelta(seconds=2))
    next(run)
    log.topics.delete("deleted")
    with pytest.raises(ArchiveUnfinishedError) as caught:
        list(run)
    assert [one.topic for one in caught.value.troubles] == ["broken"]
    assert not caught.value.abandoned
    assert archived(log, "well") == 2


def test_a_call_that_hangs_is_left_behind_with_a_sentence(log, monkeypatch):
    for name in ("hangs", "well"):
        log.topics.create(name, 1, LATER)
        append(log, name)
    real, go_on = log.archiver, threading.Event()

    def archiver(topic: Any) -> Any:
        if topic.name == "hangs":
            go_on.wait()
        return real(topic)

    monkeypatch.setattr(log, "archiver", archiver)
    monkeypatch.setattr(continuous, "STOP_TIMEOUT_S", 1.0)
    stop = threading.Event()
    stop.set()
    run = log.archive_continuously(stop=stop)
    try:
        with pytest.raises(ArchiveUnfinishedError, match="hangs: not archived since"):
            list(run)
        assert run.abandoned
        assert archived(log, "well") == 1
    finally:
        go_on.set()


@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_an_iterator_that_is_given_up_drains_and_leaves_no_thread(log, how):
    for name in ("first", "later"):
        log.topics.create(name, 1, AT_ONCE if name == "first" else LATER)
        append(log, name)
    before = own_threads()
    run = log.archive_continuously()
    next(run)
    assert own_threads() - before
    if how == "closed":
        run.close()
    del run
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith(("lakelog-waiter", "lakelog-keeper")):
            thread.join(60)
    assert own_threads() == before
    assert archived(log, "later") == 1


def test_a_signal_whose_handler_takes_long_ends_a_run_all_the_same(log):
    log.topics.create("later", 1, LATER)
    append(log, "later")
    stop, times = threading.Event(), []

    def handler(*_: Any) -> None:
        times.append(0)
        if len(times) > 100:
            raise AssertionError("the run does not end")
        time.sleep(0.1)  # what is tested: it is longer than the run waits for anything
        stop.set()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        assert sum(report.records for report in log.archive_continuously(stop=stop)) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert times


def test_what_fails_is_told_to_who_asked(log, open_log, tmp_path):
    log.topics.create("broken", 1, AT_ONCE)
    append(log, "broken")
    log.archive()
    damage(tmp_path / "cold" / "broken")
    told, stop = [], threading.Event()

    def tell(troubles: Any) -> None:
        told.append([one.topic for one in troubles])
        stop.set()
        raise RuntimeError("whatever")

    with pytest.raises(ArchiveUnfinishedError):
        list(open_log().archive_continuously(stop=stop, tell=tell))
    assert told == [["broken"]]


def test_archiving_once_asks_again_what_may_be_asked_again(log, monkeypatch):
    from lakelog.archive.archiver import Archiver
    from lakelog.errors import (
        ArchiveFailedError,
        ColdTierAccessError,
        ColdTierUnavailableError,
    )

    for name in ("away", "denied", "well"):
        log.topics.create(name)
        append(log, name)
    real = Archiver.attempt
    failures = {
        "away": iter([ColdTierUnavailableError("busy")] * 2),
        "denied": iter([ColdTierAccessError("no")] * 2),
        "well": iter(()),
    }

    def attempt(self: Archiver, *given: Any) -> Any:
        for error in failures[self.topic.name]:
            raise error
        return real(self, *given)

    monkeypatch.setattr(Archiver, "attempt", attempt)
    with pytest.raises(ArchiveFailedError, match="denied: no") as failed:
        log.archive()
    assert {name: list(map(type, found)) for name, found in failed.value.errors.items()} == {
        "denied": [ColdTierAccessError]
    }
    assert sorted(report.topic for report in failed.value.reports) == ["away", "well"]
    assert [archived(log, name) for name in ("away", "denied", "well")] == [1, 0, 1]
