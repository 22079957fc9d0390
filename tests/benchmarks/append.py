"""Appends: many records by each way of handing them over, and one at a time.

Each size's records go to a topic of four partitions as Arrow tables and as Python lists of
(key, value) through `send_batch`, and one by one through `send` and a final `flush`, each with the
producer's own settings, against

- *confluent-kafka*: the same records by `produce`, one by one since it has no other way, acks=all
  and idempotent, until all are answered (with `--peers`);
- *Kafka's Java producer*: its own performance tool, which makes its values itself (with
  `--kafka-tool`);
- *encoding alone*: the same input made into entries (columns, partitions, cuts, compression) that
  are thrown away;
- *Redis fed ready entries*: entries made before, appended as a producer appends them;
- *bare XADD*: the same entries, pipelined by redis-py to as many streams, which knows no producers,
  offsets or segments;
- *bare Arrow IPC*: pyarrow writing batches made before, an entry's records each.

One at a time: from the call to its answer, against the same with confluent-kafka, a bare XADD of
the record, and a PING, which is what the way there and back takes.

Values are random text, so that no codec flatters either side.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import redis
from redis.connection import Connection

from lakelog import Lakelog, Topic
from lakelog.codec import Entry, ProducedBatch
from lakelog.hot import AppendCall
from lakelog.ingest.accumulator import RECORD_OVERHEAD_BYTES
from lakelog.ingest.bulk import BulkAppend
from lakelog.ingest.encoding import encode_for
from lakelog.ingest.given_records import as_columns
from lakelog.ingest.partition_queue import PartitionQueue
from lakelog.ingest.partitioner import partition_of_key
from lakelog.ingest.producer import Producer, ProducerConfig
from lakelog.values.config import KIB, MIB
from lakelog.values.record import PRODUCED, no_headers
from tests.support.servers import RedisServer

from .bench import Bench, Side, rates
from .kafka_peer import KafkaPeer
from .made_records import PARTITIONS, random_text, size
from .measures import OURS, RECORDS_PER_S, SECONDS, Goal, Row

CALL_BYTES = 32 * MIB  # of values, in each call of send_batch
EXCHANGE_BYTES = 4 * MIB  # that bare XADD sends before it reads the answers
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}
SIZES = {100: 2_000_000, KIB: 500_000}  # records of each size

CONFLUENT = "confluent-kafka"
JAVA = "Kafka's Java producer"
ENCODING = "encoding alone"
READY = "Redis fed ready entries"
XADD = "bare XADD"
IPC = "bare Arrow IPC"

Pairs = list[tuple[bytes, bytes]]


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis() as server:
        folder = bench.new_folder()
        with Lakelog.connect(server.url, folder, engine="inline") as lakelog:
            for value_bytes, records in SIZES.items():
                yield from of_many(bench, lakelog, server, value_bytes, records)
    with bench.redis() as server:
        yield from of_one(bench, server)


def of_many(
    bench: Bench,
    lakelog: Lakelog,
    server: RedisServer,
    value_bytes: int,
    records: int,
) -> Iterator[Row]:
    given = Input(value_bytes, bench.scaled(records, 4 * PARTITIONS))
    with server.client() as client:
        ours = Ours(lakelog, client, given)
        theirs = Theirs(bench.kafka, given) if bench.kafka else None
        goals = {"Arrow tables": 2.0, "lists": 2.0, "one by one": 1.2}
        ways: dict[str, dict[str, Side]] = {
            "Arrow tables": {
                OURS: ours.append_tables,
                ENCODING: ours.encode_tables,
                READY: ours.ready_entries,
                XADD: ours.bare_xadd,
            },
            "lists": {OURS: ours.append_lists, ENCODING: ours.encode_lists},
            "one by one": {OURS: ours.send, ENCODING: ours.encode_one_by_one},
        }
        for way, sides in ways.items():
            if theirs is not None:
                sides = {OURS: sides[OURS], CONFLUENT: theirs.produce, **sides}
                if way == "one by one" and theirs.kafka.tool is not None:
                    sides[JAVA] = theirs.java
            samples = rates(bench.interleaved(sides), given.records)
            goal = (Goal(goals[way], CONFLUENT),)
            what = "`send`, one by one" if way == "one by one" else f"`send_batch` of {way}"
            yield Row(f"{what}, {size(value_bytes)}", RECORDS_PER_S, samples, goal)
        encoding = bench.interleaved({OURS: ours.codec_alone, IPC: ours.bare_ipc})
        yield Row(f"encoding, {size(value_bytes)}", RECORDS_PER_S, rates(encoding, given.records))
        ours.close()


def of_one(bench: Bench, server: RedisServer) -> Iterator[Row]:
    """A round is many appends; its figure their median, and their p99."""
    calls = bench.scaled(2_000, 20)
    value = os.urandom(100)
    sides: dict[str, Callable[[], object]] = {}
    folder = bench.new_folder()
    with (
        Lakelog.connect(server.url, folder, engine="inline") as lakelog,
        server.client() as client,
        lakelog.producer(linger_ms=0) as producer,
    ):
        lakelog.topics.create("one", 1, UNTIERED)
        sides[OURS] = lambda: producer.send("one", value, key=b"key").result()
        if bench.kafka is not None:
            kafka, name = bench.kafka, "one"
            kafka.make(name, 1)
            theirs = kafka.producer(**{"linger.ms": 0})

            def produce() -> None:
                theirs.produce(kafka.topic(name), value, b"key")
                theirs.flush()

            sides[CONFLUENT] = produce
        sides[XADD] = lambda: client.xadd("bare", {b"__key": b"key", b"value": value})
        sides["a round trip"] = client.ping
        medians: dict[str, tuple[float, ...]] = {}
        tails: dict[str, tuple[float, ...]] = {}
        found: dict[str, list[list[float]]] = {side: [] for side in sides}

        def measured(side: str, call: Callable[[], object]) -> Side:
            def run() -> None:
                found[side].append(sorted(each_s(calls, call)))

            return run

        bench.interleaved({side: measured(side, call) for side, call in sides.items()})
        for side, times in found.items():
            medians[side] = tuple(statistics.median(one) for one in times[1:])
            tails[side] = tuple(one[int(0.99 * (len(one) - 1))] for one in times[1:])
    yield Row("one append, answered, p50", SECONDS, medians, (Goal(1.0, CONFLUENT),))
    yield Row("one append, answered, p99", SECONDS, tails, (Goal(1 / 0.7, CONFLUENT),))


def each_s(calls: int, call: Callable[[], object]) -> list[float]:
    """The seconds of each call."""
    found = []
    for _ in range(calls):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return found


class Input:
    """The records of one size, as the callers hold them."""

    def __init__(self, value_bytes: int, records: int) -> None:
        at_once = CALL_BYTES // value_bytes
        starts = range(0, records, at_once)
        self.value_bytes = value_bytes
        self.records = records
        self.tables = [made(start, min(at_once, records - start), value_bytes) for start in starts]
        self.lists: list[Pairs] = [
            list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
            for table in self.tables
        ]


def made(first: int, rows: int, value_bytes: int) -> pa.Table:
    """Distinct random values, and keys of 8 bytes."""
    keys = [b"%08d" % (number % 100_000) for number in range(first, first + rows)]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": random_text(rows, value_bytes)})


class OpenBatch:
    """Records that were sent one by one."""

    def __init__(self) -> None:
        self.timestamps_ms: list[int] = []
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        self.size_bytes = 0

    def columns(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.timestamps_ms, pa.int64()),
                pa.array(self.keys, pa.binary()),
                pa.array(self.values, pa.binary()),
                no_headers(len(self.keys)),
            ],
            schema=PRODUCED,
        )


class Theirs:
    """The same records by Kafka's clients; a topic each round."""

    def __init__(self, kafka: KafkaPeer, given: Input) -> None:
        self.kafka = kafka
        self._given = given
        self._names = count()

    def produce(self) -> float:
        name = self._topic()
        topic = self.kafka.topic(name)
        producer = self.kafka.producer()
        started = time.perf_counter()
        for pairs in self._given.lists:
            for key, value in pairs:
                while True:
                    try:
                        producer.produce(topic, value, key)
                        break
                    except BufferError:  # its queue is full
                        producer.poll(0.01)
        producer.flush()
        taken = time.perf_counter() - started
        self.kafka.delete(name)
        return taken

    def java(self) -> float:
        """What the tool says it took, its start not counted."""
        name = self._topic()
        said = self.kafka.run_tool(
            "org.apache.kafka.tools.ProducerPerformance",
            [
                *("--topic", self.kafka.topic(name), "--throughput", "-1"),
                *("--num-records", str(self._given.records)),
                *("--record-size", str(self._given.value_bytes)),
                *("--producer-props", f"bootstrap.servers={self.kafka.servers}", "acks=all"),
            ],
        )
        self.kafka.delete(name)
        per_s = re.findall(r"([0-9.]+) records/sec", said)
        return self._given.records / float(per_s[-1])

    def _topic(self) -> str:
        name = f"append-{self._given.value_bytes}-{next(self._names)}"
        self.kafka.make(name, PARTITIONS)
        return name


