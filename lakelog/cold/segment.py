"""Files of segments, and the index that finds the one that holds an offset."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..base.arrow_columns import bits, no_rows, numbers, texts
from ..values.topic_partition import OffsetRange

UNKNOWN_TIMESTAMP_MS = 2**63 - 1  # a file without usable statistics may hold any


class SegmentFile(Struct, frozen=True):
    """One Parquet file of one segment, as the table's log describes it."""

    partition: int
    segment: int  # the segment's base offset
    path: str  # relative to the table
    size_bytes: int
    records: int
    start_offset: int  # of the range it covers, a gap before its first record included
    end_offset: int  # exclusive
    min_timestamp_ms: int  # -1: the records have none
    max_timestamp_ms: int  # -1: none; UNKNOWN_TIMESTAMP_MS: look into the file
    modified_ms: int = -1  # wall clock when it was archived; a rewrite keeps its files' latest


class Segment(Struct, frozen=True):
    """All files of one segment: what retention drops and compaction cleans as a whole."""

    partition: int
    base_offset: int
    files: tuple[SegmentFile, ...]  # in offset order; at least one
    size_bytes: int
    records: int
    start_offset: int  # of the range it covers, a gap before its first record included
    end_offset: int  # exclusive
    min_timestamp_ms: int  # -1: at least one file's records have none
    max_timestamp_ms: int  # -1: none; UNKNOWN_TIMESTAMP_MS: look into the files
    modified_ms: int

    @classmethod
    def of(cls, files: Sequence[SegmentFile]) -> Segment:
        """The segment of these files, which are in offset order."""
        return cls(
            files[0].partition,
            files[0].segment,
            tuple(files),
            sum(file.size_bytes for file in files),
            sum(file.records for file in files),
            min(file.start_offset for file in files),
            max(file.end_offset for file in files),
            min(file.min_timestamp_ms for file in files),
            max(file.max_timestamp_ms for file in files),
            max(file.modified_ms for file in files),
        )


def file_name(kind: str, start_offset: int, end_offset: int, unique: str) -> str:
    """``archive-{start}-{end}-{unique}.parquet``: the range survives where statistics cannot."""
    return f"{kind}-{start_offset:020}-{end_offset:020}-{unique}.parquet"


def sources_digest(paths: Iterable[str]) -> str:
    """16 hex digits that begin a clean file's unique part, and tell which files it was made of."""
    return hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()[:16]


#: The name of a file that lakelog wrote.
OURS = (
    r"(?:^|/)(?P<kind>archive|clean|quarantine)-(?P<start>\d{20})-(?P<end>\d{20})"
    r"-(?P<sources>[0-9a-f]{16})[0-9a-f]{16}\.parquet$"
)


def is_ours(path: str) -> bool:
    """Whether lakelog wrote the file, so that its rows are sorted by offset."""
    return re.search(OURS, path) is not None


def archived_start(path: str) -> int | None:
    """The first offset of an archive file's range; None if it is not one."""
    found = re.search(OURS, path)
    return int(found["start"]) if found and found["kind"] == "archive" else None


def file_range(path: str) -> tuple[int, int] | None:
    """The range of offsets that a file's name says, [start, end); None if lakelog wrote it not."""
    found = re.search(OURS, path)
    return (int(found["start"]), int(found["end"])) if found else None


def is_stand_in(path: str) -> bool:
    """Whether the file stands in for a skipped one: empty, and its range is a declared gap."""
    found = re.search(OURS, path)
    return found is not None and found["kind"] == "quarantine"


def clean_sources(path: str) -> tuple[int, int, str] | None:
    """The range of a file made of others, and their digest; None if it is not one."""
    found = re.search(OURS, path)
    if not found or found["kind"] == "archive":
        return None
    return int(found["start"]), int(found["end"]), found["sources"]


def declared_gaps(files: Iterable[SegmentFile]) -> list[OffsetRange]:
    """The gaps that names of lakelog's files declare: ranges that begin before their segment."""
    return [
        OffsetRange(file.start_offset, min(file.segment, file.end_offset))
        for file in files
        if is_ours(file.path) and file.segment > file.start_offset
    ]


