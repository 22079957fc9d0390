"""A cleanup or an archiver of made-up records as a process, for tests that run several.

``cleanup_process.py DIRECTORY clean SECONDS | archive SEGMENTS``, where DIRECTORY holds
``topic.pickle``: the topic and the cold root.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from lakelog.cleanup.cleanup import Cleanup
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.errors import CommitConflictError
from lakelog.values.record import HEADERS_TYPE, RECORDS
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock

KEYS = 40
SEGMENT_RECORDS = 100


@dataclass(frozen=True)
class KeyedRows:
    """Records that are functions of their offset: one of `KEYS` keys, every ninth a tombstone."""

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        offsets = range(hot_range.start_offset, hot_range.end_offset)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(offsets, pa.int64()),
                pa.array([1_700_000_000_000_000 + 1000 * at for at in offsets], pa.int64()).cast(
                    RECORDS.field("timestamp").type
                ),
                pa.array([0] * len(offsets), pa.int32()),
                pa.array([key(at) for at in offsets], pa.binary()),
                pa.array([value(at) for at in offsets], pa.binary()),
                pa.array([[] for _ in offsets], HEADERS_TYPE),
            ],
            schema=RECORDS,
        )


def key(offset: int) -> bytes:
    return b"key-%d" % (offset * 7919 % KEYS)


def value(offset: int) -> bytes | None:
    return None if offset % 9 == 0 else b"value-%d" % offset


def open_table(topic: Topic, root: str) -> PathTable:
    return PathTable(topic, Storage(root), InlineEngine(), KeyedRows(), store_clock=LaterClock())


def archive(table: PathTable, topic: Topic, partition: int, segments: int = 1) -> None:
    """Segments of `SEGMENT_RECORDS` records, in files of half as many."""
    for _ in range(segments):
        while True:
            cold = table.snapshot()
            base = cold.archive_start(partition)
            edges = [base, base + SEGMENT_RECORDS // 2, base + SEGMENT_RECORDS]
            adds = tuple(
                HotRange(topic.partition(partition), topic.topic_id, base, low, high)
                for low, high in pairwise(edges)
            )
            change = Change(adds=adds, registers={ArchivedEnd(partition): edges[-1]})
            if not table.apply(change, cold).superseded:
                break


def main(directory: str, mode: str, *arguments: str) -> None:
    topic, root = pickle.loads(Path(directory, "topic.pickle").read_bytes())
    table = open_table(topic, root)
    if mode == "archive":
        for _ in range(int(arguments[0])):
            for partition in range(topic.partitions):
                archive(table, topic, partition)
    else:
        end_s = time.monotonic() + float(arguments[0])
        while time.monotonic() < end_s:
            report = Cleanup(topic, table).run()
            for failure in report.failures:
                if not isinstance(failure.error, CommitConflictError):
                    raise failure.error
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
