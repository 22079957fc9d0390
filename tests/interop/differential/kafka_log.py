"""A topic of a real Kafka broker, or of a gateway, through confluent-kafka.

What that cannot be made to say, batches that are counted wrongly, goes there byte by byte.

Retention and compaction run by the broker's own clock: a step that asks for one changes the topic's
settings so that it may begin, and `KafkaLog.settle` changes them back.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.record.default_records import DefaultRecordBatchBuilder

from lakelog.base.back_off import POLL, wait_until
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import ProduceRequest
from tests.gateway.raw_client import RawClient

from .answers import Answer, error_answer, record_answer
from .workload import (
    Alter,
    Append,
    Commit,
    Compact,
    DeleteRecords,
    ForgetGroup,
    Numbered,
    Retain,
    Row,
    Step,
    Workload,
)

#: No record of a workload is older: what is younger than the lag is not compacted.
HELD_BACK_MS = 10 * 365 * 24 * 3600 * 1000

NO_TIMESTAMP = -1
TIMEOUT_S = 30.0

#: What is asked of settings: those whose defaults lakelog has from Kafka.
SETTINGS = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "index.interval.bytes",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
)

#: A version that names topics, and that all brokers know.
_PRODUCE = 9


class KafkaClients:
    """What many topics share, one after the other. Not thread-safe.

    Args:
        codec: of what the producer sends.
    """

    def __init__(self, bootstrap_servers: str, codec: str = "none") -> None:
        broker = {"bootstrap.servers": bootstrap_servers}
        self.raw = RawClient(bootstrap_servers)
        self.admin = AdminClient(broker)
        # So long a wait for more records makes one batch of all until the next flush.
        self.producer = Producer(
            {
                **broker,
                "acks": "all",
                "linger.ms": 60_000,
                "batch.size": 2**20,
                "compression.type": codec,
            }
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
        self.raw.socket.close()


class KafkaLog:
    """See `answers.Log`.

    Args:
        more: settings of the topic that a broker does not have.
    """

    #: From when a broker's metadata say a setting until its cleaner goes by it, many times over.
    applied_s = 0.3

    def __init__(
        self,
        clients: KafkaClients,
        workload: Workload,
        begin_ms: int,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self._clients = clients
        self._producer_ids = [secrets.randbits(40) for _ in range(2)]
        self._numbered: set[int] = set()  # offsets of their batches
        self._begin_ms = begin_ms
        self._topic = f"differential-{workload.seed}-{uuid4().hex[:8]}"
        self._tp = TopicPartition(self._topic, 0)
        self._held = {
            "retention.ms": "-1",
            "min.compaction.lag.ms": str(HELD_BACK_MS),
            "min.cleanable.dirty.ratio": "0.0",
        }
        topic = NewTopic(
            self._topic, 1, 1, config={**workload.settings, **self._held, **(more or {})}
        )
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
        if what == "committed":
            return self._committed()
        if what == "settings":
            return self._settings()
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
        if isinstance(step, Numbered):
            return self._append_numbered(step)
        if isinstance(step, Append):
            return self._append(step.rows)
        if isinstance(step, Commit):
            return self._commit(step)
        if isinstance(step, ForgetGroup):
            self._clients.admin.delete_consumer_groups([self._topic])[self._topic].result(TIMEOUT_S)
        if isinstance(step, Alter):
            self._alter({step.name: step.value})
            self._await({step.name: step.value})
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

    def _append_numbered(self, step: Numbered) -> Answer:
        producer_id = self._producer_ids[step.producer]
        batch = DefaultRecordBatchBuilder(
            2, 0, False, producer_id, step.epoch, step.sequence, 2**20
        )
        for number, row in enumerate(step.rows):
            timestamp_ms = NO_TIMESTAMP if row.age_ms is None else self._begin_ms - row.age_ms
            batch.append(number, timestamp_ms, row.key, row.value, list(row.headers))
        told = ProduceRequest
        data = told.PartitionProduceData(0, bytes(batch.build()))
        topics = [told.TopicProduceData(self._topic, [data])]
        request = told(acks=-1, timeout_ms=int(TIMEOUT_S * 1000), topic_data=topics)
        response = self._clients.raw.ask(request, _PRODUCE)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            name = ErrorCode(answer.error_code).name
            return [name, sorted(one.batch_index for one in answer.record_errors)]
        if answer.base_offset in self._numbered:
            return ["there already", answer.base_offset]
        self._numbered.add(answer.base_offset)
        return answer.base_offset

    def _commit(self, step: Commit) -> Answer:
        place = TopicPartition(self._topic, 0, step.offset, step.metadata)
        asked = ConsumerGroupTopicPartitions(self._topic, [place])
        (future,) = self._clients.admin.alter_consumer_group_offsets([asked]).values()
        (told,) = future.result(TIMEOUT_S).topic_partitions
        return error_answer(_name(told.error)) if told.error else None

    def _committed(self) -> Answer:
        asked = ConsumerGroupTopicPartitions(self._topic, [self._tp])
        (future,) = self._clients.admin.list_consumer_group_offsets([asked]).values()
        try:
            (told,) = future.result(TIMEOUT_S).topic_partitions
        except KafkaException as error:
            return error_answer(_name(error.args[0]))
        return [told.offset, told.metadata] if told.offset >= 0 else None

    def _settings(self) -> Answer:
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        told = self._clients.admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        of_topic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: [told[name].value, told[name].source == of_topic] for name in SETTINGS}

    def _alter(self, settings: Mapping[str, str | None]) -> None:
        changes = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE
                if value is None
                else AlterConfigOpType.SET,
            )
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=changes)
        self._clients.admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)

    def _await(self, settings: Mapping[str, str | None]) -> None:
        """Until the broker goes by them: it hears of a change a moment after it was made."""
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        of_topic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value

        def is_told() -> bool:
            told = self._clients.admin.describe_configs([resource])[resource].result(TIMEOUT_S)
            return all(
                told[name].value == value if value else told[name].source != of_topic
                for name, value in settings.items()
                if name in told
            )

        if not wait_until("the broker to take settings", is_told, POLL.within(TIMEOUT_S)):
            raise TimeoutError(f"{self._topic} did not take {settings}")
        time.sleep(
            self.applied_s
        )  # what the broker tells it may not go by yet, which nothing tells

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
        try:
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
        finally:
            consumer.unassign()  # else it asks for more, hundreds of times a second


def _name(error: KafkaError) -> str:
    """As lakelog's classes are called: ``INVALID_TIMESTAMP`` is InvalidTimestampError."""
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        return "OffsetOutOfRangeError"
    return "".join(part.capitalize() for part in error.name().strip("_").split("_")) + "Error"
