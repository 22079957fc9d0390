"""Reading a table by name: records by offset or by timestamp.

Runs on: driver; `NamedReader.map` runs its function on executors.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ...engines.spark import Failure, SparkEngine
from ...values.record import MAX_OFFSET, OffsetAndTimestamp
from ...values.topic_partition import OffsetRange
from ...values.value_ddl import VALUE_ERROR
from ..answers import RowGroupTimes
from ..record_batches import projection
from ..scan import FileScan, ScanTask, Spacing
from ..schema import FILE_SCHEMA
from ..segment import SegmentFile
from ..table import ColdSnapshot
from .query_errors import naming
from .runs import by_segment, newest_of, runs, version_with, where_slices
from .slice_scan import SCANNED, SCANS, ScannedRows, SpacedRows, apart
from .spool import OUTCOMES, TOMBSTONE, Mapped, SpooledRows, outcomes
from .windows import Stretch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

T = TypeVar("T")
R = TypeVar("R")

#: Among so many workers, at most, the segments of a partition are dealt out to be scanned.
WORKERS = 64

#: Has Parquet's reader for Java compare each page's CRC.
PAGE_SUMS = "parquet.page.verify-checksum.enabled"


class NamedReader:
    """Reads rows of the table ``name``. Thread-safe.

    Args:
        active: gives the newest version known, and those of the given paths that it does not have.
    """

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        frame: Callable[[int], DataFrame],
        active: Callable[[Iterable[str]], tuple[int, set[str]]],
    ) -> None:
        self._spark = spark
        self._frame = frame
        self._active = active
        self._kept: tuple[int, DataFrame] | None = None  # planning one costs more than a query

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`. `columns` may also name ``delete_horizon``."""
        schema = projection(columns)
        wanted = [
            file
            for file in files
            if file.records and file.end_offset > start and file.start_offset < end
        ]
        if not wanted:
            return
        with naming(wanted[0].path):
            frame = self.frame(self._version(wanted))
            frame = frame.select(*dict.fromkeys([*schema.names, "offset"]))
        for run in runs(wanted, start, end):
            stretch = Stretch(frame, run.where, run.start, run.end, run.rows, run.size_bytes)
            batches = stretch.batches(schema)
            while True:
                with naming(run.path):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield batch

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        """See `ColdRows.with_keys`: a query would cost what reading costs."""
        return [OffsetRange(start, end)]

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        """See `ColdRows.row_groups`: a query does not show files."""
        return []

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `SegmentReader.first_at_or_after`; files never share offsets here."""
        from pyspark.sql.functions import col

        for file in files:
            found = self._first(
                file,
                from_offset,
                f"timestamp >= timestamp_micros({timestamp_ms * 1000}L)",
                col("offset"),
            )
            if found is not None:
                return found
        return None

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:
        """See `SegmentReader.newest`."""
        from pyspark.sql.functions import col

        return newest_of(
            files,
            lambda file: self._first(
                file,
                from_offset,
                "timestamp >= timestamp_micros(0L)",
                col("timestamp").desc(),
                col("offset"),
            ),
        )

    def map(
        self,
        function: Callable[[Any, T], R],
        tasks: Sequence[T],
        files_of: Callable[[T], Iterable[SegmentFile]],
        columns: Sequence[str],
    ) -> Iterator[R]:
        """See `ColdTable.map`: the rows of a partition's tasks go to one worker, which keeps them
        on its disk while it runs the tasks (see `spool`).
        """
        from pyspark import cloudpickle

        if not tasks:
            return
        by_partition: dict[int, list[tuple[int, bytes]]] = {}
        files: dict[str, SegmentFile] = {}
        for number, task in enumerate(tasks):
            mine = list(files_of(task))
            by_partition.setdefault(mine[0].partition if mine else -1, []).append(
                (number, cloudpickle.dumps(task))
            )
            files.update({file.path: file for file in mine})
        pickled = cloudpickle.dumps(function)
        found: dict[int, bytes] = {}
        wheres = [run.where(run.start, run.end) for run in runs(files.values(), 0, MAX_OFFSET)]
        if wheres:
            name = getattr(function, "__name__", "a function")
            with naming(next(iter(files))):
                rows = (
                    self.frame(self._version(list(files.values())))
                    .where(" OR ".join(f"({one})" for one in wheres))
                    .selectExpr("partition", *columns, f"value IS NULL AS {TOMBSTONE}")
                    .repartition("partition")
                    .sortWithinPartitions("partition", "offset")
                )
                answers = rows.mapInArrow(Mapped(pickled, by_partition, list(columns)), OUTCOMES)
                collected = SparkEngine(self._spark()).collect(answers, f"lakelog: {name}")
            found.update({row["number"]: bytes(row["outcome"]) for row in collected})
        with SpooledRows((), list(columns)) as nothing:  # for partitions without rows
            for partition_tasks in by_partition.values():
                left = [one for one in partition_tasks if one[0] not in found]
                for batch in outcomes(pickled, left, nothing):
                    found[batch.column(0)[0].as_py()] = batch.column(1)[0].as_py()
        results = [pickle.loads(found[number]) for number in range(len(tasks))]
        for result in results:
            if isinstance(result, Failure):
                result.throw()
        yield from results

    def scan(self, snapshot: ColdSnapshot, tasks: Sequence[ScanTask]) -> list[FileScan]:
        """See `ColdTable.scan`: the rows of each segment go to one worker, by offset."""
        if not tasks:
            return []
        partition = tasks[0].file.partition
        known = by_segment(snapshot.files.of_partition(partition))
        is_all = len(tasks) == sum(map(len, known.values()))

        def scan(some: Sequence[ScanTask]) -> list[FileScan]:
            where = f"partition = {partition}"
            if not is_all or len(some) < len(tasks):
                where += f" AND ({where_slices([task.file for task in some], known)})"
            mine: dict[int, list[ScanTask]] = {}
            for task in some:
                mine.setdefault(task.file.segment, []).append(task)
            scanned = ScannedRows(partition, mine)
            with naming(some[0].file.path):
                rows = self._scanned(snapshot.version, where)
                parts = min(len(mine), WORKERS)
                rows = rows.repartition(parts, "segment").sortWithinPartitions("segment", "offset")
                answers = self._answers(rows.mapInArrow(scanned, SCANS), "scan")
            found = [one for answer in answers for one in answer]
            met = {one.file.path for one in found}
            empty = [task.file for task in some if task.file.path not in met]
            return [*found, *map(FileScan, empty)]

        return list(apart(scan, tasks))

    def spacing(
        self,
        snapshot: ColdSnapshot,
        files: Sequence[SegmentFile],
        explained: Sequence[OffsetRange],
    ) -> Spacing:
        """See `ColdTable.spacing`."""
        known = by_segment(snapshot.files.of_partition(files[0].partition))
        where = f"partition = {files[0].partition} AND ({where_slices(files, known)})"
        with naming(files[0].path):
            rows = self._scanned(snapshot.version, where)
            rows = rows.repartition(1).sortWithinPartitions("offset")
            spaced = rows.mapInArrow(SpacedRows(tuple(explained)), SCANS)
            (found,) = self._answers(spaced, "spacing")
        spacing: Spacing = found
        return spacing

    def _scanned(self, version: int, where: str) -> DataFrame:
        """Rows of `SCANNED`, and one more column for which all others are read."""
        others = [name for name in FILE_SCHEMA.names if name not in SCANNED]
        return (
            self.frame(version)
            .where(where)
            .selectExpr(
                "segment",
                "offset",
                "unix_micros(timestamp) AS timestamp",
                f"xxhash64({', '.join(others)}) = 0 AS others",
            )
        )

    def _answers(self, rows: DataFrame, doing: str) -> list[Any]:
        session = self._spark()
        with page_sums_checked(session):
            found = SparkEngine(session).collect(rows, f"lakelog: {doing}")
        return [pickle.loads(bytes(row["scans"])) for row in found]

    def unparsed(self, version: int, files: Sequence[SegmentFile]) -> dict[int, int]:
        """How many records of the files have a ``value_error``, by partition."""
        found = dict.fromkeys((file.partition for file in files), 0)
        wheres = [run.where(run.start, run.end) for run in runs(files, 0, MAX_OFFSET)]
        if not wheres:
            return found
        rows = (
            self.frame(version)
            .where(" OR ".join(f"({one})" for one in wheres))
            .groupBy("partition")
            .agg({VALUE_ERROR: "count"})
            .collect()
        )
        return found | {row[0]: row[1] for row in rows}

    def frame(self, version: int) -> DataFrame:
        """The table as of a version. The frame of the last call is kept, not planned again."""
        kept = self._kept
        if kept is None or kept[0] != version:
            kept = self._kept = (version, self._frame(version))
        return kept[1]

    # -- where rows are ----------------------------------------------------------------------------

    def _version(self, files: Sequence[SegmentFile]) -> int:
        return version_with(files, self._active)

    def _first(
        self, file: SegmentFile, from_offset: int, condition: str, *order: Column
    ) -> OffsetAndTimestamp | None:
        found = list(runs([file], from_offset, file.end_offset))
        if not found:
            return None
        with naming(file.path):
            rows = (
                self.frame(self._version([file]))
                .where(f"{found[0].where(found[0].start, found[0].end)} AND {condition}")
                .orderBy(*order)
                .limit(1)
                .selectExpr("offset", "unix_micros(timestamp)")
                .collect()
            )
        return OffsetAndTimestamp(rows[0][0], rows[0][1] // 1000) if rows else None


@contextmanager
def page_sums_checked(session: SparkSession) -> Iterator[None]:
    """Have the session's queries compare the CRCs of pages, as far as its platform lets us."""
    before = session.conf.get(PAGE_SUMS, None)
    with suppress(Exception):  # Spark's errors have no common base
        session.conf.set(PAGE_SUMS, "true")
    try:
        yield
    finally:
        with suppress(Exception):
            if before is None:
                session.conf.unset(PAGE_SUMS)
            else:
                session.conf.set(PAGE_SUMS, before)
