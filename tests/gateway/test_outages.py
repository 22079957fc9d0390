"""Redis is killed, stopped and loses its tail while clients go on: nothing is lost or doubled that
Redis had on its disk.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

from lakelog import Lakelog
from lakelog.gateway.gateway import Gateway
from tests.support.servers import RedisServer

TIMEOUT_S = 60


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis()


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as opened:
        yield opened


class Sending:
    """An idempotent producer of librdkafka that sends numbers until it is told to stop."""

    def __init__(self, gateway: Gateway) -> None:
        self.sent = 0
        self.acked: list[int] = []
        self.errors: list[Any] = []
        self._stop = threading.Event()
        self._producer = ck.Producer(
            {
                "bootstrap.servers": gateway.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 1000 * TIMEOUT_S,
                "error_cb": self.errors.append,
            }
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sending:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(TIMEOUT_S) == 0

    def _run(self) -> None:
        while not self._stop.is_set():
            number = self.sent
            self._producer.produce("orders", b"%d" % number, on_delivery=self._told)
            self.sent += 1
            self._producer.poll(0)
            time.sleep(0.0005)

    def _told(self, error: Any, message: Any) -> None:
        if error is None:
            self.acked.append(int(message.value()))
        else:
            self.errors.append(error)

    def wait_for(self, count: int) -> None:
        """Until so many more were acknowledged."""
        until = len(self.acked) + count
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(self.acked) < until:
            assert time.monotonic() < deadline_s, self.errors[-3:]
            time.sleep(0.005)

    @property
    def fatal(self) -> list[Any]:
        return [error for error in self.errors if error.fatal()]


def values(lake: Lakelog) -> list[int]:
    return [int(record.value or b"-1") for record in lake.log("orders").read(0).records()]


def test_a_redis_that_is_killed_again_and_again(
    lake: Lakelog, server: RedisServer, make_gateway: Callable[..., Gateway]
) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    gateway = make_gateway()
    with Sending(gateway) as sending:
        for _ in range(3):
            sending.wait_for(200)
            server.kill(at_once=True)
            time.sleep(0.1)
            server.start()
        sending.wait_for(200)
    assert not sending.fatal
    assert sending.acked == list(range(sending.sent))
    assert values(lake) == list(range(sending.sent))


def test_a_redis_that_stands_still(
    lake: Lakelog, server: RedisServer, make_gateway: Callable[..., Gateway]
) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    with Sending(make_gateway()) as sending:
        sending.wait_for(200)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(server.pid, signal.SIGCONT)
        sending.wait_for(200)
    assert values(lake) == list(range(sending.sent))


@pytest.mark.slow
def test_a_group_goes_on_over_a_restart_of_redis(
    lake: Lakelog, server: RedisServer, make_gateway: Callable[..., Gateway]
) -> None:
    lake.topics.create("orders", 2, {"lakelog.entry.format": "kafka"})
    gateway = make_gateway()
    consumer = ck.Consumer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    found: list[int] = []

    def take(count: int) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        until = len(found) + count
        while len(found) < until:
            assert time.monotonic() < deadline_s
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(int(message.value()))

    with Sending(gateway) as sending:
        take(100)
        server.kill(at_once=True)
        time.sleep(0.2)
        server.start()
        sending.wait_for(100)
        take(100)
    take(sending.sent - len(found))
    consumer.close()
    assert sorted(found) == list(range(sending.sent))


def test_consumers_are_not_sent_back_by_a_lost_tail(
    lake: Lakelog, server: RedisServer, make_gateway: Callable[..., Gateway]
) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    gateway = make_gateway()
    with Sending(gateway) as sending:
        sending.wait_for(50)
    consumer = ck.Consumer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([ck.TopicPartition("orders", 0, 0)])
    seen = [int(one.value()) for one in consumer.consume(sending.sent, TIMEOUT_S)]
    size = server.append_only_size()
    producer = ck.Producer({"bootstrap.servers": gateway.bootstrap_servers})
    producer.produce("orders", b"1000000")
    producer.flush(TIMEOUT_S)
    assert int(consumer.consume(1, TIMEOUT_S)[0].value()) == 1_000_000
    server.cut_append_only_file(to_size=size)
    server.start()
    producer.produce("orders", b"2000000")
    producer.flush(TIMEOUT_S)
    found: list[int] = []
    deadline_s = time.monotonic() + TIMEOUT_S
    while not found:
        assert time.monotonic() < deadline_s
        found = [int(m.value()) for m in consumer.consume(10, 1.0) if m.error() is None]
    consumer.close()
    assert seen == list(range(sending.sent))
    assert found == [2_000_000]
