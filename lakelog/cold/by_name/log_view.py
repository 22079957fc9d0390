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
from msgspec import Struct
from msgspec.structs import replace

from ...base import compute as pc
from ...base.back_off import patiently
from ...errors import ContradictionError, CorruptRecordError, MissingFileError
from ...values.offset_ranges import merged
from ...values.record import MAX_OFFSET, OffsetAndTimestamp
from ...values.topic_partition import OffsetRange
from ..answers import RowGroupTimes
from ..parquet.file_scan import scan_file
from ..parquet.segment_reader import SegmentReader
from ..scan import Extent, FileScan, ScanTask, Spacing
from ..segment import SegmentFile
from ..store.storage import Storage
from ..table import ColdSnapshot
from .deletion_vectors import DeletionVector
from .delta_actions import CommitActions, LogFile, NotDirectError
from .history import FIRST_ROWS, Commit, is_enough
from .location import Located, Location
from .notes import Measured, Note, Slice
from .properties import joined
from .runs import Run, by_segment, newest_of, runs, version_with
from .slice_scan import SpacedRows, apart, scan_slices, unknown_slice
from .table_log import TableLog

T = TypeVar("T")
R = TypeVar("R")

#: Files' deletion vectors that are kept; each has some bytes for a deleted row.
KEPT_VECTORS = 256


class LogView:
    """See `TableView`. Thread-safe.

    Args:
        active: as for `NamedReader`.
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
        """See `TableView.exists`. Also goes to the newest version."""
        return self._refreshed() is not None

    def news(self, topic_id: UUID, since: int) -> list[Commit] | None:
        """See `TableView.news`: the catalog is asked once."""
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
        """See `TableView.history`."""
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
        """See `TableView.properties`."""
        with self._lock:
            return joined(self._there().metadata.properties)

    def column_names(self) -> list[str]:
        """See `TableView.column_names`."""
        with self._lock:
            return list(self._there().metadata.columns)

    # -- measuring -------------------------------------------------------------------------------

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]:
        """See `TableView.measured_slices`."""
        files, reader = self._files(version)
        rows: list[Measured] = []
        by_segment: dict[tuple[int, int], list[LogFile]] = {}
        for file in files:
            by_segment.setdefault((file.partition, file.segment), []).append(file)
        for number, one in enumerate(slices):
            for file in by_segment.get((one.partition, one.segment), ()):
                if file.start_offset < one.end_offset and file.end_offset > one.start_offset:
                    found = _measure(reader, file, one.start_offset, one.end_offset)
                    if found.records:
                        rows.append({"number": number, **found.row(file)})
        return rows

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]:
        """See `TableView.measured_segments`."""
        files, reader = self._files(version)
        rows: list[Measured] = []
        for file in files:
            if only in (None, (file.partition, file.segment)):
                found = _measure(reader, file, 0, 2**63 - 1)
                if found.records:
                    place = {"partition": file.partition, "segment": file.segment}
                    rows.append({**place, **found.row(file)})
        return rows

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`."""
        wanted = list(_between(files, start, end))
        if not wanted:
            return
        there, reader = self._files(self._version(wanted))
        for run in runs(wanted, start, end):
            yield from reader.read(_of_run(there, run), run.start, run.end, columns)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        """See `ColdRows.with_keys`."""
        wanted = list(_between(files, start, end))
        if not wanted:
            return []
        there, reader = self._files(self._version(wanted))
        found = [
            one
            for run in runs(wanted, start, end)
            for one in reader.with_keys(_of_run(there, run), run.start, run.end, keys)
        ]
        return merged(found)

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        """See `ColdRows.row_groups`."""
        wanted = list(_between(files, start, end))
        if not wanted:
            return []
        there, reader = self._files(self._version(wanted))
        return [
            one
            for run in runs(wanted, start, end)
            for one in reader.row_groups(_of_run(there, run), run.start, run.end)
        ]

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

    def scan(self, snapshot: ColdSnapshot, tasks: Sequence[ScanTask]) -> list[FileScan]:
        """See `ColdTable.scan`. Of the rows only what `SCANNED` names is read, since
        `scan_data_files` reads the rest.
        """
        if not tasks:
            return []
        partition = tasks[0].file.partition
        there, reader = self._files(snapshot.version)
        mine = by_segment(file for file in there if file.partition == partition)
        known = by_segment(snapshot.files.of_partition(partition))
        asked: dict[int, list[ScanTask]] = {}
        for task in tasks:
            asked.setdefault(task.file.segment, []).append(task)
        is_all = len(tasks) == sum(map(len, known.values()))
        found: list[FileScan] = []
        for segment in sorted(asked.keys() | (mine.keys() - known.keys() if is_all else set())):

            def scan(some: Sequence[ScanTask], segment: int = segment) -> list[FileScan]:
                start, end = 0, MAX_OFFSET
                if some and len(some) < len(known[segment]):
                    start = min(task.file.start_offset for task in some)
                    end = max(task.file.end_offset for task in some)
                rows = reader.read(mine.get(segment, ()), start, end, ["offset", "timestamp"])
                return scan_slices(rows, some or [unknown_slice(partition, segment)])

            if segment in asked:
                found += apart(scan, asked[segment])
            else:
                found += scan(())
        return found

    def scan_data_files(self, snapshot: ColdSnapshot, partition: int) -> list[FileScan]:
        """See `ColdTable.scan_data_files`. Of a file with a deletion vector no more than whether
        it can be read: what is said of its rows is said of those that are gone too. A store that
        is away is not asked for the rest.
        """
        there, reader = self._files(snapshot.version)
        found = []
        for file in sorted(there, key=lambda file: (file.start_offset, file.path)):
            if file.partition == partition:
                scan = scan_file(reader, ScanTask(file))
                said = Extent(file.first, file.last, _ms(file.min_us), _ms(file.max_us))
                if file.vector is not None:
                    scan = replace(scan, row_groups=())
                if file.first is None:
                    scan = replace(scan, file=replace(file, records=-1))
                found.append(replace(scan, said=said))
                if scan.flaw is not None and scan.flaw.retriable:
                    break  # it was asked again and again: so it would be for all others
        return found

    def spacing(
        self,
        snapshot: ColdSnapshot,
        files: Sequence[SegmentFile],
        explained: Sequence[OffsetRange],
    ) -> Spacing:
        """See `ColdTable.spacing`."""
        there, reader = self._files(snapshot.version)
        segments, partition = {file.segment for file in files}, files[0].partition
        mine = [one for one in there if one.partition == partition and one.segment in segments]
        start = min(file.start_offset for file in files)
        end = max(file.end_offset for file in files)
        rows = reader.read(mine, start, end, ["offset", "timestamp"])
        return SpacedRows(tuple(explained)).spacing(rows)

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `SegmentReader.first_at_or_after`; slices never share offsets."""
        for file in files:
            there, reader = self._files(self._version([file]))
            for run in runs([file], from_offset, file.end_offset):
                mine = sorted(_of_run(there, run), key=lambda one: one.start_offset)
                found = reader.first_at_or_after(mine, timestamp_ms, run.start)
                if found is not None and found.offset < run.end:
                    return found
        return None

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:
        """See `SegmentReader.newest`."""

        def newest_in(file: SegmentFile) -> OffsetAndTimestamp | None:
            there, reader = self._files(self._version([file]))
            for run in runs([file], from_offset, file.end_offset):  # one at most
                mine = sorted(
                    _of_run(there, run), key=lambda one: (-one.max_timestamp_ms, one.start_offset)
                )
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

    def _version(self, files: Sequence[SegmentFile]) -> int:
        return version_with(files, self._active)


class _Reader(SegmentReader):
    """Reads the files of a log: without rows that were deleted, under the columns' own names."""

    def __init__(self, storage: Storage, stored_as: Mapping[str, str]) -> None:
        super().__init__(storage, storage.root, stored_as)
        self.stored_as = dict(stored_as)
        self._vectors: dict[DeletionVector, np.ndarray] = {}

    def deleted(self, file: SegmentFile) -> np.ndarray | None:
        """See `SegmentReader.deleted`."""
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


