"""Finding a record in a table by name, on this machine, in one run.

    python tests/benchmarks/named.py [--unity FOLDER]

Makes a topic of two partitions whose table is in Spark's session catalog, or on a Unity Catalog
server, and archives it in many commits, a segment of each partition each time. Nothing is left in
Redis. Then, at random targets:

- cold: what a new `Lakelog` takes to its first answer, in a Spark that runs already. It reads the
  table's history; the index is its own.
- warm: the same asked again of that `Lakelog`, which looks whether there is a new version and has
  its index.

Each by offset (which asks the index alone), by timestamp, and with the record fetched. Then another
`Lakelog` commits again and again, and it is timed how long one look takes that sees it.
What counts is the median when cold and for new commits, the 95th percentile when warm. The first
round warms up the JVM. Prints one Markdown table, and exits with 1 when a goal of it is missed.
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
from lakelog.testing.unity_catalog import UnityCatalogServer

PARTITIONS = 2
VALUE_BYTES = 100
TOPIC = "seeks"
FIRST_MS = 1_700_000_000_000

NEW_COMMIT = "a new commit"
#: The median of the first, the 95th percentile of warm ones.
GOALS_MS = {"cold": 500, "offset": 15, "timestamp": 30, "offset, and read one": 30, NEW_COMMIT: 40}
NEW_COMMITS = 20


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


def new_commits(url: str, schema: str) -> list[float]:
    """How many ms a look takes that sees another's commit, each time."""
    taken = []
    with (
        Lakelog.connect(url, schema, engine="spark") as writer,
        Lakelog.connect(url, schema, engine="spark") as reader,
    ):
        archiver, table = writer.archiver(TOPIC), reader.log(TOPIC).table
        assert table is not None
        version = table.snapshot().version
        for number in range(NEW_COMMITS + 1):
            with writer.producer() as producer:
                producer.send_batch(TOPIC, batch(number, 1), partition=0)
            archiver.run_once()
            took_ms = 1e3 * seconds(table.snapshot)
            if table.snapshot().version <= version:
                raise RuntimeError("the commit was not seen")
            version = table.snapshot().version
            if number:  # the first warms up
                taken.append(took_ms)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--records", type=int, default=10_000, help="a partition and commit")
    parser.add_argument("--rounds", type=int, default=5, help="two or more")
    parser.add_argument("--dir", help="where the table goes")
    parser.add_argument(
        "--unity",
        type=Path,
        help="a folder that starts a Unity Catalog server: see tests/README.md",
    )
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("a share of one time says nothing: give two rounds or more")
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        server = RedisServer(folder / "redis", {"appendonly": "no"}).start()
        unity = arguments.unity and UnityCatalogServer(arguments.unity).start()
        conf = unity.spark_conf() if unity else {}
        spark = session(
            cores=2, conf={"spark.sql.warehouse.dir": str(folder / "warehouse"), **conf}
        )
        schema = f"{unity.CATALOG}.logs" if unity else "spark_catalog.default"
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        chance = random.Random(7)
        records = arguments.commits * arguments.records
        try:
            with Lakelog.connect(server.url, schema, engine="spark") as lakelog:
                fill(lakelog, arguments.commits, arguments.records)
            for turn in range(arguments.rounds + 1):
                for what in ("offset", "timestamp", "offset, and read one"):
                    with Lakelog.connect(server.url, schema, engine="spark") as lakelog:
                        ask = ways(lakelog.log(TOPIC), chance, records)[what]
                        taken = {"cold": [seconds(ask)], "warm": [seconds(ask) for _ in range(10)]}
                    for way, these in taken.items() if turn else ():
                        times[way, what] += [1e3 * one for one in these]
            times["warm", NEW_COMMIT] = new_commits(server.url, schema)
        finally:
            spark.stop()
            if unity:
                unity.stop()
            server.kill()
    missed = []
    print("| by name, by | median | p95 |\n|---|---:|---:|")
    for (way, what), these in sorted(times.items()):
        median, p95 = statistics.median(these), statistics.quantiles(these, n=20)[-1]
        print(f"| {what}, {way} | {median:,.0f} ms | {p95:,.0f} ms |")
        counts = median if way == "cold" or what == NEW_COMMIT else p95
        if counts > GOALS_MS["cold" if way == "cold" else what]:
            missed.append(f"{what}, {way}")
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
