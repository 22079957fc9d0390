"""What a table that has had 10,000 commits costs to open, against one that has had 100.

    python tests/benchmarks/commits.py

Archives one record a commit into a topic of one partition, and merges its files when there are 50,
as cleanup does, so that both tables end with about as many files. Only the tables' logs differ: the
one of 10,000 commits is what an archiver that commits once a minute makes in the week that log
files are kept. Measured, in turn and warm: opening (a new `PathTable` and its first snapshot), a
look for news when there are none, and a commit that moves a register. What counts is the median.

Prints one Markdown table. Takes a few minutes, most of them for the commits.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from lakelog import Topic
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.registers import ArchivedEnd, LogStart
from lakelog.cold.store.storage import Storage
from lakelog.cold.table import ColdSnapshot
from lakelog.engines.engine import InlineEngine
from lakelog.record import RECORDS

FILES_AT_MOST = 50


def one_record(hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    row = {"offset": hot_range.start_offset, "timestamp": 0, "timestampType": 0, "headers": []}
    yield pa.RecordBatch.from_pylist([row], schema=RECORDS)


def open_table(topic: Topic, root: str) -> PathTable:
    return PathTable(topic, Storage(root), InlineEngine(), one_record)


def make(topic: Topic, root: str, commits: int) -> None:
    """The table after so many versions."""
    table = open_table(topic, root)
    snapshot = table.snapshot()
    started_s = time.perf_counter()
    while snapshot.version < commits:
        if len(snapshot.files) >= FILES_AT_MOST:
            files = tuple(snapshot.files)
            rewrite = Rewrite(topic.partition(0), 0, files)
            change = Change((rewrite,), files, data_change=False)
        else:
            start = snapshot.archived_end(0)
            hot_range = HotRange(topic.partition(0), topic.topic_id, 0, start, start + 1)
            change = Change((hot_range,), registers={ArchivedEnd(0): start + 1})
        snapshot = table.apply(change, snapshot).snapshot
    seconds = time.perf_counter() - started_s
    print(f"{commits:,} commits in {seconds:.0f} s", file=sys.stderr)


def measure(topic: Topic, root: str, rounds: int) -> dict[str, float]:
    """Median milliseconds by what was measured."""
    table = open_table(topic, root)
    snapshot = table.snapshot()
    log_start = snapshot.log_start(0)

    def commit() -> ColdSnapshot:
        nonlocal log_start, snapshot
        log_start += 1
        change = Change(registers={LogStart(0): log_start})
        snapshot = table.apply(change, snapshot).snapshot
        return snapshot

    actions: dict[str, Callable[[], ColdSnapshot]] = {
        "opening": lambda: open_table(topic, root).snapshot(),
        "a look for news": table.snapshot,
        "a commit": commit,
    }
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            started_s = time.perf_counter()
            action()
            times[name].append(1000 * (time.perf_counter() - started_s))
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, nargs=2, default=[100, 10_000])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--dir", help="where the tables are made, and removed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        topics = [Topic(f"commits-{commits}", uuid4(), 1) for commits in arguments.commits]
        for topic, commits in zip(topics, arguments.commits, strict=True):
            make(topic, folder, commits)
        found = [measure(topic, folder, arguments.rounds) for topic in topics]
        logs = [
            sum(1 for _ in (Path(Storage(folder).table_path(topic)) / "_delta_log").iterdir())
            for topic in topics
        ]
    heads = " | ".join(f"{commits:,} commits" for commits in arguments.commits)
    print(f"| median of {arguments.rounds} | {heads} | second / first |\n|---|---:|---:|---:|")
    for name in found[0]:
        first, second = found[0][name], found[1][name]
        print(f"| {name} | {first:.1f} ms | {second:.1f} ms | {second / first:.2f} × |")
    print(f"| files in the log | {logs[0]:,} | {logs[1]:,} | |")


if __name__ == "__main__":
    main()
