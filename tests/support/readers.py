"""Every reader of a log that needs no Spark session, each called in the same way.

Its answer is compared with a plain list: the records of [start, end) of one partition. Of Spark's
readers, the part in Python is run: for a frame, its two parts, with Delta's rows picked by the
frame's own SQL; for ``format("lakelog")``, its planner and its tasks. How Spark itself runs them is
left to the tests with a session.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from msgspec import Struct

from lakelog.codec.encryption.sealed_values import with_values
from lakelog.cold.record_batches import shaped
from lakelog.cold.table import NO_TABLE
from lakelog.explore.explorer.answer import answer
from lakelog.explore.explorer.view import Ask, Before, OpenedTopic
from lakelog.place import LogPlace
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.hot_tier import NothingHot
from lakelog.read.tiers import Tiers, Values
from lakelog.read.topic_log import TopicLog
from lakelog.spark.dataframe import condition, divide, hot_version
from lakelog.spark.range_rows import range_rows
from lakelog.testing.model import Difference, require_same
from lakelog.values.offsets import AtOffset
from lakelog.values.record import RECORDS, Record, empty_records, to_records
from lakelog.values.topic_partition import OffsetRange, TopicPartition

from .layouts import RowTable, near

#: A consumer goes where it is sent, and nowhere else.
FROM_A_SEEK = ConsumerConfig(auto_offset_reset="none")

Reader = Callable[[int, int, int], list[Record]]
"""The records of a partition's [start, end)."""

PAGE_RECORDS = 7  # records of a page or poll: so few that a range takes several
MICRO_BATCH_RECORDS = 50


