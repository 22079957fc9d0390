"""Reading a table by name: records by offset or by timestamp, and what a look finds in it.

Runs on: driver, but for `NamedReader.map`'s function.
"""

from __future__ import annotations

import logging
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ...cold.segment import SegmentFile
from ...cold.segment_reader import projection
from ...cold.storage import one_line
from ...cold.store_errors import error_class
from ...errors import (
    ColdTierError,
    CorruptRecordError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
)
from ...record import MAX_OFFSET, OffsetAndTimestamp
from ...value_ddl import VALUE_ERROR
from ..engine import Failure, SparkEngine
from .commit import where_segments
from .notes import FOUND, Slice, version_of_path
from .spool import OUTCOMES, TOMBSTONE, Mapped, SpooledRows, outcomes
from .windows import Stretch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Run:
    """Offsets of one partition that follow each other, and where they lie."""

    partition: int
    first_segment: int
    last_segment: int
    start: int
    end: int
    rows: int  # about
    size_bytes: int  # stored
    path: str  # of its first file, for errors

    @classmethod
    def of(cls, files: Sequence[SegmentFile], start: int, end: int) -> _Run:
        first, last = files[0], files[-1]
        return cls(
            first.partition,
            min(file.segment for file in files),
            max(file.segment for file in files),
            # A gap lies before a segment's first record, and a query for it would find nothing.
            max(start, first.start_offset, min(first.segment, first.end_offset)),
            min(end, last.end_offset),
            sum(file.records for file in files),
            sum(file.size_bytes for file in files),
            first.path,
        )

    def where(self, start: int, end: int) -> str:
        """The rows of a part of it, as SQL."""
        return (
            f"partition = {self.partition} AND segment BETWEEN {self.first_segment} AND "
            f"{self.last_segment} AND offset >= {start} AND offset < {end}"
        )


