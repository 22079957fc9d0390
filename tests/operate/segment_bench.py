"""A topic in both tiers, and the hands that damage it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import redis
from deltalake import DeltaTable
from deltalake.transaction import AddAction, CommitProperties

from lakelog.archive.copy import HotRows
from lakelog.archive.plan import FlushLimit, plan
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.parquet.footers import SEALED
from lakelog.cold.schema import PARTITION_COLUMNS, WRITER_OPTIONS
from lakelog.cold.segment import SegmentFile
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.hot.append import AppendCall
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.hot.keys import PartitionKeys
from lakelog.operate.check.finding import Finding
from lakelog.operate.check.verification import verify
from lakelog.read.topic_log import TopicLog
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic_partition import TopicPartition

EPOCH_MS = 1_700_000_000_000

#: Small, so that a few records make several segments.
SEGMENT_BYTES = 4_000


class Bench:
    """One partition. Records count: key, value and timestamp are functions of the offset."""

    def __init__(self, url: str, root: Path, client: redis.Redis, settings: dict[str, Any]) -> None:
        self.hot = HotLog.connect(url)
        self.client = client
        config = {
            "retention.ms": -1,
            "internal.segment.bytes": SEGMENT_BYTES,
            "index.interval.bytes": 500,
            **settings,
        }
        self.topic = self.hot.topics().create("orders", 1, config)
        self.table: Any = None
        if self.topic.config.tiered:
            rows_of = HotRows(HotSource(url))
            self.table = PathTable(self.topic, Storage(str(root)), InlineEngine(), rows_of)
        self.log = TopicLog(self.topic, self.hot, self.table)
        self._producers = itertools.count(1)

    @property
    def tp(self) -> TopicPartition:
        return self.topic.partition(0)

    @property
    def keys(self) -> PartitionKeys:
        return self.hot.inspection().look(self.tp, self.topic.topic_id).keys

    @property
    def offsets(self) -> Any:
        return self.hot.segments([self.tp])[self.tp]

    # -- a life ----------------------------------------------------------------------------------

    def append(
        self,
        count: int,
        *,
        entry_format: EntryFormat = EntryFormat.ARROW,
        compression: Compression = Compression.NONE,
        times: Callable[[int], int] = lambda offset: EPOCH_MS + offset,
        keys: int = 1000,
    ) -> int:
        """One call; returns its producer id."""
        base = self.offsets.log_end
        rows = [
            (times(at), b"k%d" % (at % keys), b"v%d" % at * 5, [("h", b"1")] if at % 3 else [])
            for at in range(base, base + count)
        ]
        entries = encode(produced_batch(rows), entry_format, compression)
        producer_id = next(self._producers)
        batch = ProducedBatch(entries, producer_id, 0, 0, count - 1)
        (result,) = self.hot.append_all([AppendCall(self.tp, self.topic.topic_id, batch)])
        assert getattr(result, "base_offset", result) == base
        return producer_id

    def appends(self, calls: int, count: int = 20, **more: Any) -> None:
        for _ in range(calls):
            self.append(count, **more)

    def archive(self, end: int | None = None) -> None:
        offsets = self.offsets
        limit = FlushLimit(ends={0: offsets.log_end if end is None else end})
        snapshot = self.table.snapshot()
        change = plan(self.topic, {0: offsets}, snapshot, limit, self.hot.now_ms())
        assert not self.table.apply(change, snapshot).superseded

    def trim(self, before: int) -> None:
        self.hot.trim(self.tp, before)

    def lose_tail(self) -> None:
        """As a server that restarted without what it was sent last."""
        self.client.hset(self.keys.state, "run_id", "another")
        self.log.recover(0, 0)

    # -- damage ----------------------------------------------------------------------------------

    def entries(self) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return self.client.xrange(self.keys.stream)

    def rewrite_stream(
        self, change: Callable[[list[tuple[Any, dict[Any, Any]]]], Sequence[tuple[Any, Any]]]
    ) -> None:
        """The stream written anew, by other hands."""
        entries = [(entry_id, dict(fields)) for entry_id, fields in self.entries()]
        changed = list(change(entries))
        self.client.delete(self.keys.stream)
        for entry_id, fields in changed:
            self.client.xadd(self.keys.stream, fields, id=entry_id)

    def files(self) -> list[SegmentFile]:
        return self.table.unchecked().files.of_partition(0)

    def path(self, file: SegmentFile) -> Path:
        return Path(self.table.path) / file.path

    def rewrite_file(self, file: SegmentFile, change: Callable[[pa.Table], pa.Table]) -> None:
        """The same file with other rows; the log keeps what it said, but for the size."""
        path = self.path(file)
        with pq.ParquetFile(path) as parquet:
            table, metadata = parquet.read(), parquet.metadata.metadata or {}
        table = change(table).replace_schema_metadata()
        said = {name.decode(): text.decode() for name, text in metadata.items()}
        with pq.ParquetWriter(path, table.schema, **WRITER_OPTIONS) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata(
                {k: v for k, v in said.items() if k.startswith("lakelog") and k not in SEALED}
            )
        self.forge(file, size=path.stat().st_size)

    def flip_a_bit(self) -> None:
        """In a record of the stream's third message."""

        def change(entries: list[Any]) -> list[Any]:
            message = bytearray(entries[2][1][b"a"])
            message[-20] ^= 1
            entries[2][1][b"a"] = bytes(message)
            return entries

        self.rewrite_stream(change)

    def swap_rows(self, file: SegmentFile) -> None:
        """The first two."""
        self.rewrite_file(file, lambda table: table.take([1, 0, *range(2, table.num_rows)]))

    def change_value(self, file: SegmentFile) -> None:
        """The first record's."""

        def change(table: pa.Table) -> pa.Table:
            values = table["value"].to_pylist()
            values[0] = b"other"
            at = table.column_names.index("value")
            return table.set_column(at, "value", pa.array(values, pa.binary()))

        self.rewrite_file(file, change)

    def forge(self, file: SegmentFile, size: int | None = None, **stats: Any) -> None:
        """Another add action, which replaces the file's: other statistics, or another size."""
        table = DeltaTable(self.table.path)
        log = sorted((Path(table.table_uri.removeprefix("file://")) / "_delta_log").glob("*.json"))
        adds = [json.loads(line).get("add") for path in log for line in path.open()]
        (*_, before) = (add for add in adds if add and add["path"] == file.path)
        said = json.loads(before["stats"])
        for name, value in stats.items():
            edge, _, column = name.partition("_")
            if column:
                said[f"{edge}Values"][column] = value
            else:
                said[name] = value
        values = {"partition": str(file.partition), "segment": str(file.segment)}
        table.create_write_transaction(
            [
                AddAction(
                    path=file.path,
                    size=size or before["size"],
                    partition_values=values,
                    modification_time=before["modificationTime"],
                    data_change=True,
                    stats=json.dumps(said),
                ),
            ],
            mode="append",
            schema=table.schema(),
            partition_by=PARTITION_COLUMNS,
            commit_properties=CommitProperties(max_commit_retries=0),
        )

    # -- the answer ------------------------------------------------------------------------------

    def findings(self, **more: Any) -> list[Finding]:
        return [found for verified in verify(self.log, **more) for found in verified.findings]

    def said(self, **more: Any) -> list[str]:
        """Tier, place and finding of each, to be matched."""
        return [f"{f.tier} | {f.where} | {f.what}" for f in self.findings(**more)]


@pytest.fixture
def make_bench(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        made.append(Bench(redis_url, tmp_path / "cold", redis_client, settings))
        return made[-1]

    yield make
    for bench in made:
        bench.hot.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """Tiered, empty."""
    return make_bench()


@pytest.fixture
def full(bench: Bench) -> Bench:
    """400 records: archived up to 300, hot from 200 on."""
    bench.appends(20)
    bench.archive(300)
    bench.trim(200)
    return bench
