"""Writing one file of a segment: sorted by offset, in row groups, in bounded memory."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import NoReturn
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..back_off import patiently
from ..codec.value_columns import columns_of
from ..errors import ColdTierError, ContradictionError
from ..record import RECORDS
from ..topic import Topic
from ..value_ddl import VALUE_ERROR
from .change import HotRange, Rewrite, RowsOf
from .footer_seal import SEALED, SealingSink
from .schema import FILE_SCHEMA, ROW_GROUP_BYTES, ROW_GROUP_ROWS, writer_options
from .segment import UNKNOWN_TIMESTAMP_MS, SegmentFile, file_name, sources_digest
from .segment_reader import SegmentReader
from .storage import Storage
from .tombstones import Tombstones


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that lies there, and what its add action says of it."""

    file: SegmentFile
    stats: str  # JSON, as Delta has it
    unparsed: int = 0  # records with a value_error


def write_segment_file(
    add: HotRange | Rewrite,
    *,
    topic: Topic,
    storage: Storage,
    rows_of: RowsOf,
    columns: pa.Schema | None = None,
) -> WrittenFile:
    """Write the rows of a hot range or of a rewrite into one new file, and see it on the disk.

    The file has a name of its own, so running it twice leaves one that no commit names. While the
    store or the source is busy or away for a moment, it is begun anew. Memory is bounded by a row
    group and a batch of the source.

    Args:
        columns: what is made of the values besides; the table has these columns already.

    Raises:
        ContradictionError: the source's offsets are not ascending within the range, or a hot range
            lacks a record: the first one, those in between, or the last. Nothing is left behind.
        ColdTierError: the place cannot be written.

    Runs on: executor (or in process).
    """
    return patiently(
        f"writing a segment of {add.topic_partition}",
        partial(_write_file, add, topic=topic, storage=storage, rows_of=rows_of, columns=columns),
    )


def _write_file(
    add: HotRange | Rewrite,
    *,
    topic: Topic,
    storage: Storage,
    rows_of: RowsOf,
    columns: pa.Schema | None,
) -> WrittenFile:
    table_path = storage.table_path(topic)
    folder = f"partition={add.topic_partition.partition}/segment={add.segment}"
    name = _new_name(add)
    path = f"{table_path}/{folder}/{name}"
    storage.make_folder(f"{table_path}/{folder}", synced=False)  # below, together with the file
    tally = _Tally(add)
    rows = (
        _archived(tally, add, rows_of)
        if isinstance(add, HotRange)
        else tally.count(_rewritten(add, SegmentReader(storage, table_path)))
    )
    try:
        _write(storage, path, _row_groups(rows), columns or pa.schema([]), tally)
        # The commit that will name the file must not survive a power cut that the file does not.
        partition_folder = f"{table_path}/{folder.partition('/')[0]}"
        storage.sync(path, f"{table_path}/{folder}", partition_folder, table_path)
    except BaseException:
        # Ours alone, and no commit can name it: this call returns none. Where even that is refused,
        # what went wrong first says more, and vacuum finds the file.
        with suppress(ColdTierError):
            storage.delete_file(path)
        raise
    return tally.written(f"{folder}/{name}", storage.size_bytes(path))


def _new_name(add: HotRange | Rewrite) -> str:
    if isinstance(add, HotRange):
        return file_name("archive", add.start_offset, add.end_offset, uuid4().hex)
    unique = sources_digest(file.path for file in add.files) + uuid4().hex[:16]
    kind = "quarantine" if add.aside else "clean"
    return file_name(kind, add.start_offset, add.end_offset, unique)


