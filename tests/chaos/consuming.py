"""A consumer: what it was given, in order; after a kill it goes on by its journal.

| line | fields |
|---|---|
| ``begin`` | topic id, partition, offset where it began |
| ``seen`` | topic id, partition, [offset, …], [payload, …] |
| ``drained`` | [[topic id, partition, position], …]; when nothing more is appended |
"""

from __future__ import annotations

import time

from lakelog.errors import (
    LakelogError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.lakelog import Lakelog
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.values.topic_partition import TopicPartition

from .history import Kind, Partition, consumptions_of, positions
from .journal import read_journal
from .payload import payload_of
from .scenario import TOPICS
from .worker import Process

POLL_MS = 200

#: How long a consumer may take to come to the log end after all is well.
DRAIN_S = 20.0


def consume(process: Process) -> None:
    log = process.connect()
    readers: dict[str, _Reader] = {}
    order = list(TOPICS)
    process.draws.shuffle(order)
    while not process.stop.is_set():
        for topic in order:
            _poll_once(process, log, topic, readers)
    deadline_s = time.monotonic() + DRAIN_S
    left = dict.fromkeys(order)
    while left and time.monotonic() < deadline_s:
        for topic in list(left):
            if _poll_once(process, log, topic, readers) and _is_at_end(readers[topic]):
                del left[topic]
    drained = [place for reader in readers.values() for place in reader.places()]
    process.journal.write("drained", drained)
    log.close()


class _Reader:
    """A consumer of one life of a topic."""

    def __init__(self, process: Process, log: Lakelog, name: str) -> None:
        topic = log.topics.get(name)
        self.topic_id = str(topic.topic_id)
        self._process = process
        # Records below a log start are gone for good where a topic may lose them; else it is wrong.
        policy = "earliest" if TOPICS[name].kind is Kind.RETAINED else "none"
        unified = log.log(topic)
        self._consumer = Consumer(lambda _: unified, ConsumerConfig(auto_offset_reset=policy))
        self._partitions = topic.topic_partitions()
        self._consumer.assign(self._partitions)
        file = process.place.journal_file(process.name)
        went_on = positions(consumptions_of(process.name, read_journal(file)))
        for tp in self._partitions:
            where = Partition(self.topic_id, tp.partition)
            if where in went_on:
                self._consumer.seek(tp, went_on[where])
            else:
                self._consumer.seek_to_beginning(tp)
                start = self._consumer.position(tp)
                process.journal.write("begin", self.topic_id, tp.partition, start)

    def poll(self) -> None:
        limit = self._process.draws.choice([1, 20, 500])
        for tp, records in self._consumer.poll(POLL_MS, limit).items():
            self._process.journal.write(
                "seen",
                self.topic_id,
                tp.partition,
                [record.offset for record in records],
                [payload_of(record.value, record.headers) for record in records],
            )

    def is_at_end(self) -> bool:
        ends = self._consumer.end_offsets(self._partitions)
        return all(self._position(tp) >= ends[tp] for tp in self._partitions)

    def places(self) -> list[tuple[str, int, int]]:
        return [(self.topic_id, tp.partition, self._position(tp)) for tp in self._partitions]

    def _position(self, tp: TopicPartition) -> int:
        position = self._consumer.position(tp)
        return -1 if position is None else position


def _is_at_end(reader: _Reader) -> bool:
    try:
        return reader.is_at_end()
    except LakelogError:  # it is asked again, or polling tells that the topic is another by now
        return False


def _poll_once(process: Process, log: Lakelog, topic: str, readers: dict[str, _Reader]) -> bool:
    """Whether it went well; if not, it is tried again later, from where it was."""
    try:
        if topic not in readers:
            readers[topic] = _Reader(process, log, topic)
        readers[topic].poll()
        return True
    except (UnknownTopicIdError, UnknownTopicOrPartitionError):  # dropped; the next life is new
        readers.pop(topic, None)
    except LakelogError as error:
        process.journal.write("error", topic, f"{type(error).__name__}: {error}"[:300])
        time.sleep(0.1)
    return False
