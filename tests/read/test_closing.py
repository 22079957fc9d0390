"""Consumers that are closed amid a call, by another thread or a signal handler."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from lakelog import AcknowledgeType, ConsumerRebalanceListener, Lakelog, TopicPartition
from lakelog.errors import InvalidArgumentError, RecordDeserializationError
from lakelog.groups.group_values import GroupState
from lakelog.read.consumer import Consumer
from lakelog.testing.eventually import eventually

TP = TopicPartition("jobs", 0)
LONG_MS = 60_000


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("jobs", 1)
        yield lake


def made(lake: Lakelog, kind: str, **config: Any) -> Any:
    given = {"auto_offset_reset": "earliest", **config}
    if kind == "share":
        given["share_auto_offset_reset"] = given.pop("auto_offset_reset")
        return lake.share_consumer("jobs", group_id="g", **given)
    if kind == "assigned":
        consumer = lake.consumer(**given)
        consumer.assign([TP])
        return consumer
    return lake.consumer("jobs", group_id="g" if kind == "group" else None, **given)


def send(lake: Lakelog, *values: str) -> None:
    with lake.producer() as producer:
        for value in values:
            producer.send("jobs", value)


def wait_for_a_waiting_call(client: redis.Redis) -> None:
    eventually(lambda: client.info("clients")["blocked_clients"])


@contextmanager
def closed_in_a_handler(consumer: Any, client: redis.Redis) -> Iterator[threading.Thread]:
    """A thread that, once started, interrupts this one as soon as it waits for records."""
    reader = threading.get_ident()

    def interrupt() -> None:
        wait_for_a_waiting_call(client)
        signal.pthread_kill(reader, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: consumer.close())
    try:
        yield threading.Thread(target=interrupt, daemon=True)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("kind", ["assigned", "following", "group", "share"])
def test_closing_from_another_thread_ends_a_poll(
    lake: Lakelog, redis_client: redis.Redis, kind: str
) -> None:
    consumer = made(lake, kind)
    with ThreadPoolExecutor(1) as reader:
        polled = reader.submit(consumer.poll, LONG_MS)
        wait_for_a_waiting_call(redis_client)
        consumer.close()
        assert polled.result(60) == {}
    assert made(lake, kind).poll(0) == {}


@pytest.mark.parametrize("kind", ["assigned", "following", "group"])
def test_closing_in_a_signal_handler_ends_the_loop_and_commits_what_was_done(
    lake: Lakelog, redis_client: redis.Redis, kind: str
) -> None:
    send(lake, "a", "b")
    consumer = made(lake, kind)
    seen = []
    with closed_in_a_handler(consumer, redis_client) as interrupting:
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 2:
                interrupting.start()
    assert seen == [b"a", b"b"]
    assert next(consumer, None) is None
    if kind == "group":
        with lake.consumer(group_id="g") as other:
            assert other.committed(TP) == 2


def test_a_share_consumer_that_is_closed_in_a_handler_gives_back_what_nobody_answered(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    send(lake, "done", "open")
    consumer = made(lake, "share", share_acknowledgement_mode="explicit")
    done, open_ = consumer.poll(60_000)[TP]
    consumer.acknowledge(done)
    consumer.acknowledge(open_, AcknowledgeType.RENEW)
    with closed_in_a_handler(consumer, redis_client) as interrupting:
        interrupting.start()
        assert consumer.poll(LONG_MS) == {}
    with made(lake, "share") as other:
        assert [record.value for record in other.poll(60_000)[TP]] == [b"open"]


@pytest.mark.parametrize("way", ["poll", "poll_arrow", "next"])
def test_what_was_given_and_not_committed_comes_again_after_a_close_from_elsewhere(
    lake: Lakelog, redis_client: redis.Redis, way: str
) -> None:
    send(lake, "a", "b")
    consumer = made(lake, "group", enable_auto_commit=False)
    if way == "next":
        assert [next(consumer).value, next(consumer).value] == [b"a", b"b"]
    else:
        assert len(getattr(consumer, way)(60_000)[TP]) == 2
    with ThreadPoolExecutor(1) as reader:
        call = partial(next, consumer, None) if way == "next" else getattr(consumer, way)
        polled = reader.submit(call, *([] if way == "next" else [LONG_MS]))
        wait_for_a_waiting_call(redis_client)
        consumer.close()
        assert not polled.result(60)
    with made(lake, "group") as other:
        assert other.committed(TP) is None
        assert other.poll_arrow(60_000)[TP]["value"].to_pylist() == [b"a", b"b"]


def test_a_close_while_records_come_loses_and_repeats_none_that_poll_arrow_gave(
    lake: Lakelog,
) -> None:
    """What a call has given is committed, what it had found and not given is not."""
    seen: list[bytes] = []
    sent = 0
    for _ in range(20):
        consumer = made(lake, "group", fetch_max_bytes=0)
        got = threading.Event()

        def read(consumer: Any = consumer, got: threading.Event = got) -> None:
            while given := consumer.poll_arrow(LONG_MS):
                seen.extend(given[TP]["value"].to_pylist())
                got.set()

        with ThreadPoolExecutor(1) as reader:
            reading = reader.submit(read)
            send(lake, *map(str, range(sent, sent + 5)))
            sent += 5
            assert got.wait(60)
            send(lake, str(sent))  # may be under way as it closes
            sent += 1
            consumer.close()
            with suppress(InvalidArgumentError):  # it was closed between two calls
                reading.result(60)
    with made(lake, "group", consumer_timeout_ms=1_000) as last:
        seen += [record.value for record in last]
    assert seen == [b"%d" % n for n in range(sent)]


@pytest.fixture
def member(lake: Lakelog) -> Iterator[Callable[..., Consumer]]:
    """Makes members of a group that reads a topic of four partitions."""
    lake.topics.create("many", 4)
    found: list[Consumer] = []

    def make(listener: ConsumerRebalanceListener | None = None) -> Consumer:
        found.append(lake.consumer(group_id="g", heartbeat_interval_ms=20, metadata_max_age_ms=20))
        found[-1].subscribe(["many"], listener=listener)
        return found[-1]

    yield make
    for one in found:
        one.close()


def wait_until_all_are_assigned(consumer: Consumer) -> None:
    eventually(lambda: consumer.poll(100) == {} and len(consumer.assignment()) == 4)


def test_closing_from_another_thread_ends_a_poll_that_waits_for_the_others_of_a_rebalance(
    lake: Lakelog, member: Callable[..., Consumer]
) -> None:
    others = member()
    wait_until_all_are_assigned(others)
    leaving = member()
    with ThreadPoolExecutor(1) as reader:
        polled = reader.submit(leaving.poll, LONG_MS)
        eventually(lambda: lake.groups.describe("g").state is GroupState.PREPARING_REBALANCE)
        leaving.close()  # the others do not poll meanwhile
        assert polled.result(60) == {}
    wait_until_all_are_assigned(others)
    assert len(lake.groups.describe("g").members) == 1


def test_closing_from_another_thread_while_partitions_are_revoked_leaves_them_to_the_others(
    lake: Lakelog, member: Callable[..., Consumer]
) -> None:
    is_told, may_go_on = threading.Event(), threading.Event()

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            is_told.set()
            assert may_go_on.wait(60)

    leaving = member(Listener())
    wait_until_all_are_assigned(leaving)
    is_told.clear()
    others = member()
    with ThreadPoolExecutor(3) as threads:
        polled = threads.submit(leaving.poll, LONG_MS)
        joining = threads.submit(wait_until_all_are_assigned, others)
        assert is_told.wait(60)
        closing = threads.submit(leaving.close)
        may_go_on.set()
        closing.result(60)
        assert polled.result(60) == {}
        assert leaving.assignment() == set()
        joining.result(60)
    assert len(lake.groups.describe("g").members) == 1


@pytest.mark.parametrize(("kind", "way"), [("group", "poll"), ("group", "next"), ("share", "poll")])
def test_what_a_poll_found_as_it_was_closed_comes_to_the_next(
    lake: Lakelog, kind: str, way: str
) -> None:
    send(lake, "a", "b")

    def closing(value: Any) -> Any:
        consumer.close()
        return value

    consumer = made(lake, kind, value_deserializer=closing)
    if way == "poll":
        assert consumer.poll(LONG_MS) == {}
    else:
        assert list(consumer) == []
    with made(lake, kind) as other:
        found = other.poll(60_000)[TP]
        assert [record.value for record in found] == [b"a", b"b"]


def test_a_deserializer_that_fails_as_it_closes_still_closes(lake: Lakelog) -> None:
    def failing(value: Any) -> Any:
        consumer.close()
        raise ValueError(value)

    send(lake, "a")
    consumer = made(lake, "assigned", value_deserializer=failing)
    with pytest.raises(RecordDeserializationError):
        consumer.poll(LONG_MS)
    assert consumer.assignment() == set()


def test_assigning_again_reads_the_topic_that_was_made_again(lake: Lakelog) -> None:
    send(lake, "old")
    consumer = made(lake, "assigned")
    assert [record.value for record in consumer.poll(60_000)[TP]] == [b"old"]
    lake.topics.delete("jobs")
    lake.topics.create("jobs", 2)
    send(lake, "new")
    consumer.assign([TP, TopicPartition("jobs", 1)])
    found = [
        record.value for record in (consumer.poll(60_000) or consumer.poll(60_000)).popitem()[1]
    ]
    assert found == [b"new"]
    consumer.close()