class Readers:
    """The readers of one log, by name.

    Args:
        place: how tasks open the log.
        delta_files: the content of the table's files, which never change; kept by the caller.
    """

    def __init__(
        self,
        log: TopicLog,
        place: LogPlace,
        delta_files: dict[str, DeltaFile] | None = None,
    ) -> None:
        self.log = log
        self.place = place
        self._delta_files = {} if delta_files is None else delta_files

    def named(self) -> dict[str, Reader]:
        """All readers, including ``format("lakelog")`` if pyspark is installed."""
        found: dict[str, Reader] = {
            "range read": self.range_read,
            "fetches": self.fetches,
            "consumer, poll": self.poll,
            "consumer, poll_arrow": self.poll_arrow,
            "explorer, forward": self.pages_forward,
            "explorer, back": self.pages_back,
            "frame": self.frame,
        }
        if importlib.util.find_spec("pyspark") is not None:
            found["format('lakelog'), batch"] = self.batch_source
            found["format('lakelog'), stream"] = self.stream_source
        return found

    def compare(
        self, partition: int, held: Sequence[Record], ranges: Iterable[tuple[int, int]]
    ) -> None:
        """Raises `Difference`, naming the reader, unless each gives the list's part of each range.

        Args:
            held: what the partition's log holds.
        """
        for start, end in ranges:
            expected = [record for record in held if start <= record.offset < end]
            for name, reader in self.named().items():
                try:
                    require_same(reader(partition, start, end), expected)
                except Difference as difference:
                    raise Difference(
                        f"{name}, partition {partition} [{start}, {end}): {difference}"
                    ) from None

    def compare_archived(
        self, partition: int, held: Sequence[Record], ranges: Iterable[tuple[int, int]]
    ) -> None:
        """As `compare`, for readers of what is archived, which do not ask Redis."""
        table = self.log.table
        if table is None or (cold := table.snapshot()).version == NO_TABLE:
            return
        there = {
            offset for number, _, offset in self._delta_rows(cold.version) if number == partition
        }
        stored = [record for record in held if record.offset in there]
        end = cold.archive_start(partition)
        clipped = [(min(first, end), min(last, end)) for first, last in ranges]
        alone = TopicLog(self.log.topic, NothingHot(lambda *_: table), table)
        ArchivedReaders(alone, self.place).compare(partition, stored, clipped)

    def compare_frames(self, partition: int, held: Sequence[Record]) -> None:
        """As `compare`, for a frame's query to Delta, between any two places."""
        tiers = self._tiers()
        look = tiers.look([partition])
        places = self.places(partition)
        with RowTable(self._delta_rows(look.cold.version)) as table:
            for start, end in combinations_with_replacement(places, 2):
                parts, _ = divide(look, {partition: OffsetRange(start, end)})
                for part in parts:
                    asked = condition(look.cold.files, part)
                    low, high = part[partition]
                    wanted = [record.offset for record in held if low <= record.offset < high]
                    found = [offset for _, offset in table.where(asked)]
                    if found != wanted:
                        raise Difference(
                            f"a frame of partition {partition} [{start}, {end}) has the archived "
                            f"rows {found[:9]}, expected {wanted[:9]}; asked for {asked}"
                        )

    def places(self, partition: int) -> list[int]:
        """Where an answer could be wrong: the edges of files, segments, row groups, tiers and gaps,
        the log start and the log end, each with its neighbours.
        """
        look = self._tiers().look_at_segments([partition])
        offsets, hot = look.offsets[partition], look.hot[partition]
        edges = {offsets.local_log_start, offsets.archived_end, look.cold.cleaned_end(partition)}
        for file in look.cold.files.of_partition(partition):
            edges |= {file.segment, file.start_offset, file.end_offset}
        for one in self._active_files(look.cold.version):
            if one.partition == partition:
                edges |= one.row_group_edges
        edges |= {segment.base_offset for segment in hot.segments}
        edges |= {edge for gap in (*offsets.gaps, *hot.gaps) for edge in gap}
        return near(edges, offsets.log_start, offsets.log_end)

    # -- readers ---------------------------------------------------------------------------------

    def range_read(self, partition: int, start: int, end: int) -> list[Record]:
        return list(self.log.read(partition, start, end).records())

    def fetches(self, partition: int, start: int, end: int) -> list[Record]:
        """One step after another, each of one entry or one batch of a file."""
        found: list[Record] = []
        for step in self.log.fetches(partition, start, max_bytes=500):
            found += to_records(self.log.topic.partition(partition), step.records)
            if step.next_offset >= end:
                break
        return _below(end, found)

    def poll(self, partition: int, start: int, end: int) -> list[Record]:
        return self._consumed(
            partition, start, end, lambda c: c.poll(max_records=PAGE_RECORDS).values()
        )

    def poll_arrow(self, partition: int, start: int, end: int) -> list[Record]:
        topic_partition = self.log.topic.partition(partition)
        return self._consumed(
            partition,
            start,
            end,
            lambda c: [to_records(topic_partition, batch) for batch in c.poll_arrow().values()],
        )

    def pages_forward(self, partition: int, start: int, end: int) -> list[Record]:
        """The explorer's pages from an offset on."""
        found: list[Record] = []
        opened = OpenedTopic(self.log)
        ask = Ask(self.log.topic.name, partition, AtOffset(start), page_records=PAGE_RECORDS)
        while True:
            shown = answer(opened, ask)
            page = to_records(self.log.topic.partition(partition), shown.records)
            # At the end of the log, the explorer shows the last records, which lie before it.
            page = [record for record in page if record.offset >= start]
            found += page
            if not page or shown.view.end_offset >= end:
                return _below(end, found)
            start = shown.view.end_offset
            ask = shown.ask_forward

    def pages_back(self, partition: int, start: int, end: int) -> list[Record]:
        """The explorer's pages that end below an offset."""
        found: list[Record] = []
        opened = OpenedTopic(self.log)
        while start < end:
            ask = Ask(self.log.topic.name, partition, Before(end), page_records=PAGE_RECORDS)
            shown = answer(opened, ask)
            page = to_records(self.log.topic.partition(partition), shown.records)
            # At the start of the log, the explorer shows the first records, which lie above it.
            page = [record for record in page if record.offset < end]
            if not page:
                break
            found = page + found
            end = page[0].offset
        return [record for record in found if record.offset >= start]

    def frame(self, partition: int, start: int, end: int) -> list[Record]:
        """What `dataframe` reads from cold with its SQL, and what its tasks read from hot."""
        look = self._tiers().look([partition])
        cold, hot = divide(look, {partition: OffsetRange(start, end)})
        records: list[Record] = []
        if cold:
            tiers = self._tiers()
            rows = {
                (one.partition, record.offset): record
                for one in self._active_files(look.cold.version)
                for record in one.records(self.log.topic.name, tiers.values)
            }
            with RowTable(self._delta_rows(look.cold.version)) as table:
                for part in cold:
                    places = table.where(condition(look.cold.files, part))
                    records += [rows[place] for place in places]
        for part in hot:
            for batch in range_rows(
                self.place,
                self.log.topic,
                partition,
                *part[partition],
                fail_on_data_loss=True,
                as_of_version=hot_version(look, part),
            ):
                records += to_records(self.log.topic.partition(partition), batch)
        return sorted(records, key=lambda record: record.offset)

    def batch_source(self, partition: int, start: int, end: int) -> list[Record]:
        from lakelog.spark.datasource import LakelogDataSource

        source = LakelogDataSource(
            self._options(
                [partition],
                startingOffsets=self._offsets({partition: start}),
                endingOffsets=self._offsets({partition: end}),
                minPartitions="3",
            )
        )
        reader = source.reader(source.schema())
        batches = [batch for task in reader.partitions() for batch in reader.read(task)]
        return self._of_rows(partition, batches)

    def stream_source(self, partition: int, start: int, end: int) -> list[Record]:
        """One micro-batch after another, until they have passed the end."""
        from lakelog.spark.datasource import HAS_READ_LIMITS, LakelogDataSource

        source = LakelogDataSource(
            self._options([partition], startingOffsets=self._offsets({partition: start}))
        )
        reader = source.streamReader(source.schema())
        limit = None
        if HAS_READ_LIMITS:
            from pyspark.sql.streaming.datasource import ReadMaxRows

            limit = ReadMaxRows(MICRO_BATCH_RECORDS)
        at: Mapping[str, Any] = reader.initialOffset()
        batches: list[pa.RecordBatch] = []
        while at[self.log.topic.name][str(partition)] < end:
            until = reader.latestOffset(at, limit)
            if until == at:
                break
            for task in reader.partitions(at, until):
                batches += reader.read(task)
            at = until
        return _below(end, self._of_rows(partition, batches))

    # -- how -------------------------------------------------------------------------------------

    def _tiers(self) -> Tiers:
        return self.log.tiers()

    def _consumed(
        self,
        partition: int,
        start: int,
        end: int,
        poll: Callable[[Consumer], Iterable[list[Record]]],
    ) -> list[Record]:
        topic_partition = self.log.topic.partition(partition)
        found: list[Record] = []
        with Consumer(lambda _: self.log, FROM_A_SEEK) as consumer:
            consumer.assign([topic_partition])
            consumer.seek(topic_partition, start)
            while not found or found[-1].offset < end - 1:
                polled = [record for records in poll(consumer) for record in records]
                if not polled:
                    break
                found += polled
        return _below(end, found)

    def _options(self, partitions: Iterable[int], **more: str) -> dict[str, str]:
        assign = json.dumps({self.log.topic.name: sorted(partitions)})
        return {**self.place.options(), "assign": assign, "includeHeaders": "true", **more}

    def _offsets(self, offsets: Mapping[int, int]) -> str:
        return json.dumps({self.log.topic.name: offsets})

    def _of_rows(self, partition: int, batches: Iterable[pa.RecordBatch]) -> list[Record]:
        """Records of Spark's rows."""
        topic_partition = self.log.topic.partition(partition)
        return [record for batch in batches for record in to_records(topic_partition, batch)]

    def _delta_rows(self, version: int) -> list[tuple[int, int, int]]:
        """Partition, segment and offset of each row of the table."""
        return [
            (one.partition, one.segment, offset)
            for one in self._active_files(version)
            for offset in one.offsets
        ]

    def _active_files(self, version: int) -> Iterable[DeltaFile]:
        """The files of the table as of a version, as delta-rs lists them."""
        if version < 0:
            return
        root = self._delta_root()
        actions: Any = DeltaTable(root, version=version).get_add_actions(flatten=True)
        names = ("path", "partition.partition", "partition.segment")
        columns = (actions.column(name).to_pylist() for name in names)
        for path, partition, segment in zip(*columns, strict=True):
            key = f"{root}/{path}"
            if key not in self._delta_files:
                self._delta_files[key] = DeltaFile.read(Path(key), int(partition), int(segment))
            yield self._delta_files[key]

    def _delta_root(self) -> str:
        """The table's path."""
        root: str = self.log.table.path  # type: ignore[union-attr]  # it is one at a path
        return root


