"""lakelog on Spark against Spark's own Kafka source and Delta reader, on this machine, in one run.

    python tests/benchmarks/spark.py --bootstrap-servers HOST:PORT --kafka-jars A.jar,B.jar

Without a broker the archive has no peer. Rounds take turns, the best of each counts: whatever else
runs on the machine only ever adds. The first rounds of a case only warm up the JVM, which takes it
some ten million rows of either writer. Values are random text, uncompressed on both sides.

Archive: what lies in Redis or in Kafka, 4 partitions, becomes rows of a Delta table, on Spark
local[2], warm. The peer is `spark.read.format("kafka")` into `write.format("delta")`: one table,
not partitioned, key, value, partition, offset, timestamp and timestampType. lakelog's time includes
looking at both tiers, headers, the commit, fsync and trim.

Frame: all columns of the archived records into Spark's noop sink, through `log.dataframe` and
through the Delta reader alone. Tail: the same of records that are in Redis only.

Small partitions: `format("lakelog")` over hundreds of them, most of it archived, and the Delta
reader over what is archived.

Prints one Markdown table; exits with 1 when a goal of it is missed. Needs 3 GB of memory for Redis
and as much disk below --dir and where the broker has its data.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
from archive import PARTITIONS, PROCESSES, Case, fill, rows

from lakelog import Lakelog, Topic
from lakelog.cold.store.storage import Storage
from lakelog.config import GIB, KIB
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

CASES = [Case(100, 4_000_000), Case(KIB, 1_000_000)]
WARM = Case(100, 100_000)
WARM_ROUNDS = 3

#: By way and value size: how many times as fast as the Kafka source.
ARCHIVE_GOALS = {"path": {100: 8.0, KIB: 3.0}, "name": {100: 2.0, KIB: 1.5}}
FRAME_GOAL = 1.1  # times the plain Delta reader
TAIL_GOAL = 300_000  # records/s

SMALL_PARTITIONS, OF_EACH = 300, 100
SMALL_GOAL = 1.0  # times the plain Delta reader


@dataclass(frozen=True)
class Goal:
    """One line of the table."""

    what: str
    measured: str
    against: str
    ratio: str
    reached: bool


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def told(goals: Sequence[Goal]) -> int:
    """Prints the table, and what was missed; the exit code."""
    print("| what | measured | against | ratio |\n|---|---:|---|---:|")
    for goal in goals:
        print(f"| {goal.what} | {goal.measured} | {goal.against} | {goal.ratio} |")
    missed = [goal.what for goal in goals if not goal.reached]
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed else 0


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


class Ours:
    """A lakelog whose tables are kept by path or by name."""

    def __init__(self, redis_url: str, cold: str, keyspace: str, spark: Any) -> None:
        self.lakelog = Lakelog.connect(redis_url, cold, keyspace=keyspace, engine="spark")
        self.url = redis_url
        self.cold = cold
        self.keyspace = keyspace
        self.spark = spark

    def filled(self, case: Case) -> Topic:
        settings = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": GIB}
        topic = self.lakelog.topics.create("values", PARTITIONS, settings)
        fill(self.lakelog.hot, topic, case)
        return topic

    def archive(self, topic: Topic, case: Case) -> float:
        archiver = self.lakelog.archiver(topic)
        reports: list[Any] = []
        took = seconds(lambda: reports.append(archiver.run_once()))
        if reports[0].records != case.records:
            raise RuntimeError(f"archived {reports[0].records} of {case.records} records")
        return took

    def drop(self, topic: Topic) -> None:
        name = getattr(self.lakelog.log(topic).table, "name", None)
        self.lakelog.topics.delete(topic.name)
        if name is not None:  # at a path each creation of a topic has a table of its own
            self.spark.sql(f"DROP TABLE IF EXISTS {name}")


class Kafka:
    """The same records in a broker, archived by Spark's own source and writer."""

    def __init__(self, servers: str, spark: Any, folder: Path) -> None:
        self.servers = servers
        self.spark = spark
        self.folder = folder

    def filled(self, case: Case) -> str:
        """Makes a topic of the case's records; Spark's sink makes it with the broker's defaults."""
        from pyspark.sql import functions as f

        name = f"values-{uuid4().hex[:8]}"
        source = self.folder / f"{name}.parquet"
        step = 100_000
        with pq.ParquetWriter(source, rows(1, case.value_bytes).schema) as writer:
            for first in range(0, case.records, step):
                count = min(step, case.records - first)
                writer.write_batch(rows(count, case.value_bytes))
        self._make(name)
        frame = self.spark.read.parquet(str(source)).select(
            "key",
            "value",
            (f.monotonically_increasing_id() % PARTITIONS).cast("int").alias("partition"),
        )
        frame.write.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self.servers,
                "kafka.batch.size": "131072",
                "kafka.linger.ms": "20",
                "topic": name,
            }
        ).save()
        source.unlink()
        return name

    def archive(self, name: str, case: Case) -> float:
        table = self.folder / uuid4().hex
        frame = (
            self.spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", name)
            .load()
            .select("key", "value", "partition", "offset", "timestamp", "timestampType")
        )
        took = seconds(lambda: frame.write.format("delta").save(str(table)))
        held = self.spark.read.format("delta").load(str(table)).count()
        shutil.rmtree(table)
        if held != case.records:
            raise RuntimeError(f"Kafka's source wrote {held} of {case.records} records")
        return took

    def _make(self, name: str) -> None:
        """With as many partitions as ours: through the admin client of the connector's own jars."""
        jvm = self.spark._jvm
        properties = jvm.java.util.Properties()
        properties.put("bootstrap.servers", self.servers)
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        topic = jvm.org.apache.kafka.clients.admin.NewTopic(name, PARTITIONS, 1)
        admin.createTopics(jvm.java.util.Collections.singletonList(topic)).all().get()
        admin.close()


