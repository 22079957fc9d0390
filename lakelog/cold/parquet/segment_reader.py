"""Reading the files of segments: by offset or by timestamp, only the row groups that matter.

Files that lakelog wrote are sorted by offset. Of other files only the statistics are trusted: a
foreign OPTIMIZE merges files of a segment in any order of rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...base.back_off import Tries, patiently
from ...errors import ColdTierError
from ...values.config import KIB, MIB
from ...values.offset_ranges import merged
from ...values.record import RECORDS, OffsetAndTimestamp
from ...values.topic_partition import OffsetRange
from ..answers import RowGroupTimes
from ..record_batches import cut_rows, items_of, projection, row_bytes, shaped
from ..scan import TOMBSTONE_COLUMNS, Tombstones
from ..schema import FILE_SCHEMA
from ..segment import SegmentFile, is_ours
from ..store.storage import Storage
from .bloom_filters import MOST_FILTER_BYTES, FilterPlace, hashes, may_hold
from .footers import Footer, FooterCache, RowGroup, read_footer

T = TypeVar("T")

#: How much is decoded at a time, by the average row of a row group.
BATCH_BYTES = 16 * MIB
BATCH_ROWS = 64 * 1024

#: Batches where only a few records are wanted: the pages behind them stay undecoded.
SEEK_BATCH_ROWS = 4 * 1024

#: Row groups that take more than this in the file are read page by page.
LARGE_GROUP_BYTES = 64 * MIB
PAGE_BUFFER_BYTES = MIB

#: Row groups up to here are decoded by the thread that asks: handing columns on to others and
#: waiting for them takes longer.
SMALL_GROUP_BYTES = 256 * KIB


class _Part(Struct, frozen=True):
    """A row group of an open file."""

    file: SegmentFile
    source: Any  # pa.NativeFile
    parquet: Any  # pq.ParquetFile
    group: RowGroup
    ordered: bool  # by offset
    footer: Footer
    first_row: int = 0  # of the row group, among the file's
    deleted: np.ndarray | None = None  # sorted numbers of the file's rows that are no more


class OpenFile(Struct, frozen=True):
    """A file while it is open."""

    footer: Footer
    size_bytes: int
    batches: Callable[[RowGroup, list[str]], Iterator[pa.RecordBatch]]  # of columns of a row group


class SegmentReader:
    """Reads files of one table. Thread-safe; keeps footers, no open files.

    Args:
        stored_as: the names that files store columns under, where these differ: by column, and
            by ``headers.key`` and ``headers.value``.
    """

    def __init__(
        self, storage: Storage, table_path: str, stored_as: Mapping[str, str] | None = None
    ) -> None:
        self._storage = storage
        self._table_path = table_path
        self._footers = FooterCache()
        self._stored_as = dict(stored_as or {})
        self._names = {stored: name.split(".")[-1] for name, stored in self._stored_as.items()}

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`. `columns` may also name ``delete_horizon``."""
        return self._read(files, start, end, projection(columns))

    def value_columns(
        self, files: Sequence[SegmentFile], start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch] | None:
        """See `ColdTable.value_columns`."""
        names = {self._stored_as.get(name, name) for name in schema.names}
        for file in files:
            with ExitStack() as opened:
                _, _, footer = self._open(opened, file)
            if not names <= {column.split(".")[0] for column in footer.columns}:
                return None
        return self._read(files, start, end, schema)

    def _read(
        self, files: Iterable[SegmentFile], start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        wanted = (
            file
            for file in files
            if file.records and file.end_offset > start and file.start_offset < end
        )
        for together in _overlapping(
            sorted(wanted, key=lambda file: file.start_offset),
            lambda file: (file.start_offset, file.end_offset),
        ):
            with ExitStack() as opened:
                parts = [
                    part
                    for file in together
                    for part in self._parts(opened, file)
                    if part.group.first < end and part.group.last >= start
                ]
                parts.sort(key=lambda part: (part.group.first, part.group.last))
                for run in _overlapping(
                    parts, lambda part: (part.group.first, part.group.last + 1)
                ):
                    if len(run) == 1 and run[0].ordered:
                        yield from self._in_order(run[0], start, end, schema)
                    else:
                        yield from self._sorted(run, start, end, schema)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        wanted, among = hashes(keys), pa.array(sorted(keys), FILE_SCHEMA.field("key").type)
        found: list[OffsetRange] = []
        for file in files:
            if not file.records or file.end_offset <= start or file.start_offset >= end:
                continue
            with ExitStack() as opened:
                parts = [
                    part
                    for part in self._parts(opened, file)
                    if part.group.first < end and part.group.last >= start
                ]
                for part in self._unless_filtered(parts, wanted):
                    keys_of = self._batches(part, projection(["key"]))
                    if any(pc.any(pc.is_in(rows.column("key"), among)).as_py() for rows in keys_of):
                        first, last = part.group.first, part.group.last
                        found.append(OffsetRange(max(start, first), min(end, last + 1)))
        return merged(found)

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        found: list[RowGroupTimes] = []
        for file in files:
            if not file.records or file.end_offset <= start or file.start_offset >= end:
                continue
            with ExitStack() as opened:
                parts = self._parts(opened, file)
            groups = [one for one in map(_times_of, parts) if one is not None]
            if len(groups) == len(parts):
                found += [
                    one for one in groups if one.start_offset < end and one.end_offset > start
                ]
        return found

    def _unless_filtered(self, parts: list[_Part], wanted: np.ndarray) -> Iterator[_Part]:
        """Those of a file's row groups that may hold a key, in any order.

        Args:
            wanted: `hashes` of the keys.
        """
        together: list[tuple[_Part, FilterPlace]] = []
        for part in parts:
            place = part.group.key_filter
            if place is None:
                yield part
                continue
            # All filters lie together: one request brings those of many row groups.
            if together and place.end - together[0][1].start > MOST_FILTER_BYTES:
                yield from self._asked(together, wanted)
                together = []
            together.append((part, place))
        if together:
            yield from self._asked(together, wanted)

    def _asked(self, parts: list[tuple[_Part, FilterPlace]], wanted: np.ndarray) -> Iterator[_Part]:
        (first, place), (_, last) = parts[0], parts[-1]
        start, path = place.start, f"{self._table_path}/{first.file.path}"

        def reading() -> bytes:
            with self._storage.naming(path):
                return bytes(first.source.read_at(last.end - start, start))

        data = patiently(f"reading {path}", reading)
        for part, place in parts:
            if may_hold(data[place.start - start : place.end - start], place, wanted):
                yield part

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """The earliest offset at or above `from_offset` with a timestamp at or after that.

        Args:
            files: in offset order; read no further than needed.
        """
        target_us = timestamp_ms * 1000
        best: OffsetAndTimestamp | None = None
        for file in files:
            if best is not None and file.start_offset >= best.offset:
                break
            with ExitStack() as opened:
                parts = self._parts(opened, file)
                for part in sorted(parts, key=lambda part: part.group.first):
                    if best is not None and part.group.first >= best.offset:
                        break
                    if part.group.last >= from_offset and part.group.max_time_us >= target_us:
                        best = _lower(best, self._first_hit(part, target_us, from_offset))
        return best

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:
        """The first record at or above `from_offset` that carries the largest timestamp.

        None if no record there carries one.

        Args:
            files: by largest timestamp, then by offset; read no further than needed.
        """
        best: OffsetAndTimestamp | None = None
        for file in files:
            if not _may_beat(best, file.max_timestamp_ms, file.start_offset):
                if best is None or file.max_timestamp_ms < best.timestamp_ms:
                    break
                continue
            with ExitStack() as opened:
                parts = self._parts(opened, file)
                for part in sorted(parts, key=lambda p: (-p.group.max_time_us, p.group.first)):
                    group = part.group
                    if group.last >= from_offset and _may_beat(
                        best, group.max_time_us // 1000, group.first
                    ):
                        best = _newer(best, self._newest_in(part, from_offset))
        return best

    def times(self, file: SegmentFile) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Offsets and timestamps in µs of the file's rows, in its order."""
        with ExitStack() as opened:
            for part in self._parts(opened, file):
                yield from self._times(part)

    @contextmanager
    def opened(self, file: SegmentFile) -> Iterator[OpenFile]:
        """The file as it is: its footer is read anew, its rows come unsorted, less deleted ones.

        Raises:
            MissingFileError, CorruptRecordError: it is damaged.
            ColdTierError: the store does not hand it out; see `Storage.naming`.
        """
        with ExitStack() as stack:
            source, parquet, footer = self._open(stack, file, anew=True)
            columns = {column.split(".")[0] for column in footer.columns}
            with self._storage.naming(f"{self._table_path}/{file.path}"):
                for missing in sorted(set(FILE_SCHEMA.names) - columns):
                    raise pa.ArrowInvalid(f"it has no column {missing}")
            deleted = self.deleted(file)

            def batches(group: RowGroup, columns: list[str]) -> Iterator[pa.RecordBatch]:
                first_row = sum(one.rows for one in footer.row_groups[: group.index])
                part = _Part(file, source, parquet, group, False, footer, first_row, deleted)
                return self._batches(part, projection(columns))

            yield OpenFile(footer, source.size(), batches)

    def tombstones(self, file: SegmentFile) -> Tombstones:
        """The file's tombstones, as its footer says; of a foreign file, as its columns say."""
        with ExitStack() as opened:
            _, _, footer = self._open(opened, file)
            if footer.tombstones is not None:
                return footer.tombstones
            return sum(
                (
                    Tombstones.of(batch)
                    for part in self._parts(opened, file)
                    for batch in self._batches(part, projection(TOMBSTONE_COLUMNS))
                ),
                Tombstones(),
            )

    # -- files and row groups --------------------------------------------------------------------

    def _parts(self, opened: ExitStack, file: SegmentFile) -> list[_Part]:
        source, parquet, footer = self._open(opened, file)
        ordered, deleted = is_ours(file.path), self.deleted(file)
        parts, first_row = [], 0
        for group in footer.row_groups:
            is_ordered = ordered or group.index in footer.ascending
            part = _Part(file, source, parquet, group, is_ordered, footer, first_row, deleted)
            parts.append(part)
            first_row += group.rows
        return parts

    def deleted(self, file: SegmentFile) -> np.ndarray | None:
        """The numbers of a file's rows that were deleted since it was written, in their order."""
        return None

    def _open(
        self, opened: ExitStack, file: SegmentFile, *, anew: bool = False
    ) -> tuple[Any, Any, Footer]:
        """The file, its reader, and its footer.

        Args:
            anew: the footer is read in any case, and the file may have another size than the log
                says.
        """
        path = f"{self._table_path}/{file.path}"

        def opening() -> tuple[Any, Any, Footer]:
            footer = None if anew else self._footers.get(path)
            with self._storage.naming(path):
                source = opened.enter_context(
                    self._storage.filesystem().open_input_file(self._storage.arrow_path(path))
                )
                if footer is None:
                    size_bytes = None if anew else file.size_bytes
                    footer = read_footer(source, size_bytes, self._names)
                    if not anew:
                        self._footers.put(path, footer)
                return source, self._parquet(source, footer, file), footer

        return patiently(f"opening {path}", opening)

    def _parquet(self, source: Any, footer: Footer, file: SegmentFile) -> Any:
        import pyarrow.parquet as pq

        is_large = any(group.compressed_bytes > LARGE_GROUP_BYTES for group in footer.row_groups)
        return pq.ParquetFile(
            source,
            metadata=footer.metadata,
            coerce_int96_timestamp_unit="us",
            # Whole column chunks at once, unless they are too large.
            pre_buffer=not self._storage.is_local and not is_large,
            buffer_size=PAGE_BUFFER_BYTES if is_large else 0,
            # Decoded, lakelog's own have at most a row group's bytes; see `row_bytes`.
            read_dictionary=None if is_ours(file.path) else footer.payload,
            page_checksum_verification=True,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return SegmentReader, (self._storage, self._table_path, self._stored_as)

    def _batches(
        self, part: _Part, schema: pa.Schema, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a row group in lakelog's types, a bounded part of them at a time."""
        path = f"{self._table_path}/{part.file.path}"
        for batch in self._stored(part, schema.names, batch_rows):
            pieces = cut_rows(batch, BATCH_BYTES)
            while True:
                with self._storage.naming(path):
                    piece = next(pieces, None)
                    rows = None if piece is None else shaped(piece, schema)
                if rows is None:
                    break
                yield rows

    def _stored(
        self, part: _Part, columns: list[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """As `_batches`, in the file's types, with its dictionaries."""
        average_bytes = max(1, part.group.size_bytes // max(1, part.group.rows))
        path = f"{self._table_path}/{part.file.path}"
        tries = Tries(f"reading {path}")
        given, row = 0, part.first_row
        while True:
            try:
                with self._storage.naming(path):
                    batches = part.parquet.iter_batches(
                        batch_size=max(1, min(batch_rows, BATCH_BYTES // average_bytes)),
                        row_groups=[part.group.index],
                        columns=[self._stored_as.get(name, name) for name in columns],
                        use_threads=part.group.size_bytes > SMALL_GROUP_BYTES,
                    )
                    for _ in range(given):  # batches given before the store failed
                        next(batches)
                while True:
                    with self._storage.naming(path):
                        batch = next(batches, None)
                        if batch is None:
                            return
                        batch = _renamed(batch, self._names)
                        for name in ("offset", "timestamp"):
                            if name in columns and batch.column(name).null_count:
                                raise pa.ArrowInvalid(
                                    f"row group {part.group.index} holds rows without an offset or "
                                    "a timestamp"
                                )
                    given += 1
                    row += batch.num_rows
                    yield _without(batch, row - batch.num_rows, part.deleted)
                    tries.succeeded()
            except ColdTierError as error:
                tries.wait(error)

    # -- by offset -------------------------------------------------------------------------------

    def _in_order(
        self, part: _Part, start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        few = min(end, part.group.last + 1) - max(start, part.group.first) <= SEEK_BATCH_ROWS
        for batch in self._batches(
            part, _plus_offset(schema), SEEK_BATCH_ROWS if few else BATCH_ROWS
        ):
            offsets = _int64_view(batch.column("offset"))
            low = bisect_left(offsets, start)
            high = bisect_left(offsets, end, low)
            if low < high:
                yield shaped(batch.slice(low, high - low), schema)
            if high < len(offsets):
                return

    def _sorted(
        self, parts: list[_Part], start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Row groups that overlap, or whose rows are in no order, as one ordered run.

        Only the offsets and sizes (16 bytes a row) are sorted first. They cut the run into windows,
        which are then read one by one, each from all row groups that reach into it.
        """
        if len(parts) == 1 and self._is_ascending(parts[0]):
            yield from self._in_order(parts[0], start, end, schema)
            return
        found = [self._offsets_and_sizes(part, schema) for part in parts]
        offsets = np.concatenate([offsets for offsets, _ in found])
        sizes = np.concatenate([sizes for _, sizes in found])
        inside = (offsets >= start) & (offsets < end)
        offsets, sizes = offsets[inside], sizes[inside]
        order = np.argsort(offsets, kind="stable")
        offsets, sizes = offsets[order], sizes[order]
        for low, high in _windows(offsets, np.cumsum(sizes)):
            batches = [
                # In lakelog's types first: not every kernel knows foreign types (views of bytes).
                _between(shaped(batch, _plus_offset(schema)), low, high)
                for part in parts
                if part.group.first < high and part.group.last >= low
                for batch in self._batches(part, _plus_offset(schema))
            ]
            table = pa.Table.from_batches(batches)
            table = table.take(pc.sort_indices(table["offset"])).combine_chunks()
            for batch in table.to_batches():
                yield shaped(batch, schema)

    def _is_ascending(self, part: _Part) -> bool:
        """Whether the rows are in order all the same. Looked at once."""
        last = -1
        for batch in self._stored(part, ["offset"]):
            with self._storage.naming(f"{self._table_path}/{part.file.path}"):
                offsets = batch.column("offset").cast(pa.int64()).to_numpy()
            if not len(offsets):
                continue
            if offsets[0] <= last or not bool(np.all(offsets[1:] > offsets[:-1])):
                return False
            last = int(offsets[-1])
        if part.deleted is None:
            part.footer.ascending.add(part.group.index)
        return True

    def _offsets_and_sizes(self, part: _Part, schema: pa.Schema) -> tuple[np.ndarray, np.ndarray]:
        """The offsets, in the file's order, and the approximate bytes of each row."""
        group = part.group
        columns = _plus_offset(schema).names if group.has_dictionary else ["offset"]
        offsets, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        average_bytes = max(1, group.size_bytes // max(1, group.rows))
        for batch in self._stored(part, columns):
            with self._storage.naming(f"{self._table_path}/{part.file.path}"):
                offsets.append(batch.column("offset").cast(pa.int64()).to_numpy())
                sizes.append(
                    row_bytes(batch)
                    if group.has_dictionary
                    else np.full(batch.num_rows, average_bytes, np.int64)
                )
        return np.concatenate(offsets), np.concatenate(sizes)

    # -- by timestamp ----------------------------------------------------------------------------

    def _first_hit(
        self, part: _Part, target_us: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        best: OffsetAndTimestamp | None = None
        for offsets, times_us in self._times(part):
            hits = pc.and_(
                pc.greater_equal(times_us, target_us), pc.greater_equal(offsets, from_offset)
            )
            best = _lower(best, _first_of(offsets.filter(hits), times_us.filter(hits)))
            if best is not None and part.ordered:
                break
        return best

    def _newest_in(self, part: _Part, from_offset: int) -> OffsetAndTimestamp | None:
        best: OffsetAndTimestamp | None = None
        for offsets, times_us in self._times(part):
            above = pc.greater_equal(offsets, from_offset)
            offsets, times_us = offsets.filter(above), times_us.filter(above)
            largest = pc.max(times_us).as_py()
            if largest is None or largest < 0:
                continue
            hits = pc.equal(times_us, largest)
            best = _newer(best, _first_of(offsets.filter(hits), times_us.filter(hits)))
        return best

    def _times(self, part: _Part) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Offsets and timestamps in µs."""
        for batch in self._batches(part, projection(["offset", "timestamp"])):
            times = batch.column("timestamp").cast(RECORDS.field("timestamp").type)
            yield batch.column("offset"), times.cast(pa.int64())


# -- small things ------------------------------------------------------------------------------


def _windows(offsets: np.ndarray, upto_bytes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of sorted offsets, each of few enough rows and bytes."""
    start = 0
    while start < len(offsets):
        before = int(upto_bytes[start - 1]) if start else 0
        end = int(np.searchsorted(upto_bytes, before + BATCH_BYTES, side="right"))
        end = max(start + 1, min(end, start + BATCH_ROWS))
        yield int(offsets[start]), int(offsets[end - 1]) + 1
        start = int(np.searchsorted(offsets, offsets[end - 1], side="right"))


def _times_of(part: _Part) -> RowGroupTimes | None:
    """What its statistics say; None if there are none."""
    group = part.group
    if group.offsets is None or group.times_us is None:
        return None
    rows = group.rows
    if part.deleted is not None:
        low, high = np.searchsorted(part.deleted, [part.first_row, part.first_row + rows])
        rows -= int(high - low)
    first_us, last_us = group.times_us
    first_ms, last_ms = max(-1, first_us // 1000), max(-1, last_us // 1000)
    return RowGroupTimes(group.first, group.last + 1, rows, first_ms, last_ms)


def _overlapping(items: Iterable[T], range_of: Callable[[T], tuple[int, int]]) -> Iterator[list[T]]:
    """Runs of items (sorted by start) whose ranges overlap."""
    run: list[T] = []
    reach = 0
    for item in items:
        start, end = range_of(item)
        if run and start >= reach:
            yield run
            run = []
            reach = 0
        run.append(item)
        reach = max(reach, end)
    if run:
        yield run


def _renamed(batch: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    """The batch under the columns' own names, those of a header's parts too."""
    if not names:
        return batch
    columns = dict(
        zip((names.get(name, name) for name in batch.schema.names), batch.columns, strict=True)
    )
    if "headers" in columns:
        items, offsets = items_of(columns["headers"])
        parts = [names.get(field.name, field.name) for field in items.type]
        pairs = pa.StructArray.from_arrays([items.field(i) for i in range(len(parts))], parts)
        columns["headers"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs)
    return pa.RecordBatch.from_pydict(columns)


def _without(batch: pa.RecordBatch, first_row: int, deleted: np.ndarray | None) -> pa.RecordBatch:
    """The batch without rows that are no more; `first_row` is its first one's number."""
    if deleted is None:
        return batch
    low, high = np.searchsorted(deleted, [first_row, first_row + batch.num_rows])
    if low == high:
        return batch
    kept = np.ones(batch.num_rows, bool)
    kept[deleted[low:high] - first_row] = False
    return batch.filter(pa.array(kept))


def _plus_offset(schema: pa.Schema) -> pa.Schema:
    return schema if "offset" in schema.names else schema.append(FILE_SCHEMA.field("offset"))


def _between(batch: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    offsets = batch.column("offset")
    return batch.filter(pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end)))


def _int64_view(array: pa.Array) -> memoryview:
    view = memoryview(array.buffers()[1] or b"").cast("q")
    return view[array.offset : array.offset + len(array)]


def _first_of(offsets: pa.Array, times_us: pa.Array) -> OffsetAndTimestamp | None:
    if not len(offsets):
        return None
    at = pc.index(offsets, pc.min(offsets)).as_py()
    return OffsetAndTimestamp(offsets[at].as_py(), times_us[at].as_py() // 1000)


def _lower(
    one: OffsetAndTimestamp | None, other: OffsetAndTimestamp | None
) -> OffsetAndTimestamp | None:
    found = [answer for answer in (one, other) if answer is not None]
    return min(found, key=lambda answer: answer.offset, default=None)


def _newer(
    best: OffsetAndTimestamp | None, found: OffsetAndTimestamp | None
) -> OffsetAndTimestamp | None:
    beats = found is not None and _may_beat(best, found.timestamp_ms, found.offset)
    return found if beats else best


def _may_beat(best: OffsetAndTimestamp | None, timestamp_ms: int, offset: int) -> bool:
    """Whether a record of at most that time and at least that offset would beat the best one."""
    if best is None:
        return timestamp_ms >= 0
    return (timestamp_ms, -offset) > (best.timestamp_ms, -best.offset)
