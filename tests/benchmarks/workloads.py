"""What is measured of an earlier lakelog, too: run by `in_turn` as a program of its own.

It keeps to calls that have not changed for long, and prints a JSON object: what was done, and the
seconds it took. Arguments: the URL of a Redis of its own, an empty folder, the share of all counts.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelog import Lakelog, TopicPartition

PARTITIONS = 4
SIZES = {"100 B": (100, 400_000), "1 KiB": (1024, 100_000)}
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}
TIERED = {"retention.ms": -1, "local.retention.ms": 0}
COMPACTED = {**TIERED, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0}
SINGLE, DELIVERED, TOPICS = 2_000, 1_000, 200


def main(url: str, folder: str, scale: float) -> None:
    found: dict[str, float] = {}
    with Lakelog.connect(url, folder, engine="inline") as lake:
        for size, (value_bytes, records) in SIZES.items():
            count = max(40, int(records * scale))
            table = made(count, value_bytes)
            keys, values = (table[name].to_pylist() for name in ("key", "value"))
            for what, seconds in appends(lake, table, keys, values).items():
                found[f"{what}, {count:,} records of {size}"] = seconds
            for what, seconds in reads(lake, table).items():
                found[f"{what}, {count:,} records of {size}"] = seconds
        found |= singles(lake, max(20, int(SINGLE * scale)))
        found["append → delivered, p50"] = delivered(lake, max(20, int(DELIVERED * scale)))
        found |= compaction(lake, max(1_000, int(1_000_000 * scale)))
        topics = max(2, int(TOPICS * scale))
        found[f"`lake.status()` of {topics} topics of 10 partitions"] = status(
            lake, topics, url, folder
        )
        lake.topics.create("orders", 1, UNTIERED)
        with lake.producer() as producer:
            producer.send("orders", b"hello").result()
    found |= processes(url, folder)
    print(json.dumps(found))


def made(records: int, value_bytes: int) -> pa.Table:
    """Distinct random text, and keys of 8 bytes."""
    letters = np.random.default_rng(7).integers(97, 123, records * value_bytes, np.uint8)
    buffers = [None, pa.py_buffer(np.arange(records + 1, dtype=np.int32) * value_bytes)]
    values = pa.Array.from_buffers(pa.binary(), records, [*buffers, pa.py_buffer(letters)])
    keys = pa.array([b"%08d" % (number % 100_000) for number in range(records)], pa.binary())
    return pa.table({"key": keys, "value": values})


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def appends(
    lake: Lakelog, table: pa.Table, keys: list[bytes], values: list[bytes]
) -> dict[str, float]:
    pairs = list(zip(keys, values, strict=True))

    def one_by_one(producer: Any) -> None:
        for key, value in pairs:
            producer.send("appended", value, key=key)
        producer.flush()

    ways: dict[str, Callable[[Any], object]] = {
        "`send`, one by one": one_by_one,
        "`send_batch` of a list": lambda producer: producer.send_batch("appended", pairs),
        "`send_batch` of an Arrow table": lambda producer: producer.send_batch("appended", table),
    }
    found = {}
    for way, work in ways.items():
        lake.topics.create("appended", PARTITIONS, UNTIERED)
        with lake.producer() as producer:
            found[way] = timed(partial(work, producer))
        lake.topics.delete("appended")
    return found


def reads(lake: Lakelog, table: pa.Table) -> dict[str, float]:
    count = table.num_rows
    lake.topics.create("read", PARTITIONS, TIERED)
    with lake.producer() as producer:
        producer.send_batch("read", table)

    def consumed(poll: str, **limits: int) -> None:
        with lake.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("read", number) for number in range(PARTITIONS)])
            seen = 0
            while seen < count:
                batches = getattr(consumer, poll)(10_000, **limits).values()
                seen += sum(getattr(batch, "num_rows", None) or len(batch) for batch in batches)

    def records() -> None:
        log = lake.log("read")
        seen = sum(1 for number in range(PARTITIONS) for _ in log.read(number).records())
        assert seen == count, f"{seen} of {count}"

    found = {}
    for tier in ("hot", "cold"):
        if tier == "cold":
            found["archive in one process"] = timed(lambda: lake.archive("read"))
        found[f"`poll_arrow`, {tier}"] = timed(lambda: consumed("poll_arrow"))
        found[f"`poll`, {tier}"] = timed(lambda: consumed("poll", max_records=10_000))
        found[f"`poll` of 500, {tier}"] = timed(lambda: consumed("poll"))
        found[f"`.records()`, {tier}"] = timed(records)
    lake.topics.delete("read")
    return found


def singles(lake: Lakelog, count: int) -> dict[str, float]:
    lake.topics.create("single", 1, UNTIERED)
    value = bytes(100)
    with lake.producer(linger_ms=0) as producer:
        taken = [timed(lambda: producer.send("single", value).result()) for _ in range(count)]
    lake.topics.delete("single")
    quantiles = statistics.quantiles(taken, n=100)
    return {"one append, answered, p50": quantiles[49], "one append, answered, p99": quantiles[98]}


def delivered(lake: Lakelog, count: int) -> float:
    """From the call that appends a record to the return of the poll that has it."""
    lake.topics.create("delivered", 1, UNTIERED)
    arrived: list[float] = []
    ready = threading.Semaphore(0)

    def consume() -> None:
        with lake.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("delivered", 0)])
            while len(arrived) < count:
                for _ in range(sum(map(len, consumer.poll(10_000).values()))):
                    arrived.append(time.perf_counter())
                    ready.release()

    thread = threading.Thread(target=consume)
    thread.start()
    sent = []
    with lake.producer(linger_ms=0) as producer:
        for _ in range(count):
            sent.append(time.perf_counter())
            producer.send("delivered", bytes(100)).result()
            ready.acquire()
    thread.join()
    lake.topics.delete("delivered")
    return statistics.median(end - start for start, end in zip(sent, arrived, strict=True))


def compaction(lake: Lakelog, count: int) -> dict[str, float]:
    """Ten records a key at first; then 5 % new ones of random keys, cleaned again."""
    settings = {**COMPACTED, "segment.bytes": 1024 * 1024}
    lake.topics.create("compacted", PARTITIONS, settings)
    some = np.random.default_rng(11)

    def append(records: int) -> None:
        numbers = some.integers(0, max(1, count // 10), records)
        keys = pa.array([b"%08d" % number for number in numbers], pa.binary())
        table = made(records, 100).set_column(0, "key", keys)
        with lake.producer() as producer:
            producer.send_batch("compacted", table)
        lake.archive("compacted")

    found = {}
    for what, records in {"compaction": count, "compaction again": count // 20}.items():
        append(records)
        of = f"of {count:,} records" if records == count else "after 5% new ones"
        found[f"{what} {of}"] = timed(lambda: lake.cleanup("compacted", steps=["compact"]))
    lake.topics.delete("compacted")
    return found


def status(lake: Lakelog, topics: int, url: str, folder: str) -> float:
    """The first look of a new `Lakelog`."""
    for number in range(topics):
        lake.topics.create(f"many-{number}", 10, TIERED)
    with lake.producer() as producer:
        for number in range(topics):
            producer.send(f"many-{number}", b"value")
    lake.archive()
    with Lakelog.connect(url, folder, engine="inline") as other:
        return timed(other.status)


def processes(url: str, folder: str) -> dict[str, float]:
    """Python's start included."""
    consume = ["-m", "lakelog", "--redis", url, "--cold", folder, "consume", "orders"]
    commands = {
        "`import lakelog`": ["-c", "import lakelog"],
        "`from lakelog import Lakelog`": ["-c", "from lakelog import Lakelog"],
        "`lakelog --help`": ["-m", "lakelog", "--help"],
        "`lakelog consume`, one hot record": consume,
    }

    def run(arguments: list[str]) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    for arguments in commands.values():
        run(arguments)  # what is compiled then stays
    return {what: timed(partial(run, arguments)) for what, arguments in commands.items()}


if __name__ == "__main__":
    main(sys.argv[1], str(Path(sys.argv[2])), float(sys.argv[3]))
