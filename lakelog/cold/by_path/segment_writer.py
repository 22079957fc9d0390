"""Writing one file of a segment: sorted by offset, in row groups, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct

from ...base.back_off import patiently
from ...errors import ColdTierError
from ...values.config import PARQUET_COMPRESSION
from ...values.topic import Topic
from ..change import HotRange, Rewrite, RowsOf
from ..file_statistics import ValueStatistics, counted_values, milliseconds, statistics
from ..parquet.file_writer import write_file
from ..parquet.segment_reader import SegmentReader
from ..rows import RowTally, archived_rows, rewritten_rows, row_groups
from ..schema import FILE_SCHEMA, writer_options
from ..segment import UNKNOWN_TIMESTAMP_MS, SegmentFile, file_name, sources_digest
from ..store.storage import Storage


class WrittenFile(Struct, frozen=True):
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
    columns = columns or pa.schema([])
    values = ValueStatistics(columns)
    rows = (
        archived_rows(add, rows_of, tally)
        if isinstance(add, HotRange)
        else tally.count(_rewritten(add, SegmentReader(storage, table_path), rows_of))
    )
    try:
        size_bytes = write_file(
            storage,
            path,
            counted_values(row_groups(rows), columns, tally, values),
            pa.schema([*FILE_SCHEMA, *columns]),
            writer_options(columns, topic.config[PARQUET_COMPRESSION]),
            filtered=topic.config["lakelog.key.bloom.filter"],
            metadata=lambda: tally.tombstones.to_metadata(),
        )
        # The commit that will name the file must not survive a power cut that the file does not.
        partition_folder = f"{table_path}/{folder.partition('/')[0]}"
        storage.sync(path, f"{table_path}/{folder}", partition_folder, table_path)
    except BaseException:
        # No commit can name the file, since this call returns none. If deleting it fails too, the
        # first error says more, and vacuum finds the file.
        with suppress(ColdTierError):
            storage.delete_file(path)
        raise
    return _written(tally, values, f"{folder}/{name}", size_bytes)


def _written(tally: RowTally, values: ValueStatistics, path: str, size_bytes: int) -> WrittenFile:
    add = tally.add
    file = SegmentFile(
        add.topic_partition.partition,
        add.segment,
        path,
        size_bytes,
        tally.records,
        add.start_offset,
        add.end_offset,
        milliseconds(tally.min_us, -1),
        milliseconds(tally.max_us, UNKNOWN_TIMESTAMP_MS),
        _modified_ms(add),
    )
    return WrittenFile(file, statistics(tally, values), tally.unparsed)


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


def _rewritten(
    rewrite: Rewrite, reader: SegmentReader, rows_of: RowsOf
) -> Iterator[pa.RecordBatch]:
    if rewrite.aside:
        return iter(())
    if rewrite.hot is not None:
        return archived_rows(rewrite.hot, rows_of)
    rows = reader.read(
        rewrite.files, rewrite.start_offset, rewrite.end_offset, columns=FILE_SCHEMA.names
    )
    return (rewritten_rows(batch, rewrite) for batch in rows)
