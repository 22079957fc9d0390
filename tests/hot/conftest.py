"""One topic on a real server, and the hands that append to it, look at it and turn its clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch, encode
from lakelog.hot import AppendCall, AppendResult, HotLog
from lakelog.hot.keys import Keys
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.offsets import HotSegments
from lakelog.values.record import Record, produced_batch, to_records
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

FIRST_PRODUCER = 1_000


def batch_of(
    timestamps_ms: Iterable[int],
    *,
    producer_id: int = 1,
    epoch: int = 0,
    first_sequence: int = 0,
    key: bytes | None = b"k",
    keys: Sequence[bytes | None] | None = None,
    value_bytes: int = 1,
    entry_format: EntryFormat = EntryFormat.FIELDS,
    max_entry_bytes: int = 1 << 20,
) -> ProducedBatch:
    """One record a timestamp; under ``FIELDS`` (the default) also one entry a record."""
    rows = [
        (timestamp_ms, key if keys is None else keys[i], b"%0*d" % (value_bytes, i % 10), ())
        for i, timestamp_ms in enumerate(timestamps_ms)
    ]
    entries = encode(
        produced_batch(rows), entry_format, Compression.NONE, max_entry_bytes=max_entry_bytes
    )
    last_sequence = (first_sequence + len(rows) - 1) % 2**31
    return ProducedBatch(entries, producer_id, epoch, first_sequence, last_sequence)


def sized(batch: ProducedBatch, size_bytes: int) -> ProducedBatch:
    """The batch with entries that say they have that size: rolling goes by what they say."""
    entries = tuple(replace(entry, size_bytes=size_bytes) for entry in batch.entries)
    return replace(batch, entries=entries)


@dataclass
class Bench:
    """A topic, its hot log and a plain client of its server."""

    url: str
    hot: HotLog
    topic: Topic
    clock: ManualClock
    client: redis.Redis
    _producers: Iterator[int] = field(default_factory=lambda: itertools.count(FIRST_PRODUCER))

    def tp(self, partition: int = 0) -> TopicPartition:
        return self.topic.partition(partition)

    def call(
        self, batch: ProducedBatch, partition: int = 0, sent_under: str | None = None
    ) -> AppendCall:
        return AppendCall(self.tp(partition), self.topic.topic_id, batch, sent_under)

    def send(
        self, batch: ProducedBatch, partition: int = 0, sent_under: str | None = None
    ) -> AppendResult:
        return self.hot.append(
            self.tp(partition), self.topic.topic_id, batch, sent_under=sent_under
        )

    def append(self, *timestamps_ms: int, partition: int = 0, **more: Any) -> AppendResult:
        """One call of a producer of its own."""
        batch = batch_of(timestamps_ms, producer_id=next(self._producers), **more)
        return self.send(batch, partition)

    def append_sized(self, size_bytes: int, *timestamps_ms: int) -> AppendResult:
        batch = batch_of(timestamps_ms, producer_id=next(self._producers))
        return self.send(sized(batch, size_bytes))

    def offsets(self, partition: int = 0) -> HotSegments:
        return self.hot.segments([self.tp(partition)])[self.tp(partition)]

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.offsets().segments]

    def read(self, start: int = 0, end: int | None = None, **more: Any) -> list[Record]:
        steps = self.hot.read(self.tp(), start, end, **more)
        return [record for step in steps for record in to_records(self.tp(), step.records)]

    def read_offsets(self, start: int = 0, end: int | None = None, **more: Any) -> list[int]:
        return [record.offset for record in self.read(start, end, **more)]

    def keys(self, partition: int = 0) -> tuple[str, ...]:
        """stream, state, segments, times, producers."""
        return Keys(self.hot.keyspace).partition(self.tp(partition)).all()

    def dump(self, partition: int = 0) -> list[object]:
        """Everything there is of a partition. Hashes field by field: Redis orders them anew when
        it has time.
        """
        return [self._dumped(key) for key in self.keys(partition)]

    def _dumped(self, key: str) -> object:
        match self.client.type(key):
            case b"hash":
                return self.client.hgetall(key)
            case b"stream":  # but for its last id, which a refused transaction may change
                about = self.client.xinfo_stream(key)
                del about["last-generated-id"]
                return self.client.xrange(key), about
        return self.client.dump(key)

    def state(self, name: str) -> bytes | None:
        value: bytes | None = self.client.hget(self.keys()[1], name)
        return value


@pytest.fixture
def make_bench(redis_url: str) -> Iterator[Callable[..., Bench]]:
    """``make_bench(partitions=1, url=…, clock=None, **config)``; ``_`` in names for ``.``.

    The clock is a manual one; ``clock=False`` lets Redis's own go.
    """
    made: list[Bench] = []

    def make(
        partitions: int = 1,
        *,
        url: str = redis_url,
        name: str = "orders",
        clock: bool = True,
        **config: object,
    ) -> Bench:
        hands = ManualClock()
        hot = HotLog.connect(url, clock=hands if clock else None)
        client = redis.Redis.from_url(url.partition("?")[0])
        settings = {setting.replace("_", "."): value for setting, value in config.items()}
        topic = hot.topics().create(name, partitions, settings)
        made.append(Bench(url, hot, topic, hands, client))
        return made[-1]

    yield make
    for bench in made:
        bench.hot.close()
        bench.client.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


@pytest.fixture
def make_batch() -> Callable[..., ProducedBatch]:
    """`batch_of`, for tests to build what they send."""
    return batch_of
