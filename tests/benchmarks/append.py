"""Appending against its limits, on this machine, in one run.

    python tests/benchmarks/append.py

Each size's records go to a topic of four partitions as Arrow tables and as Python lists of
(key, value) through `send_batch`, and one by one through `send` and a final `flush`. What they are
held against, with the producer's default settings:

- *encode*: the same input made into entries (columns, partitions, cuts, compression), thrown away;
- *entries alone*: entries made before, appended: what the hot tier takes at most, since Redis runs
  the append script in one thread, and its Lua hashes each byte that it is given;
- *bare XADD*: the same entries, pipelined by redis-py to as many streams;
- *bare IPC*: pyarrow writing batches made before as IPC messages, an entry's records each; against
  it also *codec alone*, which is encoding without columns and partitions.

Values are random text, so that no codec flatters either side. The sides take turns, each in a topic
of its own that is dropped afterwards; what counts is the best time of each, since whatever else
runs on the machine only ever adds. An append shares the machine with Redis and so suffers more from
others than encoding does: the CPU time of this process (Redis not counted) tells that apart. Prints
one Markdown table.
"""

from __future__ import annotations

import argparse
import base64
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import redis
from redis.connection import Connection

from lakelog import Lakelog, Topic
from lakelog.codec import Entry, ProducedBatch, encode
from lakelog.config import KIB, MIB
from lakelog.hot import AppendCall
from lakelog.ingest.accumulator import RECORD_OVERHEAD_BYTES
from lakelog.ingest.bulk import BulkAppend
from lakelog.ingest.given_records import as_columns, no_headers
from lakelog.ingest.partition_queue import PartitionQueue
from lakelog.ingest.partitioner import partition_of_key
from lakelog.ingest.producer import Producer, ProducerConfig
from lakelog.record import PRODUCED
from lakelog.testing.servers import RedisServer

PARTITIONS = 4
CALL_BYTES = 32 * MIB  # of values, in each call of send_batch
EXCHANGE_BYTES = 4 * MIB  # that bare XADD sends before it reads the answers
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}

Pairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Case:
    value_bytes: int
    records: int


CASES = [Case(100, 2_000_000), Case(KIB, 500_000)]


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of this process's threads on a CPU."""

    wall_s: float
    cpu_s: float

    def best(self, other: Spent) -> Spent:
        return Spent(min(self.wall_s, other.wall_s), min(self.cpu_s, other.cpu_s))


def spent(work: Callable[[], None]) -> Spent:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall_s, time.process_time() - cpu_s)


class Input:
    """The records of one case, as the callers hold them."""

    def __init__(self, case: Case) -> None:
        rows = CALL_BYTES // case.value_bytes
        starts = range(0, case.records, rows)
        self.records = case.records
        self.tables = [
            records(start, min(rows, case.records - start), case.value_bytes) for start in starts
        ]
        self.lists: list[Pairs] = [
            list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
            for table in self.tables
        ]


