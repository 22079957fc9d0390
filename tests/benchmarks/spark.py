"""lakelog on Spark against Spark's own Kafka source and Delta reader.

Archive: what lies in Redis or in Kafka, 4 partitions, becomes rows of a Delta table. The first
rounds of a case only warm up the JVM, which takes it some ten million rows of either writer. Values
are random text, uncompressed on both sides. The peer (with `--peers` and `--kafka-jars`) is
`spark.read.format("kafka")` into `write.format("delta")`: one table, not partitioned, key, value,
partition, offset, timestamp and timestampType. lakelog's time includes looking at both tiers,
headers, the commit, fsync and trim. There are three rounds at most.

Frame: all columns of the archived records into Spark's noop sink, through `log.dataframe` and
through the Delta reader alone. Tail: the same of records that are in Redis only.

Small partitions: `format("lakelog")` over hundreds of them, most of it archived, and the Delta
reader over what is archived.

Needs 3 GB of memory for Redis and as much disk here and where the broker has its data.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakelog import Lakelog, Topic
from lakelog.cold.store.storage import Storage
from lakelog.values.config import GIB, KIB

from .bench import Bench, Side, rates, timed
from .kafka_peer import KafkaPeer
from .made_records import PARTITIONS, Case, fill_hot, made_batch, made_frame
from .measures import OURS, RECORDS_PER_S, SECONDS, Goal, Row

CASES = [Case(100, 4_000_000), Case(KIB, 1_000_000)]
WARM_ROUNDS = 3

KAFKA = "Spark's Kafka source"
READER = "the Delta reader alone"
#: By way and value size: how many times as fast as the Kafka source.
ARCHIVE_GOALS = {"path": {100: 8.0, KIB: 3.0}, "name": {100: 1.3, KIB: 1.1}}
FRAME_GOAL = 1.1  # times the plain Delta reader
#: One round's frame takes up to a third longer than the next one's, of either side.
FRAME_TIMES = 3
TAIL_PER_S = 300_000

SMALL_PARTITIONS, OF_EACH = 300, 100


def rows(bench: Bench) -> Iterator[Row]:
    spark = bench.spark.session()
    with bench.redis({"appendonly": "no"}) as server:
        by_path = Ours(server.url, str(bench.new_folder()), "by-path", spark)
        by_name = Ours(server.url, bench.spark.new_schema(), "by-name", spark)
        yield small(bench, by_path)
        for case in (one.scaled(bench) for one in CASES):
            yield from archive(bench, case, {"path": by_path, "name": by_name}, spark)
            yield from frames(bench, case, by_path)
        by_path.lakelog.close()
        by_name.lakelog.close()


def archive(bench: Bench, case: Case, ours: dict[str, Ours], spark: Any) -> Iterator[Row]:
    def archiving(one: Ours) -> Side:
        return lambda: one.filled_and_archived(case)

    sides: dict[str, Side] = {way: archiving(one) for way, one in ours.items()}
    if bench.kafka is not None and bench.spark.has_kafka:
        kafka, name, folder = bench.kafka, f"source-{case.value_bytes}", bench.new_folder()
        fill_kafka(kafka, name, spark, folder, case)
        sides[KAFKA] = lambda: by_kafka_source_s(kafka, name, spark, folder / "table", case)
    warm = min(WARM_ROUNDS, bench.few)
    found = rates(bench.interleaved(sides, bench.few, warm), case.records)
    for way in ours:
        samples = {OURS: found[way]}
        if KAFKA in found:
            samples[KAFKA] = found[KAFKA]
        goals = (Goal(ARCHIVE_GOALS[way][case.value_bytes], KAFKA),)
        yield Row(f"archive on Spark by {way}, {case}", RECORDS_PER_S, samples, goals)


def frames(bench: Bench, case: Case, ours: Ours) -> Iterator[Row]:
    topic = ours.filled(case)
    log = ours.lakelog.log(topic)

    def frame() -> None:
        noop(log.dataframe(spark=ours.spark))

    hot = rates(bench.interleaved({OURS: frame}), case.records)
    ours.archive(topic, case)
    sides: dict[str, Side] = {OURS: frame, READER: lambda: noop(ours.by_delta(topic))}
    samples = bench.interleaved(sides, FRAME_TIMES * bench.rounds)
    ours.drop(topic)
    what = f"`log.dataframe`, {case}, all archived"
    yield Row(what, SECONDS, samples, (Goal(1 / FRAME_GOAL, READER),))
    yield Row(f"`log.dataframe`, {case}, all hot", RECORDS_PER_S, hot, (Goal(TAIL_PER_S),))


def small(bench: Bench, ours: Ours) -> Row:
    settings = {"retention.ms": -1, "local.retention.ms": 0}
    partitions = bench.scaled(SMALL_PARTITIONS, 10)
    topic = ours.lakelog.topics.create("small", partitions, settings)

    def append(records: int) -> None:
        with ours.lakelog.producer() as producer:
            for partition in range(partitions):
                producer.send_batch(topic.name, made_batch(records, 100), partition=partition)

    append(OF_EACH)
    ours.lakelog.archive(topic.name)
    append(1)
    expected = partitions * (OF_EACH + 1)
    if (found := ours.by_format(topic).count()) != expected:
        raise RuntimeError(f"read {found} of {expected} records")
    sides: dict[str, Side] = {
        OURS: lambda: noop(ours.by_format(topic)),
        READER: lambda: noop(ours.by_delta(topic)),
    }
    samples = bench.interleaved(sides)
    ours.drop(topic)
    what = f'`format("lakelog")`, {partitions} partitions of {OF_EACH + 1} records'
    return Row(what, SECONDS, samples, (Goal(1.0, READER),))


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


class Ours:
    """A lakelog whose tables are kept by path or by name."""

    def __init__(self, redis_url: str, cold: str, keyspace: str, spark: Any) -> None:
        self.lakelog = Lakelog.connect(redis_url, cold, keyspace=keyspace, engine="spark")
        self.spark = spark
        self._options = {"redis": redis_url, "keyspace": keyspace, "cold": cold}

    def filled(self, case: Case) -> Topic:
        settings = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": GIB}
        topic = self.lakelog.topics.create("values", PARTITIONS, settings)
        fill_hot(self.lakelog.hot, topic, case)
        return topic

    def archive(self, topic: Topic, case: Case) -> float:
        archiver = self.lakelog.archiver(topic)
        reports: list[Any] = []
        took_s = timed(lambda: reports.append(archiver.run_once()))
        if reports[0].records != case.records:
            raise RuntimeError(f"archived {reports[0].records} of {case.records} records")
        return took_s

    def filled_and_archived(self, case: Case) -> float:
        """Seconds of the archive alone."""
        topic = self.filled(case)
        took_s = self.archive(topic, case)
        self.drop(topic)
        return took_s

    def by_format(self, topic: Topic) -> Any:
        reader = self.spark.read.format("lakelog").options(**self._options)
        return reader.option("subscribe", topic.name).load()

    def by_delta(self, topic: Topic) -> Any:
        return self.spark.read.format("delta").load(self._path(topic))

    def drop(self, topic: Topic) -> None:
        name = getattr(self.lakelog.log(topic).table, "name", None)
        self.lakelog.topics.delete(topic.name)
        if name is not None:
            self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        else:
            shutil.rmtree(self._path(topic))

    def _path(self, topic: Topic) -> str:
        return Storage(self._options["cold"]).table_path(topic)


# -- the same records in a broker, by Spark's own connector ------------------------------------


def fill_kafka(kafka: KafkaPeer, name: str, spark: Any, folder: Path, case: Case) -> None:
    from pyspark.sql import functions as f

    kafka.make(name, PARTITIONS)
    partition = (f.monotonically_increasing_id() % PARTITIONS).cast("int").alias("partition")
    options = {
        "kafka.bootstrap.servers": kafka.servers,
        "kafka.batch.size": "131072",
        "kafka.linger.ms": "20",
        "topic": kafka.topic(name),
    }
    frame = made_frame(spark, folder, case).select("key", "value", partition)
    frame.write.format("kafka").options(**options).save()


def by_kafka_source_s(kafka: KafkaPeer, name: str, spark: Any, table: Path, case: Case) -> float:
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.servers)
        .option("subscribe", kafka.topic(name))
        .load()
        .select("key", "value", "partition", "offset", "timestamp", "timestampType")
    )
    took_s = timed(lambda: frame.write.format("delta").save(str(table)))
    held = spark.read.format("delta").load(str(table)).count()
    shutil.rmtree(table)
    if held != case.records:
        raise RuntimeError(f"Kafka's source wrote {held} of {case.records} records")
    return took_s
