"""Kafka's log cleaner, by what a broker's own log says of it."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from confluent_kafka import admin

from lakelog.base.back_off import BackOff, wait_until
from lakelog.values.config import KIB

from .kafka_peer import KafkaPeer
from .processes import PROCESSES

_CLEANED = re.compile(
    r"Log cleaner thread (?P<thread>\d+) cleaned log (?P<log>\S+) \(dirty section.*?"
    r"\n\s*(?P<mb>[\d.,]+) MB of log processed in [\d.,]+ seconds \((?P<speed>[\d.,]+) MB/sec\)"
    r".*?Start size: [\d.,]+ MB \((?P<read>[\d,]+) messages\)"
    r".*?End size: [\d.,]+ MB \((?P<kept>[\d,]+) messages\)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Cleaned:
    """One compaction, Kafka's or lakelog's."""

    seconds: float
    records_read: int
    records_kept: int


class KafkaCleaner:
    """The broker as the peer; its cleaner has as many threads as `PROCESSES` while this is open.

    Args:
        log: the file that the broker logs to: its cleaner reports there.
    """

    THREADS: ClassVar = {"log.cleaner.threads": str(PROCESSES), "log.cleaner.backoff.ms": "200"}
    NEVER, AT_ONCE = "1.0", "0.0001"  # min.cleanable.dirty.ratio, which must be exceeded
    PATIENCE = BackOff(0.5, 0.5, within_s=600)

    def __init__(self, kafka: KafkaPeer, log: Path) -> None:
        self._kafka = kafka
        self._log = log
        self._admin = admin.AdminClient({"bootstrap.servers": kafka.servers})
        self._producer = kafka.producer(
            **{
                "compression.type": "lz4",
                "batch.size": 16 * KIB,  # as Kafka's own producer has it
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 3,  # a deleted topic is no news
            }
        )
        self._configure_brokers(self.THREADS)

    def close(self) -> None:
        self._configure_brokers(dict.fromkeys(self.THREADS))

    @contextmanager
    def topic(self, name: str, partitions: int, segment_bytes: int) -> Iterator[str]:
        """A new compacted topic that is not cleaned before `clean` says so."""
        self._kafka.make(name, partitions)
        topic = self._kafka.topic(name)
        self._configure_topic(
            topic,
            {
                "cleanup.policy": "compact",
                "segment.bytes": str(segment_bytes),
                "min.cleanable.dirty.ratio": self.NEVER,
            },
        )
        try:
            yield topic
        finally:
            self._kafka.delete(name)

    def load(self, topic: str, tables: Iterable[pa.Table], closing: pa.Table) -> None:
        """Appends the tables, and then one that closes the segment by its age."""
        for table in tables:
            self._produce(topic, table)
        self._producer.flush()
        self._configure_topic(topic, {"segment.ms": "1"})
        time.sleep(0.5)  # until the broker goes by it, which nothing tells
        self._produce(topic, closing)
        self._producer.flush()
        self._configure_topic(topic, {"segment.ms": None})

    def clean(self, topic: str, partitions: int) -> Cleaned:
        """Have each partition cleaned once.

        The time is what the cleaner reports: bytes processed by bytes a second, summed by thread.
        The busiest thread counts, and no waiting and no scheduling.
        """
        position = self._log.stat().st_size
        self._configure_topic(topic, {"min.cleanable.dirty.ratio": self.AT_ONCE})
        found = self._await_cleanings(topic, partitions, position)
        self._configure_topic(topic, {"min.cleanable.dirty.ratio": self.NEVER})
        busy_s: dict[str, float] = defaultdict(float)
        for one in found:
            busy_s[one["thread"]] += _number(one["mb"]) / _number(one["speed"])
        return Cleaned(
            max(busy_s.values()),
            sum(int(_number(one["read"])) for one in found),
            sum(int(_number(one["kept"])) for one in found),
        )

    def _await_cleanings(self, topic: str, partitions: int, position: int) -> list[re.Match[str]]:
        def cleanings() -> list[re.Match[str]]:
            with self._log.open("rb") as log:
                log.seek(position)
                text = log.read().decode(errors="replace")
            return [
                one for one in _CLEANED.finditer(text) if one["log"].rpartition("-")[0] == topic
            ]

        if not wait_until(
            "the broker to clean", lambda: len(cleanings()) == partitions, self.PATIENCE
        ):
            raise RuntimeError(f"{self._log} does not say that {topic} was cleaned")
        return cleanings()

    def _produce(self, topic: str, table: pa.Table) -> None:
        columns = (table[name].to_pylist() for name in ("value", "key", "partition"))
        KafkaPeer.produce_all(self._producer, topic, zip(*columns, repeat(0)))
        self._producer.poll(0)

    def _configure_topic(self, topic: str, settings: dict[str, str | None]) -> None:
        self._configure(admin.ResourceType.TOPIC, topic, settings)

    def _configure_brokers(self, settings: dict[str, str | None]) -> None:
        for node in self._admin.describe_cluster().result().nodes:
            self._configure(admin.ResourceType.BROKER, str(node.id), settings)

    def _configure(self, kind: Any, name: str, settings: dict[str, str | None]) -> None:
        """None: as if it had never been set."""
        operations = admin.AlterConfigOpType
        entries = [
            admin.ConfigEntry(
                setting,
                value,
                incremental_operation=operations.DELETE if value is None else operations.SET,
            )
            for setting, value in settings.items()
        ]
        resource = admin.ConfigResource(kind, name, incremental_configs=entries)
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result()


def _number(text: str) -> float:
    return float(text.replace(",", ""))
