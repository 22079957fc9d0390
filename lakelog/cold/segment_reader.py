"""Reading the files of segments: by offset or by timestamp, only the row groups that matter.

Files that lakelog wrote are sorted by offset. In others nothing is taken for granted but their
statistics: somebody's OPTIMIZE merges files of a segment in any order of rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..back_off import Patience, patiently
from ..config import MIB
from ..errors import ColdTierError, InvalidArgumentError
from ..record import HEADERS_TYPE, RECORDS, OffsetAndTimestamp
from .footers import Footer, FooterCache, RowGroup, parse_footer
from .schema import FILE_SCHEMA
from .segment import SegmentFile, is_ours
from .storage import Storage
from .tombstones import TOMBSTONE_COLUMNS, Tombstones

T = TypeVar("T")

#: How much is decoded at a time, by the average row of a row group.
BATCH_BYTES = 16 * MIB
BATCH_ROWS = 64 * 1024

#: Batches for the sake of a few records: the pages behind them stay undecoded.
SEEK_BATCH_ROWS = 4 * 1024


@dataclass(frozen=True, slots=True)
class _Part:
    """A row group of an open file."""

    file: SegmentFile
    parquet: Any  # pq.ParquetFile
    group: RowGroup
    ordered: bool  # by offset


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file while it is open."""

    footer: Footer
    size_bytes: int
    batches: Callable[[RowGroup, list[str]], Iterator[pa.RecordBatch]]  # of columns of a row group


