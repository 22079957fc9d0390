"""Scans a file of a segment: what its footer says, and what its rows say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...errors import CorruptRecordError, LakelogError
from ..scan import Extent, FileScan, OrderedRows, RowGroupScan, ScanTask, Spacing, Tombstones
from ..schema import FILE_SCHEMA
from ..segment import SegmentFile
from .footers import RowGroup
from .segment_reader import OpenFile, SegmentReader

_OFFSET_AND_TIME = ["offset", "timestamp"]


def scan_file(reader: SegmentReader, task: ScanTask) -> FileScan:
    """Reads the whole file and says what it holds. What stops it is part of the answer, no error:
    damage, or a store that does not hand the file out.

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
                scan.spacing = Spacing.of(_all_offsets(opened), task.explained)
    except LakelogError as error:
        flaw = error
    found = Extent()
    for group in scan.row_groups:
        found |= group.found
    return FileScan(
        task.file,
        scan.size_bytes,
        tuple(scan.row_groups),
        sum(group.found_rows for group in scan.row_groups),
        found,
        scan.said_tombstones,
        scan.tombstones if task.whole else None,
        scan.ascending,
        scan.spacing,
        flaw,
    )


def offsets_of(reader: SegmentReader, file: SegmentFile) -> np.ndarray:
    """The offsets of a file, in its order.

    Runs on: executor (or in process).

    Raises:
        MissingFileError, CorruptRecordError, ColdTierError: see `SegmentReader.opened`.
    """
    with reader.opened(file) as opened:
        return _all_offsets(opened)


class _Scan:
    def __init__(self, task: ScanTask) -> None:
        self.task = task
        self.size_bytes = -1
        self.said_tombstones: Tombstones | None = None
        self.row_groups: list[RowGroupScan] = []
        self.tombstones = Tombstones()
        self.ascending = True
        self.spacing = Spacing()

    def read(self, opened: OpenFile) -> None:
        columns = FILE_SCHEMA.names if self.task.whole else _OFFSET_AND_TIME
        ordered = OrderedRows(self.task.explained)
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
                offsets = _numpy(batch.column("offset"))
                times_us = _numpy(batch.column("timestamp").cast(pa.int64()))
                found |= Extent.of(offsets, times_us)
                self.ascending = self.ascending and ordered.is_continued_by(offsets)
                if self.ascending:
                    ordered.add(offsets, times_us)
                if self.task.whole:
                    self.tombstones += Tombstones.of(batch)
            self.row_groups.append(_group(group, rows, found))
        self.spacing = ordered.spacing


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


def _numpy(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False))
