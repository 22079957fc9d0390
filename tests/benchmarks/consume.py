"""Consumers and groups beside a Kafka broker's, on this machine, in one run.

    python tests/benchmarks/consume.py --bootstrap-servers HOST:PORT

Without a broker lakelog has no peer. Rounds take turns, the best of each counts: whatever else runs
on the machine only ever adds.

Consume: all records of a topic of 4 partitions from the beginning, by `Consumer.poll_arrow` and
`Consumer.poll` against confluent-kafka's `consume` and kafka-python's `poll`, each as a consumer
without a group, from Redis ("hot") and from the table ("cold", archived and trimmed). Kafka's
clients leave out their check of checksums, which kafka-python computes in Python, byte by byte
(with it, it needs minutes a million records); lakelog makes its own.

Delivery: from the call that appends one record to the return of the poll that has it, in another
thread of the process. lakelog waits for Redis's answer, Kafka's producer has acks=all and no
linger. Seek: to a random time, and the first record there. Commit: the offsets of all partitions,
one after the other.

Rebalance: 20 members over 100 partitions, from the moment when the last one subscribes to that when
each has its 5. Groups: what the keys of 1,000 of them with offsets of 10 partitions take in Redis,
and what Redis does while nobody asks.

Prints one Markdown table; exits with 1 when a goal of it is missed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pyarrow as pa
from archive import PARTITIONS, Case, rows
from spark import Goal, seconds, told

from lakelog import Consumer, Lakelog, TopicPartition
from lakelog.config import KIB, MIB
from lakelog.hot.keys import DEFAULT_KEYSPACE
from lakelog.record import OffsetAndMetadata
from lakelog.testing.servers import RedisServer

CASES = [Case(100, 1_000_000), Case(KIB, 300_000)]
AT_ONCE = 10_000  # records of one poll
APPEND_RECORDS = 10_000

ARROW_GOAL = 5.0  # times confluent-kafka
OBJECTS_GOAL = 1.0  # times confluent-kafka
OBJECTS_GOAL_KAFKA_PYTHON = 3.0
DELIVERY_GOAL = 0.5  # of Kafka's
SEEK_GOAL = 0.5
COMMIT_GOAL = 1.0

MEMBERS, MEMBERS_PARTITIONS, REBALANCE_GOAL_S = 20, 100, 1.0
GROUPS, GROUP_PARTITIONS, GROUPS_GOAL_BYTES, IDLE_GOAL = 1_000, 10, 5 * MIB, 0.02

WAIT_MS = 10_000


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

    def objects(self, name: str, records: int) -> None:
        with self.consumer(name) as consumer:
            seen = 0
            while seen < records:
                seen += sum(map(len, consumer.poll(WAIT_MS, AT_ONCE).values()))


class Kafka:
    """A broker, by its usual clients."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self._run = uuid4().hex[:8]  # topics of earlier runs may be there

    def topic(self, name: str) -> str:
        return f"{name}-{self._run}"

    def fill(self, name: str, batches: Sequence[pa.RecordBatch]) -> None:
        from confluent_kafka import Producer

        self.make(name, PARTITIONS)
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20})
        for batch in batches:
            columns = (batch.column(one).to_pylist() for one in ("key", "value", "timestamp_ms"))
            for key, value, time_ms in zip(*columns, strict=True):
                for partition in range(PARTITIONS):
                    while True:
                        try:
                            producer.produce(
                                self.topic(name), value, key, partition, timestamp=time_ms
                            )
                            break
                        except BufferError:
                            producer.poll(0.1)
            producer.flush()

    def make(self, name: str, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.servers})
        topic = self.topic(name)
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()

    def consumer(self, name: str, **config: Any) -> Any:
        import confluent_kafka

        found = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid4().hex,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **config,
            }
        )
        found.assign(
            [
                confluent_kafka.TopicPartition(
                    self.topic(name), number, confluent_kafka.OFFSET_BEGINNING
                )
                for number in range(PARTITIONS)
            ]
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
            bootstrap_servers=self.servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=AT_ONCE,
            check_crcs=False,  # as confluent-kafka does
        )
        consumer.assign(
            [kafka.TopicPartition(self.topic(name), number) for number in range(PARTITIONS)]
        )
        seen = 0
        while seen < records:
            seen += sum(map(len, consumer.poll(WAIT_MS).values()))
        consumer.close()


