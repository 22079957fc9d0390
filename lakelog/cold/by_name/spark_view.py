"""A table by name, looked at and read through Spark.

Runs on: driver; `SparkView.map` runs its function on executors.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import pyarrow as pa

from ...engines.spark import Failure, SparkEngine
from ...values.record import MAX_OFFSET, OffsetAndTimestamp
from ...values.value_ddl import VALUE_ERROR
from ..record_batches import projection
from ..segment import SegmentFile
from .commit import where_segments
from .entry import read_properties
from .lookup import Measured
from .notes import FIRST_ROWS, Commit, Note, Slice, is_enough
from .runs import Run, Stretch, newest_of, runs, version_with
from .spark_errors import naming
from .tasks import OUTCOMES, TOMBSTONE, Mapped, SpooledRows, outcomes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

T = TypeVar("T")
R = TypeVar("R")

#: Commits that are looked through for removed files.
REMOVALS_ROWS = 1000

_MEASURES = (
    "_metadata.file_path AS path, max(_metadata.file_size) AS size_bytes, count(*) AS records, "
    "min(offset) AS first, max(offset) AS last, unix_micros(min(timestamp)) AS min_us, "
    "unix_micros(max(timestamp)) AS max_us"
)


class SparkView:
    """See `LogView`: it shows the same. Thread-safe.

    Args:
        active: gives the newest version known, and those of the given paths that it does not have.
    """

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        name: str,
        active: Callable[[Iterable[str]], tuple[int, set[str]]],
    ) -> None:
        self._spark = spark
        self._name = name
        self._active = active
        self._kept: tuple[int, DataFrame] | None = None  # planning one costs more than a query

    # -- looking ---------------------------------------------------------------------------------

    def exists(self) -> bool:
        return bool(self._spark().catalog.tableExists(self._name))

    def news(self, topic_id: UUID, since: int) -> list[Commit] | None:
        if since >= 0 and is_newest(self._spark(), self._name, since):
            return None
        return self.history(topic_id, since)

    def history(self, topic_id: UUID, since: int) -> list[Commit]:
        return read_history(self._spark(), self._name, topic_id, since)

    def properties(self) -> dict[str, str]:
        return read_properties(self._spark(), self._name)

    def column_names(self) -> list[str]:
        return list(self._spark().table(self._name).columns)

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]:
        values = ", ".join(
            f"({number}, {one.partition}, {one.segment}L, {one.start_offset}L, {one.end_offset}L)"
            for number, one in enumerate(slices)
        )
        segments: dict[int, set[int]] = {}
        for one in slices:
            segments.setdefault(one.partition, set()).add(one.segment)
        rows = self._spark().sql(
            f"SELECT /*+ BROADCAST(s) */ number, {_MEASURES} "
            f"FROM {self._name} VERSION AS OF {version} AS t "
            f"JOIN VALUES {values} AS s(number, p, g, low, high) "
            "ON t.partition = s.p AND t.segment = s.g AND t.offset >= s.low AND t.offset < s.high "
            f"WHERE {where_segments(segments)} GROUP BY number, path"
        )
        return [Measured(*row) for row in rows.collect()]

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]:
        where = "true" if only is None else where_segments({only[0]: {only[1]}})
        rows = self._spark().sql(
            f"SELECT partition, segment, {_MEASURES} FROM {self._name} VERSION AS OF {version} "
            f"WHERE {where} GROUP BY partition, segment, path"
        )
        return [Measured((row[0], row[1]), *row[2:]) for row in rows.collect()]

    # -- reading ---------------------------------------------------------------------------------

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
            batches = Stretch(frame, run).batches(schema)
            while True:
                with naming(run.path):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield batch

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
        on its disk while it runs the tasks (see `SpooledRows`).
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

    def rows(self, version: int, run: Run, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `LogView.rows`."""
        with naming(run.path):
            stretch = Stretch(self.frame(version).select(*columns), run)
            yield from stretch.batches(projection(columns))

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
            kept = self._kept = (version, self.version_frame(version))
        return kept[1]

    def version_frame(self, version: int) -> DataFrame:
        """All columns and rows as of a version.

        Raises:
            MissingFileError: Delta no longer has the version: it is not the newest, and older than
                the table's `delta.deletedFileRetentionDuration`.
        """
        with naming(self._name):
            return self._spark().sql(f"SELECT * FROM {self._name} VERSION AS OF {int(version)}")

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


def is_newest(spark: SparkSession, name: str, version: int) -> bool:
    """Whether nothing was committed above a version; False also where that cannot be told.

    Delta refuses to go to a version that is not there yet, and says how far the table goes. That
    lists its log and starts no job, while the history starts two.
    """
    try:
        # Spark Connect asks for nothing before the schema is read.
        _ = spark.sql(f"SELECT * FROM {name} VERSION AS OF {version + 1}").schema
    except Exception as error:  # Spark's, Py4J's and Connect's errors have no common base
        said = re.search(r"DELTA_VERSION_NOT_FOUND\b.*\[\d+, (\d+)\]", str(error))
        return said is not None and int(said[1]) == version
    return False


def read_history(spark: SparkSession, name: str, topic_id: UUID, since: int) -> list[Commit]:
    """The commits above a version, newest first; always at least the newest one.

    Args:
        since: -1: back to the newest base, or as far as the history goes.
    """
    limit = FIRST_ROWS if since < 0 else 4
    while True:
        # Whole rows: they are at hand when the command is done; a selection would be one more job.
        rows = spark.sql(f"DESCRIBE HISTORY {name} LIMIT {limit}").collect()
        commits = [
            Commit(
                row["version"],
                int(row["timestamp"].timestamp() * 1000),
                row["operation"],
                Note.parse(row["userMetadata"], topic_id),
                dict(row["operationMetrics"] or {}),
            )
            for row in rows
        ]
        if len(rows) < limit or is_enough(commits, since):
            above = [commit for commit in commits if commit.version > since]
            return above or commits[:1]
        limit *= 8


def removed_files(spark: SparkSession, name: str, before_ms: int) -> int:
    """How many files the newest commits removed before a time and no VACUUM has looked at since."""
    count = 0
    for row in spark.sql(f"DESCRIBE HISTORY {name} LIMIT {REMOVALS_ROWS}").collect():
        if row["operation"].startswith("VACUUM"):
            break
        if row["timestamp"].timestamp() * 1000 <= before_ms:
            count += int((row["operationMetrics"] or {}).get("numRemovedFiles", 0))
    return count
