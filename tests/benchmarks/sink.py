"""lakelog's Spark sink against Spark's Kafka sink: the same cached frame.

Frames of 4 Spark partitions, cached in memory, go to topics of 4 partitions, made anew each time,
by `frame.write.format(…).mode("append").save()`; both take the partition from the key's murmur2.
Values are random text. Redis keeps records in memory, the broker in its page cache, and neither is
asked to sync. Kafka's sink (with `--peers` and `--kafka-jars`) runs as it comes, which the goal is
about, and with batches of 128 KiB and a linger of 20 ms, which suit it better. Needs 2 GB of memory
for Redis, 1 GB for Spark and as much disk as both where the broker has its data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from lakelog import Lakelog
from lakelog.values.config import KIB

from .bench import Bench, Side, rates, timed
from .kafka_peer import KafkaPeer
from .made_records import PARTITIONS, Case, made_frame
from .measures import OURS, RECORDS_PER_S, Goal, Row

CASES = [Case(100, 2_000_000), Case(KIB, 500_000)]
WARM_ROUNDS = 3

KAFKA = "Spark's Kafka sink"
KAFKA_SETTINGS: dict[str, dict[str, str]] = {
    KAFKA: {},
    f"{KAFKA}, larger batches": {"kafka.batch.size": "131072", "kafka.linger.ms": "20"},
}


def rows(bench: Bench) -> Iterator[Row]:
    spark, names = bench.spark.session(), count()
    with (
        bench.redis({"appendonly": "no"}) as server,
        Lakelog.connect(server.url) as lakelog,
    ):
        for case in (one.scaled(bench) for one in CASES):
            frame = made_frame(spark, bench.new_folder(), case).repartition(PARTITIONS).cache()
            if frame.count() != case.records:
                raise RuntimeError(f"the frame has not {case.records} records")
            sides: dict[str, Side] = {
                OURS: lambda f=frame, c=case: written_s(lakelog, server.url, f, c)
            }
            if bench.kafka is not None and bench.spark.has_kafka:
                for side, settings in KAFKA_SETTINGS.items():
                    sides[side] = lambda f=frame, s=settings, k=bench.kafka: kafka_s(
                        k, f"sink-{next(names)}", f, s
                    )
            taken = bench.interleaved(sides, warm=min(WARM_ROUNDS, bench.rounds))
            frame.unpersist(blocking=True)
            samples = rates(taken, case.records)
            yield Row(f"Spark's sink, {case}", RECORDS_PER_S, samples, (Goal(1.0, KAFKA),))


def written_s(lakelog: Lakelog, url: str, frame: Any, case: Case) -> float:
    topic = lakelog.topics.create("written", PARTITIONS, {"retention.ms": -1})
    writer = frame.write.format("lakelog").options(redis=url, topic=topic.name)
    took_s = timed(writer.mode("append").save)
    ends = lakelog.hot.offsets(topic.topic_partitions())
    held = sum(offsets.log_end for offsets in ends.values())
    lakelog.topics.delete(topic.name)
    if held != case.records:
        raise RuntimeError(f"{held} of {case.records} records are in the log")
    return took_s


def kafka_s(kafka: KafkaPeer, name: str, frame: Any, settings: Mapping[str, str]) -> float:
    kafka.make(name, PARTITIONS)
    options = {"kafka.bootstrap.servers": kafka.servers, "topic": kafka.topic(name), **settings}
    took_s = timed(frame.write.format("kafka").options(**options).mode("append").save)
    kafka.delete(name)
    return took_s
