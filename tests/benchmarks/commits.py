"""What a table that has had 10,000 commits costs to open, against one that has had 100.

One record a commit goes into a topic of one partition, whose files are merged when there are 50, as
cleanup does, so that both tables end with about as many files. Only the tables' logs differ: the
one of 10,000 commits is what an archiver that commits once a minute makes in the week that log
files are kept. Measured, warm: opening (a new `PathTable` and its first snapshot), a look for news
when there are none, and a commit that moves a register; of some calls the median each round. The
logs are written by hand, with a checkpoint of the end that names all the files that were removed,
and as many names of older ones as there would be; no data file is there, since none is read.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog import Topic
from lakelog.cold.by_path.log_file import COMMIT_ID, registers_of
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change
from lakelog.cold.file_statistics import time_statistic
from lakelog.cold.log_names import LAST_CHECKPOINT, LOG, checkpoint_names, commit_name
from lakelog.cold.properties import CHECKPOINT_INTERVAL, READABLE_BY_ALL, table_properties
from lakelog.cold.registers import ArchivedEnd, LogStart, app_id
from lakelog.cold.schema import value_columns
from lakelog.cold.segment import file_name
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine

from .bench import Bench, Side, timed
from .measures import COUNT, OURS, SECONDS, Row

FEW, MANY = 100, 10_000
FILES_AT_MOST = 50
CALLS = 5  # a round
BY_HAND = 500  # commits whose actions are all in the log


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
        registers = {app_id(self._topic.topic_id, one): 0 for one in registers_of(0)}
        properties = table_properties(self._topic) | READABLE_BY_ALL
        self._table._log.create_with(properties, value_columns(self._topic), [], registers)
        log = Path(self._table.path) / LOG
        by_hand = min(commits, BY_HAND)
        for version, actions in enumerate(made_commits(self._topic, by_hand - 1), 1):
            (log / commit_name(version)).write_text(actions, "utf-8")
        self._table = self._opened()
        self._snapshot = self._table.snapshot()
        self.commit()  # and with it a checkpoint, where the log is as long as that
        if commits > by_hand:
            prolong(log, by_hand, commits)
        if any(log.glob("*.parquet")):
            for version in range(CHECKPOINT_INTERVAL, commits, CHECKPOINT_INTERVAL):
                (log / checkpoint_names(version)[0]).touch()
        self._table = self._opened()
        self._snapshot = self._table.snapshot()

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
        return PathTable(self._topic, Storage(str(self._root)), InlineEngine(), lambda _: iter(()))


def prolong(log: Path, known: int, version: int) -> None:
    """Goes on to a version as if what was removed up to the known one had been so all the time.

    Writes the checkpoint of that version. Earlier commits are names, since nobody reads them.
    """
    (before,) = checkpoint_names(known)
    old = pq.read_table(log / before)
    removes = old.filter(pc.is_valid(old["remove"]))
    others = old.filter(pc.is_null(old["remove"]))
    parts = [others, *(renamed(removes) for _ in range(version // known))]
    made = pa.concat_tables(parts)
    (name,) = checkpoint_names(version)
    pq.write_table(made, log / name)
    told = {"version": version, "size": made.num_rows}
    (log / LAST_CHECKPOINT).write_text(json.dumps(told), "utf-8")
    info = {"timestamp": time.time_ns() // 1_000_000, "operation": "WRITE"}
    for number in range(known + 1, version + 1):
        (log / commit_name(number)).write_text(json.dumps({"commitInfo": info}) + "\n", "utf-8")


def renamed(removes: pa.Table) -> pa.Table:
    """The same of other files."""
    of = removes["remove"].combine_chunks()
    paths = [re.sub(r"[0-9a-f]{32}", uuid4().hex, one) for one in of.field("path").to_pylist()]
    fields = {one.name: of.field(number) for number, one in enumerate(of.type)}
    fields["path"] = pa.array(paths, of.type.field("path").type)
    column = pa.StructArray.from_arrays(list(fields.values()), fields=list(of.type))
    at = removes.schema.get_field_index("remove")
    return removes.set_column(at, removes.schema.field(at), column)


def made_commits(topic: Topic, count: int) -> Iterator[str]:
    """What commits of an archiver and of an optimize in between write into a log.

    Of a record each, and all files merged into one when there are `FILES_AT_MOST`.
    """
    now_ms, end = time.time_ns() // 1_000_000, 0
    live: list[tuple[str, int]] = []  # path, and its end
    for _ in range(count):
        merges = len(live) >= FILES_AT_MOST
        first, last = (0, live[-1][1]) if merges else (end, end + 1)
        kind, size_bytes, same = "clean" if merges else "archive", 2_262, not merges
        name = file_name(kind, first, last, uuid4().hex)
        of = {"partitionValues": {"partition": "0", "segment": "0"}, "size": size_bytes}
        told = {
            "numRecords": last - first,
            "minValues": {"offset": first, **time_statistic(1000 * now_ms)},
            "maxValues": {"offset": last - 1, **time_statistic(1000 * now_ms)},
            "nullCount": {"offset": 0, "timestamp": 0},
        }
        path = f"partition=0/segment=0/{name}"
        changed = {"modificationTime": now_ms, "dataChange": same, "stats": json.dumps(told)}
        info = {"timestamp": now_ms, "operation": "WRITE", COMMIT_ID: uuid4().hex}
        actions: list[dict[str, object]] = [{"commitInfo": info}]
        actions.append({"add": {"path": path, **of, **changed}})
        if merges:
            gone = {"dataChange": False, "deletionTimestamp": now_ms, "extendedFileMetadata": True}
            actions += ({"remove": {"path": old, **gone, **of}} for old, _ in live)
            live = []
        else:
            end = last
            register = app_id(topic.topic_id, ArchivedEnd(0))
            actions.append({"txn": {"appId": register, "version": end}})
        live.append((path, last))
        yield "".join(json.dumps(one) + "\n" for one in actions)
