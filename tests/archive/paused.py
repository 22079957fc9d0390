"""A compacted log with records old and young, and those who work on it; one of them held up.

``paused.py URL ROOT TOPIC archive | cleanup`` is one of them as a process of its own.
"""

from __future__ import annotations

import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from lakelog.archive.archiver import Archiver
from lakelog.archive.copy import HotRows
from lakelog.cleanup.cleanup import Cleanup
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.cold.table import ColdTable
from lakelog.engines.engine import InlineEngine
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.read.topic_log import TopicLog
from lakelog.values.config import HOUR_MS, Compression, EntryFormat
from lakelog.values.offsets import HotOffsets
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock

SETTINGS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": HOUR_MS,
    "local.retention.ms": 0,
    "min.cleanable.dirty.ratio": 0,
    "file.delete.delay.ms": 0,
    "internal.segment.bytes": 4_000,
}
KEYS = 25
PARTITION = 0


@dataclass
class Party:
    """Whoever works on the log, with connections and looks of their own.

    To its table, every file is old enough to be deleted.
    """

    url: str
    root: str
    name: str

    def __post_init__(self) -> None:
        self.hot = HotLog.connect(self.url)
        self.topic: Topic = self.hot.topics().get(self.name)
        self.table: Any = self.opened_table()
        self.log = TopicLog(self.topic, self.hot, self.table)
        self.archiver = Archiver(self.topic, self.hot, self.table, current_topic=self.renewed)

    def opened_table(self) -> ColdTable:
        """A look of its own."""
        return PathTable(
            self.topic,
            Storage(self.root),
            InlineEngine(),
            HotRows(HotSource(self.url)),
            newest_config=lambda: self.renewed().config_version,
            store_clock=LaterClock(),
        )

    def renewed(self) -> Topic:
        return self.hot.topics().renewed(self.topic)

    def cleanup(self) -> Cleanup:
        def hot() -> dict[int, HotOffsets]:
            seen = self.hot.segments(self.topic.topic_partitions())
            return {tp.partition: offsets for tp, offsets in seen.items()}

        return Cleanup(self.topic, self.table, hot=hot, current_topic=self.renewed)

    def close(self) -> None:
        self.hot.close()


@dataclass
class Producing:
    """Appends keyed records, and knows all that the log was given."""

    party: Party
    producer_id: int = field(default_factory=lambda: uuid.uuid4().int >> 66)
    written: list[tuple[bytes, bytes]] = field(default_factory=list)  # key and value, by offset
    young: int = 0  # offsets from here on are too young for retention

    def append(self, count: int, *, age_ms: int = 0) -> None:
        first = len(self.written)
        new = [
            (b"key-%d" % (at * 7 % KEYS), b"value-%d" % at) for at in range(first, first + count)
        ]
        timestamp_ms = int(time.time() * 1000) - age_ms
        for start in range(0, count, 10):
            rows = produced_batch((timestamp_ms, *pair, ()) for pair in new[start : start + 10])
            entries = encode(rows, EntryFormat.AUTO, Compression.NONE)
            at = first + start
            last = at + min(10, count - start) - 1
            batch = ProducedBatch(entries, self.producer_id, 0, at, last)
            topic = self.party.topic
            self.party.hot.append(topic.partition(PARTITION), topic.topic_id, batch)
        self.written += new
        if age_ms:
            self.young = len(self.written)

    def check(self, party: Party) -> None:
        """Nothing is lost, doubled or changed, whoever reads it."""
        table = party.log.read(PARTITION).to_arrow()
        offsets = table["offset"].to_pylist()
        assert offsets == sorted(set(offsets))
        pairs = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
        assert list(pairs) == [self.written[offset] for offset in offsets]
        cold = party.table.snapshot()
        cleaned_end = cold.cleaned_end(PARTITION)
        assert cold.log_start(PARTITION) <= self.young
        latest = {key: offset for offset, (key, _) in enumerate(self.written[:cleaned_end])}
        wanted = {*latest.values(), *range(cleaned_end, len(self.written))}
        assert wanted - set(offsets) <= set(range(cold.log_start(PARTITION)))


def work(party: Party, mode: str) -> None:
    """What is to be held up: ``archive`` or ``cleanup``, once."""
    if mode == "archive":
        party.archiver.run_once()
    else:
        report = party.cleanup().run()
        for failure in report.failures:
            raise failure.error


def go_on(party: Party, producing: Producing) -> None:
    """Everybody else: a producer, a second archiver, cleanup with all it does."""
    for _ in range(2):
        producing.append(40)
        party.archiver.run_once()
        assert not party.cleanup().run().failures
        producing.check(party)


if __name__ == "__main__":
    *arguments, mode = sys.argv[1:]
    work(Party(*arguments), mode)
