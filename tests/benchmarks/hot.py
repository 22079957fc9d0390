"""The hot tier against bare Redis: round trips and memory. Run by hand: ratios of one run count.

    python tests/benchmarks/hot.py

Prints, as a Markdown table: one synchronous append against a bare XADD of the same value, and under
quotas of bytes held and bytes a second against one without; seek and read of one record against a
bare XRANGE of one entry; Redis's memory per 1-KiB record.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import redis

from lakelog.codec import ProducedBatch, encode
from lakelog.config import QUOTA_BYTE_RATE, QUOTA_HOT_BYTES, Compression, EntryFormat
from lakelog.hot import HotLog
from lakelog.read.unified_log import UnifiedLog
from lakelog.record import TopicPartition, produced_batch
from lakelog.testing.servers import RedisServer
from lakelog.topic import Topic

ROUNDS = 9
CALLS = 2_000
RECORDS = 20_000
KIB = 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), {"appendfsync": "everysec"})
        server.start()
        try:
            rows = [*round_trips(server.url), *memory(server.url)]
        finally:
            server.kill()
    print("| measured | lakelog | bare | ratio |\n|---|---:|---:|---:|")
    for name, ours, bare, ratio in rows:
        print(f"| {name} | {ours} | {bare} | {ratio} |")


def round_trips(url: str) -> list[tuple[str, str, str, str]]:
    client = redis.Redis.from_url(url)
    value = random.Random(1).randbytes(100)
    hot, topic, append = appending(url, "sync", value)
    quotas = {QUOTA_HOT_BYTES: 2**40, QUOTA_BYTE_RATE: 2**40}
    _, _, append_under_quotas = appending(url, "quotas", value, quotas)
    (tp,) = topic.topic_partitions()

    def xadd() -> None:
        client.xadd("bare", {b"__ts": b"1", b"__key": b"key", b"value": value})

    appended = compare("one synchronous append / XADD", append, xadd)
    bounded = compare("one append under quotas / without", append_under_quotas, append)
    log = UnifiedLog(topic, hot, None)
    end = hot.offsets([tp])[tp].log_end
    ids = [entry_id for entry_id, _ in client.xrange("bare", count=end)]
    rng = random.Random(2)

    def seek_and_read() -> None:
        log.fetch(0, rng.randrange(end), max_bytes=1)

    def xrange() -> None:
        client.xrange("bare", rng.choice(ids), "+", count=1)

    return [
        appended,
        bounded,
        compare("seek and read one record, hot / XRANGE", seek_and_read, xrange),
    ]


def appending(
    url: str, keyspace: str, value: bytes, quotas: Mapping[str, object] | None = None
) -> tuple[HotLog, Topic, Callable[[], None]]:
    """A topic in a keyspace, and an append of one record to it."""
    hot = HotLog.connect(url, keyspace)
    topic = hot.topics().create("sync", 1, {"remote.storage.enable": False, "retention.ms": -1})
    if quotas:
        hot.topics().set_defaults(quotas)
    (tp,) = topic.topic_partitions()
    sequence = iter(range(10**9))
    (entry,) = encode(
        produced_batch([(hot.now_ms(), b"key", value, [])]), EntryFormat.FIELDS, Compression.NONE
    )

    def append() -> None:
        n = next(sequence)
        hot.append(tp, topic.topic_id, ProducedBatch((entry,), 1, 0, n, n))

    return hot, topic, append


def compare(
    name: str, ours: Callable[[], None], bare: Callable[[], None]
) -> tuple[str, str, str, str]:
    """Medians over rounds in turn, so that a slow moment hits both."""
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(ROUNDS):
        for side, call in (("ours", ours), ("bare", bare)):
            started_s = time.perf_counter()
            for _ in range(CALLS):
                call()
            times[side].append((time.perf_counter() - started_s) / CALLS * 1e6)
    ratios = [a / b for a, b in zip(times["ours"], times["bare"], strict=True)]
    return (
        name,
        f"{statistics.median(times['ours']):.0f} µs",
        f"{statistics.median(times['bare']):.0f} µs",
        f"{statistics.median(ratios):.2f} ×",
    )


def memory(url: str) -> list[tuple[str, str, str, str]]:
    hot = HotLog.connect(url)
    rng = random.Random(3)
    rows = []
    for name, batch_records in (("in batches", 500), ("one by one", 1)):
        topic = hot.topics().create(
            f"memory-{batch_records}", 1, {"remote.storage.enable": False, "retention.ms": -1}
        )
        (tp,) = topic.topic_partitions()
        size_bytes = fill(hot, tp, topic.topic_id, batch_records, rng)
        used_bytes = hot.memory_bytes([tp])[tp]
        rows.append(
            (
                f"memory per 1-KiB record, {name}, uncompressed",
                f"{used_bytes / RECORDS:.0f} B",
                f"{size_bytes / RECORDS:.0f} B of key and value",
                f"{used_bytes / RECORDS / KIB:.3f} KiB",
            )
        )
    return rows


def fill(hot: HotLog, tp: TopicPartition, topic_id: object, batch: int, rng: random.Random) -> int:
    """Appends RECORDS records of 1 KiB, key included."""
    now_ms = hot.now_ms()
    for start in range(0, RECORDS, batch):
        rows = [
            (now_ms + start + i, b"%08d" % (start + i), rng.randbytes(KIB - 8), [])
            for i in range(batch)
        ]
        entries = encode(
            produced_batch(rows),
            EntryFormat.AUTO,
            Compression.NONE,
        )
        produced = ProducedBatch(entries, 1, 0, start, start + batch - 1)
        hot.append(tp, topic_id, produced)  # type: ignore[arg-type]
    return RECORDS * KIB


if __name__ == "__main__":
    main()
