"""Consumers of a share group: what they get, from either tier, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelog import AcknowledgeType, Lakelog, LakelogError, ShareConsumer, TopicPartition
from lakelog.base.clock import ManualClock
from lakelog.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidRecordStateError,
    InvalidTopicError,
    RecordDeserializationError,
    UnknownTopicOrPartitionError,
)
from lakelog.groups.share.share_partitions import SharePartitions
from lakelog.testing.eventually import eventually
from lakelog.values.record import Record
from tests.support.servers import RedisServer

TP = TopicPartition("jobs", 0)
LOCK_MS = 30_000
KEPT: dict[str, Any] = {"retention.ms": -1, "local.retention.ms": 0}
EXPLICIT = {"share_acknowledgement_mode": "explicit"}
Consumers = Callable[..., ShareConsumer]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, clock: ManualClock) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline", clock=clock) as lake:
        lake.topics.create("jobs", 1, KEPT)
        yield lake


@pytest.fixture
def consumer(lake: Lakelog) -> Iterator[Consumers]:
    """Makes consumers of the group ``workers`` that begin at the log start."""
    made: list[ShareConsumer] = []

    def make(*topics: str, **config: Any) -> ShareConsumer:
        given = {
            "group_id": "workers",
            "share_auto_offset_reset": "earliest",
            "metadata_max_age_ms": 1,
            **config,
        }
        made.append(lake.share_consumer(*(topics or ("jobs",)), **given))
        return made[-1]

    yield make
    for one in made:
        one.close()


def send(lake: Lakelog, start: int, end: int, topic: str = "jobs") -> None:
    with lake.producer() as producer:
        for n in range(start, end):
            producer.send(topic, f"job {n}", key=b"k%d" % (n % 2))


def polled(one: ShareConsumer, most: int | None = None, timeout_ms: int = 0) -> list[Record]:
    return [record for records in one.poll(timeout_ms, most).values() for record in records]


def offsets(one: ShareConsumer, most: int | None = None) -> list[int]:
    return [record.offset for record in polled(one, most)]


def say(one: ShareConsumer, type_: AcknowledgeType, *records: Record) -> None:
    for record in records:
        one.acknowledge(record, type_)


def test_consumers_take_turns_in_one_partition(lake: Lakelog, consumer: Consumers) -> None:
    send(lake, 0, 10)
    ada, bob, cid = consumer(), consumer(), consumer()
    assert offsets(ada, 4) == [0, 1, 2, 3]
    assert offsets(bob, 4) == [4, 5, 6, 7]
    assert offsets(cid) == [8, 9]
    assert offsets(ada) == []


def test_records_come_from_both_tiers_in_their_order(lake: Lakelog, consumer: Consumers) -> None:
    send(lake, 0, 6)
    lake.archive("jobs")
    send(lake, 6, 9)
    assert lake.log("jobs").offsets()[0].local_log_start == 6
    ada = consumer()
    assert [record.value for record in polled(ada, 5)] == [b"job %d" % n for n in range(5)]
    assert [record.value for record in polled(ada)] == [b"job %d" % n for n in range(5, 9)]


def test_what_is_held_is_trimmed_and_delivered_again_from_cold(
    lake: Lakelog, consumer: Consumers, clock: ManualClock
) -> None:
    send(lake, 0, 6)
    assert offsets(consumer()) == [0, 1, 2, 3, 4, 5]
    lake.archive("jobs")
    assert lake.log("jobs").offsets()[0].local_log_start == 6
    clock.advance(LOCK_MS)
    assert [record.value for record in polled(consumer())] == [b"job %d" % n for n in range(6)]


def test_a_poll_accepts_what_the_last_one_gave(
    lake: Lakelog, consumer: Consumers, clock: ManualClock
) -> None:
    send(lake, 0, 4)
    ada = consumer()
    assert offsets(ada, 2) == [0, 1]
    assert offsets(ada, 2) == [2, 3]
    clock.advance(LOCK_MS)
    assert offsets(consumer()) == [2, 3]


def test_a_commit_accepts_too(lake: Lakelog, consumer: Consumers, clock: ManualClock) -> None:
    send(lake, 0, 4)
    ada = consumer()
    offsets(ada)
    assert ada.commit_sync() == {TP: None}
    assert ada.commit_sync() == {}
    clock.advance(LOCK_MS)
    assert offsets(consumer()) == []


def test_a_commit_that_comes_too_late_says_what_is_not_held(
    lake: Lakelog, consumer: Consumers, clock: ManualClock
) -> None:
    send(lake, 0, 4)
    ada = consumer()
    offsets(ada)
    clock.advance(LOCK_MS)
    assert offsets(consumer()) == [0, 1, 2, 3]
    error = ada.commit_sync()[TP]
    assert isinstance(error, InvalidRecordStateError)
    assert [*error.offsets] == [(0, 4)]


def test_closing_gives_back_what_was_not_accepted(lake: Lakelog, consumer: Consumers) -> None:
    send(lake, 0, 4)
    with consumer() as ada:
        offsets(ada, 2)
        ada.commit_sync()
        offsets(ada, 2)
    assert offsets(consumer()) == [2, 3]


def test_each_record_is_acknowledged_by_itself(
    lake: Lakelog, consumer: Consumers, clock: ManualClock
) -> None:
    send(lake, 0, 6)
    ada = consumer(**EXPLICIT)
    records = polled(ada)
    say(ada, AcknowledgeType.ACCEPT, *records[0:2])
    say(ada, AcknowledgeType.RELEASE, *records[2:4])
    say(ada, AcknowledgeType.REJECT, records[4])
    say(ada, AcknowledgeType.RENEW, records[5])
    clock.advance(LOCK_MS - 1)
    assert ada.commit_sync() == {TP: None}
    assert offsets(consumer(**EXPLICIT)) == [2, 3]
    clock.advance(1)
    ada.acknowledge_offset("jobs", 0, 5)
    assert ada.commit_sync() == {TP: None}


def test_explicitly_all_records_are_acknowledged_before_the_next_poll(
    lake: Lakelog, consumer: Consumers
) -> None:
    send(lake, 0, 3)
    ada = consumer(**EXPLICIT)
    first, *others = polled(ada)
    ada.acknowledge(first)
    with pytest.raises(InvalidArgumentError, match="offset 1 of jobs-0 was not acknowledged"):
        ada.poll()
    say(ada, AcknowledgeType.RELEASE, *others)
    assert offsets(ada) == [1, 2]


def test_what_is_not_held_is_not_acknowledged(lake: Lakelog, consumer: Consumers) -> None:
    send(lake, 0, 2)
    ada = consumer(**EXPLICIT)
    (record,) = polled(ada, 1)
    with pytest.raises(InvalidArgumentError, match="offset 1 of jobs-0 is not held"):
        ada.acknowledge_offset("jobs", 0, 1)
    ada.acknowledge(record)
    ada.commit_sync()
    with pytest.raises(InvalidArgumentError, match="acknowledged already"):
        ada.acknowledge(record)
    with pytest.raises(InvalidArgumentError, match="by itself"):
        consumer().acknowledge(record)


def test_the_callback_is_told_what_was_sent(
    lake: Lakelog, consumer: Consumers, clock: ManualClock
) -> None:
    send(lake, 0, 4)
    told: list[tuple[dict[TopicPartition, set[int]], LakelogError | None]] = []
    ada = consumer()
    ada.set_acknowledgement_commit_callback(lambda sent, error: told.append((sent, error)))
    offsets(ada, 2)
    ada.commit_async()
    assert told == []
    offsets(ada, 2)
    assert told == [({TP: {0, 1}}, None)]
    clock.advance(LOCK_MS)
    consumer().poll()
    ada.poll()
    (sent, error) = told[1]
    assert sent == {TP: {2, 3}}
    assert isinstance(error, InvalidRecordStateError)


def test_a_record_that_fails_again_and_again_becomes_a_dead_letter(
    lake: Lakelog, consumer: Consumers
) -> None:
    lake.topics.create("dead", 2)
    with lake.producer() as producer:
        producer.send("jobs", "bad", key="k", headers=[("trace", b"7"), ("none", None)])
        producer.send("jobs", "good")
    limits = {"share_delivery_count_limit": 2, "errors_deadletterqueue_topic_name": "dead"}
    ada = consumer(**EXPLICIT, **limits)
    for deliveries in range(2):
        bad, *rest = polled(ada)
        assert len(rest) == 1 - deliveries
        say(ada, AcknowledgeType.RELEASE, bad)
        say(ada, AcknowledgeType.ACCEPT, *rest)
    assert offsets(ada) == []
    (letter,) = lake.log("dead").read(0).records()
    assert (letter.key, letter.value) == (b"k", b"bad")
    assert letter.headers == (
        ("trace", b"7"),
        ("none", None),
        ("__dlq.errors.topic", b"jobs"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"0"),
        ("__dlq.errors.group", b"workers"),
        ("__dlq.errors.delivery.count", b"2"),
        ("__dlq.errors.message", b"delivered 2 times, and the limit is 2"),
    )
    assert offsets(ada) == []
    assert lake.log("dead").count(0) == 1


@pytest.mark.parametrize("how", ["close", "unsubscribe", "with"])
def test_what_a_consumer_rejected_last_becomes_a_dead_letter_when_it_ends(
    lake: Lakelog, consumer: Consumers, how: str
) -> None:
    """It came with the poll of the next member, whenever that was."""
    lake.topics.create("dead", 1)
    send(lake, 0, 4)
    ada = consumer(**EXPLICIT, errors_deadletterqueue_topic_name="dead")
    first, second, third, _ = polled(ada)
    say(ada, AcknowledgeType.REJECT, first, third)
    say(ada, AcknowledgeType.ACCEPT, second)
    ada.commit_sync()
    if how == "close":
        ada.close()
    elif how == "unsubscribe":
        ada.unsubscribe()
    else:
        with ada:
            pass
    letters = [one.header("__dlq.errors.offset") for one in lake.log("dead").read(0).records()]
    assert sorted(letters) == [b"0", b"2"]
    bob = consumer(**EXPLICIT, errors_deadletterqueue_topic_name="dead")
    assert offsets(bob) == [3]  # released, and delivered no more often by that
    bob.close()
    assert lake.log("dead").count(0) == 2  # none is written twice


def test_dead_letters_wait_while_their_topic_takes_nothing(
    lake: Lakelog, consumer: Consumers
) -> None:
    lake.topics.create("dead", 1)
    send(lake, 0, 2)
    ada = consumer(**EXPLICIT, errors_deadletterqueue_topic_name="dead")
    say(ada, AcknowledgeType.REJECT, *polled(ada))
    lake.topics.delete("dead")
    with pytest.raises(LakelogError):
        ada.poll()
    lake.topics.create("dead", 1)
    bob = consumer(**EXPLICIT, errors_deadletterqueue_topic_name="dead")
    assert offsets(bob) == []
    assert lake.log("dead").count(0) == 2


def test_a_record_that_cannot_be_read_is_released_and_the_rest_comes(
    lake: Lakelog, consumer: Consumers
) -> None:
    with lake.producer() as producer:
        for value in ("1", "{", "3"):
            producer.send("jobs", value)
    ada = consumer(value_deserializer=json.loads, share_delivery_count_limit=2)
    assert [record.value for record in polled(ada)] == [1]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            ada.poll()
        assert caught.value.offset == 1
    assert [record.value for record in polled(ada)] == [3]
    assert polled(ada) == []


def test_a_compacted_topic_gives_what_is_left(lake: Lakelog, consumer: Consumers) -> None:
    compacted = {"cleanup.policy": "compact", "segment.ms": 1, "local.retention.ms": 0}
    lake.topics.create("keys", 1, compacted)
    with lake.producer() as producer:
        for n in range(10):
            producer.send("keys", f"v{n}", key="same", timestamp_ms=1_700_000_000_000 + 1000 * n)
            producer.flush()
    lake.archive("keys")
    lake.cleanup("keys")
    left = [record.offset for record in lake.log("keys").read(0).records()]
    ada = consumer("keys")
    got: list[int] = []
    while found := offsets(ada, 3):
        got += found
    assert got == left
    assert ada.commit_sync() in ({}, {TopicPartition("keys", 0): None})


def test_a_group_begins_at_the_end_unless_told(lake: Lakelog, consumer: Consumers) -> None:
    send(lake, 0, 2)
    ada = consumer(share_auto_offset_reset="latest")
    assert offsets(ada) == []
    send(lake, 2, 4)
    assert offsets(ada) == [2, 3]


def test_a_poll_waits_for_a_record(lake: Lakelog, consumer: Consumers) -> None:
    send(lake, 0, 1)
    ada, bob = consumer(), consumer()
    assert offsets(ada) == [0]
    assert bob.poll(20) == {}
    send(lake, 1, 2)
    assert [record.offset for record in polled(bob, timeout_ms=10_000)] == [1]
    ada.close()  # which releases what it has
    assert [record.offset for record in polled(bob, timeout_ms=10_000)] == [0]


def test_partitions_and_topics_take_turns(lake: Lakelog, consumer: Consumers) -> None:
    lake.topics.create("tasks", 3, KEPT)
    with lake.producer() as producer:
        for n in range(9):
            producer.send("tasks", f"{n}", partition=n % 3)
    send(lake, 0, 3)
    ada = consumer("tasks", "jobs")
    got = []
    for _ in range(6):
        got += [(record.topic, record.partition, record.offset) for record in polled(ada, 2)]
    expected = [("tasks", partition, n) for partition in range(3) for n in range(3)]
    assert sorted(got) == sorted(expected + [("jobs", 0, n) for n in range(3)])


def test_an_interrupted_poll_accepts_nothing(lake: Lakelog, consumer: Consumers) -> None:
    """What it had read was never seen, so the next poll gives it."""
    lake.topics.create("tasks", 1, KEPT)
    send(lake, 0, 3)
    send(lake, 3, 4, topic="tasks")
    ada = consumer("jobs", "tasks")
    calls = 0

    def interrupted(data: bytes) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return data

    bob = consumer("jobs", "tasks", value_deserializer=interrupted)
    with pytest.raises(KeyboardInterrupt):
        bob.poll()
    again = polled(bob)
    bob.commit_sync()
    assert sorted(r.value for r in again + polled(ada)) == [b"job %d" % n for n in range(4)]


def test_what_is_not_legal_is_refused(lake: Lakelog, consumer: Consumers) -> None:
    for config in (
        {"share_acknowledgement_mode": "maybe"},
        {"share_auto_offset_reset": "none"},
        {"share_auto_offset_reset": "LATEST"},
        {"share_delivery_count_limit": 0},
        {"metadata_max_age_ms": 0},
        {"value_deserializer": 5},
        {"no_such_setting": 1},
    ):
        with pytest.raises(InvalidConfigError):
            consumer(**config)
    with pytest.raises(InvalidConfigError, match="group_id"):
        lake.share_consumer("jobs")
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer(errors_deadletterqueue_topic_name="nowhere")
    ada = consumer()
    with pytest.raises(InvalidArgumentError):
        ada.subscribe("jobs")
    with pytest.raises(InvalidArgumentError):
        ada.subscribe([])
    with pytest.raises(InvalidTopicError):
        ada.subscribe(["a b"])
    ada.unsubscribe()
    assert ada.subscription() == set()
    with pytest.raises(InvalidArgumentError):
        ada.poll()


def test_what_was_said_while_redis_was_away_is_sent_later(
    make_redis: Callable[..., RedisServer],
) -> None:
    server = make_redis()
    url = f"{server.url}?socket_timeout=1&socket_connect_timeout=1"
    with Lakelog.connect(url, engine="inline") as lake:
        lake.topics.create("jobs", 1, {"remote.storage.enable": False})
        send(lake, 0, 4)
        with lake.share_consumer(
            "jobs", group_id="workers", share_auto_offset_reset="earliest"
        ) as ada:
            assert offsets(ada) == [0, 1, 2, 3]
            server.stop()
            error = ada.commit_sync()[TP]
            assert error is not None
            assert error.retriable
            server.start()
            eventually(lambda: ada.commit_sync() in ({TP: None}, {}))
            found = SharePartitions(lake.hot.connections, "workers").describe(TP)
            assert found is not None
            assert (found.start_offset, found.ranges) == (4, ())
