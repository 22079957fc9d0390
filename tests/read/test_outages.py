"""A consumer outlives a Redis that restarts, fails over or is away for long, and says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lakelog import Lakelog
from lakelog.base import back_off
from lakelog.cold.store import object_store
from lakelog.errors import HotTierAccessError, HotTierUnavailableError
from lakelog.testing.eventually import LIVENESS_S, eventually
from lakelog.values.record import Record
from lakelog.values.topic_partition import TopicPartition
from tests.support.object_store import Fault, FaultyFront, s3_options
from tests.support.servers import RedisServer

KINDS: dict[str, Callable[[Lakelog], Any]] = {
    "alone": lambda lake: lake.consumer("orders", auto_offset_reset="earliest"),
    "of a group": lambda lake: lake.consumer(
        "orders", group_id="readers", auto_offset_reset="earliest"
    ),
    "of a share group": lambda lake: lake.share_consumer(
        "orders", group_id="workers", share_auto_offset_reset="earliest"
    ),
}


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis(appendfsync="always")


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        yield lake


def send(lake: Lakelog, *values: str) -> None:
    with lake.producer() as producer:
        for value in values:
            producer.send("orders", value)


def read(consumer: Any, count: int, timeout_ms: int = 60_000) -> list[bytes | None]:
    found: list[bytes | None] = []

    def has_all() -> bool:
        found.extend(_values(consumer.poll(timeout_ms)))
        return len(found) >= count

    eventually(has_all)
    return found


def _values(polled: dict[TopicPartition, list[Record]]) -> list[bytes | None]:
    return [record.value for records in polled.values() for record in records]


class Meanwhile:
    """What a call returns or raises, in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self._outcome.append(call())
        except Exception as error:
            self._outcome.append(error)

    def outcome(self) -> Any:
        self._thread.join(LIVENESS_S)
        return self._outcome[0]


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_waits_outlives_a_restart(kind: str, server: RedisServer, lake: Lakelog) -> None:
    with KINDS[kind](lake) as consumer:
        send(lake, "a")
        assert read(consumer, 1) == [b"a"]
        waiting = Meanwhile(lambda: read(consumer, 1))
        with server.client() as client:
            eventually(lambda: client.info("clients")["blocked_clients"])
        server.restart()
        send(lake, "b")
        assert waiting.outcome() == [b"b"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_poll_in_an_outage_finds_nothing_and_the_log_says_why(
    kind: str, server: RedisServer, lake: Lakelog, caplog: pytest.LogCaptureFixture
) -> None:
    send(lake, "a")
    with KINDS[kind](lake) as consumer:
        assert read(consumer, 1) == [b"a"]
        server.kill()
        assert consumer.poll(0) == {}
        eventually(lambda: consumer.poll(300) == {} and "tried again" in caplog.text)
        assert "Redis" in caplog.text
        server.start()
        send(lake, "b")
        assert read(consumer, 1, timeout_ms=0) == [b"b"]
        eventually(lambda: "succeeded after" in caplog.text)


def test_an_iteration_does_not_end_as_if_that_were_all(server: RedisServer, lake: Lakelog) -> None:
    send(lake, "a", "b")
    with lake.consumer("orders", auto_offset_reset="earliest", consumer_timeout_ms=100) as consumer:
        assert [record.value for record in consumer] == [b"a", b"b"]
        server.kill()
        with pytest.raises(HotTierUnavailableError):
            next(consumer)
        server.start()
        send(lake, "c")
        assert [record.value for record in consumer] == [b"c"]


@pytest.mark.parametrize("kind", KINDS)
def test_who_may_not_read_is_told_at_once(kind: str, server: RedisServer, lake: Lakelog) -> None:
    send(lake, "a")
    with KINDS[kind](lake) as consumer, server.client() as client:
        assert read(consumer, 1) == [b"a"]
        client.execute_command("ACL", "SETUSER", "default", "-xread", "-evalsha", "-evalsha_ro")
        with pytest.raises(HotTierAccessError):
            consumer.poll(60_000)
        client.execute_command("ACL", "SETUSER", "default", "+@all")


def test_a_read_that_has_begun_goes_on_and_one_that_has_not_says_so(
    server: RedisServer, lake: Lakelog
) -> None:
    values = [b"%d" % n + bytes(300_000) for n in range(40)]
    with lake.producer() as producer:
        producer.send_batch("orders", values)
    log = lake.log("orders").read(0, max_bytes=1)
    batches = iter(log)
    found = [next(batches)]
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        next(iter(log))
    reading = Meanwhile(lambda: list(batches))
    server.start()
    found += reading.outcome()
    assert [value for batch in found for value in batch.column("value").to_pylist()] == values


def test_a_topic_whose_store_is_away_holds_up_neither_the_others_nor_the_group(
    server: RedisServer, s3_front: FaultyFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {"max_retries": "1", "backoff_config.init_backoff": "10ms"}
    monkeypatch.setattr(object_store, "DELTA_RETRIES", {**object_store.DELTA_RETRIES, **quick})
    monkeypatch.setattr(object_store, "S3_ATTEMPTS", 1)
    monkeypatch.setattr(back_off, "ASK_AGAIN", back_off.ASK_AGAIN.within(0.02))
    options = s3_options(s3_front.url)
    root = f"s3://lakelog/{uuid4().hex}"
    with Lakelog.connect(server.url, root, storage_options=options, engine="inline") as lake:
        lake.topics.create("old", 1, {"retention.ms": -1, "local.retention.ms": 0})
        lake.topics.create("orders", 2, {"retention.ms": -1})
        with lake.producer() as producer:
            producer.send("old", "a")
        lake.archive()
        s3_front.inject(*(Fault(how, "/old/", status=503, times=None) for how in ("GET", "HEAD")))

        def member() -> Any:
            return lake.consumer("old", "orders", group_id="readers", auto_offset_reset="earliest")

        with member() as first, member() as second:
            eventually(lambda: first.poll(0) == {} and first.assignment())
            send(lake, "b")
            assert read(first, 1, timeout_ms=10) == [b"b"]
            send(lake, "c")
            assert read(first, 1, timeout_ms=10) == [b"c"]
            eventually(lambda: first.poll(0) == second.poll(0) == {} and second.assignment())
            s3_front.inject()
            eventually(lambda: [*_values(first.poll(0)), *_values(second.poll(0))] == [b"a"])
