"""A Kafka broker, by its usual clients and its own tools."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4


class KafkaPeer:
    """Topics of this run on a broker.

    Args:
        servers: ``HOST:PORT``.
        tool: a program that runs a class of Kafka's tools, as ``kafka-run-class.sh`` does.
        log: the file that the broker logs to, where its cleaner says what it did.
    """

    def __init__(self, servers: str, tool: Path | None = None, log: Path | None = None) -> None:
        self.servers = servers
        self.tool = tool
        self.log = log
        self._run = uuid4().hex[:8]  # topics of earlier runs may be there
        self._made: list[str] = []

    def topic(self, name: str) -> str:
        return f"{name}-{self._run}"

    def make(self, name: str, partitions: int) -> None:
        from confluent_kafka.admin import NewTopic

        topic = self.topic(name)
        admin = self._admin()  # the answer comes only while it lives
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
        self._made.append(topic)

    def delete(self, name: str) -> None:
        self._made.remove(self.topic(name))
        self._delete([self.topic(name)])

    def close(self) -> None:
        """Deletes what is left of this run's topics."""
        self._delete(self._made)
        self._made = []

    def _delete(self, topics: Sequence[str]) -> None:
        if topics:
            admin = self._admin()
            for answer in admin.delete_topics(list(topics)).values():
                answer.result()

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers})

    def producer(self, **config: object) -> Any:
        """confluent-kafka's, as safe as lakelog's: all replicas answer, and no retry doubles."""
        from confluent_kafka import Producer

        return Producer(
            {
                "bootstrap.servers": self.servers,
                "acks": "all",
                "enable.idempotence": True,
                **config,
            }
        )

    @staticmethod
    def produce_all(
        producer: Any, topic: str, records: Iterable[tuple[bytes, bytes, int, int]]
    ) -> None:
        """Hands over records, without waiting for the last ones' answers.

        Not for what is timed: there, the loop stands as a caller would write it.

        Args:
            records: value, key, partition, and timestamp in milliseconds, 0 for now.
        """
        for value, key, partition, time_ms in records:
            while True:
                try:
                    producer.produce(topic, value, key, partition, timestamp=time_ms)
                    break
                except BufferError:  # its queue is full
                    producer.poll(0.1)

    def consumer(self, **config: object) -> Any:
        """confluent-kafka's, without a group's commits."""
        from confluent_kafka import Consumer

        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid4().hex,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **config,
            }
        )

    def run_tool(self, name: str, arguments: Iterable[str]) -> str:
        """What a tool's class said."""
        if self.tool is None:
            raise RuntimeError("no program was given that runs Kafka's tools: --kafka-tool PATH")
        done = subprocess.run(
            [self.tool, name, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stderr[-2000:] or done.stdout[-2000:]}")
        return done.stdout
