"""What a table of very many files costs whoever opens it, looks at it and commits to it.

    python tests/benchmarks/many_files.py

Makes the log of a table of 100,000 files, each a segment of its own, in four partitions; the files
themselves are not there, since nothing of them is read. It has a checkpoint, and a commit after it.
In a process of its own, with all imported: opening it (a new `PathTable` and its first snapshot),
and delta-rs opening it alone; CPU and time, and by how much the process's memory grew, at its peak
and afterwards. Then what a look for news, the file of an offset, and a commit take there.

Prints a Markdown table. Takes a minute.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID, uuid4

from lakelog import Topic
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.by_path.segment_writer import WrittenFile
from lakelog.cold.by_path.transactions import registers_of
from lakelog.cold.change import Change
from lakelog.cold.registers import ArchivedEnd, LogStart, app_id
from lakelog.cold.schema import READABLE_BY_ALL, table_properties, value_columns
from lakelog.cold.segment import SegmentFile
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine

TOPIC = Topic("files", UUID(int=1), 4)
RECORDS = 10_000  # of a file
EPOCH_MS = 1_700_000_000_000

ASK = """
import sys, time
from random import Random
import deltalake, numpy, pyarrow.acero, pyarrow.compute, pyarrow.parquet
sys.path.insert(0, sys.argv[3])
from many_files import Change, LogStart, RECORDS, opened
from lakelog.cold.store.storage import Storage

def mib(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

def timed(name, action, times=1):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        found = action()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    said = f"{1000 * cpu / times:,.2f} ms | {1000 * wall / times:,.2f} ms"
    return found, f"| {name} | {said} | "

what, root = sys.argv[1:3]
before = mib("VmRSS")
table = opened(root)
if what == "delta-rs":
    found, said = timed("delta-rs opens it", lambda: deltalake.DeltaTable(table.path))
    print(f"{said}{mib('VmHWM') - before:.0f} MiB | {mib('VmRSS') - before:.0f} MiB |")
    sys.exit()
snapshot, said = timed("opening", table.snapshot)
print(f"{said}{mib('VmHWM') - before:.0f} MiB | {mib('VmRSS') - before:.0f} MiB |")
index = snapshot.files.size_bytes_in_memory / 2**20
print(timed("a look for news", table.snapshot, 100)[1] + f"| index {index:.0f} MiB |")
chance, end = Random(0), len(snapshot.files) // 4 * RECORDS
def file():
    return snapshot.files.file_at(chance.randrange(4), chance.randrange(end))
print(timed("the file of an offset", file, 1000)[1] + "| |")
log_start = snapshot.log_start(1)
def commit():
    global log_start, snapshot
    log_start += 1
    snapshot = table.apply(Change(registers={LogStart(1): log_start}), snapshot).snapshot
print(timed("a commit", commit, 3)[1] + "| |")
"""


def opened(root: str) -> PathTable:
    return PathTable(TOPIC, Storage(root), InlineEngine(), lambda _: iter(()))


def written(partition: int, number: int) -> WrittenFile:
    """A file as an archiver writes it, as far as the log tells."""
    start, end = number * RECORDS, (number + 1) * RECORDS
    times_ms = EPOCH_MS + start, EPOCH_MS + end - 1
    path = (
        f"partition={partition}/segment={start}/archive-{start:020}-{end:020}-{uuid4().hex}.parquet"
    )
    oldest, newest = (
        datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
        for time_ms in times_ms
    )
    statistics = {
        "numRecords": RECORDS,
        "minValues": {"offset": start, "timestamp": oldest},
        "maxValues": {"offset": end - 1, "timestamp": newest},
        "nullCount": {"offset": 0, "timestamp": 0},
    }
    file = SegmentFile(
        partition, start, path, 1_000_000, RECORDS, start, end, *times_ms, times_ms[1]
    )
    return WrittenFile(file, json.dumps(statistics))


def make(root: str, files: int) -> None:
    table = opened(root)
    each = files // TOPIC.partitions
    added = [written(p, number) for p in range(TOPIC.partitions) for number in range(each)]
    registers = {
        app_id(TOPIC.topic_id, register): each * RECORDS if isinstance(register, ArchivedEnd) else 0
        for partition in range(TOPIC.partitions)
        for register in registers_of(partition)
    }
    properties = table_properties(TOPIC) | READABLE_BY_ALL
    table._log.create_with(properties, value_columns(TOPIC), added, registers)
    snapshot = table.snapshot()
    for log_start in (1, 2):
        change = Change(registers={LogStart(0): log_start})
        snapshot = table.apply(change, snapshot).snapshot
        if log_start == 1:
            table._log.forget_history()  # by a checkpoint of all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        make(root, given.files)
        print(f"| {given.files:,} files | CPU | time | memory, peak | afterwards |")
        print("|---|---:|---:|---:|---:|")
        for what in ("delta-rs", "lakelog"):
            folder = str(Path(__file__).parent)
            command = [sys.executable, "-c", ASK, what, root, folder]
            print(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout, end=""
            )


if __name__ == "__main__":
    main()
