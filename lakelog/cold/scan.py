"""What a look at the rows of a file, or of a slice, finds: extent, spacing, tombstones. Values.

| footer key                      | value                                                     |
|---------------------------------|-----------------------------------------------------------|
| lakelog.tombstones              | records with a null value and no delete horizon yet       |
| lakelog.min_delete_horizon_ms   | the earliest delete horizon; absent: none has one         |

So compaction need not read a file's values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from ..base import compute as pc
from ..errors import LakelogError
from ..values.offset_ranges import Ranges, doubled_in, holes_in
from ..values.topic_partition import OffsetRange
from .segment import SegmentFile


class Extent(Struct, frozen=True):
    """What some rows span; all None if there are no rows, or it is not known."""

    first_offset: int | None = None  # the smallest
    last_offset: int | None = None  # the largest, inclusive
    min_timestamp_ms: int | None = None  # -1 counts, as statistics have it
    max_timestamp_ms: int | None = None

    @classmethod
    def of(cls, offsets: np.ndarray, times_us: np.ndarray) -> Extent:
        """Of rows in any order; at least one."""
        return cls(
            int(offsets.min()),
            int(offsets.max()),
            int(times_us.min()) // 1000,
            int(times_us.max()) // 1000,
        )

    def __or__(self, other: Extent) -> Extent:
        return Extent(
            _chosen(min, self.first_offset, other.first_offset),
            _chosen(max, self.last_offset, other.last_offset),
            _chosen(min, self.min_timestamp_ms, other.min_timestamp_ms),
            _chosen(max, self.max_timestamp_ms, other.max_timestamp_ms),
        )


def _chosen(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


TOMBSTONE_COLUMNS = ["value", "delete_horizon"]

_WITHOUT_HORIZON = b"lakelog.tombstones"
_MIN_HORIZON = b"lakelog.min_delete_horizon_ms"


class Tombstones(Struct, frozen=True):
    """The tombstones of a file or of some rows."""

    without_horizon: int = 0
    min_horizon_ms: int | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Tombstones:
        """Those among rows with at least `TOMBSTONE_COLUMNS`."""
        values, horizons = (batch.column(name) for name in TOMBSTONE_COLUMNS)
        if not values.null_count:
            return cls()
        fresh = values.null_count
        earliest_us = None
        if horizons.null_count < len(horizons):
            fresh = pc.sum(pc.and_(pc.is_null(values), pc.is_null(horizons))).as_py()
            earliest_us = pc.min(horizons.cast(pa.timestamp("us", "UTC")).cast(pa.int64())).as_py()
        return cls(fresh, None if earliest_us is None else earliest_us // 1000)

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes]) -> Tombstones | None:
        """From a Parquet footer's key-value metadata; None if it says nothing, or no numbers."""
        numbers = [metadata.get(_WITHOUT_HORIZON), metadata.get(_MIN_HORIZON, b"0")]
        if not all(text is not None and re.fullmatch(rb"-?\d{1,18}", text) for text in numbers):
            return None
        horizon = metadata.get(_MIN_HORIZON)
        return cls(int(metadata[_WITHOUT_HORIZON]), None if horizon is None else int(horizon))

    def to_metadata(self) -> dict[str, str]:
        """For a Parquet footer."""
        metadata = {_WITHOUT_HORIZON.decode(): str(self.without_horizon)}
        if self.min_horizon_ms is not None:
            metadata[_MIN_HORIZON.decode()] = str(self.min_horizon_ms)
        return metadata

    def __add__(self, other: Tombstones) -> Tombstones:
        horizons = [h for h in (self.min_horizon_ms, other.min_horizon_ms) if h is not None]
        return Tombstones(self.without_horizon + other.without_horizon, min(horizons, default=None))


class Spacing(Struct, frozen=True):
    """How the offsets of some rows follow each other."""

    holes: Ranges = field(default_factory=Ranges)  # between them, unexplained
    doubled: Ranges = field(default_factory=Ranges)  # those that are there more than once

    @classmethod
    def of(cls, offsets: np.ndarray, explained: Sequence[OffsetRange]) -> Spacing:
        """Of offsets in any order."""
        offsets = np.sort(offsets)
        return cls(Ranges.of(holes_in(offsets, explained)), Ranges.of(doubled_in(offsets)))


class OrderedRows:
    """Takes rows that come by offset, some at a time, and keeps their measures alone.

    Args:
        explained: sorted, disjoint ranges whose missing offsets are no holes.
    """

    def __init__(self, explained: Sequence[OffsetRange] = ()) -> None:
        self.records = 0
        self.extent = Extent()
        self.spacing = Spacing()
        self._explained = explained
        self._last: int | None = None
        self._last_doubled: int | None = None

    def is_continued_by(self, offsets: np.ndarray) -> bool:
        """Whether these rows go on where the others ended, strictly ascending."""
        follows = self._last is None or not len(offsets) or self._last < offsets[0]
        return bool(follows and np.all(offsets[1:] > offsets[:-1]))

    def add(self, offsets: np.ndarray, times_us: np.ndarray) -> None:
        """Take the next rows; at least one."""
        run = offsets if self._last is None else np.concatenate([[self._last], offsets])
        doubled = doubled_in(run)
        if doubled and doubled[0].start == self._last_doubled:  # counted with the rows before
            doubled[0] = OffsetRange(doubled[0].start + 1, doubled[0].end)
        if doubled:
            self._last_doubled = doubled[-1].end - 1
        self.spacing = Spacing(
            self.spacing.holes.plus(holes_in(run, self._explained)),
            self.spacing.doubled.plus(one for one in doubled if one.start < one.end),
        )
        self.records += len(offsets)
        self.extent |= Extent.of(offsets, times_us)
        self._last = int(run[-1])


class RowGroupScan(Struct, frozen=True):
    """One row group."""

    index: int
    rows: int  # as the footer says
    size_bytes: int  # uncompressed
    compressed_bytes: int
    compression: str
    said: Extent  # the footer's statistics
    found_rows: int
    found: Extent


class ScanTask(Struct, frozen=True):
    """A file to scan, or a slice of a table by name.

    Args:
        file: the file.
        explained: sorted, disjoint ranges whose missing offsets are no holes.
        whole: read every column, so that each page's CRC is checked; else offset and timestamp.
    """

    file: SegmentFile
    explained: tuple[OffsetRange, ...] = ()
    whole: bool = True

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes


class FileScan(Struct, frozen=True):
    """What a scan found; with a `flaw`, only what was read before it.

    A flaw is damage (`CorruptRecordError`, `MissingFileError`), or says why the file was not read.
    """

    file: SegmentFile
    size_bytes: int = -1
    row_groups: tuple[RowGroupScan, ...] = ()  # none of a slice, or where rows alone are seen
    records: int = 0
    found: Extent = field(default_factory=Extent)
    said_tombstones: Tombstones | None = None
    found_tombstones: Tombstones | None = None  # None: the values were not read
    ascending: bool = True  # strictly, by offset, throughout the file
    spacing: Spacing = field(default_factory=Spacing)
    flaw: LakelogError | None = None