class NamedReader:
    """Reads rows of the table ``name``. Thread-safe.

    Args:
        active: the newest version known, and which of some paths it does not have any more.
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
        frame = self.frame(self._version(wanted))
        frame = frame.select(*dict.fromkeys([*schema.names, "offset"]))
        for run in _runs(wanted, start, end):
            stretch = Stretch(frame, run.where, run.start, run.end, run.rows, run.size_bytes)
            batches = stretch.batches(schema)
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
        """See `SegmentReader.newest`."""
        from pyspark.sql.functions import col

        best: OffsetAndTimestamp | None = None
        for file in files:
            if file.max_timestamp_ms < 0:
                break
            if best is not None and not _beats(best, file.max_timestamp_ms, file.start_offset):
                if file.max_timestamp_ms < best.timestamp_ms:
                    break
                continue
            found = self._first(
                file,
                from_offset,
                "timestamp >= timestamp_micros(0L)",
                col("timestamp").desc(),
                col("offset"),
            )
            if found is not None and (
                best is None or _beats(best, found.timestamp_ms, found.offset)
            ):
                best = found
        return best

    def map(
        self,
        function: Callable[[Any, T], R],
        tasks: Sequence[T],
        files_of: Callable[[T], Iterable[SegmentFile]],
        columns: Sequence[str] | None,
    ) -> Iterator[R]:
        """See `ColdTable.map`: the rows of a partition's tasks go to one worker, which keeps them
        on its disk while it runs the tasks (see `spool`).
        """
        from pyspark import cloudpickle

        if columns is None:
            raise InvalidArgumentError(
                "a table by name shows nobody its files, so there are no row groups and footers to "
                "look at. Read its records, or look at DESCRIBE DETAIL and DESCRIBE HISTORY"
            )
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
        wheres = [run.where(run.start, run.end) for run in _runs(files.values(), 0, MAX_OFFSET)]
        if wheres:
            rows = (
                self.frame(self._version(list(files.values())))
                .where(" OR ".join(f"({one})" for one in wheres))
                .selectExpr("partition", *columns, f"value IS NULL AS {TOMBSTONE}")
                .repartition("partition")
                .sortWithinPartitions("partition", "offset")
            )
            answers = rows.mapInArrow(Mapped(pickled, by_partition, list(columns)), OUTCOMES)
            name = getattr(function, "__name__", "a function")
            with naming(next(iter(files))):
                collected = SparkEngine(self._spark()).collect(answers, f"lakelog: {name}")
            found.update({row["number"]: bytes(row["outcome"]) for row in collected})
        with SpooledRows((), list(columns)) as nothing:  # of partitions without any rows
            for partition_tasks in by_partition.values():
                left = [one for one in partition_tasks if one[0] not in found]
                for batch in outcomes(pickled, left, nothing):
                    found[batch.column(0)[0].as_py()] = batch.column(1)[0].as_py()
        results = [pickle.loads(found[number]) for number in range(len(tasks))]
        for result in results:
            if isinstance(result, Failure):
                result.throw()
        yield from results

    def unparsed(self, version: int, files: Sequence[SegmentFile]) -> dict[int, int]:
        """How many records of the files have a ``value_error``, by partition."""
        found = dict.fromkeys((file.partition for file in files), 0)
        wheres = [run.where(run.start, run.end) for run in _runs(files, 0, MAX_OFFSET)]
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
        """The table as of a version; that of the last call is planned once."""
        kept = self._kept
        if kept is None or kept[0] != version:
            kept = self._kept = (version, self._frame(version))
        return kept[1]

    # -- where rows are ----------------------------------------------------------------------------

    def _version(self, files: Sequence[SegmentFile]) -> int:
        """A version that has all of them, which were together in some snapshot.

        What was removed since is read as it was, as long as Delta keeps that.
        """
        newest, gone = self._active(file.path for file in files)
        return max(version_of_path(file.path) for file in files) if gone else newest

    def _first(
        self, file: SegmentFile, from_offset: int, condition: str, *order: Column
    ) -> OffsetAndTimestamp | None:
        runs = list(_runs([file], from_offset, file.end_offset))
        if not runs:
            return None
        with naming(file.path):
            rows = (
                self.frame(self._version([file]))
                .where(f"{runs[0].where(runs[0].start, runs[0].end)} AND {condition}")
                .orderBy(*order)
                .limit(1)
                .selectExpr("offset", "unix_micros(timestamp)")
                .collect()
            )
        return OffsetAndTimestamp(rows[0][0], rows[0][1] // 1000) if rows else None


def _runs(files: Iterable[SegmentFile], start: int, end: int) -> Iterator[_Run]:
    """Files with records of [start, end); those that follow each other without a gap as one."""
    together: list[SegmentFile] = []
    for file in sorted(files, key=lambda file: (file.partition, file.start_offset)):
        if not file.records or file.end_offset <= start or file.start_offset >= end:
            continue
        last = together[-1] if together else None
        if last is not None and (
            (last.partition, last.end_offset) != (file.partition, file.start_offset)
            or file.segment > file.start_offset
        ):
            yield _Run.of(together, start, end)
            together = []
        together.append(file)
    if together:
        yield _Run.of(together, start, end)


def _beats(best: OffsetAndTimestamp, timestamp_ms: int, offset: int) -> bool:
    """Whether a record of that time (at most) and offset (at least) would come before the best."""
    return (timestamp_ms, -offset) > (best.timestamp_ms, -best.offset)


# -- looking things up -------------------------------------------------------------------------

_MEASURES = (
    "_metadata.file_path AS path, max(_metadata.file_size) AS size_bytes, count(*) AS records, "
    "min(offset) AS first, max(offset) AS last, unix_micros(min(timestamp)) AS min_us, "
    "unix_micros(max(timestamp)) AS max_us"
)


def look_up(spark: SparkSession, name: str, version: int, slices: Sequence[Slice]) -> list[Slice]:
    """The slices with what their rows are like, by one query over them.

    For those that others wrote since they last noted any, and where no task's measure came.

    A slice's size is its share of the files it lies in. Of one in a file that is damaged or gone it
    is `Slice.assumed` that all records are there, so that its own rows alone are out of reach.
    """
    try:
        return _look_up(spark, name, version, slices)
    except Exception as error:  # see `naming`
        if not is_unreadable(error):
            raise
        if len(slices) > 1:
            return [found for one in slices for found in look_up(spark, name, version, [one])]
        logger.warning("%s of %s cannot be read: %s", slices[0].path, name, text_of(error)[:300])
        return [slices[0].assumed()]


def _look_up(spark: SparkSession, name: str, version: int, slices: Sequence[Slice]) -> list[Slice]:
    values = ", ".join(
        f"({number}, {one.partition}, {one.segment}L, {one.start_offset}L, {one.end_offset}L)"
        for number, one in enumerate(slices)
    )
    segments: dict[int, set[int]] = {}
    for one in slices:
        segments.setdefault(one.partition, set()).add(one.segment)
    rows = spark.sql(
        f"SELECT /*+ BROADCAST(s) */ number, {_MEASURES} "
        f"FROM {name} VERSION AS OF {version} AS t "
        f"JOIN VALUES {values} AS s(number, p, g, low, high) "
        "ON t.partition = s.p AND t.segment = s.g AND t.offset >= s.low AND t.offset < s.high "
        f"WHERE {where_segments(segments)} GROUP BY number, path"
    ).collect()
    in_file: dict[str, int] = {}
    of_slice: dict[int, list[Row]] = {}
    for row in rows:
        in_file[row["path"]] = in_file.get(row["path"], 0) + row["records"]
        of_slice.setdefault(row["number"], []).append(row)
    return [_known(one, of_slice.get(number, ()), in_file) for number, one in enumerate(slices)]


def find(
    spark: SparkSession, name: str, version: int, known: Mapping[str, Slice]
) -> dict[str, Slice]:
    """The slices of a table that somebody else changed, by one query over all of its rows.

    Those of a segment whose rows are as many, and lie as far, as its slices say stay; of every
    other segment there is one slice of what was found. A segment with a file that is damaged or
    gone is taken for what its slices say, until it can be read.
    """
    said: dict[tuple[int, int], list[Slice]] = {}
    for one in known.values():
        said.setdefault((one.partition, one.segment), []).append(one)
    slices: list[Slice] = []
    try:
        rows = _measured(spark, name, version, "true")
    except Exception as error:  # see `naming`
        if not is_unreadable(error):
            raise
        rows = []
        for place in sorted(said):
            where = where_segments({place[0]: {place[1]}})
            try:
                rows += _measured(spark, name, version, where)
            except Exception as failure:
                if not is_unreadable(failure):
                    raise
                logger.warning("segment %s of %s cannot be read: %s", place, name, text_of(failure))
                slices += said.pop(place)
    found: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["partition"], row["segment"]), []).append(row)
    now_ms = time.time_ns() // 1_000_000
    for place in sorted(found.keys() | said.keys()):
        there, before = found.get(place, []), said.get(place, [])
        if _extent(there) == _said(before):
            slices += before
        elif there:
            _, first, last = _extent(there)
            modified_ms = max((one.modified_ms for one in before), default=now_ms)
            new = Slice(*place, FOUND, first, last + 1, "", version, modified_ms)
            slices.append(_known(new, there, {row["path"]: row["records"] for row in there}))
    return {one.key: one for one in slices}


def _measured(spark: SparkSession, name: str, version: int, where: str) -> list[Row]:
    rows: list[Row] = spark.sql(
        f"SELECT partition, segment, {_MEASURES} FROM {name} VERSION AS OF {version} "
        f"WHERE {where} GROUP BY partition, segment, path"
    ).collect()
    return rows


def _known(one: Slice, rows: Sequence[Row], in_file: Mapping[str, int]) -> Slice:
    if not rows:
        return replace(one, records=0, first=one.start_offset, size_bytes=0)
    records, first, last = _extent(rows)
    return replace(
        one,
        records=records,
        first=first,
        last=last,
        min_timestamp_ms=min(row["min_us"] for row in rows) // 1000,
        max_timestamp_ms=max(row["max_us"] for row in rows) // 1000,
        size_bytes=sum(
            row["size_bytes"] * row["records"] // max(1, in_file[row["path"]]) for row in rows
        ),
    )


def _extent(rows: Sequence[Row]) -> tuple[int, int, int]:
    return (
        sum(row["records"] for row in rows),
        min((row["first"] for row in rows), default=-1),
        max((row["last"] for row in rows), default=-1),
    )


def _said(slices: Sequence[Slice]) -> tuple[int, int, int]:
    filled = [one for one in slices if one.records]
    return (
        sum(one.records for one in filled),
        min((one.first for one in filled), default=-1),
        max((one.last for one in filled), default=-1),
    )


#: What Spark says of a file that is damaged, and of one that is not there.
_DAMAGED = re.compile(r"FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|is not a Parquet file")
_MISSING = re.compile(r"FILE_NOT_EXIST|FileNotFound|VERSION_NOT_FOUND|TIME_TRAVEL")


def text_of(error: Exception) -> str:
    """What a Spark's error says, on one line, without where in its code: names there mislead."""
    text = str(error).partition("JVM stacktrace")[0]
    return one_line(re.sub(r"\n\s+at [^\n]*|\n\s+\.\.\. \d+ more", "", text))


