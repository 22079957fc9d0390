"""A table by name, looked at and read where it lies: no Spark, as at a path.

A slice says which offsets of a segment it has; the log, which files have rows of that segment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from ...base import compute as pc
from ...base.back_off import patiently
from ...errors import ContradictionError, CorruptRecordError, MissingFileError
from ...values.config import INT64_MAX
from ...values.offset_ranges import merged
from ...values.record import OffsetAndTimestamp
from ...values.topic_partition import OffsetRange
from ..answers import RowGroupTimes
from ..parquet.segment_reader import SegmentReader
from ..segment import SegmentFile
from ..store.storage import Storage
from .definition import joined
from .deletion_vectors import DeletionVector
from .delta_actions import CommitActions, LogFile, NotDirectError
from .location import Located, Location
from .lookup import Measured
from .notes import FIRST_ROWS, Commit, Note, Slice, is_enough
from .runs import Run, newest_of, runs, version_with
from .table_log import TableLog

T = TypeVar("T")
R = TypeVar("R")

#: Files' deletion vectors that are kept; each has some bytes for a deleted row.
KEPT_VECTORS = 256


class LogView:
    """One table, seen where it lies; `SparkView` shows the same. Thread-safe.

    Args:
        active: gives the newest version known, and those of the given paths that it does not have.
    """

    def __init__(
        self,
        location: Location,
        name: str,
        active: Callable[[Iterable[str]], tuple[int, set[str]]],
    ) -> None:
        self._location = location
        self._name = name
        self._active = active
        self._lock = threading.RLock()  # guards what follows
        self._log: TableLog | None = None
        self._reader: _Reader | None = None
        self._ids: tuple[str, str] | None = None  # the catalog's and the log's own

    @property
    def lies_at(self) -> str | None:
        """The folder or URL that the table is read at; None before the first look."""
        with self._lock:
            return None if self._log is None else self._log.storage.root

    def storage(self) -> Storage:
        """The folder or URL that the table is read at, as it is opened."""
        with self._lock:
            return (self._log or self._there()).storage

    def renew(self) -> None:
        """Ask for other keys the next time that any are needed."""
        with self._lock:
            if self._log is not None:
                self._log.storage.renew()

    # -- looking ---------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the catalog has it. Also goes to the newest version."""
        return self._refreshed() is not None

    def news(self, topic_id: UUID, since: int) -> list[Commit] | None:
        """As `history`; None: nothing was committed above a version. The catalog is asked once."""
        with self._lock:
            located = self._found()
            log = self._log
            if (
                located is not None
                and log is not None
                and log.version == since
                and log.is_newest(since, located.newest)
            ):
                return None
            return self._commits(self._refreshed(located), topic_id, since)

    def history(self, topic_id: UUID, since: int) -> list[Commit]:
        """The commits above a version, newest first; always at least the newest one.

        Args:
            since: -1: back to the newest base, or as far as the history goes.
        """
        with self._lock:
            return self._commits(self._refreshed(), topic_id, since)

    def _commits(self, log: TableLog | None, topic_id: UUID, since: int) -> list[Commit]:
        if log is None:
            raise NotDirectError("the catalog has no such table")
        most = FIRST_ROWS if since < 0 else max(1, log.version - since)
        while True:
            found = log.commits(since, most)
            if not found:  # nothing is new: the newest one is wanted all the same
                found = log.commits(log.version - 1, 1)
            commits = [_commit_of(one, topic_id) for one in found]
            if not commits:
                raise NotDirectError(f"its log has lost version {log.version}")
            if len(commits) < most or is_enough(commits, since):
                return commits
            most *= 8

    def properties(self) -> dict[str, str]:
        """Those of the newest version."""
        with self._lock:
            return joined(self._there().metadata.properties)

    def column_names(self) -> list[str]:
        """Those of the newest version."""
        with self._lock:
            return list(self._there().metadata.columns)

    # -- measuring -------------------------------------------------------------------------------

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]:
        """A row for each file of each slice that has rows in it; it is `of` the slice's number."""
        files, reader = self._files(version)
        there: dict[tuple[int, int], list[LogFile]] = {}
        for file in files:
            there.setdefault((file.partition, file.segment), []).append(file)
        found = [
            _measure(reader, file, number, one.start_offset, one.end_offset)
            for number, one in enumerate(slices)
            for file in there.get((one.partition, one.segment), ())
            if file.start_offset < one.end_offset and file.end_offset > one.start_offset
        ]
        return [one for one in found if one.records]

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]:
        """A row for each file of each segment; it is `of` a partition and base offset.

        Args:
            only: the partition and base offset of a segment; None: all.
        """
        files, reader = self._files(version)
        found = [
            _measure(reader, file, (file.partition, file.segment), 0, INT64_MAX)
            for file in files
            if only in (None, (file.partition, file.segment))
        ]
        return [one for one in found if one.records]

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        for reader, found, run in self._runs(files, start, end):
            yield from reader.read(found, run.start, run.end, columns)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        return merged(
            one
            for reader, found, run in self._runs(files, start, end)
            for one in reader.with_keys(found, run.start, run.end, keys)
        )

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        return [
            one
            for reader, found, run in self._runs(files, start, end)
            for one in reader.row_groups(found, run.start, run.end)
        ]

    def _runs(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Iterator[tuple[_Reader, list[LogFile], Run]]:
        """What reads the rows of [start, end) in some slices, and the data files that have them."""
        wanted = [
            file
            for file in files
            if file.records and file.end_offset > start and file.start_offset < end
        ]
        if not wanted:
            return
        there, reader = self._files(version_with(wanted, self._active))
        for run in runs(wanted, start, end):
            yield reader, [file for file in there if run.has(file)], run

    def data_files(self, partition: int) -> list[SegmentFile]:
        """The files of the newest version, by offset."""
        with self._lock:
            version = self._there().version
        found, _ = self._files(version)
        mine = [file for file in found if file.partition == partition]
        return sorted(mine, key=lambda file: (file.start_offset, file.path))

    def map_file(self, function: Callable[[Any, T], R], task: T) -> R:
        """What the function says of a task, with what reads the table's files."""
        with self._lock:
            reader = self._reader_of(self._there())
        return function(reader, task)

    def rows(self, version: int, run: Run, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """A run's rows as of a version, by offset; each offset as often as it is there."""
        there, reader = self._files(version)
        mine = [file for file in there if run.has(file)]
        return reader.read(mine, run.start, run.end, columns)

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `SegmentReader.first_at_or_after`; slices never share offsets."""
        for file in files:
            for reader, found, run in self._runs([file], from_offset, file.end_offset):
                mine = sorted(found, key=lambda one: one.start_offset)
                first = reader.first_at_or_after(mine, timestamp_ms, run.start)
                if first is not None and first.offset < run.end:
                    return first
        return None

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:

        def newest_in(file: SegmentFile) -> OffsetAndTimestamp | None:
            for reader, found, run in self._runs([file], from_offset, file.end_offset):  # one
                mine = sorted(found, key=lambda one: (-one.max_timestamp_ms, one.start_offset))
                return reader.newest(mine, run.start)
            return None

        return newest_of(files, newest_in)

    # -- where it lies ---------------------------------------------------------------------------

    def _found(self) -> Located | None:
        return patiently(f"asking the catalog about {self._name}", self._location.find)

    def _refreshed(self, located: Located | None = None) -> TableLog | None:
        """The log at its newest version; None where there is no table.

        Args:
            located: what the catalog has just said; None: it is asked.

        Raises:
            NotDirectError: the catalog has a table, and no log is to be seen.
        """
        with self._lock:
            log = self._looked(located)
            if log is None or log.version < 0:  # perhaps it is not where it was
                self._location.forget()
                self._log = None
                log = self._looked()
            if log is not None and log.version < 0:
                raise NotDirectError(f"there is no log to be seen at {log.storage.root}")
            return log

    def _looked(self, located: Located | None = None) -> TableLog | None:
        located = located or self._found()
        if located is None:
            return None
        log = self._log
        if log is None or located.storage.root != log.storage.root:
            log, self._log, self._reader = TableLog(located.storage), None, None
        log.refresh(located.newest)
        if log.version < 0:
            return log if located.is_there else None
        mine = located.table_id or "", log.metadata.table_id
        if self._ids not in (None, mine):
            raise ContradictionError(
                f"{self._name} is another table now than when it was first looked at: somebody "
                "dropped it and made a new one. UNDROP that table, or delete the topic and create "
                "it again",
                path=self._name,
            )
        self._log, self._ids = log, mine
        return log

    def _there(self) -> TableLog:
        log = self._log
        if log is None or log.version < 0:
            log = self._refreshed()
        if log is None:
            raise NotDirectError("the catalog has no such table")
        return log

    def _files(self, version: int) -> tuple[list[LogFile], _Reader]:
        """The files of a version, and what reads them."""
        with self._lock:
            log = self._there()
            if version > log.version:
                log = self._refreshed() or log
            return log.files(version), self._reader_of(log)

    def _reader_of(self, log: TableLog) -> _Reader:
        stored_as = log.metadata.stored_as
        if self._reader is None or self._reader.stored_as != stored_as:
            self._reader = _Reader(log.storage, stored_as)
        return self._reader


class _Reader(SegmentReader):
    """Reads the files of a log: without rows that were deleted, under the columns' own names."""

    def __init__(self, storage: Storage, stored_as: Mapping[str, str]) -> None:
        super().__init__(storage, storage.root, stored_as)
        self.stored_as = dict(stored_as)
        self._vectors: dict[DeletionVector, np.ndarray] = {}

    def deleted(self, file: SegmentFile) -> np.ndarray | None:
        vector = file.vector if isinstance(file, LogFile) else None
        if vector is None:
            return None
        found = self._vectors.get(vector)
        if found is None:
            found = self._read_vector(vector)
            while len(self._vectors) >= KEPT_VECTORS:
                self._vectors.pop(next(iter(self._vectors)), None)
            self._vectors[vector] = found
        return found

    def _read_vector(self, vector: DeletionVector) -> np.ndarray:
        if vector.kind not in "iu":
            raise NotDirectError("a deletion vector of it lies elsewhere")
        try:
            content = None
            if vector.path is not None:
                path = f"{self._table_path}/{vector.path}"
                content = self._storage.read_bytes(path)
                if content is None:
                    raise MissingFileError(f"the deletion vector {path} is missing", path=path)
            return vector.rows(content)
        except ValueError as error:
            raise CorruptRecordError(f"a deletion vector cannot be read: {error}") from error


def _measure(
    reader: _Reader, file: LogFile, of: int | tuple[int, int], start: int, end: int
) -> Measured:
    """Of the rows with offsets of [start, end): by statistics if they say it, else by reading."""
    measured = Measured(of, file.path, file.size_bytes, 0, INT64_MAX, -1, INT64_MAX, -INT64_MAX)
    if (
        file.first is not None
        and file.last is not None
        and file.min_us is not None
        and file.max_us is not None
        and file.first >= start
        and file.last < end
    ):
        return replace(
            measured,
            records=file.records,
            first=file.first,
            last=file.last,
            min_us=file.min_us,
            max_us=file.max_us,
        )
    for offsets, times_us in reader.times(file):
        inside = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
        offsets, times_us = offsets.filter(inside), times_us.filter(inside)
        if len(offsets):
            among, times = pc.min_max(offsets).as_py(), pc.min_max(times_us).as_py()
            measured = replace(
                measured,
                records=measured.records + len(offsets),
                first=min(measured.first, among["min"]),
                last=max(measured.last, among["max"]),
                min_us=min(measured.min_us, times["min"]),
                max_us=max(measured.max_us, times["max"]),
            )
    return measured


def _commit_of(one: CommitActions, topic_id: UUID) -> Commit:
    return Commit(
        one.version,
        one.time_ms,
        str(one.info.get("operation", "")),
        Note.parse(one.info.get("userMetadata"), topic_id),
        one.metrics,
    )
