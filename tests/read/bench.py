"""A topic in both tiers, beside the plain list of what was appended to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import redis
from support.harness import TableTold

from lakelog.archive.copy import HotRows
from lakelog.archive.plan import FlushLimit, plan
from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import RowsOf
from lakelog.cold.emptying import empty
from lakelog.cold.store.storage import Storage
from lakelog.cold.table import ColdTable
from lakelog.engines.engine import InlineEngine
from lakelog.hot.append import AppendCall
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.hot.keys import Keys
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.subscription import SeenTopics
from lakelog.read.topic_log import TopicLog
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import Record, produced_batch, to_records

#: Small, so that a few records make several segments.
SEGMENT_BYTES = 1200

_NAMES = itertools.count()


class Bench:
    """A topic whose tiers a test moves by hand.

    Args:
        settings: of the topic, over the ones below.
    """

    def __init__(
        self, url: str, root: Path, partitions: int, settings: Mapping[str, object]
    ) -> None:
        self.url = url
        self.root = root
        self.hot = HotLog.connect(url)
        self.clock = ManualClock()
        config = {"retention.ms": -1, "internal.segment.bytes": SEGMENT_BYTES, **settings}
        self.topic = self.hot.topics().create(f"t{next(_NAMES)}", partitions, config)
        self.table = None
        if self.topic.config.tiered:
            self.table = self.table_of(HotRows(HotSource(url)))
        self.log = self.open()
        self._producer_ids = itertools.count(1)
        self.appended: list[list[Record]] = [[] for _ in range(partitions)]

    def table_of(self, rows_of: RowsOf) -> ColdTable:
        """The topic's table, for those who archive what that gives."""
        return PathTable(self.topic, Storage(str(self.root)), InlineEngine(), rows_of)

    def open(self, hot: Any = None) -> TopicLog:
        """A log that has seen nothing yet, on this or a disguised hot tier."""
        return TopicLog(self.topic, hot or self.hot, self.table, self.clock)

    def consumer(self, **config: Any) -> Consumer:
        seen = SeenTopics(self.hot.topics().list, self.hot.topics().version)
        return Consumer(self._log_of, ConsumerConfig.of(**config), seen)

    def _log_of(self, topic: str) -> TopicLog:
        """The log of any topic; only that of the bench's own is archived."""
        if topic == self.topic.name:
            return self.log
        return TopicLog(self.hot.topics().get(topic), self.hot, None, self.clock)

    def append(
        self,
        timestamps: Sequence[int],
        *,
        partition: int = 0,
        entry_format: EntryFormat = EntryFormat.FIELDS,
        value_bytes: int = 0,
    ) -> None:
        """One produced batch; the value of a record says its offset."""
        base = self.hot_offsets(partition).log_end
        records = self.records(base, timestamps, partition=partition, value_bytes=value_bytes)
        rows = [(r.timestamp_ms, r.key, r.value, r.headers) for r in records]
        entries = encode(
            produced_batch(rows), entry_format, Compression.NONE, max_entry_bytes=SEGMENT_BYTES
        )
        batch = ProducedBatch(entries, next(self._producer_ids), 0, 0, len(rows) - 1)
        call = AppendCall(self.topic.partition(partition), self.topic.topic_id, batch)
        (result,) = self.hot.append_all([call])
        assert getattr(result, "base_offset", result) == base
        self.appended[partition] += records

    def records(
        self, base: int, timestamps: Sequence[int], *, partition: int = 0, value_bytes: int = 0
    ) -> list[Record]:
        """What `append` makes of timestamps at an offset."""
        return [
            Record(
                self.topic.name,
                partition,
                offset,
                time_ms,
                b"k%d" % offset,
                b"v%d" % offset + b"." * value_bytes,
                (("h", b"1"),),
            )
            for offset, time_ms in enumerate(timestamps, base)
        ]

    def archive(self, end: int | None = None, *, partition: int = 0) -> None:
        """Copy to cold up to `end`, all by default; hot keeps what it has."""
        assert self.table is not None
        offsets = self.hot_offsets(partition)
        limit = FlushLimit(ends={partition: offsets.log_end if end is None else end})
        snapshot = self.table.snapshot()
        change = plan(self.topic, {partition: offsets}, snapshot, limit, self.hot.now_ms())
        if change.partitions:
            assert not self.table.apply(change, snapshot).superseded

    def untier(self) -> dict[int, int]:
        """The topic is archived no more; its table still says and holds what it did.

        Returns:
            Where each partition's log starts.
        """
        off = {"remote.storage.enable": False, "remote.log.delete.on.disable": True}
        topics = self.hot.topics(TableTold(lambda _: self.table))
        self.topic = topics.alter(self.topic.name, off)
        numbers = range(self.topic.partitions)
        return {number: self.hot_offsets(number).log_start for number in numbers}

    def empty(self, starts: Mapping[int, int]) -> None:
        assert self.table is not None
        empty(self.table, self.topic, starts)

    def tier_again(self) -> None:
        self.topic = self.hot.topics().alter(self.topic.name, {"remote.storage.enable": True})
        assert self.table is not None
        self.table.mirror(self.topic)

    def trim(self, before: int, *, partition: int = 0) -> None:
        self.hot.trim(self.topic.partition(partition), before)

    def tier(self, archived: int, trimmed: int, *, partition: int = 0) -> None:
        """Archive [.., archived), trim [.., trimmed)."""
        self.archive(archived, partition=partition)
        self.trim(trimmed, partition=partition)

    def restarted(self, partition: int = 0) -> None:
        """The partition as it is when its server came back: last written in another run."""
        state = Keys(self.hot.keyspace).partition(self.topic.partition(partition)).state
        with redis.Redis.from_url(self.url) as client:
            client.hset(state, "run_id", "an earlier run")

    def hot_offsets(self, partition: int = 0) -> Any:
        topic_partition = self.topic.partition(partition)
        return self.hot.segments([topic_partition])[topic_partition]

    def fetched(self, offset: int, *, partition: int = 0, **options: Any) -> list[Record]:
        step = self.log.fetch(partition, offset, **options)
        return to_records(self.topic.partition(partition), step.records)


class Disguised:
    """A hot tier in which something happens before every read and between its steps."""

    def __init__(self, hot: HotLog, happens: Callable[[], None]) -> None:
        self._hot = hot
        self._happens = happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hot, name)

    def read(self, *args: Any, **options: Any) -> Iterator[Any]:
        self._happens()
        for step in self._hot.read(*args, **options):
            yield step
            self._happens()
