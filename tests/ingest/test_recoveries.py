"""Recoveries take turns by topic, and all come to an end."""

from __future__ import annotations

import threading

import pytest

from lakelog.errors import ContradictionError
from lakelog.ingest.recoveries import TOPICS_AT_ONCE, Recoveries
from lakelog.values.topic_partition import TopicPartition


def test_those_of_a_topic_take_turns_and_topics_do_not_wait_for_one_another() -> None:
    topics = [f"t{number}" for number in range(TOPICS_AT_ONCE)]
    meeting = threading.Barrier(TOPICS_AT_ONCE, timeout=60)  # met by all topics at once, or broken
    lock, at_it, order = threading.Lock(), set[str](), list[tuple[str, int]]()

    def recover(topic_partition: TopicPartition, at_least: int) -> None:
        topic = topic_partition.topic
        with lock:
            assert topic not in at_it
            at_it.add(topic)
            order.append((topic, topic_partition.partition))
        meeting.wait()
        with lock:
            at_it.remove(topic)

    recoveries = Recoveries(recover)
    asked = [recoveries.ask(TopicPartition(topic, n), 0) for n in range(3) for topic in topics]
    for one in asked:
        one.result(60)
    recoveries.end()
    for topic in topics:
        assert [number for name, number in order if name == topic] == [0, 1, 2]


def test_more_topics_than_threads_are_all_recovered() -> None:
    lock, at_once, most, done = threading.Lock(), 0, 0, list[str]()

    def recover(topic_partition: TopicPartition, at_least: int) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        with lock:
            at_once -= 1
            done.append(topic_partition.topic)

    recoveries = Recoveries(recover)
    topics = [f"t{number}" for number in range(5 * TOPICS_AT_ONCE)]
    for one in [recoveries.ask(TopicPartition(topic, 0), 0) for topic in topics]:
        one.result(60)
    recoveries.end()
    assert sorted(done) == sorted(topics)
    assert most <= TOPICS_AT_ONCE


def test_one_that_fails_holds_up_no_other() -> None:
    def recover(topic_partition: TopicPartition, at_least: int) -> None:
        if topic_partition.partition == 0:
            raise ContradictionError("somebody restored the table")

    recoveries = Recoveries(recover)
    failing, other = (recoveries.ask(TopicPartition("t", number), 0) for number in (0, 1))
    with pytest.raises(ContradictionError):
        failing.result(60)
    assert other.result(60) is None
    assert recoveries.ask(TopicPartition("t", 1), 0).result(60) is None  # later, by a thread anew
    recoveries.end()
