"""Files of segments, and the index that finds the one that holds an offset."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..base.arrow_columns import no_rows, texts
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


#: The name of a file that lakelog made of others, or put in the place of one.
MADE = "/(?:clean|quarantine)-"
_made = re.compile(MADE.encode()).search

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


class OwnFiles(Struct, frozen=True):
    """Rows of `COLUMNS` of files that lakelog wrote, by partition, start and path, without Arrow:
    of few files, its calls by the column would take most of the time.
    """

    numbers: Mapping[str, np.ndarray]  # the columns of integers
    paths: Sequence[str]
    columns: Callable[[], pa.Table]


class SegmentIndex:
    """The files of a topic by partition and offset.

    Immutable, made of Arrow columns: about 220 bytes a file, most of it the path. Files of one
    partition are ordered by the start of their ranges. Ranges of files lakelog wrote are disjoint;
    those of a segment that a foreign OPTIMIZE merged may overlap.

    Args:
        files: rows of `COLUMNS`, in any order.
    """

    def __init__(self, files: pa.Table | OwnFiles | None = None) -> None:
        self._numbers: dict[str, np.ndarray] = {}
        self._own = files if isinstance(files, OwnFiles) else None
        self._columns: pa.Table | None = None  # nobody has asked for them yet
        if isinstance(files, OwnFiles):
            self._numbers.update(files.numbers)
            self._slices = _slices_by_partition(files.numbers["partition"])
            return
        table = _with_own_starts(no_rows(COLUMNS) if files is None else _in_one_chunk(files))
        if not _is_ordered(table):
            keys = ("partition", "start_offset", "first", "path")
            order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys])
            table = _taken(table, order)
        self._slices = _slices_by_partition(_numbers(table["partition"]))
        self._columns = _with_gaps_before(table, self._slices)

    def __len__(self) -> int:
        return len(self.numbers("partition"))

    def __iter__(self) -> Iterator[SegmentFile]:
        return (self._file(row) for row in range(len(self)))

    @property
    def columns(self) -> pa.Table:
        """Rows of `COLUMNS`, in the order of the index."""
        if self._columns is None:
            assert self._own is not None
            self._columns = self._own.columns()
        return self._columns

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

    @property
    def size_bytes_in_memory(self) -> int:
        return int(self.columns.nbytes) + 8 * len(self)

    def of_partition(self, partition: int) -> list[SegmentFile]:
        """The partition's files in offset order."""
        low, high = self._slices.get(partition, (0, 0))
        return [self._file(row) for row in range(low, high)]

    def segments(self, partition: int) -> list[Segment]:
        """The partition's segments in offset order; the last one may still be open."""
        columns = self.rows_of_partition(partition).to_pydict()
        rows = zip(*(columns[name] for name in COLUMNS.names[:10]), strict=True)
        by_base: dict[int, list[SegmentFile]] = {}
        for row in rows:
            by_base.setdefault(row[1], []).append(SegmentFile(*row))
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
        return self._file(row) if row < high else None

    def files_between(self, partition: int, start: int, end: int) -> list[SegmentFile]:
        """The files that may hold records of [start, end), in offset order."""
        low, high = self._slices.get(partition, (0, 0))
        first = bisect_right(self._reach, start - 1, low, high)
        beyond = bisect_right(self._starts, end - 1, first, high)
        files = (self._file(row) for row in range(first, beyond))
        return [file for file in files if file.end_offset > start]

    def rows_between(self, partition: int, start: int, end: int) -> pa.Table:
        """As `files_between`, as rows of `COLUMNS`."""
        found = self.row_range(partition, start, end)
        rows = self.columns.slice(found.start, found.stop - found.start)
        return rows.filter(pc.greater(rows["end_offset"], start))

    def row_range(self, partition: int, start: int, end: int) -> slice:
        """Which of the rows may hold records of [start, end); where files overlap, some do not."""
        low, high = self._slices.get(partition, (0, 0))
        first = bisect_right(self._reach, start - 1, low, high)
        return slice(first, bisect_right(self._starts, end - 1, first, high))

    def numbers(self, name: str) -> np.ndarray:
        """A column of integers, of all rows, without a copy."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = _numbers(self.columns[name])
        return found

    @cached_property
    def made(self) -> np.ndarray:
        """Whether lakelog made the file of others, or in the place of one: of each row."""
        if self._own is not None:
            text = "\n".join(self._own.paths).encode()
        else:
            text = _one_chunk(self.columns["path"]).buffers()[2]
        if text is None or _made(memoryview(text)) is None:  # mostly none is
            return np.zeros(len(self), bool)
        return np.asarray(pc.match_substring_regex(_one_chunk(self.columns["path"]), MADE))

    @cached_property
    def are_ours(self) -> bool:
        """Whether lakelog wrote all of the files."""
        return self._own is not None or _are_ours(self.columns)

    @cached_property
    def _starts(self) -> memoryview:
        return self.numbers("start_offset").data

    @cached_property
    def _reach(self) -> memoryview:
        # Where files overlap, ends do not grow with starts; their running maximum does, and the
        # first file in which it exceeds an offset is the first that holds something above it.
        return _running_maximum(self.numbers("last"), self._slices.values()).data

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
        rows = self.columns.slice(first, beyond - first)
        lowest = pc.if_else(rows["ours"], rows["start_offset"], rows["first"])
        highest = pc.if_else(rows["ours"], rows["end_offset"], pc.add(rows["last"], 1))
        inside = pc.and_(pc.greater_equal(lowest, start), pc.less_equal(highest, end))
        return list(rows["path"].filter(inside).to_pylist())

    def first_with_timestamp(
        self, partition: int, timestamp_ms: int, from_offset: int
    ) -> Iterator[SegmentFile]:
        """The files that may hold a record at or above both, in offset order, lazily."""
        low, high = self._slices.get(partition, (0, 0))
        first = bisect_right(self._reach, from_offset - 1, low, high)
        newest = _one_chunk(self.columns["max_timestamp_ms"]).slice(first, high - first)
        hits = pc.indices_nonzero(pc.greater_equal(newest, timestamp_ms))
        files = (self._file(first + hit.as_py()) for hit in hits)
        return (file for file in files if file.end_offset > from_offset)

    def newest_first(self, partition: int, from_offset: int) -> Iterator[SegmentFile]:
        """The files that reach above the offset, by largest timestamp, then by offset; lazily."""
        low, high = self._slices.get(partition, (0, 0))
        first = bisect_right(self._reach, from_offset - 1, low, high)
        order = pc.sort_indices(
            self.columns.slice(first, high - first),
            sort_keys=[("max_timestamp_ms", "descending"), ("start_offset", "ascending")],
        )
        files = (self._file(first + row.as_py()) for row in order)
        return (file for file in files if file.end_offset > from_offset)

    def stand_ins(self, partition: int) -> list[OffsetRange]:
        """The ranges of files that were skipped, in offset order."""
        return self._stand_ins.get(partition, [])

    @cached_property
    def _stand_ins(self) -> dict[int, list[OffsetRange]]:
        found: dict[int, list[OffsetRange]] = {}
        if not self.made.any():
            return found
        rows = self.columns.select(["partition", "path", "start_offset", "end_offset"])
        rows = rows.filter(pa.array(self.made))
        for row in rows.to_pylist():
            if is_stand_in(row["path"]):
                stretch = OffsetRange(row["start_offset"], row["end_offset"])
                found.setdefault(row["partition"], []).append(stretch)
        return found

    def without(self, paths: Iterable[str]) -> SegmentIndex:
        """The index without these paths."""
        gone = pc.is_in(self.columns["path"], value_set=texts(sorted(paths)))
        return SegmentIndex(self.columns.filter(pc.invert(gone)))

    def missing(self, paths: Iterable[str]) -> set[str]:
        """The paths that none of these files has."""
        paths = set(paths)
        if self._own is not None:
            return paths.difference(self._own.paths)
        if len(self.columns) <= len(paths):  # where Arrow's calls would take most of the time
            return paths.difference(self.columns["path"].to_pylist())
        here = pc.is_in(self.columns["path"], value_set=texts(sorted(paths)))
        return paths - set(self.columns["path"].filter(here).to_pylist())

    def _file(self, row: int) -> SegmentFile:
        return self.file(self.columns, row)


def _taken(table: pa.Table, order: pa.Array) -> pa.Table:
    """The rows in an order, in one chunk: by the column, so that little is held twice."""
    columns = [pc.take(_one_chunk(column), order) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _in_one_chunk(table: pa.Table) -> pa.Table:
    if table.schema != COLUMNS:
        table = pa.concat_tables([no_rows(COLUMNS), table])
    return table if all(c.num_chunks == 1 for c in table.columns) else table.combine_chunks()


def _are_ours(table: pa.Table) -> bool:
    return bool(_one_chunk(table["ours"]).true_count == table.num_rows)


def _with_own_starts(table: pa.Table) -> pa.Table:
    """The rows with foreign files' ranges as their records tell: before they are stretched."""
    if _are_ours(table):
        return table
    starts = pc.if_else(table["ours"], table["start_offset"], table["first"])
    return table.set_column(COLUMNS.names.index("start_offset"), "start_offset", starts)


