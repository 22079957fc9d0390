"""What a table of very many files costs whoever opens it, looks at it and commits to it.

The log of a table of 100,000 files, each a segment of its own, in four partitions; the files
themselves are not there, since nothing of them is read. It has a checkpoint, and a commit after it.
In a process of its own, with all imported: opening it (a new `PathTable` and its first snapshot),
against delta-rs opening it alone; CPU and time, and by how much the process's memory grew, at its
peak and afterwards. Then what a look for news, the file of an offset, and a commit take there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from uuid import UUID

from lakelog import Topic
from lakelog.cold.by_path.log_file import registers_of
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.by_path.segment_writer import WrittenFile
from lakelog.cold.change import Change
from lakelog.cold.properties import READABLE_BY_ALL, table_properties
from lakelog.cold.registers import ArchivedEnd, LogStart, app_id
from lakelog.cold.schema import value_columns
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.config import MIB

from .bench import Bench
from .made_segments import path_of, written
from .measures import BYTES, OURS, SECONDS, Goal, Row

TOPIC = Topic("files", UUID(int=1), 4)
FILES = 100_000
RECORDS = 10_000  # of a file
EPOCH_MS = 1_700_000_000_000
DELTA_RS = "delta-rs alone"
OPEN_S, GROWN_BYTES = 1.5, 100 * MIB

#: Prints what it found as JSON.
ASK = """
import json, sys, time
from random import Random
import deltalake, numpy, pyarrow.acero, pyarrow.compute, pyarrow.parquet
from tests.benchmarks.many_files import Change, LogStart, RECORDS, opened

found = {}

def held(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def timed(name, action, times=1):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        got = action()
    found[name + ": CPU"] = (time.process_time() - cpu) / times
    found[name + ": time"] = (time.perf_counter() - wall) / times
    return got

what, root = sys.argv[1:]
before = held("VmRSS")
table = opened(root)
if what == "delta-rs":
    got = timed("opening", lambda: deltalake.DeltaTable(table.path))
else:
    snapshot = timed("opening", table.snapshot)
found["opening: memory at its peak"] = held("VmHWM") - before
found["opening: memory afterwards"] = held("VmRSS") - before
if what != "delta-rs":
    timed("a look for news", table.snapshot, 100)
    chance, end = Random(0), len(snapshot.files) // 4 * RECORDS
    def file():
        return snapshot.files.file_at(chance.randrange(4), chance.randrange(end))
    timed("the file of an offset", file, 1000)
    log_start = snapshot.log_start(1)
    def commit():
        global log_start, snapshot
        log_start += 1
        snapshot = table.apply(Change(registers={LogStart(1): log_start}), snapshot).snapshot
    timed("a commit", commit, 3)
print(json.dumps(found))
"""


def rows(bench: Bench) -> Iterator[Row]:
    files = bench.scaled(FILES // TOPIC.partitions, 10) * TOPIC.partitions
    root = str(bench.new_folder())
    make(root, files)
    found = bench.repeated(
        lambda: {
            (side, name): value
            for side, what in ((OURS, "lakelog"), (DELTA_RS, "delta-rs"))
            for name, value in asked(what, root).items()
        }
    )
    for side, name in found:
        if side != OURS:
            continue
        sides = {one: found[one, name] for one in (OURS, DELTA_RS) if (one, name) in found}
        goals = (
            (Goal(OPEN_S),)
            if name == "opening: time"
            else (Goal(GROWN_BYTES),)
            if name == "opening: memory at its peak"
            else ()
        )
        unit = BYTES if "memory" in name else SECONDS
        yield Row(f"a table of {files:,} files, {name}", unit, sides, goals)


def asked(what: str, root: str) -> dict[str, float]:
    command = [sys.executable, "-c", ASK, what, root]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


def opened(root: str) -> PathTable:
    return PathTable(TOPIC, Storage(root), InlineEngine(), lambda _: iter(()))


def file_of(partition: int, number: int) -> WrittenFile:
    """A file as an archiver writes it, as far as the log tells."""
    start, end = number * RECORDS, (number + 1) * RECORDS
    times_us = 1000 * (EPOCH_MS + start), 1000 * (EPOCH_MS + end - 1)
    return written(partition, start, end, path_of(partition, start, end), 1_000_000, times_us)


def make(root: str, files: int) -> None:
    table = opened(root)
    each = files // TOPIC.partitions
    added = [file_of(p, number) for p in range(TOPIC.partitions) for number in range(each)]
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