def is_unreadable(error: Exception) -> bool:
    """Whether a query failed because of a file of the table: asking again does not help."""
    text = text_of(error)
    if _MISSING.search(text):
        return re.search("VERSION_NOT_FOUND|TIME_TRAVEL", text) is None
    return _DAMAGED.search(text) is not None and error_class(text) is ColdTierError


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say what a failed query was about."""
    try:
        yield
    except LakelogError:
        raise
    except Exception as error:  # Spark's, Py4J's and Connect's errors have no common base
        text = text_of(error)
        if _MISSING.search(text):
            raise MissingFileError(
                f"the rows of {path} can no longer be read: what a commit removed was vacuumed, or "
                f"somebody deleted files behind the table's back ({text[:300]}). Look again; if "
                "that does not help, RESTORE the table",
                path=path,
            ) from error
        if is_unreadable(error):
            raise CorruptRecordError(
                f"rows from {path} on cannot be read: a file is damaged, Spark says {text[:700]}. "
                "What lies in other files is read and archived as before. Put a sound copy in its "
                "place; or give up all records of the partition up to its last one with `lakelog "
                "delete-records`, after which retention takes it out",
                path=path,
            ) from error
        raise error_class(text)(
            f"{path} cannot be used: Spark says {text[:1000]}. Check that the table may be read "
            "and written by this user",
            path=path,
        ) from error
