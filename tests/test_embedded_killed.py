"""What an open log says when its embedded Redis was killed, and when it was closed itself."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.errors import (
    DeliveryError,
    HotTierUnavailableError,
    LogClosedError,
    ProducerClosedError,
)
from lakelog.testing.eventually import eventually

FOREVER_MS = 2**40


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.embedded(tmp_path, engine="inline") as log:
        log.topics.create("t", 1)
        yield log


def kill_redis(directory: Path) -> None:
    pid = json.loads((directory / "redis" / "server.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: _is_refused(directory / "redis" / "redis.sock"))


def _is_refused(address: Path) -> bool:
    """Whether nobody listens there: a killed process does until the last of its threads ends."""
    with socket.socket(socket.AF_UNIX) as asking:
        return asking.connect_ex(str(address)) == errno.ECONNREFUSED


def test_it_says_what_starts_redis_again_and_that_is_so(log: Lakelog, tmp_path: Path) -> None:
    kill_redis(tmp_path)
    with pytest.raises(HotTierUnavailableError, match="open the directory again") as raised:
        log.topics.list()
    assert "URL" not in str(raised.value)
    with Lakelog.embedded(tmp_path, engine="inline"):
        assert [topic.name for topic in log.topics.list()] == ["t"]


def test_a_record_waits_no_longer_than_the_delivery_timeout_for_its_topic(
    log: Lakelog, tmp_path: Path
) -> None:
    producer = log.producer(delivery_timeout_ms=100, max_block_ms=FOREVER_MS)
    kill_redis(tmp_path)
    with pytest.raises(HotTierUnavailableError, match="open the directory again"):
        producer.send("t", "a")


def test_a_record_of_a_known_topic_waits_no_longer_than_the_delivery_timeout(
    log: Lakelog, tmp_path: Path
) -> None:
    producer = log.producer(delivery_timeout_ms=1000, max_block_ms=FOREVER_MS)
    producer.send("t", "a").result()
    kill_redis(tmp_path)
    with pytest.raises(DeliveryError, match="open the directory again"):
        producer.send("t", "b").result()


def test_a_closed_log_says_that_it_is_closed(tmp_path: Path) -> None:
    log = Lakelog.embedded(tmp_path, engine="inline")
    log.topics.create("t", 1)
    producer = log.producer()
    of_topic = log.log("t")
    log.close()
    with pytest.raises(ProducerClosedError, match="its log is closed"):
        producer.send("t", "a")
    for call in (
        log.topics.list,
        of_topic.offsets,
        lambda: log.log("t"),
        lambda: log.producer(max_block_ms=FOREVER_MS).send("t", "a"),
        lambda: log.archive("t"),
        log.status,
    ):
        with pytest.raises(LogClosedError, match="this log was closed"):
            call()
    log.close()


def test_a_log_that_was_closed_after_its_redis_was_killed_says_so(tmp_path: Path) -> None:
    log = Lakelog.embedded(tmp_path, engine="inline")
    kill_redis(tmp_path)
    log.close()
    with pytest.raises(LogClosedError, match="Open it again"):
        log.topics.list()
