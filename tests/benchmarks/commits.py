"""What a table that has had 10,000 commits costs to open, against one that has had 100.

One record a commit goes into a topic of one partition, whose files are merged when there are 50, as
cleanup does, so that both tables end with about as many files. Only the tables' logs differ: the
one of 10,000 commits is what an archiver that commits once a minute makes in the week that log
files are kept. Measured, warm: opening (a new `PathTable` and its first snapshot), a look for news
when there are none, and a commit that moves a register; of some calls the median each round. The
commits that make the tables take a few minutes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from lakelog import Topic
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.registers import ArchivedEnd, LogStart
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.record import RECORDS

from .bench import Bench, Side, timed
from .measures import COUNT, OURS, SECONDS, Row

FEW, MANY = 100, 10_000
FILES_AT_MOST = 50
CALLS = 5  # a round


def rows(bench: Bench) -> Iterator[Row]:
    few, many = bench.scaled(FEW, 3), bench.scaled(MANY, 6)
    root = bench.new_folder()
    tables = {}
    for side, commits in ((OURS, many), (f"after {few:,} commits", few)):
        tables[side] = Table(Topic(f"commits-{commits}", uuid4(), 1), root)
        tables[side].make(commits)
    after = f"a table after {many:,} commits"
    for what, call in (
        (f"opening {after}", Table.open),
        (f"a look for news at {after}", Table.look),
        (f"a commit to {after}", Table.commit),
    ):
        sides = {side: median_of(call, table) for side, table in tables.items()}
        yield Row(what, SECONDS, bench.interleaved(sides))
    logs = {side: (float(table.log_files()),) for side, table in tables.items()}
    yield Row(f"files in the log of {after}", COUNT, logs)


def median_of(call: Callable[[Table], None], table: Table) -> Side:
    return lambda: statistics.median(timed(lambda: call(table)) for _ in range(CALLS))


class Table:
    """A topic's table below a root."""

    def __init__(self, topic: Topic, root: Path) -> None:
        self._topic = topic
        self._root = root
        self._table = self._opened()
        self._snapshot = self._table.snapshot()

    def make(self, commits: int) -> None:
        """The table after so many versions."""
        while self._snapshot.version < commits:
            files = tuple(self._snapshot.files)
            if len(files) >= FILES_AT_MOST:
                rewrite = Rewrite(self._topic.partition(0), 0, files)
                change = Change((rewrite,), files, data_change=False)
            else:
                start = self._snapshot.archived_end(0)
                tp, topic_id = self._topic.partition(0), self._topic.topic_id
                added = HotRange(tp, topic_id, 0, start, start + 1)
                change = Change((added,), registers={ArchivedEnd(0): start + 1})
            self._snapshot = self._table.apply(change, self._snapshot).snapshot

    def open(self) -> None:
        self._opened().snapshot()

    def look(self) -> None:
        self._table.snapshot()

    def commit(self) -> None:
        log_start = self._snapshot.log_start(0) + 1
        change = Change(registers={LogStart(0): log_start})
        self._snapshot = self._table.apply(change, self._snapshot).snapshot

    def log_files(self) -> int:
        return sum(1 for _ in (Path(self._table.path) / "_delta_log").iterdir())

    def _opened(self) -> PathTable:
        return PathTable(self._topic, Storage(str(self._root)), InlineEngine(), one_record)


def one_record(hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    row = {"offset": hot_range.start_offset, "timestamp": 0, "timestampType": 0, "headers": []}
    yield pa.RecordBatch.from_pylist([row], schema=RECORDS)