# -- the measures ------------------------------------------------------------------------------


def archive_goals(
    case: Case, ours: dict[str, Ours], kafka: Kafka | None, rounds: int
) -> list[Goal]:
    in_kafka = "" if kafka is None else kafka.filled(case)
    times: dict[str, list[float]] = {way: [] for way in (*ours, "Kafka")}
    for _ in range(WARM_ROUNDS + rounds):
        for way, one in ours.items():
            topic = one.filled(case)
            times[way].append(one.archive(topic, case))
            one.drop(topic)
        if kafka is not None:
            times["Kafka"].append(kafka.archive(in_kafka, case))
    for taken in times.values():
        del taken[:WARM_ROUNDS]
    goals = []
    for way in ours:
        best = min(times[way])
        what = (
            f"archive on Spark by {way}, {case.records / 1e6:g} M records of {case.value_bytes} B"
        )
        measured = f"{best:.2f} s ({case.records / best:,.0f} records/s)"
        if kafka is None:
            goals.append(Goal(what, measured, "no broker given", "", True))
            continue
        peer = min(times["Kafka"])
        goal = ARCHIVE_GOALS[way][case.value_bytes]
        goals.append(
            Goal(
                what,
                measured,
                f"Kafka source → Delta {peer:.2f} s ({case.records / peer:,.0f} records/s)",
                f"{peer / best:.1f} × as fast (≥ {goal:g})",
                peer / best >= goal,
            )
        )
    return goals


