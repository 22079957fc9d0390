"""Finding one archived record among thousands of segments, against bare pyarrow reading it.

A topic for each number of segments: four partitions, a Parquet file a segment with the table's own
settings, statistics and names, all committed to a Delta table that has had checkpoints, and a hot
tier that is empty and begins where the archive ends. The files are written directly: 10,000 rows in
two row groups each, and in a third table larger ones, with row groups as archiving makes them.
Values are random text of 100 bytes, distinct within a file.

At random targets: the record at an offset, and the first record at or after a timestamp (found,
then fetched), both through `TopicLog`, which looks at Redis and at the table's log each time;
pyarrow reading the one row group of the same file, whose path it is told; and in processes of their
own, from the moment lakelog is imported, the first such record (connecting and opening the table
included) and the second. The files were just written, so the page cache holds them if the machine
has the memory. Needs 2 GB of disk.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import redis

from lakelog import Lakelog, TopicLog
from lakelog.cold import schema
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.by_path.segment_writer import WrittenFile
from lakelog.cold.store.storage import Storage
from lakelog.hot.keys import Keys
from lakelog.values.offsets import AtTimestamp
from lakelog.values.record import HEADERS_TYPE

from .bench import Bench, timed
from .made_records import random_text
from .made_segments import commit, path_of, shares, written
from .measures import OURS, SECONDS, Goal, Row, quantile

PARTITIONS = 4
VALUE_BYTES = 100
FIRST_MS = 1_700_000_000_000
STEP_MS = 7  # between records
TARGETS = 40  # a round, of each kind and table

BARE = "bare pyarrow, told the row group"
SEEK_S, GROWTH = 0.015, 2.0


@dataclass(frozen=True)
class Case:
    """A table of so many segments, each of one file."""

    segments: int
    rows: int = 10_000  # of a file
    group_rows: int = 5_000

    @property
    def topic(self) -> str:
        return f"segments-{self.segments}-of-{self.rows}"

    @property
    def partition_rows(self) -> int:
        return self.segments // PARTITIONS * self.rows

    def __str__(self) -> str:
        return f"in {self.segments:,} segments of {self.rows:,}"


def rows(bench: Bench) -> Iterator[Row]:
    few, many, archived = (
        PARTITIONS * bench.scaled(segments // PARTITIONS, least)
        for segments, least in ((1_000, 1), (10_000, 2), (100, 1))
    )
    # What archiving leaves of 128 MiB and more: a seek reads up to half of a larger row group.
    as_archived = Case(archived, 2 * schema.ROW_GROUP_ROWS, schema.ROW_GROUP_ROWS)
    root = str(bench.new_folder())
    with (
        bench.redis() as server,
        Lakelog.connect(server.url, root, engine="inline") as lakelog,
        server.client() as client,
    ):
        cases = [Case(few), Case(many), as_archived]
        tables = [Table(lakelog, client, server.url, root, case) for case in cases]
        found = bench.repeated(
            lambda: {
                (table.case, name): value
                for table in tables
                for name, value in table.measured().items()
            }
        )
    first = cases[0]
    for case in cases:
        for of in ("at an offset", "at a time"):
            for share in ("p50", "p95"):
                name = f"{of}, {share}"
                sides = {OURS: found[case, name]}
                if case is cases[1]:
                    sides[str(first)] = found[first, name]
                if of == "at an offset":
                    sides[BARE] = found[case, f"bare, {share}"]
                goals: tuple[Goal, ...] = ()
                if name == "at an offset, p50":
                    goals = (Goal(SEEK_S), Goal(1 / GROWTH, str(first)))
                yield Row(f"the record {name}, cold, {case}", SECONDS, sides, goals)
        for which in ("first", "second"):
            what = f"the {which} record of a new process, cold, {case}"
            yield Row(what, SECONDS, {OURS: found[case, which]})


# -- reading it --------------------------------------------------------------------------------

FRESH = """
import sys, time
from lakelog import Lakelog
url, cold, topic, *targets = sys.argv[1:]
times_s = [time.perf_counter()]
with Lakelog.connect(url, cold, engine="inline") as lakelog:
    log = lakelog.log(topic)
    for target in targets:
        partition, offset = map(int, target.split(":"))
        (found,) = log.fetch(partition, offset, max_bytes=1).records.column("offset").to_pylist()
        assert found == offset
        times_s.append(time.perf_counter())
