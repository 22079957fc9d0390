"""Erasing one key's records out of a table of ten million, in this process.

The table has files of 250,000 records, with keys of 20 bytes and values of 80 random ones, in four
partitions; each of the keys that go has one record. Each round erases another key, on a table that
is opened anew: finding it, rewriting the file that holds it, the commit, deleting the old file (its
digest is taken), and looking whether any other file beside the newest version holds it. Beside it
stands what reading the key column alone takes bare pyarrow, which without Bloom filters is the
least. Needs 2 GB of disk.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.cleanup.erasure import Erasure
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.operate.erasure.condition import RecordCondition
from lakelog.values.config import TopicConfig
from lakelog.values.record import HEADERS_TYPE, RECORDS
from lakelog.values.topic import Topic

from .bench import Bench, timed
from .made_records import PARTITIONS, fixed
from .measures import OURS, SECONDS, Goal, Row

RECORDS_A_FILE = 250_000
FILES = 40
BATCH = 50_000
VALUE_BYTES = 80
GOAL_S = 10.0
PYARROW = "pyarrow reading all keys"


def rows(bench: Bench) -> Iterator[Row]:
    records_a_file = bench.scaled(RECORDS_A_FILE, 10)
    for bloom in (False, True):
        folder = bench.new_folder()
        config = TopicConfig.of({"lakelog.key.bloom.filter": bloom})
        topic = Topic("erased", uuid4(), PARTITIONS, config)
        table = filled(folder, topic, records_a_file)
        end = FILES // PARTITIONS * records_a_file
        keys = iter(
            key_of(turn % PARTITIONS, offset)
            for turn, offset in enumerate(random.Random(1).sample(range(end), bench.rounds + 1))
        )
        samples = bench.interleaved(
            {
                OURS: lambda f=folder, t=topic, k=keys: erased(f, t, next(k)),
                PYARROW: lambda t=table: read_keys(t),
            }
        )
        of = f"erasing one of {FILES * records_a_file:,} keys in {FILES} files"
        with_or_not = "with" if bloom else "without"
        yield Row(f"{of}, {with_or_not} Bloom filters", SECONDS, samples, (Goal(GOAL_S),))
        shutil.rmtree(folder)


def key_of(partition: int, offset: int) -> bytes:
    return b"user-%02d-%012d" % (partition, offset)


@dataclass(frozen=True)
class MadeUp:
    """A `RowsOf` whose keys tell partition and offset, and whose values are random."""

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        partition = hot_range.topic_partition.partition
        for start in range(hot_range.start_offset, hot_range.end_offset, BATCH):
            count = min(BATCH, hot_range.end_offset - start)
            offsets = np.arange(start, start + count)
            times = pa.array(1_700_000_000_000_000 + offsets * 1000)
            values = np.random.default_rng(start).bytes(count * VALUE_BYTES)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(offsets),
                    times.cast(RECORDS.field("timestamp").type),
                    pa.array(np.zeros(count, np.int32)),
                    pa.array([key_of(partition, offset) for offset in offsets], pa.binary()),
                    fixed(values, count, VALUE_BYTES),
                    pa.array([[]] * count, HEADERS_TYPE),
                ],
                schema=RECORDS,
            )


def opened(folder: Path, topic: Topic) -> PathTable:
    """The topic's table, as another process sees it."""
    return PathTable(topic, Storage(str(folder)), InlineEngine(), MadeUp())


def filled(folder: Path, topic: Topic, records_a_file: int) -> PathTable:
    """A table of `FILES`, in the partitions by turns."""
    table = opened(folder, topic)
    for start in range(0, FILES // PARTITIONS * records_a_file, records_a_file):
        end = start + records_a_file
        adds = tuple(
            HotRange(topic.partition(number), topic.topic_id, start, start, end)
            for number in range(PARTITIONS)
        )
        ends = {ArchivedEnd(number): end for number in range(PARTITIONS)}
        table.apply(Change(adds=adds, registers=ends), table.snapshot())
    return table


def erased(folder: Path, topic: Topic, key: bytes) -> float:
    """Seconds, on a table opened anew."""
    done = []

    def erase() -> None:
        done.append(Erasure(topic, opened(folder, topic), RecordCondition.of(key)).run())

    took_s = timed(erase)
    (report,) = done
    if report.records != 1 or len(report.discarded) != 1 or report.beyond or report.failures:
        raise RuntimeError(f"it erased {report}, not one record")
    return took_s


def read_keys(table: PathTable) -> float:
    """Seconds that bare pyarrow takes to look into all keys."""
    paths = [f"{table.path}/{file.path}" for file in table.snapshot().files]

    def read() -> None:
        for path in paths:
            keys = pq.read_table(path, columns=["key"], partitioning=None)["key"]
            pc.any(pc.equal(keys, b"nobody"))

    return timed(read)
