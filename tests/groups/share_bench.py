"""A topic, and a share group in it that is called as its members call it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from uuid import UUID

from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch, encode
from lakelog.groups.settings import ShareGroupSettings
from lakelog.groups.share.share_partitions import SharePartitions
from lakelog.groups.share.share_values import Acknowledgement, Acquisition, Outcome
from lakelog.hot import HotLog
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

LOCK_MS = 1_000
UNTIERED = {"remote.storage.enable": "false"}


@dataclass
class ShareBench:
    """One group, on a clock that stands still unless a test moves it."""

    hot: HotLog
    clock: ManualClock
    topic: Topic
    shares: SharePartitions
    _producers: itertools.count[int] = field(default_factory=itertools.count)

    @classmethod
    def of(
        cls, url: str, *, partitions: int = 1, on_redis_clock: bool = False, **settings: object
    ) -> ShareBench:
        hot, clock = HotLog.connect(url), ManualClock()
        topic = hot.topics().create("orders", partitions, UNTIERED)
        return cls(hot, clock, topic, group(hot, None if on_redis_clock else clock, **settings))

    @property
    def tp(self) -> TopicPartition:
        return self.topic.partition(0)

    def append(self, records: int, partition: int = 0) -> None:
        rows = [(1_700_000_000_000, b"k", b"v", ())] * records
        entries = encode(
            produced_batch(rows), EntryFormat.ARROW, Compression.LZ4, max_entry_bytes=1 << 20
        )
        batch = ProducedBatch(entries, next(self._producers), 0, 0, records - 1)
        self.hot.append(self.topic.partition(partition), self.topic.topic_id, batch)

    def acquire(self, member_id: str = "ada", most: int = 500, partition: int = 0) -> Acquisition:
        found = self.shares.acquire(
            self.topic.partition(partition), self.topic.topic_id, member_id, most, begin=0
        )
        assert found is not None
        return found

    def got(self, member_id: str = "ada", most: int = 500) -> list[tuple[int, int, int]]:
        """(start, end, delivery count) of each range."""
        delivered = self.acquire(member_id, most).delivered
        return [(one.start, one.end, one.delivery_count) for one in delivered]

    def say(
        self, outcome: Outcome, start: int, end: int, epoch: int = 1, member_id: str = "ada"
    ) -> bool:
        said = [Acknowledgement(start, end, epoch, outcome)]
        (taken,) = self.shares.acknowledge(self.tp, self.topic.topic_id, member_id, said)
        return taken

    def ranges(self, topic_id: UUID | None = None) -> list[tuple[int, int, str, int]]:
        """(start, end, state, delivery count) of each range."""
        found = self.shares.describe(self.tp, topic_id)
        assert found is not None
        return [(one.start, one.end, one.state.name, one.delivery_count) for one in found.ranges]


def group(hot: HotLog, clock: ManualClock | None, **settings: object) -> SharePartitions:
    chosen = ShareGroupSettings(**{"record_lock_duration_ms": LOCK_MS, **settings})  # type: ignore[arg-type]
    return SharePartitions(hot.connections, "workers", settings=chosen, clock=clock)
