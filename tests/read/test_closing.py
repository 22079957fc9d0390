"""Consumers that are closed amid a call, by another thread or a signal handler."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog, TopicPartition
from lakelog.errors import InvalidArgumentError, RecordDeserializationError
from lakelog.testing.eventually import eventually

TP = TopicPartition("jobs", 0)
LONG_MS = 600_000


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


def is_in_a_call(consumer: Any) -> bool:
    with ThreadPoolExecutor(1) as other:
        try:
            other.submit(consumer.poll).result()
        except InvalidArgumentError as error:
            return "another thread" in str(error)
    return False


@pytest.mark.parametrize("kind", ["assigned", "following", "group", "share"])
def test_closing_from_another_thread_ends_a_poll(lake: Lakelog, kind: str) -> None:
    consumer = made(lake, kind)
    with ThreadPoolExecutor(1) as reader:
        polled = reader.submit(consumer.poll, LONG_MS)
        eventually(lambda: is_in_a_call(consumer))
        consumer.close()
        assert polled.result() == {}
    assert made(lake, kind).poll(0) == {}


@pytest.mark.parametrize("kind", ["assigned", "following", "group"])
def test_closing_in_a_signal_handler_ends_the_loop_and_commits_what_was_done(
    lake: Lakelog, kind: str
) -> None:
    send(lake, "a", "b")
    consumer = made(lake, kind)
    before = signal.signal(signal.SIGUSR1, lambda *_: consumer.close())
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    seen = []
    try:
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 2:
                timer.start()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [b"a", b"b"]
    assert next(consumer, None) is None
    if kind == "group":
        with lake.consumer(group_id="g") as other:
            assert other.committed(TP) == 2


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
