"""Finding a record in a table by name.

A topic of two partitions whose table is in Spark's session catalog (and, with `--unity`, another on
a Unity Catalog server) is archived in many commits, a segment of each partition each time. Nothing
is left in Redis. Then, at random targets:

- first: what a new `Lakelog` takes to its first answer, in a Spark that runs already. It reads the
  table's history; the index is its own.
- warm: the same asked again of that `Lakelog`, which looks whether there is a new version and has
  its index.

Each by offset (which asks the index alone), by timestamp, and with the record fetched. Then another
`Lakelog` commits again and again, and it is timed how long one look takes that sees it.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator

import pyarrow as pa

from lakelog import Lakelog, TopicLog
from lakelog.values.config import MIB
from lakelog.values.offsets import AtTimestamp
from tests.support.unity_catalog import SPARKS_OWN

from .bench import Bench, timed
from .made_records import made_batch
from .measures import OURS, SECONDS, Goal, Row, quantile

PARTITIONS = 2
VALUE_BYTES = 100
TOPIC = "seeks"
FIRST_MS = 1_700_000_000_000
COMMITS, RECORDS = 40, 10_000  # of a partition and commit
WARM_CALLS, NEW_COMMITS = 10, 5  # a round

FIRST_S, NEW_COMMIT_S = 0.500, 0.040
WARM_P95_S = {"an offset": 0.015, "a time": 0.030, "an offset and its record": 0.030}


def rows(bench: Bench) -> Iterator[Row]:
    for catalog in bench.spark.catalogs:
        where = "by name" if catalog == SPARKS_OWN else "by name on a Unity Catalog server"
        schema = bench.spark.new_schema(catalog)
        with bench.redis({"appendonly": "no"}) as server:
            yield from of_schema(bench, server.url, schema, where)


def of_schema(bench: Bench, url: str, schema: str, where: str) -> Iterator[Row]:
    commits, records = bench.scaled(COMMITS, 2), bench.scaled(RECORDS, 100)
    with Lakelog.connect(url, schema, engine="spark") as lakelog:
        fill(lakelog, commits, records)
    chance = random.Random(7)
    for what, goal_s in WARM_P95_S.items():

        def asked(what: str = what) -> dict[str, float]:
            with Lakelog.connect(url, schema, engine="spark") as lakelog:
                ask = ways(lakelog.log(TOPIC), chance, commits * records)[what]
                first_s = timed(ask)
                warm_s = [timed(ask) for _ in range(WARM_CALLS)]
            p50, p95 = statistics.median(warm_s), quantile(warm_s, 0.95)
            return {"the first of a `Lakelog`": first_s, "warm, p50": p50, "warm, p95": p95}

        for figure, samples in bench.repeated(asked).items():
            goals: tuple[Goal, ...] = ()
            if figure != "warm, p50":
                goals = (Goal(goal_s if figure == "warm, p95" else FIRST_S),)
            yield Row(f"{what} {where}, {figure}", SECONDS, {OURS: samples}, goals)
    yield from of_new_commits(bench, url, schema, where)


def of_new_commits(bench: Bench, url: str, schema: str, where: str) -> Iterator[Row]:
    """How long a look takes that sees another's commit."""
    with (
        Lakelog.connect(url, schema, engine="spark") as writer,
        Lakelog.connect(url, schema, engine="spark") as reader,
    ):
        archiver, table = writer.archiver(TOPIC), reader.log(TOPIC).table
        assert table is not None
        seen = table.snapshot().version

        def look() -> float:
            nonlocal seen
            with writer.producer() as producer:
                producer.send_batch(TOPIC, batch(0, 1), partition=0)
            archiver.run_once()
            took_s = timed(table.snapshot)
            version = table.snapshot().version
            if version <= seen:
                raise RuntimeError("the commit was not seen")
            seen = version
            return took_s

        def looks() -> dict[str, float]:
            taken = [look() for _ in range(NEW_COMMITS)]
            return {"p50": statistics.median(taken), "p95": quantile(taken, 0.95)}

        for share, samples in bench.repeated(looks).items():
            goals = (Goal(NEW_COMMIT_S),) if share == "p50" else ()
            yield Row(f"a new commit seen {where}, {share}", SECONDS, {OURS: samples}, goals)


def batch(first: int, count: int) -> pa.RecordBatch:
    """Records whose timestamps are `FIRST_MS` plus twice their offset."""
    made = made_batch(count, VALUE_BYTES)
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


def ways(log: TopicLog, chance: random.Random, records: int) -> dict[str, Callable[[], None]]:
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

    return {"an offset": by_offset, "a time": by_timestamp, "an offset and its record": fetched}
