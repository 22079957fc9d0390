"""A task of a batch or micro-batch whose Redis goes away in the middle of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from spark_log import SparkLog

from lakelog.back_off import ASK_AGAIN, Tries
from lakelog.cold.store.storage import Storage
from lakelog.config import MIB
from lakelog.errors import HotTierUnavailableError
from lakelog.hot import HotSource
from lakelog.spark import range_rows as module
from lakelog.spark.place import LogPlace, PathRoot
from lakelog.spark.range_rows import range_rows
from lakelog.testing.servers import RedisServer

RECORDS = 60


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis(appendonly="yes", appendfsync="always")


@pytest.fixture
def task(server: RedisServer, tmp_path) -> Iterator[Callable[[int], Iterator[list[int]]]]:
    """``task(start)``: the offsets of what a task reads from there to the end, a step at a time."""
    log = SparkLog(server.url, tmp_path / "cold").create()
    log.append(RECORDS, padding=os.urandom(MIB // 2), batch=1)
    topic = log.lakelog.topics.get("orders")
    place = LogPlace(HotSource(server.url), PathRoot(Storage(str(log.cold))))

    def read(start: int) -> Iterator[list[int]]:
        for rows in range_rows(place, topic, 0, start, RECORDS, fail_on_data_loss=True):
            yield rows.column("offset").to_pylist()

    yield read
    log.lakelog.close()


def test_a_redis_that_restarts_is_waited_for_and_no_row_comes_twice(task, server) -> None:
    steps = task(0)
    seen = next(steps)
    assert len(seen) < RECORDS
    server.restart(clean=False)
    assert seen + [offset for step in steps for offset in step] == list(range(RECORDS))


def test_a_redis_that_stays_away_fails_the_task_whose_next_attempt_reads_all(
    task, server, monkeypatch
) -> None:
    monkeypatch.setattr(module, "Tries", lambda what: Tries(what, ASK_AGAIN.within(0.2)))
    steps = task(0)
    seen = next(steps)
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        seen += [offset for step in steps for offset in step]
    assert len(seen) < RECORDS
    server.start()
    assert [offset for step in task(0) for offset in step] == list(range(RECORDS))
