"""A topic of a real Kafka broker, through confluent-kafka.

Retention and compaction run by the broker's own clock: a step that asks for one changes the topic's
settings so that it may begin, and `KafkaLog.settle` changes them back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from lakelog.base.back_off import POLL, wait_until

from .answers import Answer, error_answer, record_answer
from .workload import Append, Compact, DeleteRecords, Retain, Row, Step, Workload

#: No record of a workload is older: what is younger than the lag is not compacted.
HELD_BACK_MS = 10 * 365 * 24 * 3600 * 1000

NO_TIMESTAMP = -1
TIMEOUT_S = 30.0

#: From when a broker's metadata say a setting until its cleaner goes by it, many times over.
APPLIED_S = 0.3


class KafkaClients:
    """What many topics share, one after the other. Not thread-safe."""

    def __init__(self, bootstrap_servers: str) -> None:
        broker = {"bootstrap.servers": bootstrap_servers}
        self.admin = AdminClient(broker)
        # So long a wait for more records makes one batch of all until the next flush.
        self.producer = Producer(
            {**broker, "acks": "all", "linger.ms": 60_000, "batch.size": 2**20}
        )
        self.consumer = Consumer(
            {
                **broker,
                "group.id": "differential",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 5,
            }
        )

    def close(self) -> None:
        self.consumer.close()


class KafkaLog:
    """See `answers.Log`."""

    def __init__(self, clients: KafkaClients, workload: Workload, begin_ms: int) -> None:
        self._clients = clients
        self._begin_ms = begin_ms
        self._topic = f"differential-{workload.seed}-{uuid4().hex[:8]}"
        self._tp = TopicPartition(self._topic, 0)
        self._held = {
            "retention.ms": "-1",
            "min.compaction.lag.ms": str(HELD_BACK_MS),
            "min.cleanable.dirty.ratio": "0.0",
        }
        topic = NewTopic(self._topic, 1, 1, config={**workload.settings, **self._held})
        clients.admin.create_topics([topic])[self._topic].result(TIMEOUT_S)
        self._warm_up()

    def take(self, step: Step) -> Answer:
        try:
            return self._take(step)
        except KafkaException as error:
            return error_answer(_name(error.args[0]))

    def settle(self, step: Step) -> None:
        if isinstance(step, (Retain, Compact)):
            self._alter(self._held)
            self._await(self._held)

    def ask(self, question: str) -> Answer:
        what, _, number = question.partition(" ")
        if what in ("earliest", "latest"):
            return self._find(getattr(OffsetSpec, what)()).offset
        if what == "max-timestamp":
            found = self._find(OffsetSpec.max_timestamp())
            # Where no record has a timestamp the broker names one without: none, as lakelog says.
            return self._found(found) if found.timestamp >= 0 else None
        if what == "time":
            return self._found(self._find(OffsetSpec.for_timestamp(self._begin_ms - int(number))))
        if what == "from":
            return self._first(int(number))
        return [
            record_answer(
                message.offset(),
                self._age_ms(message.timestamp()[1]),
                message.key(),
                message.value(),
                message.headers() or (),
            )
            for message in self._from(self.ask("earliest"))
        ]

    def close(self) -> None:
        self._clients.admin.delete_topics([self._topic])[self._topic].result(TIMEOUT_S)

    def _take(self, step: Step) -> Answer:
        if isinstance(step, Append):
            return self._append(step.rows)
        if isinstance(step, DeleteRecords):
            asked = TopicPartition(self._topic, 0, step.before_offset)
            (future,) = self._clients.admin.delete_records([asked]).values()
            return future.result(TIMEOUT_S).low_watermark
        if isinstance(step, Retain):
            self._alter({"retention.ms": str(step.retention_ms)})
        if isinstance(step, Compact):
            self._alter({"min.compaction.lag.ms": "0"})
        return None

    def _warm_up(self) -> None:
        """Sends what the broker refuses, since what comes first may be split into two batches."""
        ahead_ms = self._begin_ms + 10 * 3600 * 1000
        self._clients.producer.produce(self._topic, key=b"x", partition=0, timestamp=ahead_ms)
        self._clients.producer.flush(TIMEOUT_S)

    def _append(self, rows: tuple[Row, ...]) -> int:
        told: list[tuple[KafkaError | None, int]] = []
        for row in rows:
            self._clients.producer.produce(
                self._topic,
                value=row.value,
                key=row.key,
                headers=list(row.headers),
                partition=0,
                timestamp=NO_TIMESTAMP if row.age_ms is None else self._begin_ms - row.age_ms,
                on_delivery=lambda error, message: told.append((error, message.offset())),
            )
        self._clients.producer.flush(TIMEOUT_S)
        if 0 < sum(error is None for error, _ in told) < len(rows):
            raise RuntimeError("librdkafka made two batches of one; nothing can be compared")
        failed = {error.code(): error for error, _ in told if error is not None}
        failed.pop(KafkaError._INVALID_DIFFERENT_RECORD, None)  # neighbours of the one to blame
        if failed:
            raise KafkaException(next(iter(failed.values())))
        return min(offset for _, offset in told)

    def _alter(self, settings: dict[str, str]) -> None:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=changes)
        self._clients.admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)

    def _await(self, settings: dict[str, str]) -> None:
        """Until the broker goes by them: it hears of a change a moment after it was made."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic)

        def is_told() -> bool:
            told = self._clients.admin.describe_configs([resource])[resource].result(TIMEOUT_S)
            return all(told[name].value == value for name, value in settings.items())

        if not wait_until("the broker to take settings", is_told, POLL.within(TIMEOUT_S)):
            raise TimeoutError(f"{self._topic} did not take {settings}")
        time.sleep(APPLIED_S)  # what the broker tells it may not go by yet, which nothing tells

    def _find(self, spec: OffsetSpec) -> Any:
        return self._clients.admin.list_offsets({self._tp: spec})[self._tp].result(TIMEOUT_S)

    def _found(self, found: Any) -> Answer:
        return None if found.offset < 0 else [found.offset, self._age_ms(found.timestamp)]

    def _age_ms(self, timestamp_ms: int) -> int | None:
        return None if timestamp_ms < 0 else self._begin_ms - timestamp_ms

    def _first(self, offset: int) -> Answer:
        try:
            return next((message.offset() for message in self._from(offset)), None)
        except KafkaException as error:
            return error_answer(_name(error.args[0]))

    def _from(self, offset: int) -> Iterator[Message]:
        consumer = self._clients.consumer
        consumer.assign([TopicPartition(self._topic, 0, offset)])
        while True:
            message = consumer.poll(TIMEOUT_S)
            if message is None:
                raise TimeoutError(f"the broker sends nothing from {offset} of {self._topic}")
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            else:
                raise KafkaException(error)


def _name(error: KafkaError) -> str:
    """As lakelog's classes are called: ``INVALID_TIMESTAMP`` is InvalidTimestampError."""
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        return "OffsetOutOfRangeError"
    return "".join(part.capitalize() for part in error.name().strip("_").split("_")) + "Error"