def _write(
    storage: Storage,
    path: str,
    row_groups: Iterable[pa.Table],
    columns: pa.Schema,
    tally: _Tally,
) -> None:
    """An error of the store is named by the path; one of the rows' source is left as it is."""
    with storage.naming(path):
        sink = SealingSink(storage.filesystem().open_output_stream(storage.arrow_path(path)))
        writer = pq.ParquetWriter(
            pa.PythonFile(sink, mode="w"),
            pa.schema([*FILE_SCHEMA, *columns]),
            **writer_options(columns),
        )
    try:
        for row_group in row_groups:
            if len(columns):
                row_group = with_value_columns(row_group, columns)
                tally.unparsed += row_group.num_rows - row_group[VALUE_ERROR].null_count
            with storage.naming(path):
                writer.write_table(row_group, row_group_size=row_group.num_rows)
        writer.add_key_value_metadata({**tally.tombstones.to_metadata(), **SEALED})
    except BaseException:
        with suppress(OSError, pa.ArrowException):
            writer.close()
        with suppress(OSError, pa.ArrowException):
            sink.close()
        raise
    with storage.naming(path):
        sink.hold()
        writer.close()
        sink.close()


def with_value_columns(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows with what is made of their values.

    Args:
        columns: of `value_columns`, not empty.

    Runs on: executor (or in process).
    """
    made = columns_of(rows["value"], columns)
    for field, column in zip(columns, made.columns, strict=True):
        rows = rows.append_column(field, column)
    return rows


def archived_rows(add: HotRange, rows_of: RowsOf) -> Iterator[pa.RecordBatch]:
    """The rows of a hot range as the table's files have them: `FILE_SCHEMA`, each record once.

    Raises (while iterating):
        ContradictionError: as for `write_segment_file`; what came before must not be committed.

    Runs on: executor (or in process).
    """
    return _archived(_Tally(add), add, rows_of)


def _archived(tally: _Tally, add: HotRange, rows_of: RowsOf) -> Iterator[pa.RecordBatch]:
    yield from tally.count(_with_horizon(rows_of(add)))
    tally.check_end()


def _with_horizon(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        horizon = pa.nulls(batch.num_rows, FILE_SCHEMA.field("delete_horizon").type)
        columns = [batch.column(name) for name in RECORDS.names]
        yield pa.RecordBatch.from_arrays([*columns, horizon], schema=FILE_SCHEMA)


def _rewritten(rewrite: Rewrite, reader: SegmentReader) -> Iterator[pa.RecordBatch]:
    if rewrite.aside:
        return iter(())
    files = rewrite.files if rewrite.source is None else (rewrite.source,)
    rows = reader.read(files, rewrite.start_offset, rewrite.end_offset, columns=FILE_SCHEMA.names)
    return (rewritten_rows(batch, rewrite) for batch in rows)


def rewritten_rows(batch: pa.RecordBatch, rewrite: Rewrite) -> pa.RecordBatch:
    """What a rewrite leaves of rows of its files; any columns, among them `FILE_SCHEMA`'s.

    Runs on: executor (or in process).
    """
    if rewrite.without is not None:
        batch = batch.filter(pc.invert(rewrite.without.contains(batch.column("offset"))))
    if rewrite.delete_horizon_ms is not None:
        batch = _set_horizon(batch, rewrite.delete_horizon_ms)
    return batch


def _set_horizon(batch: pa.RecordBatch, horizon_ms: int) -> pa.RecordBatch:
    """Each tombstone without a horizon gets this one."""
    horizons = batch.column("delete_horizon")
    new = pa.scalar(horizon_ms * 1000, pa.int64()).cast(horizons.type)
    fresh = pc.and_(pc.is_null(batch.column("value")), pc.is_null(horizons))
    at = batch.schema.get_field_index("delete_horizon")
    columns = batch.columns
    columns[at] = pc.if_else(fresh, new, horizons)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in tables of at most `ROW_GROUP_ROWS` and about `ROW_GROUP_BYTES`."""
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for piece in (piece for batch in batches for piece in _cut(batch)):
        if held and (
            rows + piece.num_rows > ROW_GROUP_ROWS or size_bytes + piece.nbytes > ROW_GROUP_BYTES
        ):
            yield pa.Table.from_batches(held)
            held, rows, size_bytes = [], 0, 0
        held.append(piece)
        rows += piece.num_rows
        size_bytes += piece.nbytes
        if size_bytes >= ROW_GROUP_BYTES:  # a huge record is written before the next one is read
            yield pa.Table.from_batches(held)
            held, rows, size_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices small enough to fill row groups well; a single large record stays whole."""
    if batch.num_rows == 0:
        return
    fits = batch.num_rows <= ROW_GROUP_ROWS // 4 and batch.nbytes <= ROW_GROUP_BYTES // 4
    if fits or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _cut(batch.slice(0, half))
    yield from _cut(batch.slice(half))


class _Tally:
    """Checks the rows that go by, and remembers what the add action says of them."""

    def __init__(self, add: HotRange | Rewrite) -> None:
        self.add = add
        self.records = 0
        self.unparsed = 0
        self.first = -1  # offset of the first record
        self.last = add.start_offset - 1
        self.min_us: int | None = None
        self.max_us: int | None = None
        self.tombstones = Tombstones()

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self._count(batch)
                yield batch

    def _count(self, batch: pa.RecordBatch) -> None:
        offsets = batch.column("offset")
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        ascending = pc.all(pc.less(offsets[:-1], offsets[1:])).as_py() is not False
        if not ascending or first <= self.last or last >= self.add.end_offset:
            self._refuse(f"offsets {first} … {last} after {self.last} are out of order or range")
        if isinstance(self.add, HotRange):
            # A gap only ever lies before a segment: within one, each offset has its record.
            expected = self.last + 1 if self.records else max(self.last + 1, self.add.segment)
            if first != expected or last - first + 1 != batch.num_rows:
                self._refuse(f"the records after {self.last} are not dense from {expected} on")
        self.tombstones += Tombstones.of(batch)
        if not self.records:
            self.first = first
        self.last = last
        self.records += batch.num_rows
        edges = pc.min_max(pc.cast(batch.column("timestamp"), pa.int64())).as_py()
        self.min_us = edges["min"] if self.min_us is None else min(self.min_us, edges["min"])
        self.max_us = edges["max"] if self.max_us is None else max(self.max_us, edges["max"])

    def check_end(self) -> None:
        if isinstance(self.add, HotRange) and self.last != self.add.end_offset - 1:
            self._refuse(f"the last record is {self.last}; no archived range ends in a gap")

    def written(self, path: str, size_bytes: int) -> WrittenFile:
        stats: dict[str, object] = {"numRecords": self.records}
        if self.records:
            stats["minValues"] = {"offset": self.first, **_time_statistic(self.min_us)}
            stats["maxValues"] = {"offset": self.last, **_time_statistic(self.max_us)}
            stats["nullCount"] = {"offset": 0, "timestamp": 0}
        file = SegmentFile(
            self.add.topic_partition.partition,
            self.add.segment,
            path,
            size_bytes,
            self.records,
            self.add.start_offset,
            self.add.end_offset,
            _milliseconds(self.min_us, -1),
            _milliseconds(self.max_us, UNKNOWN_TIMESTAMP_MS),
            self._modified_ms(),
        )
        return WrittenFile(file, json.dumps(stats, separators=(",", ":")), self.unparsed)

    def _modified_ms(self) -> int:
        """As Kafka: what cleaning writes is not younger than what it was made of."""
        if isinstance(self.add, Rewrite):
            return max(file.modified_ms for file in self.add.files)
        return time.time_ns() // 1_000_000

    def _refuse(self, what: str) -> NoReturn:
        raise ContradictionError(
            f"{self.add.topic_partition} [{self.add.start_offset}, {self.add.end_offset}) of "
            f"segment {self.add.segment} is not written: {what}. Nothing was committed",
            topic_partition=self.add.topic_partition,
        )


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _time_statistic(time_us: int | None) -> dict[str, str]:
    """As Delta writes it; left out beyond the year 9999, which its text has no place for."""
    if time_us is None:
        return {}
    try:
        time = _EPOCH + timedelta(milliseconds=time_us // 1000)
    except OverflowError:
        return {}
    return {"timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def _milliseconds(time_us: int | None, beyond: int) -> int:
    """What the index reads back from the statistic."""
    if time_us is None:
        return -1
    return time_us // 1000 if _time_statistic(time_us) else beyond
