"""Erasing one key's records out of a table of ten million, in this process.

    python tests/benchmarks/erase.py

The table has files of 250,000 records, with keys of 20 bytes and values of 80 random ones, in four
partitions; each of the keys that go has one record. Each round erases another key, on a table
that is opened anew: finding it, rewriting the file that holds it, the commit, deleting the old file
(its digest is taken), and looking whether any other file beside the newest version holds it. Beside
it stands what reading the key column alone takes bare pyarrow, which without Bloom filters is the
least. The best of some rounds counts: whatever else runs on the machine only ever adds.

Prints one Markdown table; exits with 1 when it took more than the goal. Needs 2 GB below --dir.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakelog.cleanup.erasure.erasure import Erasure
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.store.storage import Storage
from lakelog.config import TopicConfig
from lakelog.engines.engine import InlineEngine
from lakelog.operate.erasure.condition import RecordCondition
from lakelog.record import HEADERS_TYPE, RECORDS
from lakelog.topic import Topic

PARTITIONS = 4
RECORDS_A_FILE = 250_000
FILES = 40
BATCH = 50_000
VALUE_BYTES = 80

GOAL_S = 10.0


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
            values = np.random.default_rng(start).bytes(count * VALUE_BYTES)
            edges = pa.array(np.arange(count + 1, dtype=np.int32) * VALUE_BYTES)
            times = pa.array(1_700_000_000_000_000 + offsets * 1000)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(offsets),
                    times.cast(RECORDS.field("timestamp").type),
                    pa.array(np.zeros(count, np.int32)),
                    pa.array([key_of(partition, offset) for offset in offsets], pa.binary()),
                    pa.Array.from_buffers(
                        pa.binary(), count, [None, edges.buffers()[1], pa.py_buffer(values)]
                    ),
                    pa.array([[]] * count, HEADERS_TYPE),
                ],
                schema=RECORDS,
            )


def opened(directory: Path, topic: Topic) -> PathTable:
    """The topic's table, as another process sees it."""
    return PathTable(topic, Storage(str(directory)), InlineEngine(), MadeUp())


def filled(directory: Path, topic: Topic, files: int, records_a_file: int) -> PathTable:
    """A table of so many files, in the partitions by turns."""
    table = opened(directory, topic)
    for start in range(0, files // PARTITIONS * records_a_file, records_a_file):
        end = start + records_a_file
        adds = tuple(
            HotRange(topic.partition(number), topic.topic_id, start, start, end)
            for number in range(PARTITIONS)
        )
        ends = {ArchivedEnd(number): end for number in range(PARTITIONS)}
        table.apply(Change(adds=adds, registers=ends), table.snapshot())
    return table


def erased(directory: Path, topic: Topic, key: bytes) -> float:
    """How long it takes, on a table opened anew."""
    began_s = time.perf_counter()
    done = Erasure(topic, opened(directory, topic), RecordCondition.of(key)).run()
    took_s = time.perf_counter() - began_s
    if done.records != 1 or len(done.discarded) != 1 or done.beyond or done.failures:
        raise SystemExit(f"it erased {done}, not one record")
    return took_s


def read_keys(table: PathTable, key: bytes) -> float:
    """How long bare pyarrow takes to look into all keys."""
    paths = [f"{table.path}/{file.path}" for file in table.snapshot().files]
    began_s = time.perf_counter()
    for path in paths:
        pc.any(pc.equal(pq.read_table(path, columns=["key"], partitioning=None)["key"], key))
    return time.perf_counter() - began_s


def told(rows: Sequence[Mapping[str, object]]) -> int:
    """Prints them as a table; the exit code, by their column ``holds``."""
    heads = list(rows[0])
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(str(row[head]) for head in heads) + " |")
    return 0 if all(row["holds"] for row in rows) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of ten million records")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="where the tables lie; default: a temporary one")
    arguments = parser.parse_args()
    records_a_file = max(10, round(RECORDS_A_FILE * arguments.scale))
    directory = Path(tempfile.mkdtemp(prefix="lakelog-erase-", dir=arguments.dir))
    rows = []
    try:
        for bloom in (False, True):
            place = directory / str(bloom)
            config = TopicConfig.of({"lakelog.key.bloom.filter": bloom})
            topic = Topic("bench", uuid4(), PARTITIONS, config)
            table = filled(place, topic, FILES, records_a_file)
            offsets = [(n + 1) * records_a_file // 2 for n in range(arguments.rounds)]
            ours_s = min(
                erased(place, topic, key_of(n % PARTITIONS, offset))
                for n, offset in enumerate(offsets)
            )
            keys_s = min(read_keys(table, key_of(0, 1)) for _ in range(arguments.rounds))
            rows.append(
                {
                    "measure": f"erase one key {'with' if bloom else 'without'} Bloom filters",
                    "records": f"{FILES * records_a_file:,}",
                    "files": FILES,
                    "files rewritten": 1,
                    "seconds": f"{ours_s:.2f}",
                    "pyarrow reads the keys, s": f"{keys_s:.2f}",
                    "goal, s": GOAL_S,
                    "holds": ours_s <= GOAL_S,
                }
            )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return told(rows)


if __name__ == "__main__":
    sys.exit(main())
