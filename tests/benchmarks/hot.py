"""The hot tier beside bare Redis: quotas, single reads, and memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from lakelog.codec import ProducedBatch, encode
from lakelog.hot import HotLog
from lakelog.read.topic_log import TopicLog
from lakelog.values.config import (
    KIB,
    MIB,
    QUOTA_BYTE_RATE,
    QUOTA_HOT_BYTES,
    Compression,
    EntryFormat,
)
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

from .bench import Bench, Side
from .measures import BYTES, OURS, SECONDS, Goal, Row

CALLS = 2_000
RECORDS = 20_000
UNTIERED = {
    "remote.storage.enable": False,
    "retention.ms": -1,
    "max.message.bytes": 64 * MIB,
}


def rows(bench: Bench) -> Iterator[Row]:
    calls = bench.scaled(CALLS, 20)
    with bench.redis() as server:
        value = random.Random(1).randbytes(100)
        quotas = {QUOTA_HOT_BYTES: 2**40, QUOTA_BYTE_RATE: 2**40}
        _, _, bounded = appending(server.url, "quotas", value, quotas)
        hot, topic, append = appending(server.url, "sync", value)
        samples = each(bench, calls, {OURS: bounded, "without quotas": append})
        yield Row("one append under quotas", SECONDS, samples, (Goal(0.9, "without quotas"),))
        with server.client() as client:
            for _ in range(calls):
                append()
                client.xadd("bare", {b"__ts": b"1", b"__key": b"key", b"value": value})
            (tp,) = topic.topic_partitions()
            log = TopicLog(topic, hot, None)
            end = hot.offsets([tp])[tp].log_end
            ids = [entry_id for entry_id, _ in client.xrange("bare")]
            chance = random.Random(2)
            samples = each(
                bench,
                calls,
                {
                    OURS: lambda: log.fetch(0, chance.randrange(end), max_bytes=1),
                    "bare XRANGE": lambda: client.xrange("bare", chance.choice(ids), "+", count=1),
                },
            )
        yield Row("seek to an offset and read the record, hot", SECONDS, samples)
        yield from memory(server.url, bench.scaled(RECORDS, 500))


def each(
    bench: Bench, calls: int, sides: Mapping[str, Callable[[], object]]
) -> dict[str, tuple[float, ...]]:
    """Seconds a call, of so many calls each round."""

    def repeated(call: Callable[[], object]) -> Side:
        def run() -> None:
            for _ in range(calls):
                call()

        return run

    samples = bench.interleaved({side: repeated(call) for side, call in sides.items()})
    return {side: tuple(one / calls for one in values) for side, values in samples.items()}


def appending(
    url: str, keyspace: str, value: bytes, quotas: Mapping[str, object] | None = None
) -> tuple[HotLog, Topic, Callable[[], None]]:
    """A topic in a keyspace, and an append of one record to it."""
    hot = HotLog.connect(url, keyspace)
    topic = hot.topics().create("sync", 1, UNTIERED)
    if quotas:
        hot.topics().set_defaults(quotas)
    (tp,) = topic.topic_partitions()
    sequence = iter(range(10**9))
    (entry,) = encode(
        produced_batch([(hot.now_ms(), b"key", value, [])]),
        EntryFormat.FIELDS,
        Compression.NONE,
        max_entry_bytes=UNTIERED["max.message.bytes"],
    )

    def append() -> None:
        n = next(sequence)
        hot.append(tp, topic.topic_id, ProducedBatch((entry,), 1, 0, n, n))

    return hot, topic, append


def memory(url: str, records: int) -> Iterator[Row]:
    """Of Redis for a record of 1 KiB, its key included."""
    hot = HotLog.connect(url, "memory")
    for name, at_once in (("in batches", 500), ("one by one", 1)):
        topic = hot.topics().create(f"memory-{at_once}", 1, UNTIERED)
        (tp,) = topic.topic_partitions()
        fill(hot, tp, topic, records, at_once)
        used = hot.memory_bytes([tp])[tp] / records
        yield Row(
            f"Redis's memory for a record of 1 KiB, {name}, uncompressed",
            BYTES,
            {OURS: (used,), "key and value": (float(KIB),)},
        )


def fill(hot: HotLog, tp: TopicPartition, topic: Topic, records: int, at_once: int) -> None:
    chance = random.Random(3)
    now_ms = hot.now_ms()
    for start in range(0, records, at_once):
        made = [
            (now_ms + n, b"%08d" % n, chance.randbytes(KIB - 8), [])
            for n in range(start, min(records, start + at_once))
        ]
        entries = encode(produced_batch(made), EntryFormat.AUTO, Compression.NONE)
        last = start + len(made) - 1
        hot.append(tp, topic.topic_id, ProducedBatch(entries, 1, 0, start, last))
