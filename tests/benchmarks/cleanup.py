"""Cleanup against its peers, on this machine, in one run: Kafka's log cleaner, and bare pyarrow.

    pip install confluent-kafka
    python tests/benchmarks/cleanup.py --bootstrap-servers HOST:PORT --kafka-log FILE

Without a broker the first two measures have no peer. Each measure is the best of some rounds, in
which the two sides take turns: whatever else runs on the machine only ever adds.

Compaction: both sides get the same records through their own producers (keys evenly random, values
random bytes, LZ4), in segments of the same `segment.bytes`; Kafka's batches have the 16 KiB of its
own producer. The last segment is closed by one more record a partition, so that all but these are
cleaned; the second time with so much more of the same. Kafka's time is what its cleaner reports in
the broker's log, bytes processed by bytes a second, summed by cleaner thread: the busiest of two
threads counts, and no waiting and no scheduling. lakelog's is that of the whole run on Spark
local[2]: opening the table, planning, both Spark jobs, fsync and commit. Both must keep equally
many records.

Memory: of the largest Python worker of a new Spark, with a small `log.cleaner.dedupe.buffer.size`,
over as many records of few and of many keys.

Retention: over a table whose log names segments that are not there, so that nothing can be read.
Its time includes opening the table.

Optimize: pyarrow reads each segment's files and writes them as one with the table's settings and an
fsync, on two processes that are running when the clock starts.

Prints one Markdown table; exits with 1 when a goal of it is missed. Needs 3 GB below --dir, as much
where the broker has its data, and 2 GB of memory for Redis.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from archive import BARRIER_TIMEOUT_S, timed_on_processes, worker_peak
from cold import commit

from lakelog import Lakelog, Topic
from lakelog.archive.copy import HotRows
from lakelog.back_off import POLL, BackOff, wait_until
from lakelog.cleanup.cleanup import Cleanup
from lakelog.cleanup.report import CleanupReport
from lakelog.clock import Clock, ManualClock, SystemClock
from lakelog.cold import schema
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.by_path.segment_writer import WrittenFile
from lakelog.cold.file_statistics import time_statistic
from lakelog.cold.segment import SegmentFile, file_name
from lakelog.cold.store.storage import Storage
from lakelog.config import HOUR_MS, KIB, MIB, TopicConfig
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.engines.spark import SparkEngine
from lakelog.hot.hot_log import HotSource
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

PARTITIONS = 4
PROCESSES = 2
RECORD_BYTES = 100
KEY_BYTES = len(b"key-000000000")
VALUE_BYTES = RECORD_BYTES - KEY_BYTES
CHUNK_RECORDS = 100_000

RECORDS = 5_000_000
KEYS = 500_000
MANY_KEYS = 5_000_000
NEW_SHARE = 0.05
#: About nine segments a partition, which the roll closes, and an open one.
SEGMENT_BYTES = 14 * MIB
SMALL_BUFFER_BYTES = 8 * MIB

SEGMENTS = 10_000
EXPIRED = 1_000
COMMITS = 120  # of the table with so many segments, so that it has had checkpoints

OPTIMIZE_RECORDS = 4_000_000
OPTIMIZE_SEGMENTS = 2  # a partition
FILES_A_SEGMENT = 4

COMPACT_GOAL = 2.0
AGAIN_GOAL = 0.15
GROWTH_GOAL = 1.2  # of the worker, from few keys to ten times as many
RETAIN_GOAL_S = 1.0
OPTIMIZE_GOAL = 0.60


# -- the records -------------------------------------------------------------------------------


def batches(count: int, keys: int, seed: int) -> Iterator[pa.Table]:
    """Columns key, value and partition, which the key decides; the same for the same seed."""
    chance = np.random.default_rng(seed)
    for first in range(0, count, CHUNK_RECORDS):
        rows = min(CHUNK_RECORDS, count - first)
        numbers = pa.array(chance.integers(0, keys, rows))
        digits = pc.utf8_lpad(pc.cast(numbers, pa.string()), KEY_BYTES - len("key-"), "0")
        values = pa.py_buffer(chance.bytes(rows * VALUE_BYTES))
        yield pa.table(
            {
                "key": pc.binary_join_element_wise("key-", digits, "").cast(pa.binary()),
                "value": pa.Array.from_buffers(pa.binary(VALUE_BYTES), rows, [None, values]).cast(
                    pa.binary()
                ),
                "partition": pc.bit_wise_and(numbers, PARTITIONS - 1).cast(pa.int32()),
            }
        )


def closing() -> pa.Table:
    """One record a partition: what is appended to close a segment."""
    return pa.table(
        {
            "key": pa.array([b"closing"] * PARTITIONS, pa.binary()),
            "value": pa.array([bytes(VALUE_BYTES)] * PARTITIONS, pa.binary()),
            "partition": pa.array(range(PARTITIONS), pa.int32()),
        }
    )


# -- lakelog -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cleaned:
    seconds: float
    records_read: int
    records_kept: int


class Place:
    """Where lakelog keeps things: a Redis, a folder, and a Spark that can be started anew."""

    def __init__(self, url: str, root: str) -> None:
        self.url = url
        self.root = root
        self._start_spark()

    def new_spark(self) -> None:
        """With workers that have done nothing yet."""
        self.close()
        self._start_spark()

    def close(self) -> None:
        self.lakelog.close()
        self._spark.stop()

    def _start_spark(self) -> None:
        self._spark = session(cores=PROCESSES)
        self.engine = SparkEngine(self._spark)
        self.lakelog = Lakelog.connect(self.url, self.root, engine=self.engine)

    @contextmanager
    def topic(self, name: str, config: dict[str, object]) -> Iterator[OneTopic]:
        config = {"retention.ms": -1, "local.retention.ms": 0, **config}
        topic = self.lakelog.topics.create(name, PARTITIONS, config)
        one = OneTopic(self, topic)
        try:
            yield one
        finally:
            self.lakelog.topics.delete(name)
            shutil.rmtree(one.path, ignore_errors=True)  # it may never have been made


@dataclass(frozen=True)
class OneTopic:
    place: Place
    topic: Topic

    @property
    def path(self) -> str:
        return Storage(self.place.root).table_path(self.topic)

    def load(self, tables: Iterator[pa.Table], *, close_segments: bool = True) -> None:
        """Append and archive."""
        lakelog, name = self.place.lakelog, self.topic.name
        with lakelog.producer() as producer:
            for table in tables:
                producer.send_batch(name, table)
        if close_segments:
            lakelog.topics.alter(name, {"segment.ms": 1})
            altered_ms = lakelog.hot.now_ms()
            wait_until("a millisecond", lambda: lakelog.hot.now_ms() > altered_ms + 1, POLL)
            with lakelog.producer() as producer:
                producer.send_batch(name, closing())
            lakelog.topics.alter(name, {"segment.ms": None})
        lakelog.archive(name)

    def clean(self, step: str, **settings: object) -> tuple[float, CleanupReport]:
        """Seconds of one step by a process that has not opened the table yet."""
        defaults = [(name.replace("_", "."), str(value)) for name, value in settings.items()]
        topic = replace(self.topic, config=self.topic.config.with_defaults(defaults))
        rows_of = HotRows(HotSource(self.place.url))
        return timed_cleanup(
            topic, self.place.root, self.place.engine, step, SystemClock(), rows_of
        )

    def compact(self, **settings: object) -> Cleaned:
        seconds, report = self.clean("compact", **settings)
        return Cleaned(
            seconds,
            sum(one.records_read for one in report.compacted),
            sum(one.records_kept for one in report.compacted),
        )


def timed_cleanup(
    topic: Topic, root: str, engine: Engine, step: str, clock: Clock, rows_of: Any = None
) -> tuple[float, CleanupReport]:
    started_s = time.perf_counter()
    report = Cleanup(topic, PathTable(topic, Storage(root), engine, rows_of), clock).run((step,))
    seconds = time.perf_counter() - started_s
    if report.failures:
        raise RuntimeError(f"{step} failed:\n{report}")
    return seconds, report


# -- Kafka -------------------------------------------------------------------------------------

_CLEANED = re.compile(
    r"Log cleaner thread (?P<thread>\d+) cleaned log (?P<log>\S+) \(dirty section.*?"
    r"\n\s*(?P<mb>[\d.,]+) MB of log processed in [\d.,]+ seconds \((?P<speed>[\d.,]+) MB/sec\)"
    r".*?Start size: [\d.,]+ MB \((?P<read>[\d,]+) messages\)"
    r".*?End size: [\d.,]+ MB \((?P<kept>[\d,]+) messages\)",
    re.DOTALL,
)


class Kafka:
    """A broker as the peer; its cleaner has two threads as long as this is open.

    Args:
        log: the file that the broker logs to: its cleaner reports there.
    """

    CLEANER: ClassVar = {"log.cleaner.threads": str(PROCESSES), "log.cleaner.backoff.ms": "200"}
    NEVER, AT_ONCE = "1.0", "0.0001"  # min.cleanable.dirty.ratio, which must be exceeded
    PATIENCE = BackOff(0.5, 0.5, within_s=600)

    def __init__(self, bootstrap_servers: str, log: Path) -> None:
        try:
            import confluent_kafka
            from confluent_kafka import admin
        except ImportError:
            sys.exit("to measure against Kafka: pip install confluent-kafka")
        self._admin_module = admin
        self._log = log
        self._admin = admin.AdminClient({"bootstrap.servers": bootstrap_servers})
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "compression.type": "lz4",
                "batch.size": 16 * KIB,
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 3,  # a deleted topic is no news
            }
        )
        self._configure_brokers(self.CLEANER)

    def close(self) -> None:
        self._configure_brokers(dict.fromkeys(self.CLEANER))

    @contextmanager
    def topic(self, name: str) -> Iterator[str]:
        """A new compacted topic that is not cleaned before `clean` says so."""
        config = {
            "cleanup.policy": "compact",
            "segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": self.NEVER,
        }
        new = self._admin_module.NewTopic(name, PARTITIONS, 1, config=config)
        self._admin.create_topics([new])[name].result()
        try:
            yield name
        finally:
            self._admin.delete_topics([name])[name].result()

    def load(self, topic: str, tables: Iterator[pa.Table]) -> None:
        for table in tables:
            self._produce(topic, table)
        self._producer.flush()
        self._configure_topic(topic, {"segment.ms": "1"})
        time.sleep(0.5)  # until the broker goes by it, which nothing tells
        self._produce(topic, closing())
        self._producer.flush()
        self._configure_topic(topic, {"segment.ms": None})

    def clean(self, topic: str) -> Cleaned:
        """Have each partition cleaned once."""
        position = self._log.stat().st_size
        self._configure_topic(topic, {"min.cleanable.dirty.ratio": self.AT_ONCE})
        found = self._await_cleanings(topic, position)
        self._configure_topic(topic, {"min.cleanable.dirty.ratio": self.NEVER})
        busy_s: dict[str, float] = defaultdict(float)
        for one in found:
            busy_s[one["thread"]] += _number(one["mb"]) / _number(one["speed"])
        return Cleaned(
            max(busy_s.values()),
            sum(int(_number(one["read"])) for one in found),
            sum(int(_number(one["kept"])) for one in found),
        )

    def _await_cleanings(self, topic: str, position: int) -> list[re.Match[str]]:
        def cleanings() -> list[re.Match[str]]:
            with self._log.open("rb") as log:
                log.seek(position)
                text = log.read().decode(errors="replace")
            return [
                one for one in _CLEANED.finditer(text) if one["log"].rpartition("-")[0] == topic
            ]

        if not wait_until(
            "the broker to clean", lambda: len(cleanings()) == PARTITIONS, self.PATIENCE
        ):
            raise RuntimeError(f"{self._log} does not say that {topic} was cleaned")
        return cleanings()

    def _produce(self, topic: str, table: pa.Table) -> None:
        columns = (table[name].to_pylist() for name in ("key", "value", "partition"))
        for key, value, partition in zip(*columns, strict=True):
            while True:
                try:
                    self._producer.produce(topic, value, key, partition)
                    break
                except BufferError:  # its queue is full
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def _configure_topic(self, topic: str, settings: dict[str, str | None]) -> None:
        self._configure(self._admin_module.ResourceType.TOPIC, topic, settings)

    def _configure_brokers(self, settings: dict[str, str | None]) -> None:
        for node in self._admin.describe_cluster().result().nodes:
            self._configure(self._admin_module.ResourceType.BROKER, str(node.id), settings)

    def _configure(self, kind: Any, name: str, settings: dict[str, str | None]) -> None:
        """None: as if it had never been set."""
        operations = self._admin_module.AlterConfigOpType
        entries = [
            self._admin_module.ConfigEntry(
                setting,
                value,
                incremental_operation=operations.DELETE if value is None else operations.SET,
            )
            for setting, value in settings.items()
        ]
        resource = self._admin_module.ConfigResource(kind, name, incremental_configs=entries)
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result()


def _number(text: str) -> float:
    return float(text.replace(",", ""))


# -- what is measured --------------------------------------------------------------------------


@dataclass(frozen=True)
class Compaction:
    """The best of all rounds, of one side."""

    records: int
    first_s: float
    again_s: float

    @classmethod
    def best(cls, rounds: list[tuple[Cleaned, Cleaned]]) -> Compaction:
        return cls(
            rounds[0][0].records_read,
            min(first.seconds for first, _ in rounds),
            min(again.seconds for _, again in rounds),
        )

    @property
    def speed(self) -> float:
        return self.records / self.first_s

    @property
    def again(self) -> float:
        return self.again_s / self.first_s


def compact_round(
    place: Place, kafka: Kafka | None, records: int, keys: int, seed: int
) -> dict[str, tuple[Cleaned, Cleaned]]:
    """Both sides, cleaned twice each, in turns."""
    name = f"lakelog-benchmark-{uuid4().hex[:8]}"
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": SEGMENT_BYTES,
        "min.cleanable.dirty.ratio": 0.0001,
    }
    done: dict[str, list[Cleaned]] = defaultdict(list)
    with place.topic(name, config) as ours, kafka_topic(kafka, name) as theirs:
        for count, at in ((records, seed), (round(records * NEW_SHARE), seed + 1)):
            ours.load(batches(count, keys, at))
            if kafka is not None:
                kafka.load(theirs, batches(count, keys, at))
            done["lakelog"].append(ours.compact())
            if kafka is not None:
                done["kafka"].append(kafka.clean(theirs))
    say(
        "compaction: "
        + "; ".join(
            f"{side} {first.seconds:.2f} s, again {again.seconds:.2f} s"
            for side, (first, again) in done.items()
        )
    )
    counts = {
        tuple((one.records_read, one.records_kept) for one in cleaned) for cleaned in done.values()
    }
    if len(counts) != 1:
        raise RuntimeError(f"the two sides read or kept different records: {dict(done)}")
    return {side: (first, again) for side, (first, again) in done.items()}


@contextmanager
def kafka_topic(kafka: Kafka | None, name: str) -> Iterator[str]:
    if kafka is None:
        yield ""
        return
    with kafka.topic(name) as topic:
        yield topic


def compact_memory(place: Place, records: int, keys: int) -> tuple[int, float]:
    """Peak bytes of a worker that does nothing else, and seconds."""
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": SEGMENT_BYTES,
        "min.cleanable.dirty.ratio": 0.0001,
    }
    with place.topic(f"memory-{keys}", config) as topic:
        topic.load(batches(records, keys, seed=keys))
        place.new_spark()
        with worker_peak() as peaks:
            cleaned = topic.compact(log_cleaner_dedupe_buffer_size=SMALL_BUFFER_BYTES)
    if cleaned.records_read < records:
        raise RuntimeError(f"not all was cleaned: {cleaned}")
    say(f"memory, {keys:,} keys: {peaks[0] / MIB:.0f} MiB, {cleaned.seconds:.2f} s")
    return peaks[0], cleaned.seconds


def retain_round(folder: str, segments: int, expired: int) -> float:
    """Seconds, opening the table included."""
    hours = segments // PARTITIONS  # one segment an hour, in each partition
    retention_ms = hours * HOUR_MS
    topic = Topic("retained", uuid4(), PARTITIONS, TopicConfig.of(retention_ms=retention_ms))
    storage = Storage(folder)
    log = DeltaLog(storage, topic)
    log.create(schema.table_properties(topic))
    files = [
        missing_file(partition, hour) for hour in range(hours) for partition in range(PARTITIONS)
    ]
    size = -(-len(files) // COMMITS)
    for at in range(0, len(files), size):
        commit(log, topic, files[at : at + size])
    # The first hour that stays is as old as may be.
    clock = ManualClock(time_ms(expired // PARTITIONS) + retention_ms)
    seconds, report = timed_cleanup(topic, folder, InlineEngine(), "retain", clock)
    dropped = sum(len(one.dropped) for one in report.retained)
    if dropped != expired // PARTITIONS * PARTITIONS:
        raise RuntimeError(f"{dropped} segments were dropped instead of {expired}:\n{report}")
    shutil.rmtree(log.path)
    say(f"retention: {seconds:.2f} s")
    return seconds


def missing_file(partition: int, hour: int) -> WrittenFile:
    """What the table's log says of a segment's file that nobody wrote."""
    rows = 10_000
    base, end = hour * rows, (hour + 1) * rows
    path = f"partition={partition}/segment={base}/" + file_name("archive", base, end, uuid4().hex)
    file = SegmentFile(
        partition, base, path, rows * RECORD_BYTES, rows, base, end,
        time_ms(hour), time_ms(hour), time_ms(hour),
    )  # fmt: skip
    statistic = time_statistic(time_ms(hour) * 1000)
    stats = {
        "numRecords": rows,
        "minValues": {"offset": base, **statistic},
        "maxValues": {"offset": end - 1, **statistic},
        "nullCount": {"offset": 0, "timestamp": 0},
    }
    return WrittenFile(file, json.dumps(stats))


def time_ms(hour: int) -> int:
    return 1_700_000_000_000 + hour * HOUR_MS


@dataclass(frozen=True)
class Optimized:
    seconds: float
    pyarrow_s: float
    size_bytes: int


def optimize_round(place: Place, records: int) -> Optimized:
    with place.topic("optimized", {}) as topic:
        steps = OPTIMIZE_SEGMENTS * FILES_A_SEGMENT
        for step in range(1, steps + 1):
            topic.load(
                batches(records // steps, KEYS, step),
                close_segments=step % FILES_A_SEGMENT == 0,
            )
        table = PathTable(topic.topic, Storage(place.root), InlineEngine(), None)
        segments = [
            [f"{table.path}/{file.path}" for file in segment.files]
            for partition in range(PARTITIONS)
            for segment in table.snapshot().files.segments(partition)
            if len(segment.files) > 1
        ]
        size_bytes = sum(Path(path).stat().st_size for paths in segments for path in paths)
        with tempfile.TemporaryDirectory(dir=place.root) as folder:
            pyarrow_s = timed_on_processes(rewrite, segments, folder)
        seconds, report = topic.clean("optimize")
        before = sum(one.bytes_before for one in report.optimized)
        if before != size_bytes:
            raise RuntimeError(f"{before} bytes were merged instead of {size_bytes}:\n{report}")
    say(f"optimize: {seconds:.2f} s; pyarrow {pyarrow_s:.2f} s")
    return Optimized(seconds, pyarrow_s, size_bytes)


def rewrite(barrier: Barrier, process: int, segments: list[list[str]], folder: str) -> None:
    """Runs in a process of its own."""
    barrier.wait(BARRIER_TIMEOUT_S)
    for number, paths in enumerate(segments[process::PROCESSES]):
        table = pa.concat_tables(pq.ParquetFile(path).read() for path in paths)
        target = Path(folder) / f"{process}-{number}.parquet"
        with pq.ParquetWriter(target, schema.FILE_SCHEMA, **schema.WRITER_OPTIONS) as writer:
            writer.write_table(table, row_group_size=schema.ROW_GROUP_ROWS)
        with target.open("rb") as file:
            os.fsync(file.fileno())
    barrier.wait(BARRIER_TIMEOUT_S)


# -- the table ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    what: str
    ours: str
    theirs: str = ""
    ratio: str = ""
    goal: str = ""
    reached: bool = True

    def __str__(self) -> str:
        missed = "" if self.reached else " (missed)"
        return f"| {self.what} | {self.ours} | {self.theirs} | {self.ratio} | {self.goal}{missed} |"


def compaction_rows(sides: dict[str, Compaction], keys: int) -> Iterator[Row]:
    ours, theirs = sides["lakelog"], sides.get("kafka")
    first = Row(
        f"compaction of {ours.records:,} records of {RECORD_BYTES} B, {keys:,} keys",
        f"{ours.speed / 1e6:.2f} M/s ({ours.first_s:.2f} s)",
        goal=f"≥ {COMPACT_GOAL:g} ×",
    )
    again = Row(
        f"again, with {NEW_SHARE:.0%} new records, of the first time",
        f"{ours.again:.0%} ({ours.again_s:.2f} s)",
        goal=f"≤ {AGAIN_GOAL:.0%}",
        reached=ours.again <= AGAIN_GOAL,
    )
    if theirs is None:
        yield from (first, again)
        return
    ratio = ours.speed / theirs.speed
    yield replace(
        first,
        theirs=f"Kafka's log cleaner {theirs.speed / 1e6:.2f} M/s ({theirs.first_s:.2f} s)",
        ratio=f"{ratio:.2f} ×",
        reached=ratio >= COMPACT_GOAL,
    )
    yield replace(
        again,
        theirs=f"Kafka's log cleaner {theirs.again:.0%} ({theirs.again_s:.2f} s)",
        ratio=f"{theirs.again_s / ours.again_s:.2f} × as fast",
    )


def memory_row(few: int, many: int, few_bytes: int, many_bytes: int) -> Row:
    growth = many_bytes / few_bytes
    return Row(
        f"peak memory of a Spark worker, {many:,} keys, {SMALL_BUFFER_BYTES // MIB} MiB of buffer",
        f"{many_bytes / MIB:.0f} MiB",
        f"{few:,} keys: {few_bytes / MIB:.0f} MiB",
        f"{growth:.2f}",
        f"≤ {GROWTH_GOAL:g}",
        growth <= GROWTH_GOAL,
    )


def retain_row(segments: int, expired: int, seconds: float) -> Row:
    return Row(
        f"retention that drops {expired:,} of {segments:,} segments; bytes read of them",
        f"{seconds:.2f} s; 0",
        goal=f"≤ {RETAIN_GOAL_S:g} s",
        reached=seconds <= RETAIN_GOAL_S,
    )


def optimize_row(rounds: list[Optimized]) -> Row:
    seconds = min(one.seconds for one in rounds)
    pyarrow_s = min(one.pyarrow_s for one in rounds)
    megabytes = rounds[0].size_bytes / 1e6
    return Row(
        f"optimize, {megabytes:,.0f} MB in {FILES_A_SEGMENT} files a segment",
        f"{megabytes / seconds:.0f} MB/s ({seconds:.2f} s)",
        f"pyarrow {megabytes / pyarrow_s:.0f} MB/s ({pyarrow_s:.2f} s)",
        f"{pyarrow_s / seconds:.0%}",
        f"≥ {OPTIMIZE_GOAL:.0%}",
        pyarrow_s / seconds >= OPTIMIZE_GOAL,
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# -- all of it ---------------------------------------------------------------------------------


def measure(place: Place, kafka: Kafka | None, scale: float, rounds: int) -> list[Row]:
    def scaled(number: int) -> int:
        return max(PARTITIONS, int(number * scale) // PARTITIONS * PARTITIONS)

    def repeated(once: Callable[[int], Any]) -> list[Any]:
        return [once(number) for number in range(rounds)]

    compact_round(place, kafka, scaled(RECORDS) // 5, scaled(KEYS), seed=1)  # warms up
    found = repeated(
        lambda number: compact_round(place, kafka, scaled(RECORDS), scaled(KEYS), 10 * number)
    )
    sides = {side: Compaction.best([one[side] for one in found]) for side in found[0]}
    optimized = repeated(lambda _: optimize_round(place, scaled(OPTIMIZE_RECORDS)))
    retained_s = repeated(lambda _: retain_round(place.root, scaled(SEGMENTS), scaled(EXPIRED)))
    (few_bytes, _), (many_bytes, _) = (
        compact_memory(place, scaled(RECORDS), scaled(keys)) for keys in (KEYS, MANY_KEYS)
    )
    return [
        *compaction_rows(sides, scaled(KEYS)),
        memory_row(scaled(KEYS), scaled(MANY_KEYS), few_bytes, many_bytes),
        retain_row(scaled(SEGMENTS), scaled(EXPIRED), min(retained_s)),
        optimize_row(optimized),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", help="of the Kafka broker, HOST:PORT")
    parser.add_argument("--kafka-log", type=Path, help="what the broker logs, cleaner included")
    parser.add_argument("--scale", type=float, default=1.0, help="of all counts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where the tables are made, and removed")
    arguments = parser.parse_args()
    if (arguments.bootstrap_servers is None) != (arguments.kafka_log is None):
        parser.error("--bootstrap-servers and --kafka-log go together")
    kafka = None
    if arguments.bootstrap_servers is not None:
        kafka = Kafka(arguments.bootstrap_servers, arguments.kafka_log)
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no"}).start()
        try:
            place = Place(server.url, f"{folder}/cold")
            try:
                rows = measure(place, kafka, arguments.scale, arguments.rounds)
            finally:
                place.close()
        finally:
            server.kill()
            if kafka is not None:
                kafka.close()
    print("| measure | lakelog | peer | ratio | goal |\n|---|---:|---:|---:|---:|")
    print(*rows, sep="\n")
    cores, load = os.cpu_count(), os.getloadavg()[1]
    print(f"\n{cores} cores, load average {load:.1f}. What others use (this uses {PROCESSES} to 3)")
    print("slows the two sides down unequally, and the ratios say less.")
    return 0 if all(row.reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
