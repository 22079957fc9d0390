"""Scans a file of a segment: what its footer says, and what its rows say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ...engines.choice import Work
from ...errors import CorruptRecordError, LakelogError
from ...record import OffsetRange
from ..offset_ranges import Ranges, doubled_in, holes_in
from ..parquet.footers import RowGroup
from ..parquet.segment_reader import OpenFile, SegmentReader
from ..schema import FILE_SCHEMA
from ..segment import SegmentFile, is_ours
from ..tombstones import Tombstones

_OFFSET_AND_TIME = ["offset", "timestamp"]


@dataclass(frozen=True, slots=True)
class Extent:
    """What some rows span; all None if there are no rows, or it is not known."""

    first_offset: int | None = None  # the smallest
    last_offset: int | None = None  # the largest, inclusive
    min_timestamp_ms: int | None = None  # -1 counts, as statistics have it
    max_timestamp_ms: int | None = None

    def __or__(self, other: Extent) -> Extent:
        lows = (
            (self.first_offset, other.first_offset),
            (
                self.min_timestamp_ms,
                other.min_timestamp_ms,
            ),
        )
        highs = (
            (self.last_offset, other.last_offset),
            (
                self.max_timestamp_ms,
                other.max_timestamp_ms,
            ),
        )
        first, low_ms = (min((v for v in pair if v is not None), default=None) for pair in lows)
        last, high_ms = (max((v for v in pair if v is not None), default=None) for pair in highs)
        return Extent(first, last, low_ms, high_ms)


@dataclass(frozen=True, slots=True)
class RowGroupScan:
    """One row group."""

    index: int
    rows: int  # as the footer says
    size_bytes: int  # uncompressed
    compressed_bytes: int
    compression: str
    said: Extent  # the footer's statistics
    found_rows: int
    found: Extent


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A file to scan.

    Args:
        file: the file.
        explained: sorted, disjoint ranges whose missing offsets are no holes.
        whole: read every column, so that each page's CRC is checked; else offset and timestamp.
    """

    file: SegmentFile
    explained: tuple[OffsetRange, ...] = ()
    whole: bool = True

    @property
    def work(self) -> Work:
        return self.file.work


@dataclass(frozen=True, slots=True)
class FileScan:
    """What a scan found; with a `flaw`, only what was read before it."""

    file: SegmentFile
    size_bytes: int = -1
    row_groups: tuple[RowGroupScan, ...] = ()
    said_tombstones: Tombstones | None = None
    found_tombstones: Tombstones | None = None  # None: the values were not read
    ascending: bool = True  # strictly, by offset, throughout the file
    holes: Ranges = field(default_factory=Ranges)  # between its rows, unexplained
    doubled: Ranges = field(default_factory=Ranges)  # offsets it holds more than once
    flaw: LakelogError | None = None

    @property
    def records(self) -> int:
        return sum(group.found_rows for group in self.row_groups)

    @property
    def found(self) -> Extent:
        extent = Extent()
        for group in self.row_groups:
            extent |= group.found
        return extent


def scan_file(reader: SegmentReader, task: ScanTask) -> FileScan:
    """Reads the whole file and says what it holds. Damage is part of the answer, not an error.

    Memory is bounded if rows are in order; else all offsets (8 bytes a row) are held at once.

    Runs on: executor (or in process).
    """
    scan = _Scan(task)
    flaw = None
    try:
        with reader.opened(task.file) as opened:
            scan.size_bytes = opened.size_bytes
            scan.said_tombstones = opened.footer.tombstones
            scan.read(opened)
            if not scan.ascending:
                scan.sort(opened)
    except LakelogError as error:
        flaw = error
    return FileScan(
        task.file,
        scan.size_bytes,
        tuple(scan.row_groups),
        scan.said_tombstones,
        scan.tombstones if task.whole else None,
        scan.ascending,
        scan.holes,
        scan.doubled,
        flaw,
    )


def offsets_of(reader: SegmentReader, file: SegmentFile) -> np.ndarray:
    """The offsets of a file, in its order; none if it cannot be read.

    Runs on: executor (or in process).
    """
    try:
        with reader.opened(file) as opened:
            return _all_offsets(opened)
    except LakelogError:
        return np.empty(0, np.int64)


class _Scan:
    def __init__(self, task: ScanTask) -> None:
        self.task = task
        self.size_bytes = -1
        self.said_tombstones: Tombstones | None = None
        self.row_groups: list[RowGroupScan] = []
        self.tombstones = Tombstones()
        self.ascending = True
        self.holes = Ranges()
        self.doubled = Ranges()
        self.last: int | None = None

    def read(self, opened: OpenFile) -> None:
        columns = FILE_SCHEMA.names if self.task.whole else _OFFSET_AND_TIME
        for group in opened.footer.row_groups:
            found, rows = Extent(), 0
            for batch in opened.batches(group, columns):
                if not batch.num_rows:
                    continue
                if batch.column("offset").null_count or batch.column("timestamp").null_count:
                    raise CorruptRecordError(
                        f"row group {group.index} holds rows without an offset or a timestamp"
                    )
                rows += batch.num_rows
                found |= self._of(batch)
                if self.task.whole:
                    self.tombstones += Tombstones.of(batch)
            self.row_groups.append(_group(group, rows, found))

    def _of(self, batch: pa.RecordBatch) -> Extent:
        offsets = _numpy(batch.column("offset"))
        times_us = _numpy(batch.column("timestamp").cast(pa.int64()))
        if self.ascending:
            before = [] if self.last is None else [self.last]
            run = np.concatenate([np.array(before, np.int64), offsets])
            self.ascending = bool(np.all(run[1:] > run[:-1]))
            if self.ascending:
                self.holes = self.holes.plus(holes_in(run, self.task.explained))
                self.last = int(run[-1])
        return Extent(
            int(offsets.min()),
            int(offsets.max()),
            int(times_us.min()) // 1000,
            int(times_us.max()) // 1000,
        )

    def sort(self, opened: OpenFile) -> None:
        offsets = np.sort(_all_offsets(opened))
        self.holes = Ranges.of(holes_in(offsets, self.task.explained))
        self.doubled = Ranges.of(doubled_in(offsets))


def _all_offsets(opened: OpenFile) -> np.ndarray:
    found = [
        _numpy(batch.column("offset"))
        for group in opened.footer.row_groups
        for batch in opened.batches(group, ["offset"])
    ]
    return np.concatenate([np.empty(0, np.int64), *found])


def _group(group: RowGroup, rows: int, found: Extent) -> RowGroupScan:
    first, last = group.offsets or (None, None)
    low_us, high_us = group.times_us or (None, None)
    return RowGroupScan(
        group.index,
        group.rows,
        group.size_bytes,
        group.compressed_bytes,
        group.compression,
        Extent(
            first,
            last,
            None if low_us is None else low_us // 1000,
            None if high_us is None else high_us // 1000,
        ),
        rows,
        found,
    )


def declared_gaps(files: Iterable[SegmentFile]) -> list[OffsetRange]:
    """The gaps that names of lakelog's files declare: ranges that begin before their segment."""
    return [
        OffsetRange(file.start_offset, min(file.segment, file.end_offset))
        for file in files
        if is_ours(file.path) and file.segment > file.start_offset
    ]


def _numpy(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False))