# -- the measures ------------------------------------------------------------------------------


def best(rounds: int, ways: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Seconds of each way, in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(seconds(way))
    return {name: min(taken) for name, taken in times.items()}


def consume_goals(case: Case, ours: Ours, kafka: Kafka | None, rounds: int) -> Iterator[Goal]:
    name = f"values-{case.value_bytes}"
    of_each = max(1, min(APPEND_RECORDS, case.records // PARTITIONS))
    batches = [
        rows(of_each, case.value_bytes)
        for _ in range(max(1, case.records // PARTITIONS // of_each))
    ]
    records = len(batches) * of_each * PARTITIONS
    ours.fill(name, batches)
    peers: dict[str, Callable[[], None]] = {}
    if kafka is not None:
        kafka.fill(name, batches)
        peers = {
            "confluent-kafka": lambda: kafka.confluent(name, records),
            "kafka-python": lambda: kafka.kafka_python(name, records),
        }
    for tier in ("hot", "cold"):
        if tier == "cold":
            ours.lakelog.archive(name)
        mine = {
            "arrow": lambda: ours.arrow(name, records),
            "objects": lambda: ours.objects(name, records),
        }
        times = best(rounds, mine | peers)

        def goal(
            way: str, least: dict[str, float], tier: str = tier, times: dict[str, float] = times
        ) -> Goal:
            ratios = {peer: times[peer] / times[way] for peer in least if peer in times}
            return Goal(
                f"consume, {tier}, {way}, {records / 1e6:g} M records of {case.value_bytes} B",
                f"{records / times[way]:,.0f} records/s",
                "; ".join(f"{peer} {records / times[peer]:,.0f} records/s" for peer in ratios),
                "; ".join(f"{ratio:.1f} × (≥ {least[peer]:g})" for peer, ratio in ratios.items()),
                all(ratio >= least[peer] for peer, ratio in ratios.items()),
            )

        yield goal("arrow", {"confluent-kafka": ARROW_GOAL})
        yield goal(
            "objects",
            {"confluent-kafka": OBJECTS_GOAL, "kafka-python": OBJECTS_GOAL_KAFKA_PYTHON},
        )


def delivered_us(
    count: int, poll: Callable[[], Sequence[bytes]], append: Callable[[bytes], None]
) -> list[float]:
    """How long each record took from `append` to `poll`, in microseconds."""
    taken: list[float] = []
    arrived = threading.Semaphore(0)

    def consume() -> None:
        while len(taken) < count:
            for value in poll():
                taken.append((time.perf_counter_ns() - int(value)) / 1000)
                arrived.release()

    thread = threading.Thread(target=consume, daemon=True)
    thread.start()
    for _ in range(count):
        append(b"%d" % time.perf_counter_ns())
        arrived.acquire()
    thread.join()
    return taken[count // 10 :]  # the first ones find out where everything is


def delivery_goal(ours: Ours, kafka: Kafka | None, count: int) -> Goal:
    name = "delivery"
    ours.lakelog.topics.create(name, PARTITIONS)
    with ours.lakelog.producer(linger_ms=0) as producer, ours.consumer(name) as consumer:
        mine = delivered_us(
            count,
            lambda: [r.value or b"" for one in consumer.poll(1000).values() for r in one],
            lambda value: producer.send(name, value, partition=0).result() and None,
        )
    theirs: list[float] = []
    if kafka is not None:
        from confluent_kafka import Producer

        kafka.make(name, PARTITIONS)
        peer = Producer({"bootstrap.servers": kafka.servers, "acks": "all", "linger.ms": 0})
        reader = kafka.consumer(name)

        def append(value: bytes) -> None:
            peer.produce(kafka.topic(name), value, partition=0)
            peer.flush()

        theirs = delivered_us(
            count, lambda: [one.value() for one in reader.consume(1, 1.0)], append
        )
        reader.close()
    return compared("append → delivered", mine, theirs, DELIVERY_GOAL, share=0.99)


def compared(
    what: str, mine: Sequence[float], theirs: Sequence[float], most: float, share: float | None
) -> Goal:
    """By the median, and by a further quantile if one is named; in microseconds."""

    def quantiles(times: Sequence[float]) -> list[float]:
        ordered = sorted(times)
        found = [statistics.median(ordered)]
        return found if share is None else [*found, ordered[int(share * (len(ordered) - 1))]]

    names = "median" if share is None else f"p50 / p{share * 100:.0f}"
    own = quantiles(mine)
    shown = " / ".join(f"{one:,.0f}" for one in own)
    if not theirs:
        return Goal(f"{what}, {names}", f"{shown} µs", "no broker given", "", True)
    peer = quantiles(theirs)
    ratios = [a / b for a, b in zip(own, peer, strict=True)]
    return Goal(
        f"{what}, {names}",
        f"{shown} µs",
        f"Kafka {' / '.join(f'{one:,.0f}' for one in peer)} µs",
        f"{' / '.join(f'{one:.2f}' for one in ratios)} × (≤ {most:g})",
        all(one <= most for one in ratios),
    )


def each_us(count: int, call: Callable[[], object]) -> list[float]:
    return [1e6 * seconds(call) for _ in range(count)]


def seek_goal(ours: Ours, kafka: Kafka | None, count: int, records: int) -> Goal:
    name = "seek"
    made = rows(records, 100)
    first_ms = time.time_ns() // 1_000_000 - records  # a broker deletes what is old
    times_ms = pa.array(range(first_ms, first_ms + records), pa.int64())
    made = made.set_column(made.schema.get_field_index("timestamp_ms"), "timestamp_ms", times_ms)
    batches = [made.slice(first, 1000) for first in range(0, records, 1000)]
    ours.fill(name, batches)
    chance = random.Random(1)

    def target() -> tuple[int, int]:
        return chance.randrange(PARTITIONS), first_ms + chance.randrange(records)

    with ours.consumer(name) as consumer:

        def seek() -> None:
            partition, time_ms = target()
            tp = TopicPartition(name, partition)
            consumer.assign([tp])
            consumer.seek_to_timestamp(tp, time_ms)
            ((first,),) = consumer.poll(WAIT_MS, 1).values()
            if first.timestamp_ms != time_ms:
                raise RuntimeError(f"sought {time_ms} and found {first.timestamp_ms}")

        mine = each_us(count, seek)
    theirs: list[float] = []
    if kafka is not None:
        import confluent_kafka

        kafka.fill(name, batches)
        reader = kafka.consumer(name)

        def seek_there() -> None:
            partition, time_ms = target()
            asked = confluent_kafka.TopicPartition(kafka.topic(name), partition, time_ms)
            found = reader.offsets_for_times([asked], WAIT_MS / 1000)
            reader.assign(found)
            (first,) = reader.consume(1, WAIT_MS / 1000)
            if first.timestamp()[1] != time_ms:
                raise RuntimeError(f"sought {time_ms} and found {first.timestamp()[1]}")

        theirs = each_us(count, seek_there)
        reader.close()
    return compared("seek to a time and read the record, hot", mine, theirs, SEEK_GOAL, None)


def commit_goal(ours: Ours, kafka: Kafka | None, count: int) -> Goal:
    name = "commit"
    ours.lakelog.topics.create(name, PARTITIONS)
    with ours.consumer(name, group_id="commits", enable_auto_commit=False) as consumer:
        offsets = {
            TopicPartition(name, number): OffsetAndMetadata(0) for number in range(PARTITIONS)
        }
        mine = each_us(count, lambda: consumer.commit(offsets))
    theirs: list[float] = []
    if kafka is not None:
        import confluent_kafka

        kafka.make(name, PARTITIONS)
        committer = kafka.consumer(name)
        there = [
            confluent_kafka.TopicPartition(kafka.topic(name), number, 0)
            for number in range(PARTITIONS)
        ]
        committer.commit(offsets=there, asynchronous=False)  # finds the coordinator
        theirs = each_us(count, lambda: committer.commit(offsets=there, asynchronous=False))
        committer.close()
    return compared("commit of 4 partitions, sync", mine, theirs, COMMIT_GOAL, None)


@contextmanager
def polling(consumer: Consumer, stop: threading.Event) -> Iterator[None]:
    """A thread of the consumer's, until the context ends."""

    def poll() -> None:
        with consumer:
            while not stop.is_set():
                consumer.poll(100)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def rebalance_goal(ours: Ours, members: int) -> Goal:
    name = "shared"
    partitions = members * MEMBERS_PARTITIONS // MEMBERS
    ours.lakelog.topics.create(name, partitions)
    each = partitions // members
    stop = threading.Event()

    def is_shared(among: Sequence[Consumer]) -> bool:
        shares = [consumer.assignment() for consumer in among]
        return sum(map(len, shares)) == partitions and all(map(len, shares))

    def wait(among: Sequence[Consumer]) -> None:
        while not is_shared(among):
            time.sleep(0.001)

    consumers = [ours.lakelog.consumer(name, group_id="shared") for _ in range(members)]
    threads = [polling(consumer, stop) for consumer in consumers]
    for thread in threads[:-1]:
        thread.__enter__()
    wait(consumers[:-1])
    started = time.perf_counter()
    threads[-1].__enter__()
    wait(consumers)
    took = time.perf_counter() - started
    stop.set()
    for thread in threads:
        thread.__exit__(None, None, None)
    return Goal(
        f"rebalance of {members} members over {partitions} partitions, {each} each",
        f"{took:.2f} s after the last one subscribed",
        "",
        f"≤ {REBALANCE_GOAL_S:g} s",
        took <= REBALANCE_GOAL_S,
    )


def groups_goal(ours: Ours, server: RedisServer, groups: int, idle_s: float) -> Goal:
    name = "watched"
    ours.lakelog.topics.create(name, GROUP_PARTITIONS)
    offsets = {
        TopicPartition(name, number): OffsetAndMetadata(number)
        for number in range(GROUP_PARTITIONS)
    }
    with server.client() as client:

        def keys_bytes() -> int:  # what Redis uses in all goes up and down for other reasons, too
            keys = client.scan_iter(f"*{DEFAULT_KEYSPACE}:group*", count=1000)
            return sum(int(client.memory_usage(key, samples=0) or 0) for key in keys)

        before = keys_bytes()
        for number in range(groups):
            with ours.lakelog.consumer(
                group_id=f"group-{number}", enable_auto_commit=False
            ) as consumer:
                consumer.commit(offsets)
        took_bytes = keys_bytes() - before
        process = psutil.Process(int(client.info("server")["process_id"]))
    cpu_before = sum(process.cpu_times()[:2])
    time.sleep(idle_s)
    share = (sum(process.cpu_times()[:2]) - cpu_before) / idle_s
    most = GROUPS_GOAL_BYTES * groups / GROUPS
    return Goal(
        f"{groups:,} groups with offsets of {GROUP_PARTITIONS} partitions",
        f"{took_bytes / MIB:.2f} MiB in Redis, {share:.1%} of a core while idle",
        "",
        f"≤ {most / MIB:g} MiB, < {IDLE_GOAL:.0%}",
        took_bytes <= max(most, MIB) and share < IDLE_GOAL,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", help="of a Kafka broker")
    parser.add_argument("--scale", type=float, default=1.0, help="of the counts")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    def scaled(count: int, least: int) -> int:
        return max(least, int(count * arguments.scale))

    kafka = Kafka(arguments.bootstrap_servers) if arguments.bootstrap_servers else None
    goals: list[Goal] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = RedisServer(folder / "redis", {"appendonly": "no"}).start()
        try:
            with Lakelog.connect(server.url, folder / "cold", engine="inline") as lakelog:
                ours = Ours(lakelog)
                for case in CASES:
                    smaller = Case(case.value_bytes, scaled(case.records, PARTITIONS))
                    goals += consume_goals(smaller, ours, kafka, arguments.rounds)
                goals.append(delivery_goal(ours, kafka, scaled(2_000, 20)))
                goals.append(seek_goal(ours, kafka, scaled(500, 5), scaled(100_000, 1_000)))
                goals.append(commit_goal(ours, kafka, scaled(1_000, 5)))
                goals.append(rebalance_goal(ours, scaled(MEMBERS, 2)))
                goals.append(groups_goal(ours, server, scaled(GROUPS, 5), scaled(5, 1)))
        finally:
            server.kill()
    return told(goals)


if __name__ == "__main__":
    sys.exit(main())
