"""Consumers beside a Kafka broker's.

Consume: all records of a topic of 4 partitions from the beginning, by `Consumer.poll_arrow`,
`Consumer.poll` (10,000 at once as by Kafka's clients, and 500 as by default) and `.records()` of
each partition, against confluent-kafka's `consume` and kafka-python's `poll`, each as a consumer
without a group, from Redis ("hot") and from the table ("cold", archived and trimmed). Kafka's
clients leave out their check of checksums, which kafka-python computes in Python, byte by byte
(with it, it needs minutes a million records); lakelog makes its own. No objects come faster than
as many are made of lists that are there ("objects of lists").

Delivery: from the call that appends one record to the return of the poll that has it, in another
thread of the process. lakelog waits for Redis's answer, Kafka's producer has acks=all and no
linger. Seek: to a random time, and the first record there. Commit: the offsets of all partitions,
one after the other.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat
from typing import Any

import pyarrow as pa

from lakelog import Consumer, Lakelog, TopicPartition
from lakelog.values.config import KIB
from lakelog.values.record import RECORDS_AT_ONCE, OffsetAndMetadata, Record

from .bench import Bench, Side, rates
from .kafka_peer import KafkaPeer
from .made_records import PARTITIONS, made_batch, size
from .measures import OURS, RECORDS_PER_S, SECONDS, Goal, Row

SIZES = {100: 1_000_000, KIB: 300_000}
AT_ONCE = 10_000  # records of one poll
OBJECTS_PER_S = {100: Goal(1_500_000)}
APPEND_RECORDS = 10_000
WAIT_MS = 10_000

CONFLUENT, KAFKA_PYTHON = "confluent-kafka", "kafka-python"
FLOOR = "objects of lists"


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis({"appendonly": "no"}) as server:
        folder = bench.new_folder()
        with Lakelog.connect(server.url, folder, engine="inline") as lakelog:
            ours = Ours(lakelog)
            theirs = Theirs(bench.kafka) if bench.kafka else None
            for value_bytes, records in SIZES.items():
                yield from consuming(bench, ours, theirs, value_bytes, records)
            yield from delivery(bench, ours, theirs)
            yield seeking(bench, ours, theirs)
            yield committing(bench, ours, theirs)


class Ours:
    """A lakelog on a Redis of its own."""

    def __init__(self, lakelog: Lakelog) -> None:
        self.lakelog = lakelog

    def fill(self, name: str, batches: Sequence[pa.RecordBatch]) -> None:
        """A topic; each batch goes to each partition."""
        settings = {"retention.ms": -1, "local.retention.ms": 0}
        self.lakelog.topics.create(name, PARTITIONS, settings)
        with self.lakelog.producer() as producer:
            for batch in batches:
                for partition in range(PARTITIONS):
                    producer.send_batch(name, batch, partition=partition)

    def consumer(self, name: str, **config: Any) -> Consumer:
        """It is assigned all partitions, and begins at the beginning."""
        found = self.lakelog.consumer(auto_offset_reset="earliest", **config)
        found.assign([TopicPartition(name, number) for number in range(PARTITIONS)])
        return found

    def arrow(self, name: str, records: int) -> None:
        with self.consumer(name) as consumer:
            seen = 0
            while seen < records:
                seen += sum(batch.num_rows for batch in consumer.poll_arrow(WAIT_MS).values())

    def objects(self, name: str, records: int, at_once: int | None = AT_ONCE) -> None:
        with self.consumer(name) as consumer:
            seen = 0
            while seen < records:
                seen += sum(map(len, consumer.poll(WAIT_MS, at_once).values()))

    def one_by_one(self, name: str, records: int) -> None:
        log = self.lakelog.log(name)
        seen = sum(1 for number in range(PARTITIONS) for _ in log.read(number).records())
        if seen != records:
            raise RuntimeError(f"{seen} records of {records} were read")


class Theirs:
    """The same records on a broker, by its usual clients."""

    def __init__(self, kafka: KafkaPeer) -> None:
        self.kafka = kafka

    def fill(self, name: str, batches: Sequence[pa.RecordBatch]) -> None:
        self.kafka.make(name, PARTITIONS)
        topic = self.kafka.topic(name)
        producer = self.kafka.producer(**{"linger.ms": 20})
        for batch in batches:
            columns = (batch.column(one).to_pylist() for one in ("key", "value", "timestamp_ms"))
            self.kafka.produce_all(
                producer,
                topic,
                (
                    (value, key, partition, time_ms)
                    for key, value, time_ms in zip(*columns, strict=True)
                    for partition in range(PARTITIONS)
                ),
            )
            producer.flush()

    def consumer(self, name: str) -> Any:
        import confluent_kafka

        found = self.kafka.consumer()
        topic, first = self.kafka.topic(name), confluent_kafka.OFFSET_BEGINNING
        found.assign(
            [confluent_kafka.TopicPartition(topic, number, first) for number in range(PARTITIONS)]
        )
        return found

    def confluent(self, name: str, records: int) -> None:
        consumer = self.consumer(name)
        seen = 0
        while seen < records:
            # It waits until it has as many as it is asked for.
            seen += len(consumer.consume(min(AT_ONCE, records - seen), WAIT_MS / 1000))
        consumer.close()

    def kafka_python(self, name: str, records: int) -> None:
        import kafka

        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.kafka.servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=AT_ONCE,
            check_crcs=False,  # as confluent-kafka does
        )
        topic = self.kafka.topic(name)
        consumer.assign([kafka.TopicPartition(topic, number) for number in range(PARTITIONS)])
        seen = 0
        while seen < records:
            seen += sum(map(len, consumer.poll(WAIT_MS).values()))
        consumer.close()


def floor(batches: Sequence[pa.RecordBatch]) -> Side:
    """Makes the objects of these batches for each partition, of lists that are there."""
    ready = []
    for batch in batches:
        for first in range(0, batch.num_rows, RECORDS_AT_ONCE):
            part = batch.slice(first, RECORDS_AT_ONCE)
            ready.append([part.column(one).to_pylist() for one in ("timestamp_ms", "key", "value")])

    def made() -> None:
        for number in range(PARTITIONS):
            for columns in ready:
                offsets = range(1_000_000, 1_000_000 + len(columns[0]))
                list(map(Record, repeat("topic"), repeat(number), offsets, *columns))

    return made


# -- the measures ------------------------------------------------------------------------------


def consuming(
    bench: Bench, ours: Ours, theirs: Theirs | None, value_bytes: int, records: int
) -> Iterator[Row]:
    name = f"values-{value_bytes}"
    wanted = bench.scaled(records, PARTITIONS)
    of_each = max(1, min(APPEND_RECORDS, wanted // PARTITIONS))
    batches = [
        made_batch(of_each, value_bytes) for _ in range(max(1, wanted // PARTITIONS // of_each))
    ]
    total = len(batches) * of_each * PARTITIONS
    ours.fill(name, batches)
    peers: dict[str, Side] = {}
    if theirs is not None:
        theirs.fill(name, batches)
        peers = {
            CONFLUENT: lambda: theirs.confluent(name, total),
            KAFKA_PYTHON: lambda: theirs.kafka_python(name, total),
        }
    for tier in ("hot", "cold"):
        if tier == "cold":
            ours.lakelog.archive(name)
        samples = rates(
            bench.interleaved(
                {
                    "arrow": lambda: ours.arrow(name, total),
                    "objects": lambda: ours.objects(name, total),
                    "objects by default": lambda: ours.objects(name, total, None),
                    "one by one": lambda: ours.one_by_one(name, total),
                    FLOOR: floor(batches),
                    **peers,
                }
            ),
            total,
        )
        ours_of = {side: samples.pop(side) for side in [*samples] if side not in (FLOOR, *peers)}
        confluent = {side: one for side, one in samples.items() if side == CONFLUENT}
        beside = {FLOOR: samples[FLOOR], **confluent}
        goals = [OBJECTS_PER_S[value_bytes]] if value_bytes in OBJECTS_PER_S else []
        yield Row(
            f"`poll_arrow`, {size(value_bytes)}, {tier}",
            RECORDS_PER_S,
            {OURS: ours_of["arrow"], **confluent},
            (Goal(5.0, CONFLUENT),),
        )
        yield Row(
            f"`poll`, as objects, {size(value_bytes)}, {tier}",
            RECORDS_PER_S,
            {OURS: ours_of["objects"], **samples},
            (*goals, Goal(1.0, CONFLUENT), Goal(3.0, KAFKA_PYTHON)),
        )
        for what, side in (
            ("`poll` of 500", "objects by default"),
            ("`.records()`", "one by one"),
        ):
            yield Row(
                f"{what}, {size(value_bytes)}, {tier}",
                RECORDS_PER_S,
                {OURS: ours_of[side], **beside},
                (*goals, Goal(1.0, CONFLUENT)),
            )


def delivered_s(
    count: int, poll: Callable[[], Sequence[bytes]], append: Callable[[bytes], None]
) -> list[float]:
    """How long each record took from `append` to `poll`, in order."""
    taken: list[float] = []
    arrived = threading.Semaphore(0)

    def consume() -> None:
        while len(taken) < count:
            for value in poll():
                taken.append((time.perf_counter_ns() - int(value)) / 1e9)
                arrived.release()

    thread = threading.Thread(target=consume, daemon=True)
    thread.start()
    for _ in range(count):
        append(b"%d" % time.perf_counter_ns())
        arrived.acquire()
    thread.join()
    return sorted(taken[count // 10 :])  # the first ones find out where everything is


def delivery(bench: Bench, ours: Ours, theirs: Theirs | None) -> Iterator[Row]:
    name, count = "delivery", bench.scaled(2_000, 20)
    ours.lakelog.topics.create(name, PARTITIONS)
    found: dict[str, list[list[float]]] = {OURS: []}
    with ExitStack() as stack:
        producer = stack.enter_context(ours.lakelog.producer(linger_ms=0))
        consumer = stack.enter_context(ours.consumer(name))

        def mine() -> None:
            found[OURS].append(
                delivered_s(
                    count,
                    lambda: [r.value or b"" for one in consumer.poll(1000).values() for r in one],
                    lambda value: producer.send(name, value, partition=0).result() and None,
                )
            )

        sides: dict[str, Side] = {OURS: mine}
        if theirs is not None:
            theirs.kafka.make(name, PARTITIONS)
            topic = theirs.kafka.topic(name)
            peer = theirs.kafka.producer(**{"linger.ms": 0})
            reader = theirs.consumer(name)
            stack.callback(reader.close)
            found[CONFLUENT] = []

            def append(value: bytes) -> None:
                peer.produce(topic, value, partition=0)
                peer.flush()

            def confluent() -> None:
                found[CONFLUENT].append(
                    delivered_s(
                        count, lambda: [one.value() for one in reader.consume(1, 1.0)], append
                    )
                )

            sides[CONFLUENT] = confluent
        bench.interleaved(sides)
    for which, share in (("p50", 0.5), ("p99", 0.99)):
        samples = {
            side: tuple(one[int(share * (len(one) - 1))] for one in times[1:])
            for side, times in found.items()
        }
        yield Row(f"append → delivered, {which}", SECONDS, samples, (Goal(2.0, CONFLUENT),))


def medians(
    bench: Bench, count: int, calls: Mapping[str, Callable[[], object]]
) -> dict[str, tuple[float, ...]]:
    """The median seconds of a call, of so many each round."""

    def median(call: Callable[[], object]) -> Side:
        def run() -> float:
            found = []
            for _ in range(count):
                started = time.perf_counter()
                call()
                found.append(time.perf_counter() - started)
            return statistics.median(found)

        return run

    return bench.interleaved({side: median(call) for side, call in calls.items()})


def seeking(bench: Bench, ours: Ours, theirs: Theirs | None) -> Row:
    name, records = "seek", bench.scaled(100_000, 1_000)
    made = made_batch(records, 100)
    first_ms = time.time_ns() // 1_000_000 - records  # a broker deletes what is old
    times_ms = pa.array(range(first_ms, first_ms + records), pa.int64())
    made = made.set_column(made.schema.get_field_index("timestamp_ms"), "timestamp_ms", times_ms)
    batches = [made.slice(first, 1000) for first in range(0, records, 1000)]
    ours.fill(name, batches)
    chance = random.Random(1)

    def target() -> tuple[int, int]:
        return chance.randrange(PARTITIONS), first_ms + chance.randrange(records)

    with ExitStack() as stack:
        consumer = stack.enter_context(ours.consumer(name))

        def seek() -> None:
            partition, time_ms = target()
            tp = TopicPartition(name, partition)
            consumer.assign([tp])
            consumer.seek_to_timestamp(tp, time_ms)
            ((first,),) = consumer.poll(WAIT_MS, 1).values()
            if first.timestamp_ms != time_ms:
                raise RuntimeError(f"sought {time_ms} and found {first.timestamp_ms}")

        calls: dict[str, Callable[[], object]] = {OURS: seek}
        if theirs is not None:
            import confluent_kafka

            theirs.fill(name, batches)
            topic, reader = theirs.kafka.topic(name), theirs.consumer(name)
            stack.callback(reader.close)

            def seek_there() -> None:
                partition, time_ms = target()
                asked = confluent_kafka.TopicPartition(topic, partition, time_ms)
                reader.assign(reader.offsets_for_times([asked], WAIT_MS / 1000))
                (first,) = reader.consume(1, WAIT_MS / 1000)
                if first.timestamp()[1] != time_ms:
                    raise RuntimeError(f"sought {time_ms} and found {first.timestamp()[1]}")

            calls[CONFLUENT] = seek_there
        samples = medians(bench, bench.scaled(200, 5), calls)
    return Row("seek to a time and read the record, hot", SECONDS, samples, (Goal(2.0, CONFLUENT),))


def committing(bench: Bench, ours: Ours, theirs: Theirs | None) -> Row:
    name = "commit"
    ours.lakelog.topics.create(name, PARTITIONS)
    with ExitStack() as stack:
        consumer = stack.enter_context(
            ours.consumer(name, group_id="commits", enable_auto_commit=False)
        )
        offsets = {
            TopicPartition(name, number): OffsetAndMetadata(0) for number in range(PARTITIONS)
        }
        calls: dict[str, Callable[[], object]] = {OURS: lambda: consumer.commit(offsets)}
        if theirs is not None:
            import confluent_kafka

            theirs.kafka.make(name, PARTITIONS)
            committer = theirs.consumer(name)
            stack.callback(committer.close)
            there = [
                confluent_kafka.TopicPartition(theirs.kafka.topic(name), number, 0)
                for number in range(PARTITIONS)
            ]
            calls[CONFLUENT] = lambda: committer.commit(offsets=there, asynchronous=False)
        samples = medians(bench, bench.scaled(400, 5), calls)
    return Row(f"commit of {PARTITIONS} partitions", SECONDS, samples, (Goal(1.0, CONFLUENT),))
