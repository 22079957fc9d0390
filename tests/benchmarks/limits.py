"""Who works how long for a GiB, and what things take in Redis: figures of `lakelog help limits`.

    python tests/benchmarks/limits.py

For records of 100 bytes and of 1 KiB of random text, uncompressed, in one partition: CPU seconds of
the Redis server (`/proc`) and of this process for a GiB of values that is appended by `send_batch`,
read as Arrow, and archived inline into a local folder; beside them the same entries by bare `XADD`
and `XRANGE`, and one copy of a GiB in memory. Time on the CPU is counted, not time that passes, so
that others on the machine disturb little. Then the memory of Redis for a partition, and for a
producer that it remembers.

Prints two Markdown tables. Takes a minute.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelog import Lakelog
from lakelog.testing.servers import RedisServer

GIB = 2**30
CALL_BYTES = 8 * 2**20  # of a send_batch


def server_cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Meter:
    """CPU seconds for a GiB, of Redis and of this process."""

    def __init__(self, pid: int, size_bytes: int) -> None:
        self._pid, self._of = pid, size_bytes / GIB

    def __call__(self, name: str, action: Callable[[], object]) -> None:
        server_s, own_s = server_cpu_s(self._pid), time.process_time()
        action()
        own_s = time.process_time() - own_s
        server_s = server_cpu_s(self._pid) - server_s
        print(f"| {name} | {server_s / self._of:.2f} s | {own_s / self._of:.2f} s |", flush=True)


def values(record_bytes: int, size_bytes: int) -> Iterator[pa.Table]:
    """Tables of about `CALL_BYTES`."""
    chance = random.Random(0)
    count = CALL_BYTES // record_bytes
    for _ in range(max(1, size_bytes // CALL_BYTES)):
        data = chance.randbytes(count * record_bytes)
        offsets = np.arange(0, len(data) + 1, record_bytes, dtype=np.int32)
        column = pa.Array.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        yield pa.table({"value": column})


def of_size(lake: Lakelog, server: RedisServer, record_bytes: int, size_bytes: int) -> None:
    tables = list(values(record_bytes, size_bytes))
    size_bytes = sum(table.num_rows for table in tables) * record_bytes
    meter, said = Meter(server.pid, size_bytes), f"{record_bytes} B: "
    name = f"r{record_bytes}"
    lake.topics.create(name, 1, {"retention.ms": -1, "segment.bytes": GIB})
    stream = f"lakelog:stream:{name}:0"

    def append() -> None:
        with lake.producer(compression_type="none") as producer:
            for table in tables:
                producer.send_batch(name, table)

    meter(f"{said}`send_batch`", append)
    with server.client() as client:
        entries = client.xrange(stream)
        meter(f"{said}bare `XRANGE`", lambda: client.xrange(stream))

        def add() -> None:
            for _, fields in entries:
                client.xadd("bare", fields)

        meter(f"{said}bare `XADD`, an entry a round trip", add)
        client.delete("bare")
    meter(f"{said}`read(…).to_arrow()`", lambda: lake.log(name).read(0, 0).to_arrow())
    meter(f"{said}`archive`", lambda: lake.archive(name))


def used_bytes(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.info("memory")["used_memory"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256, help="of values, of each size")
    parser.add_argument("--many", type=int, default=2_000, help="partitions; producers: a tenth")
    given = parser.parse_args()
    size_bytes = given.mib * 2**20
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no"}).start()
        try:
            with Lakelog.connect(server.url, Path(folder) / "cold", engine="inline") as lake:
                print("| a GiB of values | CPU of Redis | of this process |\n|---|---:|---:|")
                for record_bytes in (100, 1024):
                    of_size(lake, server, record_bytes, size_bytes)
                block = np.zeros(size_bytes, np.uint8)
                block.copy()
                copy = Meter(server.pid, size_bytes)
                copy("one copy in memory", block.copy)
                print("\n| Redis's memory for | bytes |\n|---|---:|")
                before = used_bytes(server)
                lake.topics.create("wide", given.many)
                took = (used_bytes(server) - before) / given.many
                print(f"| a partition, empty | {took:,.0f} |")
                before = used_bytes(server)
                for _ in range(given.many // 10 or 1):
                    with lake.producer() as producer:
                        producer.send("wide", b"v", partition=0).result()
                took = (used_bytes(server) - before) / (given.many // 10 or 1)
                print(f"| a producer, with its record of a byte | {took:,.0f} |")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
