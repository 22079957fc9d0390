"""Writing one file of a segment: sorted by offset, in row groups, in bounded memory."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ...back_off import patiently
from ...errors import ColdTierError
from ...topic import Topic
from ...value_ddl import VALUE_ERROR
from ..change import HotRange, Rewrite, RowsOf
from ..parquet.footer_seal import SEALED, SealingSink
from ..parquet.segment_reader import SegmentReader
from ..rows import RowTally, archived_rows, rewritten_rows, with_value_columns
from ..schema import FILE_SCHEMA, ROW_GROUP_BYTES, ROW_GROUP_ROWS, writer_options
from ..segment import UNKNOWN_TIMESTAMP_MS, SegmentFile, file_name, sources_digest
from ..store.storage import Storage


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written, and what its add action says of it."""

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
    """Write the rows of a hot range or of a rewrite into one new file, and sync it to the disk.

    Each call writes under a new name, so running it twice leaves a file that no commit names. While
    the store or the source is busy or away for a moment, the file is begun again. Memory is bounded
    by a row group and a batch of the source.

    Args:
        columns: the value columns to write; the table has them already.

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
    tally = RowTally(add)
    rows = (
        archived_rows(add, rows_of, tally)
        if isinstance(add, HotRange)
        else tally.count(_rewritten(add, SegmentReader(storage, table_path)))
    )
    try:
        _write(storage, path, _row_groups(rows), columns or pa.schema([]), tally)
        # The commit that will name the file must not survive a power cut that the file does not.
        partition_folder = f"{table_path}/{folder.partition('/')[0]}"
        storage.sync(path, f"{table_path}/{folder}", partition_folder, table_path)
    except BaseException:
        # No commit can name the file, since this call returns none. If deleting it fails too, the
        # first error says more, and vacuum finds the file.
        with suppress(ColdTierError):
            storage.delete_file(path)
        raise
    return _written(tally, f"{folder}/{name}", storage.size_bytes(path))


def _written(tally: RowTally, path: str, size_bytes: int) -> WrittenFile:
    add = tally.add
    stats: dict[str, object] = {"numRecords": tally.records}
    if tally.records:
        stats["minValues"] = {"offset": tally.first, **_time_statistic(tally.min_us)}
        stats["maxValues"] = {"offset": tally.last, **_time_statistic(tally.max_us)}
        stats["nullCount"] = {"offset": 0, "timestamp": 0}
    file = SegmentFile(
        add.topic_partition.partition,
        add.segment,
        path,
        size_bytes,
        tally.records,
        add.start_offset,
        add.end_offset,
        _milliseconds(tally.min_us, -1),
        _milliseconds(tally.max_us, UNKNOWN_TIMESTAMP_MS),
        _modified_ms(add),
    )
    return WrittenFile(file, json.dumps(stats, separators=(",", ":")), tally.unparsed)


def _modified_ms(add: HotRange | Rewrite) -> int:
    """As in Kafka, a cleaned file is no newer than its sources."""
    if isinstance(add, Rewrite):
        return max(file.modified_ms for file in add.files)
    return time.time_ns() // 1_000_000


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
    tally: RowTally,
) -> None:
    """An error of the store names the path; an error of the rows' source stays as it is."""
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


def _rewritten(rewrite: Rewrite, reader: SegmentReader) -> Iterator[pa.RecordBatch]:
    if rewrite.aside:
        return iter(())
    files = rewrite.files if rewrite.source is None else (rewrite.source,)
    rows = reader.read(files, rewrite.start_offset, rewrite.end_offset, columns=FILE_SCHEMA.names)
    return (rewritten_rows(batch, rewrite) for batch in rows)


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


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _time_statistic(time_us: int | None) -> dict[str, str]:
    """As Delta writes it; left out beyond the year 9999, which its text cannot hold."""
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
