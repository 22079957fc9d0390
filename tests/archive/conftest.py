"""A topic of its own on the real Redis and in a real Delta table, to archive from and to."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakelog.archive.archiver import Archiver
from lakelog.archive.copy import HotRows
from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.offsets import HotSegments
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition
from tests.support.later_clock import LaterClock

sys.path.insert(0, str(Path(__file__).parent))  # paused.py is no test module
sys.path.insert(0, str(Path(__file__).parents[1] / "model"))  # nor is mutants.py


@dataclass
class Tiers:
    """One topic's two tiers, and the hands that turn its clock."""

    url: str
    root: Path
    hot: HotLog
    topic: Topic
    clock: ManualClock
    sequences: dict[int, int] = field(default_factory=dict)
    producer_id: int = field(default_factory=lambda: uuid.uuid4().int >> 66)
    written: dict[int, list[bytes]] = field(default_factory=dict)

    def append(self, count: int, partition: int = 0, *, entry_records: int = 100) -> None:
        """Append records whose values say their number, so that each is told from all others."""
        known = self.written.setdefault(partition, [])
        values = [b"%d/%d" % (partition, len(known) + i) for i in range(count)]
        for start in range(0, count, entry_records):
            self._append(partition, values[start : start + entry_records])
        known += values

    def _append(self, partition: int, values: list[bytes]) -> None:
        rows = produced_batch((self.clock.now_ms(), None, value, ()) for value in values)
        first = self.sequences.get(partition, 0)
        batch = ProducedBatch(
            encode(rows, EntryFormat.AUTO, Compression.NONE),
            self.producer_id,
            0,
            first,
            first + len(values) - 1,
        )
        self.hot.append(TopicPartition(self.topic.name, partition), self.topic.topic_id, batch)
        self.sequences[partition] = first + len(values)

    def table(self, engine: Engine | None = None) -> PathTable:
        return PathTable(
            self.topic,
            Storage(str(self.root)),
            engine or InlineEngine(),
            HotRows(HotSource(self.url)),
            store_clock=LaterClock(),
        )

    def archiver(self, engine: Engine | None = None, **more: Any) -> Archiver:
        """A new one, as a process that starts has it."""
        return Archiver(self.topic, self.hot, self.table(engine), **more)

    def seen(self, partition: int = 0) -> HotSegments:
        topic_partition = TopicPartition(self.topic.name, partition)
        return self.hot.segments([topic_partition])[topic_partition]

    def delta(self) -> DeltaTable:
        return DeltaTable(self.table().path)

    def archived(self, partition: int = 0) -> list[tuple[int, bytes]]:
        """(offset, value) of every row that the Delta table has, read without lakelog."""
        rows: list[tuple[int, bytes]] = []
        if not DeltaTable.is_deltatable(self.table().path):
            return rows
        for action in pa.table(self.delta().get_add_actions(flatten=True)).to_pylist():
            if action["partition.partition"] == partition:
                file = Path(self.table().path) / action["path"]
                table = pq.ParquetFile(file).read(columns=["offset", "value"])
                rows += zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)
        return sorted(rows)

    def version(self) -> int:
        return self.delta().version()

    def expected(self, partition: int = 0, *, first: int = 0) -> list[tuple[int, bytes]]:
        return list(enumerate(self.written.get(partition, [])))[first:]

    def parquet_files(self) -> list[str]:
        return sorted(
            str(path) for path in self.root.rglob("*.parquet") if "_delta_log" not in path.parts
        )


@pytest.fixture
def make_tiers(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Tiers]]:
    """``make_tiers(partitions=1, **config)``: a new topic; ``url=`` of another server."""
    opened: list[HotLog] = []

    def make(
        partitions: int = 1, *, url: str = redis_url, name: str = "orders", **config: object
    ) -> Tiers:
        clock = ManualClock()
        hot = HotLog.connect(url, clock=clock)
        opened.append(hot)
        settings = {setting.replace("_", "."): value for setting, value in config.items()}
        topic = hot.topics().create(name, partitions, {"retention.ms": -1, **settings})
        return Tiers(url, tmp_path / "cold", hot, topic, clock)

    yield make
    for hot in opened:
        hot.close()


PROCESS = Path(__file__).with_name("archive_process.py")


@dataclass(frozen=True)
class Processes:
    """Archives in processes of their own."""

    def start(self, tiers: Tiers, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [
                sys.executable,
                str(PROCESS),
                tiers.url,
                str(tiers.root),
                tiers.topic.name,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def processes() -> Processes:
    return Processes()