class ArchivedReaders(Readers):
    """The readers of the archived part alone, without Spark's tasks."""

    def named(self) -> dict[str, Reader]:
        """See `Readers.named`."""
        return {
            f"without Redis: {name}": reader
            for name, reader in super().named().items()
            if name != "frame" and not name.startswith("format(")
        }


class DeltaFile(Struct, frozen=True):
    """One file of a Delta table, as pyarrow reads it."""

    partition: int
    segment: int
    offsets: list[int]
    row_group_edges: frozenset[int]
    rows: pa.RecordBatch

    @classmethod
    def read(cls, path: Path, partition: int, segment: int) -> DeltaFile:
        parquet = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        groups = [parquet.read_row_group(n, ["offset"]) for n in range(parquet.num_row_groups)]
        edges: set[int] = set()
        for group in groups:
            offsets = group["offset"].to_pylist()
            edges |= {min(offsets), max(offsets) + 1} if offsets else set()
        table = parquet.read(RECORDS.names).combine_chunks()
        batches = table.to_batches()
        rows = shaped(batches[0], RECORDS) if batches else empty_records()
        offsets = table["offset"].to_pylist()
        return cls(partition, segment, offsets, frozenset(edges), rows)

    def records(self, topic: str, values: Values) -> list[Record]:
        topic_partition = TopicPartition(topic, self.partition)
        opened = values.of_columns(
            self.rows.column("key"),
            self.rows.column("value"),
            lambda row: (topic_partition, self.offsets[row]),
        )
        return to_records(topic_partition, with_values(self.rows, opened))


def _below(end: int, records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.offset < end]
