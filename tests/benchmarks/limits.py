"""Who works how long for a GiB, and what things take in Redis: figures of `lakelog help limits`.

For records of 100 bytes and of 1 KiB of random bytes, uncompressed, in one partition: CPU seconds
of the Redis server and of this process for a GiB of values that is appended by `send_batch`, read
as Arrow, and archived inline into a local folder; beside them the same entries by bare `XADD` (an
entry a round trip) and `XRANGE`, and one copy of a GiB in memory. Time on the CPU is counted, not
time that passes, so that others on the machine disturb little. Then, once, the memory of Redis for
a partition, and for a producer that it remembers. There are three rounds at most.

There is no zero-copy to compare with. Kafka's `sendfile` hands the socket pages of a log that is
stored as it is sent; Redis keeps values in nodes that it may move, and lends them to nobody. Memory
that it shared would at best save an archiver the row of `XRANGE`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from lakelog import Lakelog
from lakelog.values.config import GIB, KIB, MIB
from tests.support.servers import RedisServer

from .bench import Bench
from .made_records import fixed, size
from .measures import BYTES, OURS, SECONDS, Row
from .meters import redis_cpu_s

VALUES_MIB = 256  # of each size
CALL_BYTES = 8 * MIB  # of a send_batch
PARTITIONS, PRODUCERS = 2_000, 200
UNTIERED = {"retention.ms": -1, "segment.bytes": GIB, "max.message.bytes": 64 * MIB}
XADD, XRANGE, COPY = "bare XADD", "bare XRANGE", "one copy in memory"
#: What lakelog does, and what stands beside it.
WAYS = {"`send_batch`": XADD, "`read(…).to_arrow()`": XRANGE, "`archive`": XRANGE}


def rows(bench: Bench) -> Iterator[Row]:
    size_bytes = bench.scaled(VALUES_MIB, 8) * MIB
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url, bench.new_folder(), engine="inline") as lake,
    ):
        for value_bytes in (100, KIB):
            tables = list(made(value_bytes, size_bytes))
            found = bench.repeated(lambda t=tables: round_of(lake, server, t), bench.few)
            for way, beside in WAYS.items():
                of = f"{way} of a GiB of values of {size(value_bytes)}"
                for who in ("Redis", "this process"):
                    sides = {OURS: found[way, who], beside: found[beside, who]}
                    if who == "this process":
                        sides[COPY] = found[COPY, who]
                    yield Row(f"{of}: CPU of {who}", SECONDS, sides)
    yield from memory(bench)


def made(value_bytes: int, size_bytes: int) -> Iterator[pa.Table]:
    """Tables of about `CALL_BYTES`; one value at least, and one table."""
    chance = np.random.default_rng(0)
    count = max(1, CALL_BYTES // value_bytes)
    for _ in range(max(1, size_bytes // (count * value_bytes))):
        values = fixed(chance.bytes(count * value_bytes), count, value_bytes)
        yield pa.table({"value": values})


def round_of(
    lake: Lakelog, server: RedisServer, tables: list[pa.Table]
) -> dict[tuple[str, str], float]:
    """CPU seconds for a GiB, by what was done and by whom."""
    size_bytes = sum(table["value"].nbytes for table in tables)
    topic = lake.topics.create("limits", 1, UNTIERED)
    stream = f"lakelog:stream:{topic.name}:0"
    found: dict[tuple[str, str], float] = {}

    def meter(name: str, work: Callable[[], object]) -> None:
        server_s, own_s = redis_cpu_s(client), time.process_time()
        work()
        own_s = time.process_time() - own_s
        found[name, "this process"] = own_s / size_bytes * GIB
        found[name, "Redis"] = (redis_cpu_s(client) - server_s) / size_bytes * GIB

    def append() -> None:
        with lake.producer(compression_type="none") as producer:
            for table in tables:
                producer.send_batch(topic.name, table)

    with server.client() as client:
        meter("`send_batch`", append)
        entries = client.xrange(stream)
        meter(XRANGE, lambda: client.xrange(stream))

        def add() -> None:
            for _, fields in entries:
                client.xadd("bare", fields)

        meter(XADD, add)
        client.delete("bare")
        meter("`read(…).to_arrow()`", lambda: lake.log(topic.name).read(0, 0).to_arrow())
        meter("`archive`", lambda: lake.archive(topic.name))
        block = np.zeros(size_bytes, np.uint8)
        block.copy()
        meter(COPY, block.copy)
    lake.topics.delete(topic.name)
    lake.purge(topic.name)
    return found


def memory(bench: Bench) -> Iterator[Row]:
    """In a server of its own, which frees nothing meanwhile."""
    partitions, producers = bench.scaled(PARTITIONS, 50), bench.scaled(PRODUCERS, 5)
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url, bench.new_folder(), engine="inline") as lake,
        server.client() as client,
    ):

        def used() -> int:
            return int(client.info("memory")["used_memory"])

        lake.topics.create("first", 1)  # what is made once is there afterwards
        before = used()
        lake.topics.create("wide", partitions)
        took = (used() - before) / partitions
        yield Row("Redis's memory for an empty partition", BYTES, {OURS: (took,)})
        before = used()
        for _ in range(producers):
            with lake.producer() as producer:
                producer.send("wide", b"v", partition=0).result()
        took = (used() - before) / producers
        what = "Redis's memory for a producer, with its record of a byte"
        yield Row(what, BYTES, {OURS: (took,)})