class SegmentReader:
    """Reads files of one table. Thread-safe; keeps footers, no open files."""

    def __init__(self, storage: Storage, table_path: str) -> None:
        self._storage = storage
        self._table_path = table_path
        self._footers = FooterCache()

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`. `columns` may also name ``delete_horizon``."""
        schema = projection(columns)
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

    @contextmanager
    def opened(self, file: SegmentFile) -> Iterator[OpenFile]:
        """The file as it lies there: its footer is read anew, its rows come unsorted."""
        path = f"{self._table_path}/{file.path}"
        with ExitStack() as stack:
            with self._storage.naming(path):
                source = stack.enter_context(
                    self._storage.filesystem().open_input_file(self._storage.arrow_path(path))
                )
                parquet = _parquet(source, None, pre_buffer=not self._storage.is_local)
                footer = parse_footer(parquet.metadata)
                missing = set(FILE_SCHEMA.names) - set(parquet.schema_arrow.names)
                if missing:
                    raise pa.ArrowInvalid(f"it has no column {min(missing)}")

            def batches(group: RowGroup, columns: list[str]) -> Iterator[pa.RecordBatch]:
                schema = projection(columns)
                for batch in self._batches(_Part(file, parquet, group, False), columns):
                    with self._storage.naming(path):
                        rows = shaped(batch, schema)
                    yield rows

            yield OpenFile(footer, source.size(), batches)

    def tombstones(self, file: SegmentFile) -> Tombstones:
        """What the file's footer says of its tombstones; of somebody else's, its columns say it."""
        with ExitStack() as opened:
            _, footer = self._open(opened, file)
            if footer.tombstones is not None:
                return footer.tombstones
            return sum(
                (
                    Tombstones.of(batch)
                    for part in self._parts(opened, file)
                    for batch in self._batches(part, TOMBSTONE_COLUMNS)
                ),
                Tombstones(),
            )

    # -- files and row groups --------------------------------------------------------------------

    def _parts(self, opened: ExitStack, file: SegmentFile) -> list[_Part]:
        parquet, footer = self._open(opened, file)
        ordered = is_ours(file.path)
        return [_Part(file, parquet, group, ordered) for group in footer.row_groups]

    def _open(self, opened: ExitStack, file: SegmentFile) -> tuple[Any, Footer]:
        path = f"{self._table_path}/{file.path}"

        def opening() -> tuple[Any, Footer]:
            footer = self._footers.get(path)
            with self._storage.naming(path):
                source = opened.enter_context(
                    self._storage.filesystem().open_input_file(self._storage.arrow_path(path))
                )
                parquet = _parquet(
                    source,
                    footer.metadata if footer else None,
                    pre_buffer=not self._storage.is_local,
                )
                return parquet, footer or self._keep(path, parse_footer(parquet.metadata))

        return patiently(opening)

    def _keep(self, path: str, footer: Footer) -> Footer:
        self._footers.put(path, footer)
        return footer

    def __reduce__(self) -> tuple[object, ...]:
        return SegmentReader, (self._storage, self._table_path)

    def _batches(
        self, part: _Part, columns: list[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        average_bytes = max(1, part.group.size_bytes // max(1, part.group.rows))
        path = f"{self._table_path}/{part.file.path}"
        patience = Patience()
        given = 0
        while True:
            try:
                with self._storage.naming(path):
                    batches = part.parquet.iter_batches(
                        batch_size=max(1, min(batch_rows, BATCH_BYTES // average_bytes)),
                        row_groups=[part.group.index],
                        columns=columns,
                    )
                    for _ in range(given):  # those of a try that a fault of the store broke off
                        next(batches)
                while True:
                    with self._storage.naming(path):
                        batch = next(batches, None)
                    if batch is None:
                        return
                    given += 1
                    yield batch
            except ColdTierError as error:
                patience.wait(error)

    # -- by offset -------------------------------------------------------------------------------

    def _in_order(
        self, part: _Part, start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        few = min(end, part.group.last + 1) - max(start, part.group.first) <= SEEK_BATCH_ROWS
        for batch in self._batches(
            part, _with_offset(schema), SEEK_BATCH_ROWS if few else BATCH_ROWS
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
        """Row groups that overlap, or whose rows are in no order, as one run in order.

        The offsets alone (8 bytes a row) are sorted first; they cut the run into windows that are
        then read one by one, each from all row groups that reach into it.
        """
        found = [
            _between(batch, start, end).column("offset").cast(pa.int64())
            for part in parts
            for batch in self._batches(part, ["offset"])
        ]
        offsets = pa.concat_arrays([pa.array([], pa.int64()), *found])
        offsets = offsets.take(pc.sort_indices(offsets))
        rows = sum(part.group.rows for part in parts)
        average_bytes = max(1, sum(part.group.size_bytes for part in parts) // max(1, rows))
        window_rows = max(1, min(BATCH_ROWS, BATCH_BYTES // average_bytes))
        for at in range(0, len(offsets), window_rows):
            window = offsets.slice(at, window_rows)
            low, high = window[0].as_py(), window[-1].as_py() + 1
            batches = [
                # In our types first: not every kernel knows those of others (views of bytes).
                _between(shaped(batch, _plus_offset(schema)), low, high)
                for part in parts
                if part.group.first < high and part.group.last >= low
                for batch in self._batches(part, _with_offset(schema))
            ]
            table = pa.Table.from_batches(batches)
            table = table.take(pc.sort_indices(table["offset"])).combine_chunks()
            for batch in table.to_batches():
                yield shaped(batch, schema)

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
        for batch in self._batches(part, ["offset", "timestamp"]):
            times = batch.column("timestamp").cast(RECORDS.field("timestamp").type)
            yield batch.column("offset"), times.cast(pa.int64())


# -- small things ------------------------------------------------------------------------------


def _parquet(source: Any, metadata: Any, *, pre_buffer: bool) -> Any:
    return pq.ParquetFile(
        source,
        metadata=metadata,
        coerce_int96_timestamp_unit="us",
        pre_buffer=pre_buffer,
        page_checksum_verification=True,
    )


def _overlapping(items: Iterable[T], range_of: Callable[[T], tuple[int, int]]) -> Iterator[list[T]]:
    """Runs of items (sorted by start) whose ranges touch each other's inside."""
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


def projection(columns: Sequence[str] | None) -> pa.Schema:
    """What a reader that is asked for these columns of a record gives; None: `RECORDS`.

    Raises:
        InvalidArgumentError: a record has no such column.
    """
    if columns is None:
        return RECORDS
    unknown = [name for name in columns if name not in FILE_SCHEMA.names]
    if unknown:
        raise InvalidArgumentError(
            f"a record has no column {unknown[0]!r}; it has {', '.join(FILE_SCHEMA.names)}"
        )
    return pa.schema([FILE_SCHEMA.field(name) for name in columns])


def _with_offset(schema: pa.Schema) -> list[str]:
    return list(dict.fromkeys([*schema.names, "offset"]))


def _plus_offset(schema: pa.Schema) -> pa.Schema:
    return pa.schema([FILE_SCHEMA.field(name) for name in _with_offset(schema)])


def _between(batch: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    offsets = batch.column("offset")
    return batch.filter(pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end)))


def _int64_view(array: pa.Array) -> memoryview:
    view = memoryview(array.buffers()[1] or b"").cast("q")
    return view[array.offset : array.offset + len(array)]


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The schema's columns in its types; other writers have their own ideas of nullability.

    A cast does it for all but headers: pyarrow 19 casts nothing nullable within a struct.
    """
    columns = [batch.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(
        [_cast(column, field) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type.equals(field.type):
        return column
    if field.name != "headers":
        return column.cast(field.type)
    pairs = pa.StructArray.from_arrays(
        [
            column.values.field(name).cast(HEADERS_TYPE.value_type.field(name).type)
            for name in ("key", "value")
        ],
        fields=[HEADERS_TYPE.value_type.field(name) for name in ("key", "value")],
    )
    return pa.ListArray.from_arrays(column.offsets.cast(pa.int32()), pairs, type=HEADERS_TYPE)


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
    """Whether a record of that time (at most) and offset (at least) would come before the best."""
    if best is None:
        return timestamp_ms >= 0
    return (timestamp_ms, -offset) > (best.timestamp_ms, -best.offset)
