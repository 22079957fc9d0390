"""Spark's readers of a log, with many ranges in a job.

A frame or a batch of each range is tagged with its number, and one job collects them all; one
stream reads all of the partitions; the registered view is asked range by range in one statement. So
a hundred answers cost a few jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lakelog.base.clock import SystemClock
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.record_batches import shaped
from lakelog.hot.hot_log import HotSource
from lakelog.place import LogPlace
from lakelog.place.by_name import NamedRoot
from lakelog.read.topic_log import TopicLog
from lakelog.spark.dataframe import dataframe, read
from lakelog.spark.datasource import NAME
from lakelog.spark.session import register
from lakelog.testing.model import Difference, require
from lakelog.values.record import RECORDS, Record

from .named_files import files_by_spark
from .readers import DeltaFile, Reader, Readers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Told = tuple[int, "bytes | None", "bytes | None", tuple[tuple[str, "bytes | None"], ...]]
"""Offset, key, value and headers."""

_COLUMNS = ("offset", "key", "value", "headers")


class SparkReaders(Readers):
    """The readers of `Readers`, and Spark's.

    Args:
        view: the name of the topic's registered view; None: there is none.
    """

    def __init__(
        self,
        log: TopicLog,
        place: LogPlace,
        spark: SparkSession,
        delta_files: dict[str, DeltaFile] | None = None,
        view: str | None = None,
    ) -> None:
        super().__init__(log, place, delta_files)
        self._spark = spark
        self._view = view
        register(spark)

    def compare(
        self, partition: int, held: Sequence[Record], ranges: Iterable[tuple[int, int]]
    ) -> None:
        """See `Readers.compare`; then the same for Spark's readers, and a stream of it all."""
        ranges = list(ranges)
        super().compare(partition, held, ranges)
        self.compare_sparks(partition, held, ranges)
        self.compare_stream({partition: held})

    def compare_sparks(
        self, partition: int, held: Sequence[Record], ranges: Sequence[tuple[int, int]]
    ) -> None:
        """Raises `Difference` unless frame and batch each give the list's part."""
        for name, of_range in (
            ("a frame by Spark", partial(self._frame, partition)),
            ("a batch by Spark", partial(self._batch, partition)),
        ):
            frames = [of_range(start, end) for start, end in ranges]
            self._check(name, held, ranges, self._collected(frames))

    def compare_stream(self, held: Mapping[int, Sequence[Record]]) -> None:
        """Raises `Difference` unless one stream from the log starts to the log ends gives it all.

        Spark starts a Python of its own for each stream, so that one for all partitions it is.

        Args:
            held: what the log of each partition that it shall read holds.
        """
        offsets = self.log.offsets(held)
        streamed = self._streamed({number: one.log_start for number, one in offsets.items()})
        for number, one in offsets.items():
            name = f"a stream by Spark, partition {number}"
            whole = [(one.log_start, one.log_end)]
            self._check(name, held[number], whole, {0: streamed[number]})

    def compare_view(
        self, partition: int, stored: Sequence[Record], ranges: Sequence[tuple[int, int]]
    ) -> None:
        """As `compare`, for the registered view.

        Args:
            stored: the rows of the table: archived records that were not cleaned away, even below
                the log start until cleanup drops them.
        """
        names = ", ".join(_COLUMNS)
        frames = [
            self._spark.sql(
                f"SELECT {names} FROM {self._view} "
                f"WHERE partition = {partition} AND offset >= {start} AND offset < {end}"
            )
            for start, end in ranges
        ]
        self._check("the view", stored, ranges, self._collected(frames))

    def _check(
        self,
        name: str,
        held: Sequence[Record],
        ranges: Sequence[tuple[int, int]],
        found: dict[int, list[Told]],
    ) -> None:
        for number, (start, end) in enumerate(ranges):
            expected = [
                (record.offset, record.key, record.value, record.headers)
                for record in held
                if start <= record.offset < end
            ]
            rows = found.get(number, [])
            if rows != expected:
                raise Difference(
                    f"{name} of [{start}, {end}) has {len(rows)} rows instead of {len(expected)}: "
                    f"{[row[0] for row in rows][:20]}, not {[row[0] for row in expected][:20]}"
                )

    def _frame(self, partition: int, start: int, end: int) -> DataFrame:
        return dataframe(
            self.place,
            self._tiers(),
            SystemClock(),
            start,
            end,
            spark=self._spark,
            partitions=[partition],
        )

    def _batch(self, partition: int, start: int, end: int) -> DataFrame:
        options = self._options(
            [partition],
            startingOffsets=self._offsets({partition: start}),
            endingOffsets=self._offsets({partition: end}),
        )
        return self._spark.read.format(NAME).options(**options).load()

    def _streamed(self, starts: Mapping[int, int]) -> dict[int, list[Told]]:
        """The rows of each partition, in order."""
        options = self._options(starts, startingOffsets=self._offsets(starts))
        table = f"lakelog_stream_{uuid4().hex[:8]}"
        query = (
            self._spark.readStream.format(NAME)
            .options(**options)
            .load()
            .writeStream.format("memory")
            .queryName(table)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            rows = self._spark.table(table).collect()
        finally:
            self._spark.catalog.dropTempView(table)
        found: dict[int, list[Told]] = defaultdict(list)
        for row in rows:
            found[row["partition"]].append(_told(row))
        return defaultdict(list, {one: sorted(told, key=_offset) for one, told in found.items()})

    def _collected(self, frames: Sequence[DataFrame]) -> dict[int, list[Told]]:
        """The rows of each frame, in order, from one job."""
        from pyspark.sql.functions import lit

        tagged = [
            frame.select(lit(number).alias("number"), *_COLUMNS)
            for number, frame in enumerate(frames)
        ]
        found: dict[int, list[Told]] = defaultdict(list)
        for row in reduce(lambda one, other: one.unionAll(other), tagged).collect():
            found[row["number"]].append(_told(row))
        return {number: sorted(rows, key=_offset) for number, rows in found.items()}


class NamedReaders(SparkReaders):
    """The readers of a log whose table has a name; what the table holds is what Spark says of it.

    ``format("lakelog")`` is told where the tables lie: else what a worker of Spark's has seen
    before says whether it reads what is archived. A frame of that is compared too, as a reader
    without Redis makes it.

    Args:
        schema: ``catalog.schema`` where the table is.
        tables_at: what tells those who have no session where the tables of the schema are.
    """

    def __init__(
        self,
        log: TopicLog,
        source: HotSource,
        schema: str,
        tables_at: str,
        spark: SparkSession,
        view: str | None = None,
    ) -> None:
        super().__init__(log, LogPlace(source, NamedRoot(schema)), spark, view=view)
        self._schema = schema
        self._tables_at = tables_at
        self._files: dict[int, list[DeltaFile]] = {}

    def named(self) -> dict[str, Reader]:
        """See `Readers.named`; only the readers of both tiers in this process."""
        return {
            name: reader
            for name, reader in super().named().items()
            if name != "frame" and not name.startswith("format(")
        }

    def compare_sparks(
        self, partition: int, held: Sequence[Record], ranges: Sequence[tuple[int, int]]
    ) -> None:
        """See `SparkReaders.compare_sparks`."""
        super().compare_sparks(partition, held, ranges)
        if self.log.table is not None and (cold := self.log.table.snapshot()).version >= 0:
            offsets = self.log.offsets([partition])[partition]
            end = offsets.archive_start
            ends = cold.archive_start(partition)
            require(
                ends == end,
                f"without Redis partition {partition} ends at {ends}, but {end} is where what is "
                "archived or deleted ends",
            )
            archived = [(min(first, end), min(last, end)) for first, last in ranges]
            # Compaction leaves some of the log's records in Redis alone.
            there = {
                offset
                for number, _, offset in self._delta_rows(cold.version)
                if number == partition
            }
            stored = [record for record in held if record.offset in there]
            frames = [self._cold_frame(partition, start, end) for start, end in archived]
            self._check("a frame without Redis", stored, archived, self._collected(frames))

    def _options(self, partitions: Iterable[int], **more: str) -> dict[str, str]:
        return super()._options(partitions, tablesAt=self._tables_at, **more)

    def _cold_frame(self, partition: int, start: int, end: int) -> DataFrame:
        return read(
            self._spark, None, self._schema, self.log.topic.name, start, end, partitions=[partition]
        )

    def _active_files(self, version: int) -> Iterable[DeltaFile]:
        """The files of the table as of a version, as Spark reads them: once each version."""
        if version not in self._files:
            self._files[version] = list(self._files_by_spark(version))
        return self._files[version]

    def _files_by_spark(self, version: int) -> Iterator[DeltaFile]:
        table = self.log.table
        assert isinstance(table, NamedTable)
        if version < 0:
            return
        for file in files_by_spark(self._spark, table.name, version):
            offsets = file.rows["offset"].to_pylist()
            (rows,) = file.rows.select(RECORDS.names).combine_chunks().to_batches()
            edges = frozenset({offsets[0], offsets[-1] + 1})
            yield DeltaFile(file.partition, file.segment, offsets, edges, shaped(rows, RECORDS))


def _told(row: Any) -> Told:
    headers = tuple((one["key"], _bytes(one["value"])) for one in row["headers"])
    return row["offset"], _bytes(row["key"]), _bytes(row["value"]), headers


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _offset(row: Told) -> int:
    return row[0]
