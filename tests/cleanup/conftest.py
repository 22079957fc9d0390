"""Cold tables of given records, without a hot tier."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.base.clock import ManualClock
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import Change, HotRange
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.values.config import TopicConfig
from lakelog.values.record import HEADERS_TYPE, RECORDS, Record, to_records
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition
from tests.support.later_clock import LaterClock

sys.path.insert(0, str(Path(__file__).parent))  # cleanup_process.py is no test module

NOW_MS = ManualClock().now_ms()

#: key and value of one record; its offset is its place
Pair = tuple["bytes | None", "bytes | None"]


@dataclass(frozen=True)
class GivenRows:
    """A `RowsOf` over records that were given, by partition and offset. Picklable."""

    pairs: Mapping[int, Mapping[int, Pair]]
    times_ms: Mapping[int, int] = field(default_factory=dict)  # by offset; else NOW_MS

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        of = self.pairs[hot_range.topic_partition.partition]
        offsets = [o for o in range(hot_range.start_offset, hot_range.end_offset) if o in of]
        times = [1000 * self.times_ms.get(offset, NOW_MS) for offset in offsets]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(offsets, pa.int64()),
                pa.array(times, pa.int64()).cast(RECORDS.field("timestamp").type),
                pa.array([0] * len(offsets), pa.int32()),
                pa.array([of[offset][0] for offset in offsets], pa.binary()),
                pa.array([of[offset][1] for offset in offsets], pa.binary()),
                pa.array([[] for _ in offsets], HEADERS_TYPE),
            ],
            schema=RECORDS,
        )


class ColdLog:
    """A topic whose cold table is made by hand: segment after segment, one file or several each."""

    def __init__(
        self, directory: Path, engine: Engine, partitions: int, settings: Mapping[str, object]
    ) -> None:
        self.clock = ManualClock(NOW_MS)
        self.storage = Storage(str(directory / uuid.uuid4().hex))
        self.engine = engine
        self.pairs: dict[int, dict[int, Pair]] = {number: {} for number in range(partitions)}
        self.times_ms: dict[int, int] = {}
        self.topic = Topic("orders", uuid.uuid4(), partitions, TopicConfig.of(settings))
        self.table = self.open()

    def open(self) -> PathTable:
        """The table as another process sees it."""
        rows_of = GivenRows(self.pairs, self.times_ms)
        return PathTable(self.topic, self.storage, self.engine, rows_of, store_clock=LaterClock())

    def alter(self, **settings: object) -> None:
        changes = {name.replace("_", "."): value for name, value in settings.items()}
        config = self.topic.config.replace(changes)
        self.topic = Topic("orders", self.topic.topic_id, self.topic.partitions, config)
        self.table = self.open()

    def segment(self, *files: Sequence[Pair], partition: int = 0, base: int | None = None) -> int:
        """Archives one more segment, a file for each sequence of pairs; returns its base offset.

        A base above the end makes a gap before it; one below (an earlier base) adds to a segment.
        """
        cold = self.table.snapshot()
        start = first = cold.archive_start(partition)
        first = start if base is None else max(base, start)
        adds = []
        for pairs in files:
            for place, pair in enumerate(pairs):
                self.pairs[partition][first + place] = pair
            end = first + len(pairs)
            adds.append(
                HotRange(
                    self.topic.partition(partition),
                    self.topic.topic_id,
                    first if base is None and not adds else adds[0].segment if adds else base,
                    start,
                    end,
                )
            )
            start = first = end
        change = Change(adds=tuple(adds), registers={ArchivedEnd(partition): start})
        self.table.apply(change, cold)
        return adds[0].segment

    def records(self, partition: int = 0) -> list[Record]:
        """All records there are in the files, read by a table opened anew."""
        table = self.open()
        files = table.snapshot().files.of_partition(partition)
        tp = TopicPartition("orders", partition)
        return [r for batch in table.read(files, 0, 2**53) for r in to_records(tp, batch)]

    def left(self, partition: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of each record there is."""
        return [(r.offset, r.key, r.value) for r in self.records(partition)]


@pytest.fixture
def cold_log(tmp_path: Path) -> Callable[..., ColdLog]:
    """Makes one: ``cold_log(partitions=1, **{"cleanup.policy": "compact"})``."""

    def make(partitions: int = 1, engine: Engine | None = None, **settings: object) -> ColdLog:
        return ColdLog(tmp_path, engine or InlineEngine(), partitions, settings)

    return make