def frame_goals(case: Case, ours: Ours, rounds: int) -> list[Goal]:
    topic = ours.filled(case)
    log = ours.lakelog.log(topic)
    noop(log.dataframe(spark=ours.spark))
    tail_s = min(seconds(lambda: noop(log.dataframe(spark=ours.spark))) for _ in range(rounds))
    ours.archive(topic, case)
    path = Storage(ours.cold).table_path(topic)

    def plain() -> Any:
        return ours.spark.read.format("delta").load(path)

    frame_s, plain_s = [], []
    for _ in range(2 * rounds):
        plain_s.append(seconds(lambda: noop(plain())))
        frame_s.append(seconds(lambda: noop(log.dataframe(spark=ours.spark))))
    ours.drop(topic)
    ratio = min(frame_s) / min(plain_s)
    records = f"{case.records / 1e6:g} M records of {case.value_bytes} B"
    return [
        Goal(
            f"`log.dataframe`, {records}, all archived",
            f"{min(frame_s):.2f} s",
            f"the Delta reader alone {min(plain_s):.2f} s",
            f"{ratio:.2f} × its time (≤ {FRAME_GOAL})",
            ratio <= FRAME_GOAL,
        ),
        Goal(
            f"the same, all hot (≥ {TAIL_GOAL:,} records/s)",
            f"{case.records / tail_s:,.0f} records/s",
            "",
            "",
            case.records / tail_s >= TAIL_GOAL,
        ),
    ]


def small_goal(ours: Ours, rounds: int) -> Goal:
    settings = {"retention.ms": -1, "local.retention.ms": 0}
    topic = ours.lakelog.topics.create("small", SMALL_PARTITIONS, settings)

    def append(records: int) -> None:
        with ours.lakelog.producer() as producer:
            for partition in range(SMALL_PARTITIONS):
                producer.send_batch(topic.name, rows(records, 100), partition=partition)

    append(OF_EACH)
    ours.lakelog.archive(topic.name)
    append(1)
    path = Storage(ours.cold).table_path(topic)
    options = {"redis": ours.url, "keyspace": ours.keyspace, "cold": ours.cold}

    def by_format() -> Any:
        reader = ours.spark.read.format("lakelog").options(**options)
        return reader.option("subscribe", topic.name).load()

    def plain() -> Any:
        return ours.spark.read.format("delta").load(path)

    expected = SMALL_PARTITIONS * (OF_EACH + 1)
    if (found := by_format().count()) != expected:
        raise RuntimeError(f"read {found} of {expected} records")
    noop(plain())
    format_s, plain_s = [], []
    for _ in range(rounds):
        plain_s.append(seconds(lambda: noop(plain())))
        format_s.append(seconds(lambda: noop(by_format())))
    ours.drop(topic)
    ratio = min(format_s) / min(plain_s)
    return Goal(
        f'`format("lakelog")`, {SMALL_PARTITIONS} partitions of {OF_EACH + 1} records',
        f"{min(format_s):.2f} s",
        f"the Delta reader over what is archived {min(plain_s):.2f} s",
        f"{ratio:.2f} × its time (≤ {SMALL_GOAL:g})",
        ratio <= SMALL_GOAL,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", help="of a Kafka broker")
    parser.add_argument("--kafka-jars", default="", help="of Spark's Kafka connector")
    parser.add_argument("--dir", help="where the tables go")
    parser.add_argument("--scale", type=float, default=1.0, help="of the record counts")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cases = [Case(case.value_bytes, int(case.records * arguments.scale)) for case in CASES]
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        conf = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        if arguments.kafka_jars:
            conf["spark.jars"] = arguments.kafka_jars
        server = RedisServer(folder / "redis", {"appendonly": "no"}).start()
        spark = session(cores=PROCESSES, conf=conf)
        try:
            ours = {
                "path": Ours(server.url, str(folder / "cold"), "by-path", spark),
                "name": Ours(server.url, "spark_catalog.default", "by-name", spark),
            }
            kafka = None
            if arguments.bootstrap_servers:
                kafka = Kafka(arguments.bootstrap_servers, spark, folder)
            frame_goals(WARM, ours["path"], 2)
            goals = [small_goal(ours["path"], arguments.rounds)]
            for case in cases:
                goals += archive_goals(case, ours, kafka, arguments.rounds)
                goals += frame_goals(case, ours["path"], arguments.rounds)
        finally:
            spark.stop()
            server.kill()
    return told(goals)


if __name__ == "__main__":
    sys.exit(main())