print(*(after - before for before, after in zip(times_s, times_s[1:])))
"""


class Table:
    """One table, and ways to read a random record of it."""

    def __init__(self, lakelog: Lakelog, client: redis.Redis, url: str, root: str, case: Case):
        self.case = case
        self._where = (url, root, case.topic)
        self._log = make(lakelog, client, root, case)
        self._index = self._log._tiers.cold().files
        self._path = DeltaLog(Storage(root), self._log.topic).path
        self._chance = random.Random(case.segments)

    def measured(self) -> Mapping[str, float]:
        """Seconds of one round."""
        first_s, second_s = self.fresh()
        found = {"first": first_s, "second": second_s}
        reads = {"at an offset": self.at_offset, "bare": self.bare, "at a time": self.at_timestamp}
        for of, read in reads.items():
            taken = [read() for _ in range(TARGETS)]
            found[f"{of}, p50"] = statistics.median(taken)
            found[f"{of}, p95"] = quantile(taken, 0.95)
        return found

    def target(self) -> tuple[int, int]:
        return self._chance.randrange(PARTITIONS), self._chance.randrange(self.case.partition_rows)

    def at_offset(self) -> float:
        return self._timed(self._fetch)

    def at_timestamp(self) -> float:
        def read(partition: int, offset: int) -> pa.RecordBatch:
            before_ms = FIRST_MS + offset * STEP_MS - STEP_MS // 2  # no record's own
            found = self._log.seek(partition, AtTimestamp(before_ms))
            return self._fetch(partition, found)

        return self._timed(read)

    def bare(self) -> float:
        partition, offset = self.target()
        path = f"{self._path}/{self._index.file_at(partition, offset).path}"

        def read(_: int, offset: int) -> pa.Table:
            group, row = divmod(offset % self.case.rows, self.case.group_rows)
            return pq.ParquetFile(path).read_row_group(group).slice(row, 1)

        return self._timed(read, (partition, offset))

    def fresh(self) -> list[float]:
        """The first and the second record of a new process."""
        targets = [f"{partition}:{offset}" for partition, offset in (self.target(), self.target())]
        command = [sys.executable, "-c", FRESH, *self._where, *targets]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return list(map(float, done.stdout.split()))

    def _fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        return self._log.fetch(partition, offset, max_bytes=1).records

    def _timed(
        self, read: Callable[[int, int], pa.Table], target: tuple[int, int] | None = None
    ) -> float:
        partition, offset = target or self.target()
        found = []
        seconds = timed(lambda: found.append(read(partition, offset)))
        if found[0].column("offset").to_pylist() != [offset]:
            raise RuntimeError(f"asked for {partition}:{offset}, got {found[0]}")
        return seconds


# -- making a table ----------------------------------------------------------------------------


def make(lakelog: Lakelog, client: redis.Redis, root: str, case: Case) -> TopicLog:
    topic = lakelog.topics.create(case.topic, PARTITIONS, {"retention.ms": -1})
    log = DeltaLog(Storage(root), topic)
    log.create(schema.table_properties(topic))
    of_commits = shares(
        [
            (partition, base)
            for base in range(0, case.partition_rows, case.rows)
            for partition in range(PARTITIONS)
        ]
    )
    count = len(of_commits)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        for files in processes.map(write_files, [log.path] * count, [case] * count, of_commits):
            commit(log, topic, files)
    for partition in range(PARTITIONS):
        state = Keys().partition(topic.partition(partition)).state
        end, now_ms = case.partition_rows, lakelog.hot.now_ms()
        segment = f"{end} 0 -1 -1 {now_ms} {now_ms}"
        client.hset(state, mapping={"log_end": end, "local_log_start": end, "segment": segment})
    return lakelog.log(case.topic)


def write_files(table_path: str, case: Case, places: list[tuple[int, int]]) -> list[WrittenFile]:
    """One file for each (partition, base offset). Runs in a process of its own."""
    values = random_text(case.rows, VALUE_BYTES)
    chance = random.Random()
    return [
        write_file(table_path, case, partition, base, values, chance) for partition, base in places
    ]


def write_file(
    table_path: str, case: Case, partition: int, base: int, values: pa.Array, chance: random.Random
) -> WrittenFile:
    end = base + case.rows
    turn = chance.randrange(case.rows)  # the same values in another order, for each file
    keys = pa.array([b"%08d" % (number % 1000) for number in range(turn, turn + case.rows)])
    first_us, last_us = time_us(base), time_us(end - 1)
    table = pa.table(
        [
            pa.array(range(base, end), pa.int64()),
            pa.array(range(first_us, last_us + 1, STEP_MS * 1000)).cast(
                schema.FILE_SCHEMA.field("timestamp").type
            ),
            pa.repeat(pa.scalar(0, pa.int32()), case.rows),
            keys.cast(pa.binary()),
            pa.concat_arrays([values[turn:], values[:turn]]),
            pa.ListArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), case.rows + 1),
                pa.nulls(0, HEADERS_TYPE.value_type),
                type=HEADERS_TYPE,
            ),
            pa.nulls(case.rows, schema.FILE_SCHEMA.field("delete_horizon").type),
        ],
        schema=schema.FILE_SCHEMA,
    )
    path = path_of(partition, base, end)
    full = Path(table_path) / path
    full.parent.mkdir(parents=True)
    with pq.ParquetWriter(full, schema.FILE_SCHEMA, **schema.WRITER_OPTIONS) as writer:
        writer.write_table(table, row_group_size=case.group_rows)
    return written(partition, base, end, path, full.stat().st_size, (first_us, last_us))


def time_us(offset: int) -> int:
    return (FIRST_MS + offset * STEP_MS) * 1000
