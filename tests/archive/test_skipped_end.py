"""A log that ends in skipped offsets, or whose records were all deleted, waits for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.archive.supervisor import Supervisor
from lakelog.base.clock import ManualClock
from lakelog.values.config import HOUR_MS
from lakelog.values.topic_partition import TopicPartition

TP = TopicPartition("orders", 0)


def archive(lake: Lakelog) -> None:
    lake.archive()


def skip(lake: Lakelog) -> None:
    """As a recovery leaves the end after an unclean stop."""
    log = lake.log("orders")
    log.recover(0, log.offsets()[0].log_end + 1)


def delete(lake: Lakelog) -> None:
    lake.log("orders").raise_log_start(0, -1)


WAYS = pytest.mark.parametrize(
    "steps",
    [(skip, archive), (archive, skip), (delete, archive), (skip, delete, archive), (skip,)],
    ids=lambda steps: " ".join(step.__name__ for step in steps),
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, clock: ManualClock) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline", clock=clock) as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        yield lake


def send(lake: Lakelog) -> None:
    with lake.producer() as producer:
        producer.send("orders", b"a value", partition=0)


@WAYS
def test_what_is_appended_after_it_is_as_old_as_its_append(
    lake: Lakelog, clock: ManualClock, steps: tuple[Callable[[Lakelog], None], ...]
) -> None:
    if steps != (skip,):
        send(lake)
    for step in steps:
        step(lake)
    (idle,) = lake.status().partitions
    assert (idle.archive_lag_ms, idle.unarchived) == (None, 0)
    clock.advance(HOUR_MS)
    send(lake)
    clock.advance(7)
    (waiting,) = lake.status().partitions
    assert (waiting.archive_lag_ms, waiting.unarchived) == (7, 1)


@WAYS
def test_nothing_of_it_is_left_to_a_continuous_run(
    lake: Lakelog, steps: tuple[Callable[[Lakelog], None], ...]
) -> None:
    if steps != (skip,):
        send(lake)
    for step in steps:
        step(lake)
    flushed = lake.archiver("orders").flush()
    supervisor = Supervisor()
    topic = lake.topics.get("orders")
    supervisor.topics_are([topic])
    (server,) = lake.hot.server_looks()
    supervisor.saw(server.look([TP]))
    supervisor.start()
    supervisor.ended(topic.topic_id, flushed)
    supervisor.drain()
    assert supervisor.is_drained()
    send(lake)
    supervisor.saw(server.look([TP]))
    assert not supervisor.is_drained()
