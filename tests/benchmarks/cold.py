"""Finding one archived record among thousands of segments, on this machine, in one run.

    python tests/benchmarks/cold.py

Makes a topic for each number of segments: four partitions, a Parquet file a segment with the
table's own settings, statistics and names, all committed to a Delta table that has had checkpoints,
and a hot tier that is empty and begins where the archive ends. The files are written directly,
since it is not archiving that is measured: 10,000 rows in two row groups each, and in a third table
larger ones, with row groups as archiving makes them. Values are random text of 100 bytes, distinct
within a file.

Measured are, at random targets and in turn: the record at an offset, and the first record at or
after a timestamp (found, then fetched), both through `UnifiedLog`, which looks at Redis and at the
table's log each time; pyarrow reading the one row group of the same file, whose path it is told;
and in processes of their own, from the moment lakelog is imported, the first such record
(connecting and opening the table included) and the second. What counts is the median. The files
were just written, so the page cache holds them if the machine has the memory.

Takes 0.8 GB of disk for 1,000 segments, and 1 GB for the third table, below --dir. Prints one
Markdown table.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import redis

from lakelog import Lakelog, Topic, UnifiedLog
from lakelog.cold import schema
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.by_path.segment_writer import WrittenFile
from lakelog.cold.file_statistics import time_statistic
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart, app_id
from lakelog.cold.segment import SegmentFile, file_name
from lakelog.cold.store.storage import Storage
from lakelog.hot.keys import Keys
from lakelog.offsets import AtTimestamp
from lakelog.record import HEADERS_TYPE
from lakelog.testing.servers import RedisServer

PARTITIONS = 4
VALUE_BYTES = 100
COMMITS = 120  # of each table, so that it has had two checkpoints
FIRST_MS = 1_700_000_000_000
STEP_MS = 7  # between records
TARGETS = 20  # a round, of each kind and table


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


#: What archiving leaves of 128 MiB and more: a seek reads up to half of a larger row group.
AS_ARCHIVED = Case(100, 2 * schema.ROW_GROUP_ROWS, schema.ROW_GROUP_ROWS)


# -- making a table ----------------------------------------------------------------------------


def make(lakelog: Lakelog, client: redis.Redis, root: str, case: Case) -> UnifiedLog:
    started_s = time.perf_counter()
    topic = lakelog.topics.create(case.topic, PARTITIONS, {"retention.ms": -1})
    storage = Storage(root)
    log = DeltaLog(storage, topic)
    log.create(schema.table_properties(topic))
    places = [
        (partition, base)
        for base in range(0, case.partition_rows, case.rows)
        for partition in range(PARTITIONS)
    ]
    size = -(-len(places) // COMMITS)
    shares = [places[at : at + size] for at in range(0, len(places), size)]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        written = processes.map(write_files, [log.path] * len(shares), [case] * len(shares), shares)
        for files in written:
            commit(log, topic, files)
    for partition in range(PARTITIONS):
        state = Keys().partition(topic.partition(partition)).state
        end, now_ms = case.partition_rows, lakelog.hot.now_ms()
        segment = f"{end} 0 -1 -1 {now_ms} {now_ms}"
        client.hset(state, mapping={"log_end": end, "local_log_start": end, "segment": segment})
    print(f"made {case.topic} in {time.perf_counter() - started_s:.0f} s", file=sys.stderr)
    return lakelog.log(case.topic)


def write_files(table_path: str, case: Case, places: list[tuple[int, int]]) -> list[WrittenFile]:
    """One file for each (partition, base offset). Runs in a process of its own."""
    text = base64.b64encode(os.urandom(case.rows * VALUE_BYTES * 3 // 4 + 3))
    values = pa.Array.from_buffers(
        pa.binary(VALUE_BYTES), case.rows, [None, pa.py_buffer(text[: case.rows * VALUE_BYTES])]
    ).cast(pa.binary())
    chance = random.Random(text)
    return [
        write_file(table_path, case, partition, base, values, chance) for partition, base in places
    ]


def write_file(
    table_path: str, case: Case, partition: int, base: int, values: pa.Array, chance: random.Random
) -> WrittenFile:
    end = base + case.rows
    turn = chance.randrange(case.rows)  # the same values in another order, for each file
    offsets = pa.array(range(base, end), pa.int64())
    keys = pa.array([b"%08d" % (number % 1000) for number in range(turn, turn + case.rows)])
    first_us, last_us = time_us(base), time_us(end - 1)
    table = pa.table(
        [
            offsets,
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
    name = file_name("archive", base, end, uuid4().hex)
    path = f"partition={partition}/segment={base}/{name}"
    full = Path(table_path) / path
    full.parent.mkdir(parents=True)
    with pq.ParquetWriter(full, schema.FILE_SCHEMA, **schema.WRITER_OPTIONS) as writer:
        writer.write_table(table, row_group_size=case.group_rows)
    stats = {
        "numRecords": case.rows,
        "minValues": {"offset": base, **time_statistic(first_us)},
        "maxValues": {"offset": end - 1, **time_statistic(last_us)},
        "nullCount": {"offset": 0, "timestamp": 0},
    }
    file = SegmentFile(
        partition, base, path, full.stat().st_size, case.rows, base, end,
        first_us // 1000, last_us // 1000,
    )  # fmt: skip
    return WrittenFile(file, json.dumps(stats))


def time_us(offset: int) -> int:
    return (FIRST_MS + offset * STEP_MS) * 1000


def commit(log: DeltaLog, topic: Topic, files: list[WrittenFile]) -> None:
    transactions = {}
    for partition in range(PARTITIONS):
        ends = [written.file.end_offset for written in files if written.file.partition == partition]
        if not ends:
            continue
        for register in (ArchivedEnd(partition), LogStart(partition), CleanedEnd(partition)):
            value = max(ends) if isinstance(register, ArchivedEnd) else 0
            transactions[app_id(topic.topic_id, register)] = value
    log.commit(uuid4().hex, files, [], transactions, data_change=True)
    log.refresh()
    log.checkpoint_if_due()


# -- measuring ---------------------------------------------------------------------------------

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
print(*(1e3 * (after - before) for before, after in zip(times_s, times_s[1:])))
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

    def target(self) -> tuple[int, int]:
        return self._chance.randrange(PARTITIONS), self._chance.randrange(self.case.partition_rows)

    def at_offset(self) -> float:
        return self._timed(lambda partition, offset: self._fetch(partition, offset))

    def at_timestamp(self) -> float:
        def read(partition: int, offset: int) -> pa.RecordBatch:
            before_ms = FIRST_MS + offset * STEP_MS - STEP_MS // 2  # no record's own
            found = self._log.seek(partition, AtTimestamp(before_ms))
            return self._fetch(partition, found)

        return self._timed(read)

    def bare(self) -> float:
        def read(partition: int, offset: int) -> pa.Table:
            file = pq.ParquetFile(files[partition, offset])
            group, row = divmod(offset % self.case.rows, self.case.group_rows)
            return file.read_row_group(group).slice(row, 1)

        partition, offset = self.target()
        file = self._index.file_at(partition, offset)
        files = {(partition, offset): f"{self._path}/{file.path}"}
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
        """Milliseconds of one read."""
        partition, offset = target or self.target()
        started_s = time.perf_counter()
        found = read(partition, offset)
        seconds = time.perf_counter() - started_s
        if found.column("offset").to_pylist() != [offset]:
            raise RuntimeError(f"asked for {partition}:{offset}, got {found}")
        return seconds * 1e3


ROWS = {
    "at_offset": "record at an offset (goal ≤ 15 ms, and ≤ 2 ×)",
    "at_timestamp": "record at a timestamp",
    "bare": "row group of a known file, bare pyarrow",
    "first": "first record of a new process",
    "second": "second record of a new process",
}


def measure(tables: list[Table], rounds: int) -> dict[tuple[str, str], list[float]]:
    """Milliseconds by row and topic."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        for table in tables:
            first, second = table.fresh()
            found = {"first": [first], "second": [second]}
            for side in (table.at_offset, table.bare, table.at_timestamp):
                found[side.__name__] = [side() for _ in range(TARGETS)]
            if turn:  # the first one warms up
                for name, these in found.items():
                    times[name, table.case.topic] += these
    return times


