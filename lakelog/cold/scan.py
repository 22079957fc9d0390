"""What a look at all rows of a file, or of a slice, finds. Values."""

from __future__ import annotations

from msgspec import Struct, field

from ..errors import LakelogError
from ..values.topic_partition import OffsetRange
from .extent import Extent
from .ordered_rows import Spacing
from .segment import SegmentFile
from .tombstones import Tombstones


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
    said: Extent | None = None  # what the table's log says of a data file that is no snapshot's
