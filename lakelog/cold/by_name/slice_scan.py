"""Scans slices of a table by name: a segment's rows go in, what they say of each slice comes out.

Rows come by offset, so the memory that is needed does not depend on how many there are.

Runs on: executor (or in process).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...engines.spark import spare_imports
from ...errors import CorruptRecordError, MissingFileError
from ...values.offset_ranges import Ranges
from ...values.record import MAX_OFFSET, NO_TIMESTAMP_MS
from ...values.topic_partition import OffsetRange
from ..scan import FileScan, OrderedRows, ScanTask
from ..segment import UNKNOWN_TIMESTAMP_MS, SegmentFile
from .tasks import pieces_by

#: What goes in: the segment, and a row's offset and timestamp. By segment, then by offset.
SCANNED = ["segment", "offset", "timestamp"]

#: What comes out of a worker.
SCANS = "scans binary"


class ScannedRows(Struct, frozen=True):
    """Scans the slices of a partition's segments.

    Args:
        tasks: the slices, by segment.
    """

    partition: int
    tasks: Mapping[int, Sequence[ScanTask]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        for scans in self.scans(batches):
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(scans)])], ["scans"])

    def scans(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[FileScan]]:
        """What rows of `SCANNED` say of their segments' slices; of segments without rows nothing.

        A segment that nobody knows is one slice, which no snapshot has.
        """
        for segment, pieces in groupby(pieces_by("segment", batches), key=lambda piece: piece[0]):
            tasks = self.tasks.get(segment) or [unknown_slice(self.partition, segment)]
            yield scan_slices((rows for _, rows in pieces), tasks)


def scan_slices(batches: Iterable[pa.RecordBatch], tasks: Sequence[ScanTask]) -> list[FileScan]:
    """What the rows of a segment say of its slices, at least one.

    A row between two slices counts for the one before it, whose range it is then seen to leave.
    """
    seen = [_Seen(task) for task in sorted(tasks, key=lambda task: task.file.start_offset)]
    starts = np.array([one.task.file.start_offset for one in seen[1:]], np.int64)
    for batch in batches:
        rows, others = _legible(batch)
        if others.num_rows:
            for offset in others.column("offset").to_pylist():
                at = 0 if offset is None else int(np.searchsorted(starts, offset, side="right"))
                seen[at].add_illegible(offset)
        offsets, times_us = _numbers(rows)
        edges = [0, *np.searchsorted(offsets, starts).tolist(), len(offsets)]
        for one, (low, high) in zip(seen, pairwise(edges), strict=True):
            if low < high:
                one.rows.add(offsets[low:high], times_us[low:high])
    return [one.scan() for one in seen]


class _Seen:
    """What was seen of a slice."""

    def __init__(self, task: ScanTask) -> None:
        self.task = task
        self.rows = OrderedRows(task.explained)
        self._without_offset = 0
        self._without_time = Ranges()

    def add_illegible(self, offset: int | None) -> None:
        """Count a row that has no offset, or that has no timestamp."""
        if offset is None:
            self._without_offset += 1
        else:
            self._without_time = self._without_time.plus([OffsetRange(offset, offset + 1)])

    def scan(self) -> FileScan:
        file, rows = self.task.file, self.rows
        lacking = [f"no offset ({self._without_offset:,} of them)"] if self._without_offset else []
        lacking += [f"no timestamp (offsets {self._without_time})"] if self._without_time else []
        flaw = None
        if lacking:
            what = f"{file.path} holds rows with {', and with '.join(lacking)}"
            flaw = CorruptRecordError(what, path=file.path)
        return FileScan(
            file, records=rows.records, found=rows.extent, spacing=rows.spacing, flaw=flaw
        )


def apart(
    scan: Callable[[Sequence[ScanTask]], list[FileScan]], tasks: Sequence[ScanTask]
) -> Iterator[FileScan]:
    """What a scan of all tasks finds; where a file that cannot be read stands in its way, of ever
    fewer of them, until that file's slices are known.
    """
    try:
        found = scan(tasks)
    except (CorruptRecordError, MissingFileError) as error:
        if len(tasks) == 1:
            yield FileScan(tasks[0].file, flaw=error)
            return
        half = len(tasks) // 2
        for part in (tasks[:half], tasks[half:]):
            yield from apart(scan, part)
        return
    yield from found


def unknown_slice(partition: int, segment: int) -> ScanTask:
    """A whole segment that no snapshot has."""
    path = f"partition={partition}/segment={segment}"
    edges = (0, MAX_OFFSET, NO_TIMESTAMP_MS, UNKNOWN_TIMESTAMP_MS)
    return ScanTask(SegmentFile(partition, segment, path, 0, -1, *edges))


def _legible(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows that have an offset and a timestamp, and the others."""
    offsets, times = batch.column("offset"), batch.column("timestamp")
    if not offsets.null_count and not times.null_count:
        return batch, batch.slice(0, 0)
    whole = pc.and_(offsets.is_valid(), times.is_valid())
    return batch.filter(whole), batch.filter(pc.invert(whole))


def _numbers(rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    offsets, times = rows.column("offset"), rows.column("timestamp").cast(pa.int64())
    return (
        np.asarray(offsets.to_numpy(zero_copy_only=False)),
        np.asarray(times.to_numpy(zero_copy_only=False)),
    )