def records(first: int, rows: int, value_bytes: int) -> pa.Table:
    """Distinct random values, and keys of 8 bytes."""
    text = base64.b64encode(os.urandom(rows * value_bytes * 3 // 4 + 3))[: rows * value_bytes]
    values = pa.Array.from_buffers(pa.binary(value_bytes), rows, [None, pa.py_buffer(text)])
    keys = [b"%08d" % (number % 100_000) for number in range(first, first + rows)]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": values.cast(pa.binary())})


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


# -- the sides ---------------------------------------------------------------------------------


class Sides:
    """What is measured of one case."""

    def __init__(self, lakelog: Lakelog, client: redis.Redis, given: Input) -> None:
        self._lakelog = lakelog
        self._client = client
        self._given = given
        self._names = count()
        self._producer = lakelog.producer()  # encodes, never sends
        self._state = self._producer._accumulator.learn(self._topic())
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

    def encode_tables(self) -> Spent:
        return spent(lambda: self._encode(self._given.tables))

    def encode_lists(self) -> Spent:
        return spent(lambda: self._encode(self._given.lists))

    def _encode(self, inputs: Sequence[object]) -> None:
        for rows in inputs:
            for queue, batch in self.pieces(rows):
                entries_of(queue, batch)

    def encode_one_by_one(self) -> Spent:
        return spent(self._encode_one_by_one)

    def _encode_one_by_one(self) -> None:
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

    def codec_alone(self) -> Spent:
        def write() -> None:
            for queue, batch in self._pieces:
                entries_of(queue, batch)

        return spent(write)

    def bare_ipc(self) -> Spent:
        """One message an entry, compressed likewise; the cutting is not counted."""
        options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        sizes = iter([entry.record_count for _, entry in self._entries])
        slices = []
        for _, batch in self._pieces:
            start = 0
            while start < batch.num_rows:
                slices.append(batch.slice(start, next(sizes)))
                start += slices[-1].num_rows

        def write() -> None:
            for piece in slices:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, PRODUCED, options=options) as writer:
                    writer.write_batch(piece)
                sink.getvalue()

        return spent(write)

    def entries_alone(self) -> Spent:
        topic = self._topic()
        calls: list[list[AppendCall]] = [[]]
        sequences = [0] * PARTITIONS
        size_bytes = 0
        for number, entry in self._entries:
            first, last = sequences[number], sequences[number] + entry.record_count - 1
            batch = ProducedBatch((entry,), 1, 0, first, last)
            calls[-1].append(AppendCall(topic.partition(number), topic.topic_id, batch))
            sequences[number] = last + 1
            size_bytes += entry.size_bytes
            if size_bytes >= EXCHANGE_BYTES:
                calls.append([])
                size_bytes = 0

        def append() -> None:
            for together in calls:
                for answer in self._lakelog.hot.append_all(together):
                    if isinstance(answer, Exception):
                        raise answer

        seconds = spent(append)
        self._drop(topic)
        return seconds

    def bare_xadd(self) -> Spent:
        connection: Any = self._client.connection_pool.get_connection()
        seconds = spent(lambda: self._xadd(connection))
        self._client.connection_pool.release(connection)
        self._client.delete(*(f"bare-{number}" for number in range(PARTITIONS)))
        return seconds

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

    def append_tables(self) -> Spent:
        return self._append(lambda producer, name: send_calls(producer, name, self._given.tables))

    def append_lists(self) -> Spent:
        return self._append(lambda producer, name: send_calls(producer, name, self._given.lists))

    def send(self) -> Spent:
        return self._append(lambda producer, name: send_all(producer, name, self._given.lists))

    def _append(self, work: Callable[[Producer, str], None]) -> Spent:
        topic = self._topic()
        with self._lakelog.producer() as producer:
            seconds = spent(lambda: work(producer, topic.name))
        self._drop(topic)
        return seconds

    def _drop(self, topic: Topic) -> None:
        ends = [where.log_end for where in self._lakelog.log(topic).offsets().values()]
        if sum(ends) != self._given.records:
            raise RuntimeError(f"appended {sum(ends)} of {self._given.records} records")
        self._lakelog.topics.delete(topic.name)

    def _topic(self) -> Topic:
        return self._lakelog.topics.create(f"append-{next(self._names)}", PARTITIONS, UNTIERED)


def entries_of(queue: PartitionQueue, batch: pa.RecordBatch) -> tuple[Entry, ...]:
    return encode(
        batch, queue.entry_format, queue.compression, max_entry_bytes=queue.max_entry_bytes
    )


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


# -- the table ---------------------------------------------------------------------------------


def measure(case: Case, rounds: int, server: RedisServer, folder: str) -> dict[str, Spent]:
    """The best of each side."""
    with Lakelog.connect(server.url, folder, engine="inline") as lakelog, server.client() as client:
        sides = Sides(lakelog, client, Input(case))
        best: dict[str, Spent] = {}
        for turn in range(rounds + 1):
            for side in (
                sides.bare_ipc,
                sides.codec_alone,
                sides.encode_tables,
                sides.append_tables,
                sides.entries_alone,
                sides.bare_xadd,
                sides.encode_lists,
                sides.append_lists,
                sides.encode_one_by_one,
                sides.send,
            ):
                found = side()
                if turn:  # the first one warms up
                    best[side.__name__] = found.best(best.get(side.__name__, found))
        sides.close()
    return best


#: What is measured, against what, and the least share of its speed that is asked for.
ROWS = [
    ("append_tables", "encode_tables", 0.60),
    ("append_lists", "encode_lists", 0.60),
    ("send", "encode_one_by_one", 0.25),
    ("append_tables", "entries_alone", None),
    ("entries_alone", "bare_xadd", None),
    ("encode_tables", "bare_ipc", None),
    ("codec_alone", "bare_ipc", None),
]
NAMES = {
    "append_tables": "send_batch, Arrow tables",
    "append_lists": "send_batch, lists",
    "send": "send, one by one",
    "encode_tables": "encode",
    "encode_lists": "encode",
    "encode_one_by_one": "encode",
    "codec_alone": "codec alone",
    "entries_alone": "entries alone",
    "bare_xadd": "bare XADD",
    "bare_ipc": "bare IPC",
}


def show(case: Case, best: dict[str, Spent]) -> None:
    size = f"{case.value_bytes} B" if case.value_bytes < KIB else f"{case.value_bytes // KIB} KiB"
    for measured, against, goal in ROWS:
        ours, limit = best[measured], best[against]
        print(
            f"| {size} | {NAMES[measured]} | {case.records / ours.wall_s:,.0f} "
            f"| {NAMES[against]} | {case.records / limit.wall_s:,.0f} "
            f"| {limit.wall_s / ours.wall_s:.0%}{f' (goal ≥ {goal:.0%})' if goal else ''} "
            f"| {limit.cpu_s / ours.cpu_s:.0%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the record counts")
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    print(
        "| value | measured | records/s | against | records/s | ratio | of CPU time |\n"
        "|---|---|---:|---|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as folder:
        # What the append-only file costs is Redis's, and its disk's, business.
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no"}).start()
        try:
            for case in CASES:
                scaled = Case(case.value_bytes, int(case.records * arguments.scale))
                show(scaled, measure(scaled, arguments.rounds, server, folder))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