class _Measure(Struct, frozen=True):
    """Of some rows of a file."""

    records: int
    first: int = -1
    last: int = -1
    min_us: int = 2**63 - 1
    max_us: int = -(2**63)

    def row(self, file: LogFile) -> Measured:
        return {
            "path": file.path,
            "size_bytes": file.size_bytes,
            "records": self.records,
            "first": self.first,
            "last": self.last,
            "min_us": self.min_us,
            "max_us": self.max_us,
        }


def _measure(reader: _Reader, file: LogFile, start: int, end: int) -> _Measure:
    """Of the rows with offsets of [start, end): by statistics if they say it, else by reading."""
    if (
        file.first is not None
        and file.last is not None
        and file.min_us is not None
        and file.max_us is not None
        and file.first >= start
        and file.last < end
    ):
        return _Measure(file.records, file.first, file.last, file.min_us, file.max_us)
    found = _Measure(0)
    for offsets, times_us in reader.times(file):
        inside = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
        offsets, times_us = offsets.filter(inside), times_us.filter(inside)
        if not len(offsets):
            continue
        among, times = pc.min_max(offsets).as_py(), pc.min_max(times_us).as_py()
        found = _Measure(
            found.records + len(offsets),
            among["min"] if not found.records else min(found.first, among["min"]),
            max(found.last, among["max"]),
            min(found.min_us, times["min"]),
            max(found.max_us, times["max"]),
        )
    return found


def _ms(micros: int | None) -> int | None:
    return None if micros is None else micros // 1000


def _between(files: Iterable[SegmentFile], start: int, end: int) -> Iterator[SegmentFile]:
    for file in files:
        if file.records and file.end_offset > start and file.start_offset < end:
            yield file


def _of_run(files: Iterable[LogFile], run: Run) -> list[LogFile]:
    return [
        file
        for file in files
        if file.partition == run.partition
        and run.first_segment <= file.segment <= run.last_segment
        and file.start_offset < run.end
        and file.end_offset > run.start
    ]


def _commit_of(one: CommitActions, topic_id: UUID) -> Commit:
    return Commit(
        one.version,
        one.time_ms,
        str(one.info.get("operation", "")),
        Note.parse(one.info.get("userMetadata"), topic_id),
        one.metrics,
    )
