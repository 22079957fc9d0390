"""A broker in memory, which librdkafka brings along; and the two requests that carry batches.

It keeps and hands out batches as they were sent, but for their base offset, so that what librdkafka
writes can be looked at, and what it reads can come from elsewhere.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from confluent_kafka import Consumer, Producer

_PRODUCE, _FETCH = (0, 3), (1, 4)  # API keys, and the versions that are spoken here


class MockBroker:
    """One broker, as long as this object lives."""

    def __init__(self) -> None:
        self._owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._owner.list_topics(timeout=30).brokers.values()
        self.address = (broker.host, broker.port)

    def configured(self, **settings: Any) -> dict[str, Any]:
        """The settings of a client of it; ``_`` stands for ``.`` in their names."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return {"bootstrap.servers": "{}:{}".format(*self.address), "log_level": 0, **given}

    def produce(self, topic: str, batch: bytes) -> int:
        """Sends the batch to partition 0, as it is; the broker's error code."""
        body = struct.pack(">hhi", -1, 1, 10_000)
        body += _one(_text(topic) + _one(struct.pack(">ii", 0, len(batch)) + batch))
        answer = self._call(*_PRODUCE, body)
        (code,) = struct.unpack_from(">h", answer, 4 + 2 + len(topic) + 4 + 4)
        return int(code)

    def fetch(self, topic: str, offset: int) -> bytes:
        """The batch of partition 0 that begins there."""
        body = struct.pack(">iiiib", -1, 1_000, 1, 1 << 24, 0)
        body += _one(_text(topic) + _one(struct.pack(">iqi", 0, offset, 1 << 24)))
        answer = self._call(*_FETCH, body)
        at = 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8
        (aborted,) = struct.unpack_from(">i", answer, at)
        at += 4 + 16 * max(aborted, 0)
        (size,) = struct.unpack_from(">i", answer, at)
        return answer[at + 4 : at + 4 + size]

    def send(self, topic: str, rows: list[Any], **settings: Any) -> list[bytes]:
        """The batches that librdkafka's producer makes of the rows: several if it is slow."""
        self.create(topic)
        producer = Producer(self.configured(linger_ms=1000, batch_size=1 << 20, **settings))
        for timestamp_ms, key, value, headers in rows:
            producer.produce(
                topic, value, key, 0, timestamp=timestamp_ms, headers=list(headers) or None
            )
        assert producer.flush(60) == 0
        batches: list[bytes] = []
        offset = 0
        while offset < len(rows):
            batches.append(self.fetch(topic, offset))
            offset += struct.unpack_from(">i", batches[-1], 57)[0]
        return batches

    def create(self, topic: str) -> None:
        """A topic is there once somebody has asked for it."""
        self._owner.list_topics(topic, timeout=30)

    def consume(self, topic: str, count: int) -> list[Any]:
        """What librdkafka's consumer reads of partition 0: offset and row of each record."""
        from confluent_kafka import TopicPartition

        consumer = Consumer(
            self.configured(group_id="judge", enable_auto_commit=False, check_crcs=True)
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while len(found) < count:
            (message,) = consumer.consume(1, timeout=60)
            assert message.error() is None, message.error()
            kind, timestamp_ms = message.timestamp()
            row = (timestamp_ms, message.key(), message.value(), message.headers() or [])
            found.append((message.offset(), kind, *row))
        consumer.close()
        return found

    def _call(self, key: int, version: int, body: bytes) -> bytes:
        head = struct.pack(">hhi", key, version, 7) + _text("lakelog")
        with socket.create_connection(self.address, timeout=60) as wire:
            wire.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
            file = wire.makefile("rb")
            (size,) = struct.unpack(">i", file.read(4))
            return file.read(size)[4:]


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _one(item: bytes) -> bytes:
    """An array of one item."""
    return struct.pack(">i", 1) + item
