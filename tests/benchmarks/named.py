"""Finding a record in a table by name, on this machine, in one run.

    python tests/benchmarks/named.py

Makes a topic of two partitions whose table is in Spark's session catalog, and archives it in many
commits, a segment of each partition each time. Nothing is left in Redis. Then, at random targets:

- cold: what a new `Lakelog` takes to its first answer, in a Spark that runs already. It reads the
  table's history; the index is its own.
- warm: the same asked again of that `Lakelog`, which looks whether there is a new version and has
  its index.

Each by offset (which asks the index alone), by timestamp, and with the record fetched. What counts
is the median. The first round warms up the JVM. Prints one Markdown table, and exits with 1 when a
goal of it is missed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from archive import rows
from spark import seconds

from lakelog import Lakelog, UnifiedLog
from lakelog.config import MIB
from lakelog.offsets import AtTimestamp
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

PARTITIONS = 2
VALUE_BYTES = 100
SCHEMA = "spark_catalog.default"
TOPIC = "seeks"
FIRST_MS = 1_700_000_000_000

COLD_GOAL_MS = 3_000
WARM_GOAL_MS = 300


def batch(first: int, count: int) -> pa.RecordBatch:
    """Records whose timestamps are `FIRST_MS` plus twice their offset."""
    made = rows(count, VALUE_BYTES)
    times_ms = pa.array(range(FIRST_MS + 2 * first, FIRST_MS + 2 * (first + count), 2), pa.int64())
    return made.set_column(made.schema.get_field_index("timestamp_ms"), "timestamp_ms", times_ms)


def fill(lakelog: Lakelog, commits: int, records: int) -> None:
    """So many commits, each with so many records a partition."""
    settings = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": MIB}
    topic = lakelog.topics.create(TOPIC, PARTITIONS, settings)
    archiver = lakelog.archiver(topic)
    for commit in range(commits):
        with lakelog.producer() as producer:
            for partition in range(PARTITIONS):
                made = batch(commit * records, records)
                producer.send_batch(TOPIC, made, partition=partition)
        archiver.run_once()


def ways(log: UnifiedLog, chance: random.Random, records: int) -> dict[str, Callable[[], None]]:
    """What is asked, each time of another record."""

    def target() -> tuple[int, int]:
        return chance.randrange(PARTITIONS), chance.randrange(records)

    def by_offset() -> None:
        partition, offset = target()
        if log.seek(partition, offset) != offset:
            raise RuntimeError(f"offset {offset} is not found")

    def by_timestamp() -> None:
        partition, offset = target()
        found = log.seek(partition, AtTimestamp(FIRST_MS + 2 * offset - 1))  # no record's own
        if found != offset:
            raise RuntimeError(f"offset {offset} is at {found} by its time")

    def fetched() -> None:
        partition, offset = target()
        read = log.fetch(partition, offset, max_bytes=1).records.column("offset").to_pylist()
        if read != [offset]:
            raise RuntimeError(f"offset {offset} is read as {read}")

    return {"offset": by_offset, "timestamp": by_timestamp, "offset, and read one": fetched}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--records", type=int, default=10_000, help="a partition and commit")
    parser.add_argument("--rounds", type=int, default=5, help="two or more")
    parser.add_argument("--dir", help="where the table goes")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("a share of one time says nothing: give two rounds or more")
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        server = RedisServer(folder / "redis", {"appendonly": "no"}).start()
        spark = session(cores=2, conf={"spark.sql.warehouse.dir": str(folder / "warehouse")})
        chance = random.Random(7)
        records = arguments.commits * arguments.records
        try:
            with Lakelog.connect(server.url, SCHEMA, engine="spark") as lakelog:
                fill(lakelog, arguments.commits, arguments.records)
            for turn in range(arguments.rounds + 1):
                for what in ("offset", "timestamp", "offset, and read one"):
                    with Lakelog.connect(server.url, SCHEMA, engine="spark") as lakelog:
                        ask = ways(lakelog.log(TOPIC), chance, records)[what]
                        taken = {"cold": [seconds(ask)], "warm": [seconds(ask) for _ in range(10)]}
                    for way, these in taken.items() if turn else ():
                        times[way, what] += [1e3 * one for one in these]
        finally:
            spark.stop()
            server.kill()
    missed = []
    print("| by name, by | median | p95 |\n|---|---:|---:|")
    for (way, what), these in sorted(times.items()):
        median, p95 = statistics.median(these), statistics.quantiles(these, n=20)[-1]
        print(f"| {what}, {way} | {median:,.0f} ms | {p95:,.0f} ms |")
        if median > (COLD_GOAL_MS if way == "cold" else WARM_GOAL_MS):
            missed.append(f"{what}, {way}")
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