#: A row for each file; the first ten are `SegmentFile`'s. ``first`` and ``last`` are offsets of its
#: first and last record (inclusive): inside [start, end), which may begin or end in a gap.
COLUMNS = pa.schema(
    [
        ("partition", pa.int32()),
        ("segment", pa.int64()),
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("records", pa.int64()),
        ("start_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("min_timestamp_ms", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("modified_ms", pa.int64()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("ours", pa.bool_()),
    ]
)

#: Those of whole numbers.
NUMBERS = tuple(one.name for one in COLUMNS if one.name not in ("path", "ours"))


class FileColumns(Struct, frozen=True):
    """Files in any order: their numbers by the names of `COLUMNS`, and the rest."""

    numbers: Mapping[str, np.ndarray]  # int64
    paths: Sequence[str]
    ours: np.ndarray  # booleans

    @classmethod
    def of(cls, files: pa.Table) -> FileColumns:
        """Those of rows of `COLUMNS`."""
        table = files if files.schema == COLUMNS else pa.concat_tables([no_rows(COLUMNS), files])
        ours = table["ours"].combine_chunks().to_numpy(zero_copy_only=False)
        found = {name: _numbers(table[name]) for name in NUMBERS}
        return cls(found, table["path"].to_pylist(), ours)

    def rows(self, chosen: np.ndarray) -> FileColumns:
        """Some of them, by their numbers, in that order."""
        found = {name: column[chosen] for name, column in self.numbers.items()}
        return FileColumns(found, [self.paths[row] for row in chosen.tolist()], self.ours[chosen])


class SegmentIndex:
    """The files of a topic by partition and offset.

    Immutable, of NumPy's columns: about 300 bytes a file, most of it the path. Files of one
    partition are ordered by the start of their ranges. Ranges of files lakelog wrote are disjoint;
    those of a segment that a foreign OPTIMIZE merged may overlap.

    Args:
        files: in any order; a table has the rows of `COLUMNS`.
    """

    def __init__(self, files: pa.Table | FileColumns | None = None) -> None:
        if not isinstance(files, FileColumns):
            files = FileColumns.of(no_rows(COLUMNS) if files is None else files)
        self._columns = _ordered(files)
        self._slices = _slices_by_partition(self.numbers("partition"))

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[SegmentFile]:
        return self._files(0, len(self))

    def numbers(self, name: str) -> np.ndarray:
        """A column of whole numbers, of all rows, in the order of the index."""
        return self._columns.numbers[name]

    @property
    def paths(self) -> Sequence[str]:
        return self._columns.paths

    @property
    def ours(self) -> np.ndarray:
        """Whether lakelog wrote the file, of each row."""
        return self._columns.ours

    @cached_property
    def made(self) -> np.ndarray:
        """Whether lakelog made the file of others, or in the place of one: of each row."""
        return np.array(["/clean-" in path or "/quarantine-" in path for path in self.paths], bool)

    @cached_property
    def columns(self) -> pa.Table:
        """Rows of `COLUMNS`, in the order of the index."""
        columns = [
            texts(self.paths)
            if one.name == "path"
            else bits(self.ours)
            if one.name == "ours"
            else numbers(one.type, self.numbers(one.name))
            for one in COLUMNS
        ]
        return pa.Table.from_arrays(columns, schema=COLUMNS)

    @property
    def partitions(self) -> list[int]:
        """The partitions that have files, ascending."""
        return list(self._slices)

    @property
    def ends(self) -> dict[int, int]:
        """One past the last record of each partition that has files."""
        return {number: self._reach[high - 1] + 1 for number, (_, high) in self._slices.items()}

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return int(self.numbers("size_bytes").sum())

    def of_partition(self, partition: int) -> list[SegmentFile]:
        """The partition's files in offset order."""
        return list(self._files(*self._slices.get(partition, (0, 0))))

    def segments(self, partition: int) -> list[Segment]:
        """The partition's segments in offset order; the last one may still be open."""
        by_base: dict[int, list[SegmentFile]] = {}
        for file in self.of_partition(partition):
            by_base.setdefault(file.segment, []).append(file)
        return [Segment.of(by_base[base]) for base in sorted(by_base)]

    def rows_of_partition(self, partition: int) -> pa.Table:
        """The partition's rows of `COLUMNS`, in offset order, without a copy."""
        low, high = self._slices.get(partition, (0, 0))
        return self.columns.slice(low, high - low)

    def totals(self, partition: int) -> tuple[int, int]:
        """The records of the partition's files, and their bytes."""
        rows = slice(*self._slices.get(partition, (0, 0)))
        records, size_bytes = (self.numbers(name)[rows] for name in ("records", "size_bytes"))
        return int(records.sum()), int(size_bytes.sum())

    def file_at(self, partition: int, offset: int) -> SegmentFile | None:
        """The first file with a record at or above the offset; None if there is none."""
        low, high = self._slices.get(partition, (0, 0))
        row = bisect_right(self._reach, offset - 1, low, high)
        return next(self._files(row, row + 1)) if row < high else None

    def files_between(self, partition: int, start: int, end: int) -> list[SegmentFile]:
        """The files that may hold records of [start, end), in offset order."""
        rows = self.row_range(partition, start, end)
        return [file for file in self._files(rows.start, rows.stop) if file.end_offset > start]

    def row_range(self, partition: int, start: int, end: int) -> slice:
        """Which of the rows may hold records of [start, end); where files overlap, some do not."""
        low, high = self._slices.get(partition, (0, 0))
        first = bisect_right(self._reach, start - 1, low, high)
        return slice(first, bisect_right(self._starts, end - 1, first, high))

    @staticmethod
    def file(rows: pa.Table, row: int) -> SegmentFile:
        """The file of one of the rows of `COLUMNS`."""
        return SegmentFile(*(rows.column(index)[row].as_py() for index in range(10)))

    def within(self, partition: int, start: int, end: int) -> list[str]:
        """The paths of the files that lie in [start, end) as a whole.

        A foreign file lies where its records lie, since the rest of its range depends on its
        neighbours. So the answer for a range changes only if files come or go.
        """
        low, high = self._slices.get(partition, (0, 0))
        beyond = bisect_left(self._starts, end, low, high)
        first = min(
            bisect_left(self._starts, start, low, beyond),
            bisect_left(self._reach, start, low, beyond),
        )
        rows = slice(first, beyond)
        lowest = np.where(self.ours, self.numbers("start_offset"), self.numbers("first"))[rows]
        highest = np.where(self.ours, self.numbers("end_offset"), self.numbers("last") + 1)[rows]
        inside = np.flatnonzero((lowest >= start) & (highest <= end)) + first
        return [self.paths[row] for row in inside.tolist()]

    def first_with_timestamp(
        self, partition: int, timestamp_ms: int, from_offset: int
    ) -> Iterator[SegmentFile]:
        """The files that may hold a record at or above both, in offset order, lazily."""
        rows, newest = self._from(partition, from_offset)
        return self._reaching(rows[newest >= timestamp_ms], from_offset)

    def newest_first(self, partition: int, from_offset: int) -> Iterator[SegmentFile]:
        """The files that reach above the offset, by largest timestamp, then by offset; lazily."""
        rows, newest = self._from(partition, from_offset)
        return self._reaching(rows[np.argsort(-newest, kind="stable")], from_offset)

    def stand_ins(self, partition: int) -> list[OffsetRange]:
        """The ranges of files that were skipped, in offset order."""
        return self._stand_ins.get(partition, [])

    @cached_property
    def _stand_ins(self) -> dict[int, list[OffsetRange]]:
        found: dict[int, list[OffsetRange]] = {}
        for row in np.flatnonzero(self.made).tolist():
            if is_stand_in(self.paths[row]):
                (file,) = self._files(row, row + 1)
                stretch = OffsetRange(file.start_offset, file.end_offset)
                found.setdefault(file.partition, []).append(stretch)
        return found

    def without(self, paths: Iterable[str]) -> SegmentIndex:
        """The index without these paths."""
        gone = set(paths)
        kept = [row for row, path in enumerate(self.paths) if path not in gone]
        return SegmentIndex(self._columns.rows(np.array(kept, np.int64)))

    def only(self, partition: int) -> SegmentIndex:
        """The index of one partition alone."""
        return SegmentIndex(self._columns.rows(np.arange(*self._slices.get(partition, (0, 0)))))

    def missing(self, paths: Iterable[str]) -> set[str]:
        """The paths that none of these files has."""
        return set(paths).difference(self.paths)

    @cached_property
    def _starts(self) -> memoryview:
        return self.numbers("start_offset").data

    @cached_property
    def _reach(self) -> memoryview:
        # Where files overlap, ends do not grow with starts; their running maximum does, and the
        # first file in which it exceeds an offset is the first that holds something above it.
        return self.reach("last").data

    def reach(self, name: str) -> np.ndarray:
        """The largest number of a column up to each row, among those of its partition."""
        return _running_maximum(self.numbers(name), self._slices.values())

    def _from(self, partition: int, from_offset: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that may reach above an offset, and their largest timestamps."""
        low, high = self._slices.get(partition, (0, 0))
        first = bisect_right(self._reach, from_offset - 1, low, high)
        return np.arange(first, high), self.numbers("max_timestamp_ms")[first:high]

    def _reaching(self, rows: np.ndarray, from_offset: int) -> Iterator[SegmentFile]:
        files = (next(self._files(row, row + 1)) for row in rows.tolist())
        return (file for file in files if file.end_offset > from_offset)

    def _files(self, low: int, high: int) -> Iterator[SegmentFile]:
        """Those of some rows."""
        columns: Iterable[Iterable[Any]] = (
            self.paths[low:high] if name == "path" else self.numbers(name)[low:high].tolist()
            for name in COLUMNS.names[:10]
        )
        return (SegmentFile(*values) for values in zip(*columns, strict=True))


def _ordered(files: FileColumns) -> FileColumns:
    """By partition, start, first record and path; foreign files have their ranges stretched down
    over a gap before their segment.
    """
    if not files.ours.all():  # before that, their ranges are as their records tell
        starts = np.where(files.ours, files.numbers["start_offset"], files.numbers["first"])
        files = replace(files, numbers={**files.numbers, "start_offset": starts})
    if not _is_ordered(files.numbers):
        keys = [files.numbers[name] for name in ("first", "start_offset", "partition")]
        order = np.lexsort(keys)
        if np.all([np.diff(one[order]) == 0 for one in keys], axis=0).any():
            paths = files.paths
            by_path = np.array(sorted(range(len(paths)), key=paths.__getitem__), np.int64)
            order = by_path[np.lexsort([one[by_path] for one in keys])]
        files = files.rows(order)
    return files if files.ours.all() else _with_gaps_before(files)


def _is_ordered(numbers: Mapping[str, np.ndarray]) -> bool:
    """Whether the rows are in order for certain, as an archiver writes them."""
    partitions, starts = numbers["partition"], numbers["start_offset"]
    before, after = partitions[:-1], partitions[1:]
    return bool(((after > before) | ((after == before) & (starts[1:] > starts[:-1]))).all())


def _slices_by_partition(partitions: np.ndarray) -> dict[int, tuple[int, int]]:
    if not len(partitions):
        return {}
    begins = [0, *((partitions[1:] != partitions[:-1]).nonzero()[0] + 1).tolist()]
    ends = [*begins[1:], len(partitions)]
    return dict(zip(partitions[begins].tolist(), zip(begins, ends, strict=True), strict=True))


def _with_gaps_before(files: FileColumns) -> FileColumns:
    partitions, segments = files.numbers["partition"], files.numbers["segment"]
    slices = _slices_by_partition(partitions)
    before = np.roll(_running_maximum(files.numbers["end_offset"], slices.values()), 1)
    opens = np.ones(len(segments), bool)  # whether it is the first of its segment
    opens[1:] = (segments[1:] != segments[:-1]) | (partitions[1:] != partitions[:-1])
    before[[low for low, _ in slices.values()]] = 0
    starts = files.numbers["start_offset"]
    stretched = np.where(~files.ours & opens, np.minimum(starts, before), starts)
    return replace(files, numbers={**files.numbers, "start_offset": stretched})


def _running_maximum(values: np.ndarray, slices: Iterable[tuple[int, int]]) -> np.ndarray:
    """Of each slice by itself; they follow each other."""
    slices = list(slices)
    falls = values[1:] < values[:-1]
    falls[[low - 1 for low, _ in slices[1:]]] = False
    if not falls.any():  # as an archiver writes them
        return values
    return np.concatenate([np.maximum.accumulate(values[low:high]) for low, high in slices])


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    column = column.fill_null(-1) if column.null_count else column
    return np.asarray(column.to_numpy()).astype(np.int64, copy=False)


@cache
def no_files() -> SegmentIndex:
    """Of a table without any."""
    return SegmentIndex()