def _is_ordered(table: pa.Table) -> bool:
    """Whether the rows are in order for certain, as an archiver writes them."""
    partitions, starts = _numbers(table["partition"]), _numbers(table["start_offset"])
    before, after = partitions[:-1], partitions[1:]
    return bool(((after > before) | ((after == before) & (starts[1:] > starts[:-1]))).all())


def _slices_by_partition(partitions: np.ndarray) -> dict[int, tuple[int, int]]:
    if not len(partitions):
        return {}
    begins = [0, *((partitions[1:] != partitions[:-1]).nonzero()[0] + 1).tolist()]
    ends = [*begins[1:], len(partitions)]
    return dict(zip(partitions[begins].tolist(), zip(begins, ends, strict=True), strict=True))


def _with_gaps_before(table: pa.Table, slices: Mapping[int, tuple[int, int]]) -> pa.Table:
    """The rows, with foreign files' ranges stretched down over a gap before their segment."""
    if _are_ours(table):
        return table
    reach = pa.array(_running_maximum(_numbers(table["end_offset"]), slices.values()))
    bottom = pa.array([0], pa.int64())
    before = []  # where the files before a file end; 0 for a partition's first
    opens = []  # whether it is the first of its segment
    for low, high in slices.values():
        before += [bottom, reach.slice(low, high - low - 1)]
        segments = _one_chunk(table["segment"]).slice(low, high - low)
        opens += [pa.array([True]), pc.not_equal(segments[1:], segments[:-1])]
    foreign = pc.and_(pc.invert(_one_chunk(table["ours"])), pa.concat_arrays(opens))
    starts = _one_chunk(table["start_offset"])
    stretched = pc.if_else(foreign, pc.min_element_wise(starts, pa.concat_arrays(before)), starts)
    return table.set_column(COLUMNS.names.index("start_offset"), "start_offset", stretched)


def _running_maximum(values: np.ndarray, slices: Iterable[tuple[int, int]]) -> np.ndarray:
    """Of each slice by itself; they follow each other."""
    slices = list(slices)
    falls = values[1:] < values[:-1]
    falls[[low - 1 for low, _ in slices[1:]]] = False
    if not falls.any():  # as an archiver writes them
        return values
    return np.concatenate([np.maximum.accumulate(values[low:high]) for low, high in slices])


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A column of integers without a copy; `numpy.asarray` takes several times as long."""
    array = column if isinstance(column, pa.Array) else _one_chunk(column)
    kind = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.zeros(0, kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)


@cache
def no_files() -> SegmentIndex:
    """Of a table without any: making one takes a millisecond, and each table begins with two."""
    return SegmentIndex()
