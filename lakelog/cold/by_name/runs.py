"""Consecutive offsets of a table by name: where they lie, and their rows by Spark.

Rows come to the driver a window of offsets at a time, in bounded memory. The number of rows in a
window is chosen before anything is known of them, and their size in files says little of their real
size: a kilobyte may hold a megabyte of blanks. So every row comes with its size. Its key, value and
headers come only if a window full of rows of that size stays within `MAX_BYTES`. Rows without them
are asked for once more, in parts cut by the sizes known by then. Records of about the same size
never need that.

Runs on: driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...base import compute as pc
from ...values.config import MIB
from ...values.record import OffsetAndTimestamp
from ..record_batches import cuts, shaped
from ..segment import SegmentFile
from .notes import version_of_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How much a window should bring, judged by the rows of the one before, and how much at most. A
#: single record that is larger comes by itself.
WINDOW_BYTES = 16 * MIB
MAX_BYTES = 4 * WINDOW_BYTES  # records of up to four times the average come at once
WINDOW_ROWS = 256 * 1024
FIRST_WINDOW_ROWS = 4 * 1024  # until the size of records is known
BATCH_BYTES = 16 * MIB

#: A column beside the table's own: a row's bytes that are not of fixed size.
SIZE = "lakelog size"

_SIZES = {
    "key": "coalesce(octet_length(key), 0L)",
    "value": "coalesce(octet_length(value), 0L)",
    "headers": (
        "coalesce(aggregate(headers, 0L, (sum, one) -> sum + 8L + octet_length(one.key) + "
        "coalesce(octet_length(one.value), 0L)), 0L)"
    ),
}
_FIXED_BYTES = 48  # all other columns, and where bytes begin


class Run(Struct, frozen=True):
    """Consecutive offsets of one partition, and where they lie."""

    partition: int
    first_segment: int
    last_segment: int
    start: int
    end: int
    rows: int  # about
    size_bytes: int  # stored
    path: str  # of its first file, for errors

    @classmethod
    def of(cls, files: Sequence[SegmentFile], start: int, end: int) -> Run:
        first, last = files[0], files[-1]
        # A gap lies before a segment's first record, and a query for it would find nothing.
        start = max(start, first.start_offset, min(first.segment, first.end_offset))
        return replace(cls.whole(files), start=start, end=min(end, last.end_offset))

    @classmethod
    def whole(cls, files: Sequence[SegmentFile]) -> Run:
        """All that lies in the ranges of some files, also before their segments."""
        return cls(
            files[0].partition,
            min(file.segment for file in files),
            max(file.segment for file in files),
            min(file.start_offset for file in files),
            max(file.end_offset for file in files),
            sum(file.records for file in files),
            sum(file.size_bytes for file in files),
            files[0].path,
        )

    def has(self, file: SegmentFile) -> bool:
        """Whether a data file may have rows of it."""
        return (
            file.partition == self.partition
            and self.first_segment <= file.segment <= self.last_segment
            and file.start_offset < self.end
            and file.end_offset > self.start
        )

    def where(self, start: int, end: int) -> str:
        """The rows of a part of it, as SQL."""
        return (
            f"partition = {self.partition} AND segment BETWEEN {self.first_segment} AND "
            f"{self.last_segment} AND offset >= {start} AND offset < {end}"
        )


def runs(files: Iterable[SegmentFile], start: int, end: int) -> Iterator[Run]:
    """The files with records of [start, end); those without a gap between them make one run."""
    together: list[SegmentFile] = []
    for file in sorted(files, key=lambda file: (file.partition, file.start_offset)):
        if not file.records or file.end_offset <= start or file.start_offset >= end:
            continue
        last = together[-1] if together else None
        if last is not None and (
            (last.partition, last.end_offset) != (file.partition, file.start_offset)
            or file.segment > file.start_offset
        ):
            yield Run.of(together, start, end)
            together = []
        together.append(file)
    if together:
        yield Run.of(together, start, end)


def version_with(
    files: Sequence[SegmentFile], active: Callable[[Iterable[str]], tuple[int, set[str]]]
) -> int:
    """A version that has all of the files, which were together in some snapshot.

    Files that were removed since are read as they were, as long as Delta keeps them.

    Args:
        active: the newest version seen, and which of some paths it lacks.
    """
    newest, gone = active(file.path for file in files)
    return max(version_of_path(file.path) for file in files) if gone else newest


def newest_of(
    files: Iterable[SegmentFile], newest_in: Callable[[SegmentFile], OffsetAndTimestamp | None]
) -> OffsetAndTimestamp | None:
    """The best of what each file has; see `SegmentReader.newest`.

    Args:
        files: by largest timestamp, then by offset; no more are looked into than needed.
    """
    best: OffsetAndTimestamp | None = None
    for file in files:
        if file.max_timestamp_ms < 0:
            break
        if best is not None and not beats(best, file.max_timestamp_ms, file.start_offset):
            if file.max_timestamp_ms < best.timestamp_ms:
                break
            continue
        found = newest_in(file)
        if found is not None and (best is None or beats(best, found.timestamp_ms, found.offset)):
            best = found
    return best


def beats(best: OffsetAndTimestamp, timestamp_ms: int, offset: int) -> bool:
    """Whether a record of at most that time and at least that offset would beat the best one."""
    return (timestamp_ms, -offset) > (best.timestamp_ms, -best.offset)


class Stretch(Struct, frozen=True):
    """The rows of a run by Spark.

    Args:
        frame: has the wanted columns and ``offset``.
    """

    frame: DataFrame
    run: Run

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The schema's columns by offset, in pieces of `BATCH_BYTES` or of one record."""
        run = self.run
        rows = max(1, min(FIRST_WINDOW_ROWS, WINDOW_BYTES * run.rows // (run.size_bytes or 1)))
        sparsity = max(1, (run.end - run.start) // max(1, run.rows))
        at = run.start
        while at < run.end:
            until = min(run.end, at + rows * sparsity)
            most = max(1, min(until - at, run.rows))
            found = self._sized(at, until, MAX_BYTES // most)
            if found.num_rows:
                sizes = found[SIZE].to_numpy() + _FIXED_BYTES
                average = int(sizes.sum()) // len(sizes) + 1
                rows = max(1, min(4 * rows, WINDOW_ROWS, WINDOW_BYTES // average))
                yield from self._pieces(found, sizes, MAX_BYTES // most + _FIXED_BYTES, schema)
            at = until

    def _sized(self, start: int, end: int, most_bytes: int) -> pa.Table:
        """The rows with their sizes; rows above `most_bytes` come without their bytes."""
        names = self.frame.columns
        known = [name for name in names if name in _SIZES]
        size = " + ".join(_SIZES[name] for name in known) or "0L"
        rows = self.frame.where(self.run.where(start, end)).selectExpr("*", f"{size} AS `{SIZE}`")
        small = (
            f"IF(`{SIZE}` <= {most_bytes}, {name}, NULL) AS {name}" if name in known else name
            for name in names
        )
        found: pa.Table = rows.selectExpr(*small, f"`{SIZE}`").toArrow()
        return found.sort_by("offset")

    def _pieces(
        self, found: pa.Table, sizes: np.ndarray, most_bytes: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for low, high in cuts(sizes, BATCH_BYTES):
            part = found.slice(low, high - low)
            if bool(np.any(sizes[low:high] > most_bytes)):
                offsets = pc.min_max(part["offset"]).as_py()
                where = self.run.where(offsets["min"], offsets["max"] + 1)
                part = self.frame.where(where).toArrow().sort_by("offset")
            for batch in part.combine_chunks().to_batches():
                yield shaped(batch, schema)
