"""Writes records that a share group could not deal with to a topic of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..values.record import Record
from .topic_log import TopicLog

#: Kafka's names of the headers (KIP-1191).
HEADER_PREFIX = "__dlq.errors."


class Producer(Protocol):
    """What it needs of `lakelog.Producer`."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Any = (),
        partition: int | None = None,
    ) -> Any:
        """Take a record; the answer's ``result()`` waits until it is appended."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


class DeadLetters:
    """The dead-letter topic of one group.

    Key, value and headers are those of the record; behind its own headers stand, as texts,
    ``__dlq.errors.topic``, ``.partition``, ``.offset``, ``.group``, ``.delivery.count`` and
    ``.message``. It goes to partition *n* modulo the number of the topic's, as in Kafka.

    A record is written before the group forgets it: who dies in between leaves it to be written
    again. So it is there once or more, and never not at all.
    """

    def __init__(
        self,
        group_id: str,
        topic: str,
        delivery_count_limit: int,
        logs: Callable[[str], TopicLog],
        make_producer: Callable[[], Producer],
    ) -> None:
        self._group_id = group_id
        self._topic = topic
        self._limit = delivery_count_limit
        self._logs = logs
        self._make_producer = make_producer
        self._producer: Producer | None = None

    def write(self, records: Sequence[Record], delivery_count: int) -> None:
        """Writes them; returns when they are appended.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
            LakelogError: they could not be appended, or it cannot be told.
        """
        if not records:
            return
        partitions = self._logs(self._topic).topic.partitions
        producer = self._producer = self._producer or self._make_producer()
        sent = [
            producer.send(
                self._topic,
                record.value,
                key=record.key,
                headers=[*record.headers, *self._headers(record, delivery_count)],
                partition=record.partition % partitions,
            )
            for record in records
        ]
        for one in sent:
            one.result()

    def close(self) -> None:
        """Closes its producer."""
        if self._producer is not None:
            self._producer.close()

    def _headers(self, record: Record, delivery_count: int) -> list[tuple[str, bytes]]:
        if delivery_count >= self._limit:
            message = f"delivered {delivery_count} times, and the limit is {self._limit}"
        else:
            message = "rejected by a member of the group"
        said = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "group": self._group_id,
            "delivery.count": delivery_count,
            "message": message,
        }
        return [(f"{HEADER_PREFIX}{name}", str(value).encode()) for name, value in said.items()]
