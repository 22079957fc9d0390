"""Consumers of one group over the topics of a Redis, polled in turn by one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelog import Lakelog, TopicPartition
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.settings import GroupSettings
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.subscription import SeenTopics
from lakelog.testing.eventually import eventually
from lakelog.values.record import Record

GROUP = "nightly"
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}

#: A group that settles at once, and hears of changes at once.
QUICK = {
    "group_id": GROUP,
    "auto_offset_reset": "earliest",
    "metadata_max_age_ms": 1,
    "heartbeat_interval_ms": 20,
    "session_timeout_ms": 60_000,
}


class SharedTopics:
    """The consumers it makes are closed with it."""

    def __init__(self, lake: Lakelog, **settings: int) -> None:
        self.lake = lake
        chosen = {"initial_rebalance_delay_ms": 0, "min_session_timeout_ms": 1, **settings}
        self.coordinator = GroupCoordinator(lake.hot.connections, settings=GroupSettings(**chosen))
        self.made: list[Consumer] = []

    def topic(self, name: str = "orders", partitions: int = 4) -> None:
        self.lake.topics.create(name, partitions, UNTIERED)

    def send(self, *values: str, topic: str = "orders", partition: int | None = None) -> None:
        """One record each; without a partition, in turn."""
        count = self.lake.topics.get(topic).partitions
        with self.lake.producer() as producer:
            for n, value in enumerate(values):
                number = n % count if partition is None else partition
                producer.send(topic, value, partition=number)

    def consumer(self, *topics: str, **config: Any) -> Consumer:
        """Subscribed to the topics, if there are any."""
        seen = SeenTopics(self.lake.topics.list, self.lake.topics.version)
        chosen = ConsumerConfig.of(**{**QUICK, **config})
        made = Consumer(self.lake.log, chosen, seen, self.coordinator)
        self.made.append(made)
        if topics:
            made.subscribe(topics)
        return made

    def committed(self) -> dict[str, int]:
        found = self.coordinator.committed(GROUP)
        return {str(tp): one.committed.offset for tp, one in sorted(found.items())}

    def close(self) -> None:
        for one in self.made:
            one.close(autocommit=False)


def together(
    *consumers: Consumer, until: Callable[[], object]
) -> dict[Consumer, dict[TopicPartition, list[Record]]]:
    """Polls all in turn until something is so; returns what each got."""
    got: dict[Consumer, dict[TopicPartition, list[Record]]] = {one: {} for one in consumers}

    def turn() -> bool:
        for one in consumers:
            for tp, records in one.poll(5).items():
                got[one].setdefault(tp, []).extend(records)
        return bool(until())

    eventually(turn)
    return got


def read(consumer: Consumer, at_least: int) -> list[bytes | None]:
    """Values until there are so many."""
    found: list[bytes | None] = []
    while len(found) < at_least:
        for records in consumer.poll(1_000).values():
            found += [record.value for record in records]
    return found


def settled(*consumers: Consumer, partitions: int = 4) -> Callable[[], bool]:
    """Whether each has some, and they have all together."""

    def so() -> bool:
        held = [tp for one in consumers for tp in one.assignment()]
        return all(one.assignment() for one in consumers) and (
            len(held) == len(set(held)) == partitions
        )

    return so


def of(topic: str, *numbers: int) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}