class Ours:
    """lakelog's appends of some records, and what these consist of."""

    def __init__(self, lakelog: Lakelog, client: redis.Redis, given: Input) -> None:
        self._lakelog = lakelog
        self._client = client
        self._given = given
        self._names = count()
        self._producer = lakelog.producer()  # encodes, never sends
        self._state = self._producer._accumulator.learn(self._topic(), None)
        self._pieces = [
            (queue, batch) for table in given.tables for queue, batch in self.pieces(table)
        ]
        self._entries = [
            (queue.topic_partition.partition, entry)
            for queue, batch in self._pieces
            for entry in entries_of(queue, batch)
        ]

    def close(self) -> None:
        self._producer.close()
        self._lakelog.topics.delete(self._state.topic.name)

    def pieces(self, rows: object) -> Iterator[tuple[PartitionQueue, pa.RecordBatch]]:
        """What `send_batch` encodes of some records, piece by piece."""
        table, asked = as_columns(rows, time.time_ns() // 1_000_000)
        accumulator, topics = self._producer._accumulator, self._lakelog.hot.topics()
        bulk = BulkAppend(accumulator, self._state, table, asked, None, topics)
        for queue, _, batch in bulk._pieces():
            yield queue, batch

    def encode_tables(self) -> None:
        self._encode(self._given.tables)

    def encode_lists(self) -> None:
        self._encode(self._given.lists)

    def _encode(self, inputs: Sequence[object]) -> None:
        for rows in inputs:
            for queue, batch in self.pieces(rows):
                entries_of(queue, batch)

    def encode_one_by_one(self) -> None:
        """What `send` has to do before an append: find the partition, collect a batch, encode."""
        batch_bytes = ProducerConfig().batch_size
        open_batches = [OpenBatch() for _ in range(PARTITIONS)]
        for pairs in self._given.lists:
            for key, value in pairs:
                number = partition_of_key(key, PARTITIONS)
                batch = open_batches[number]
                batch.timestamps_ms.append(time.time_ns() // 1_000_000)
                batch.keys.append(key)
                batch.values.append(value)
                batch.size_bytes += RECORD_OVERHEAD_BYTES + len(key) + len(value)
                if batch.size_bytes >= batch_bytes:
                    entries_of(self._state.queues[number], batch.columns())
                    open_batches[number] = OpenBatch()
        for number, batch in enumerate(open_batches):
            entries_of(self._state.queues[number], batch.columns())

    def codec_alone(self) -> None:
        for queue, batch in self._pieces:
            entries_of(queue, batch)

    def bare_ipc(self) -> float:
        """One message an entry, compressed likewise; the cutting is not counted."""
        options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        sizes = iter([entry.record_count for _, entry in self._entries])
        slices = []
        for _, batch in self._pieces:
            start = 0
            while start < batch.num_rows:
                slices.append(batch.slice(start, next(sizes)))
                start += slices[-1].num_rows
        started = time.perf_counter()
        for piece in slices:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, PRODUCED, options=options) as writer:
                writer.write_batch(piece)
            sink.getvalue()
        return time.perf_counter() - started

    def ready_entries(self) -> float:
        topic = self._topic()
        calls: list[list[AppendCall]] = [[]]
        sequences = [0] * PARTITIONS
        size_bytes = 0
        for number, entry in self._entries:
            first, last = sequences[number], sequences[number] + entry.record_count - 1
            batch = ProducedBatch((entry,), 1, 0, first, last)
            where = topic.partition(number)
            calls[-1].append(AppendCall(where, topic.topic_id, batch))
            sequences[number] = last + 1
            size_bytes += entry.size_bytes
            if size_bytes >= EXCHANGE_BYTES:
                calls.append([])
                size_bytes = 0
        started = time.perf_counter()
        for together in calls:
            for answer in self._lakelog.hot.append_all(together):
                if isinstance(answer, Exception):
                    raise answer
        taken = time.perf_counter() - started
        self._drop(topic)
        return taken

    def bare_xadd(self) -> float:
        connection: Any = self._client.connection_pool.get_connection()
        started = time.perf_counter()
        self._xadd(connection)
        taken = time.perf_counter() - started
        self._client.connection_pool.release(connection)
        self._client.delete(*(f"bare-{number}" for number in range(PARTITIONS)))
        return taken

    def _xadd(self, connection: Connection) -> None:
        commands: list[tuple[object, ...]] = []
        size_bytes = 0
        for number, entry in self._entries:
            commands.append(("XADD", f"bare-{number}", "*", *entry.fields))
            size_bytes += entry.size_bytes
            if size_bytes >= EXCHANGE_BYTES:
                exchange(connection, commands)
                commands, size_bytes = [], 0
        exchange(connection, commands)

    def append_tables(self) -> float:
        return self._append(lambda producer, name: send_calls(producer, name, self._given.tables))

    def append_lists(self) -> float:
        return self._append(lambda producer, name: send_calls(producer, name, self._given.lists))

    def send(self) -> float:
        return self._append(lambda producer, name: send_all(producer, name, self._given.lists))

    def _append(self, work: Callable[[Producer, str], None]) -> float:
        topic = self._topic()
        with self._lakelog.producer() as producer:
            started = time.perf_counter()
            work(producer, topic.name)
            taken = time.perf_counter() - started
        self._drop(topic)
        return taken

    def _drop(self, topic: Topic) -> None:
        ends = [where.log_end for where in self._lakelog.log(topic).offsets().values()]
        if sum(ends) != self._given.records:
            raise RuntimeError(f"appended {sum(ends)} of {self._given.records} records")
        self._lakelog.topics.delete(topic.name)

    def _topic(self) -> Topic:
        return self._lakelog.topics.create(f"append-{next(self._names)}", PARTITIONS, UNTIERED)


def entries_of(queue: PartitionQueue, batch: pa.RecordBatch) -> tuple[Entry, ...]:
    return encode_for(queue, batch)


def exchange(connection: Connection, commands: Sequence[tuple[object, ...]]) -> None:
    connection.send_packed_command(connection.pack_commands(commands))
    for _ in commands:
        connection.read_response()


def send_calls(producer: Producer, name: str, inputs: Sequence[object]) -> None:
    for rows in inputs:
        producer.send_batch(name, rows)


def send_all(producer: Producer, name: str, lists: Sequence[Pairs]) -> None:
    for pairs in lists:
        for key, value in pairs:
            producer.send(name, value, key=key)
    producer.flush()