def show(cases: list[Case], times: dict[tuple[str, str], list[float]]) -> None:
    heads = "".join(f" {case.segments:,} segments of {case.rows:,} | p95 |" for case in cases)
    print(f"| median of |{heads} second / first |\n|---|{'---:|---:|' * len(cases)}---:|")
    for row, title in ROWS.items():
        medians = [statistics.median(times[row, case.topic]) for case in cases]
        cells = [
            f"{median:.1f} ms | {statistics.quantiles(times[row, case.topic], n=20)[-1]:.1f} ms"
            for median, case in zip(medians, cases, strict=True)
        ]
        print(f"| {title} | {' | '.join(cells)} | {medians[1] / medians[0]:.2f} × |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--segments", type=int, nargs=2, default=[1_000, 10_000], help="of the first two tables"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--dir", help="where the tables are made, and removed")
    arguments = parser.parse_args()
    cases = [Case(-(-segments // PARTITIONS) * PARTITIONS) for segments in arguments.segments]
    cases.append(AS_ARCHIVED)
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        server = RedisServer(Path(folder) / "redis").start()
        root = f"{folder}/cold"
        try:
            with (
                Lakelog.connect(server.url, root, engine="inline") as lakelog,
                server.client() as client,
            ):
                tables = [Table(lakelog, client, server.url, root, case) for case in cases]
                show(cases, measure(tables, arguments.rounds))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
