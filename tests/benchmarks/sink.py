"""lakelog's Spark sink against Spark's Kafka sink: the same cached frame, in one run.

    python tests/benchmarks/sink.py --bootstrap-servers HOST:PORT --kafka-jars A.jar,B.jar

Frames of 4 Spark partitions, cached in memory, go to topics of 4 partitions, made anew each time,
by `frame.write.format(…).mode("append").save()` on Spark local[2]; both take the partition from the
key's murmur2. Values are random text. Redis keeps records in memory, the broker in its page cache,
and neither is asked to sync. Kafka's sink runs as it comes, which the goal is about, and with
batches of 128 KiB and a linger of 20 ms, which suit it better.

Rounds take turns, the best of each counts: whatever else runs on the machine only ever adds. Prints
one Markdown table; exits with 1 when the goal is missed. Needs 2 GB of memory for Redis, 1 GB for
Spark and as much disk as both where the broker has its data.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
from archive import PARTITIONS, PROCESSES, Case, rows
from spark import seconds

from lakelog import Lakelog
from lakelog.config import KIB
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

CASES = [Case(100, 2_000_000), Case(KIB, 500_000)]
WARM = Case(100, 100_000)
GOAL = 1.0  # times as fast as Kafka's sink

KAFKA_SETTINGS: dict[str, dict[str, str]] = {
    "Kafka": {},
    "Kafka, larger batches": {"kafka.batch.size": "131072", "kafka.linger.ms": "20"},
}


def cached(spark: Any, case: Case, folder: Path) -> Any:
    """Rows of keys and values, in memory."""
    source = folder / f"{uuid4().hex}.parquet"
    step = 100_000
    with pq.ParquetWriter(source, rows(1, case.value_bytes).schema) as writer:
        for first in range(0, case.records, step):
            writer.write_batch(rows(min(step, case.records - first), case.value_bytes))
    frame = spark.read.parquet(str(source)).select("key", "value").repartition(PARTITIONS).cache()
    assert frame.count() == case.records
    source.unlink()
    return frame


class Ours:
    """Topics in a Redis."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lakelog = Lakelog.connect(url)

    def write(self, frame: Any, case: Case) -> float:
        topic = self.lakelog.topics.create("written", PARTITIONS, {"retention.ms": -1})
        writer = frame.write.format("lakelog").options(redis=self.url, topic=topic.name)
        took = seconds(lambda: writer.mode("append").save())
        ends = self.lakelog.hot.offsets(topic.topic_partitions())
        held = sum(offsets.log_end for offsets in ends.values())
        self.lakelog.topics.delete(topic.name)
        if held != case.records:
            raise RuntimeError(f"{held} of {case.records} records are in the log")
        return took


class Kafka:
    """Topics in a broker, made through the admin client of the connector's own jars."""

    def __init__(self, servers: str, spark: Any) -> None:
        self.servers = servers
        jvm = spark._jvm
        properties = jvm.java.util.Properties()
        properties.put("bootstrap.servers", servers)
        self.admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        self.new_topic = jvm.org.apache.kafka.clients.admin.NewTopic
        self.only = jvm.java.util.Collections.singletonList

    def write(self, frame: Any, settings: dict[str, str]) -> float:
        name = f"written-{uuid4().hex[:8]}"
        self.admin.createTopics(self.only(self.new_topic(name, PARTITIONS, 1))).all().get()
        options = {"kafka.bootstrap.servers": self.servers, "topic": name, **settings}
        writer = frame.write.format("kafka").options(**options)
        took = seconds(lambda: writer.mode("append").save())
        self.admin.deleteTopics(self.only(name)).all().get()
        return took


def measure(
    case: Case, frame: Any, ours: Ours, kafka: Kafka | None, rounds: int
) -> dict[str, float]:
    """The best time of each."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        times.setdefault("lakelog", []).append(ours.write(frame, case))
        if kafka is not None:
            for name, settings in KAFKA_SETTINGS.items():
                times.setdefault(name, []).append(kafka.write(frame, settings))
    return {name: min(took) for name, took in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", help="of a Kafka broker; without one, no peer")
    parser.add_argument("--kafka-jars", default="", help="of Spark's Kafka connector")
    parser.add_argument("--dir", help="where the frames pass through")
    parser.add_argument("--scale", type=float, default=1.0, help="of the record counts")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    missed = False
    print("| what | lakelog | Kafka's sink: as fast (≥ 1) | larger batches: as fast |")
    print("|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name)
        conf = {"spark.driver.memory": "4g"}
        if arguments.kafka_jars:
            conf["spark.jars"] = arguments.kafka_jars
        server = RedisServer(folder / "redis", {"appendonly": "no", "save": ""}).start()
        spark = session(cores=PROCESSES, conf=conf)
        try:
            ours = Ours(server.url)
            servers = arguments.bootstrap_servers
            kafka = Kafka(servers, spark) if servers else None
            warm = cached(spark, WARM, folder)
            measure(WARM, warm, ours, kafka, 3)
            for case in CASES:
                case = Case(case.value_bytes, int(case.records * arguments.scale))
                frame = cached(spark, case, folder)
                times = measure(case, frame, ours, kafka, arguments.rounds)
                frame.unpersist(blocking=True)
                own_s = times.pop("lakelog")
                said = [
                    f"{peer_s:.2f} s ({case.records / peer_s:,.0f}/s): {peer_s / own_s:.2f} ×"
                    for peer_s in times.values()
                ]
                print(
                    f"| {case.records / 1e6:g} M records of {case.value_bytes} B | {own_s:.2f} s "
                    f"({case.records / own_s:,.0f}/s) | {' | '.join(said)} |",
                    flush=True,
                )
                missed |= kafka is not None and times["Kafka"] / own_s < GOAL
        finally:
            spark.stop()
            server.kill()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
