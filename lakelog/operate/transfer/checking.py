"""Whether an export is what it says: by its manifest alone, and by its files' own footers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated

import pyarrow as pa
from msgspec import Meta, Struct, convert

from ...base.json_text import parse_json
from ...cold import contradictions
from ...cold.added_file import AddedFile, index_of
from ...cold.parquet.footers import Footer, read_footer
from ...cold.registers import Register
from ...cold.segment import SegmentFile, SegmentIndex
from ...cold.store.storage import Storage
from ...errors import ContradictionError, CorruptRecordError, MissingFileError
from ...values.record import MAX_OFFSET
from .manifest import DataFile, ExportedTopic, refuse

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - UTC; those that are compared have no zone either
_MS = timedelta(milliseconds=1)
_NO_TIME = timedelta()


def check_sizes(where: str, topic: ExportedTopic, sizes: Mapping[str, int]) -> None:
    """Checks that all files of a topic are there, with the sizes that the manifest names.

    Args:
        sizes: by path below the export.

    Raises:
        CorruptRecordError: the first that is not.
    """
    for file in topic.all_files():
        path = f"{topic.folder}/{file.path}"
        if path not in sizes:
            refuse(where, f"{path} is missing")
        if sizes[path] != file.size_bytes:
            refuse(where, f"{path} has {sizes[path]:,} bytes instead of {file.size_bytes:,}")


def checked_index(where: str, topic: ExportedTopic) -> SegmentIndex:
    """The topic's files, if they agree with where its partitions begin and end.

    Raises:
        CorruptRecordError: they contradict each other.
    """
    registers: dict[Register, int] = {}
    for number, one in enumerate(topic.partitions):
        registers |= one.registers(number)
    try:
        index = index_of([_added(one) for one in topic.files])
        contradictions.check(topic.topic.name, index, registers)
    except (ContradictionError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        refuse(where, f"its manifest contradicts itself: {str(error).rstrip('.')}")
    if len(index) != len(topic.files):
        refuse(where, f"{topic.topic.name} has files without records that nothing stands in for")
    return index


def check_footers(where: str, storage: Storage, folder: str, files: Iterable[SegmentFile]) -> None:
    """Checks that files hold what the manifest says of them, as their own footers tell.

    Args:
        folder: where the files lie now.

    Raises:
        CorruptRecordError: the first that does not.
    """
    for file in files:
        path = f"{folder}/{file.path}"
        try:
            with (
                storage.naming(path),
                storage.filesystem().open_input_file(storage.arrow_path(path)) as source,
            ):
                footer = read_footer(source, file.size_bytes)
        except (CorruptRecordError, MissingFileError) as error:
            refuse(where, f"{file.path} is no Parquet file of a topic ({error.message})")
        found = _contradiction(file, footer)
        if found:
            refuse(where, f"{file.path} {found}")


def _contradiction(file: SegmentFile, footer: Footer) -> str | None:
    """What a file holds that the manifest says otherwise; None: nothing."""
    rows = sum(group.rows for group in footer.row_groups)
    if file.records >= 0 and rows != file.records:
        return f"has {rows:,} records, and the manifest says {file.records:,}"
    ranges = [group.offsets for group in footer.row_groups]
    if ranges and None not in ranges:
        first, last = min(r[0] for r in ranges if r), max(r[1] for r in ranges if r)
        if first < file.start_offset or last >= file.end_offset:
            return (
                f"has offsets from {first} to {last}, and the manifest says "
                f"[{file.start_offset}, {file.end_offset})"
            )
    times = [group.times_us for group in footer.row_groups]
    if times and None not in times:
        oldest, newest = min(t[0] for t in times if t), max(t[1] for t in times if t)
        said = file.min_timestamp_ms, file.max_timestamp_ms
        if said[0] >= 0 and (oldest // 1000 < said[0] or newest // 1000 > said[1]):
            return (
                f"has timestamps from {oldest // 1000} to {newest // 1000} ms, and the manifest "
                f"says {said[0]} to {said[1]}"
            )
    return None


class _Bounds(Struct, frozen=True):
    offset: Annotated[int, Meta(ge=0, lt=MAX_OFFSET)] | None = None
    timestamp: str | None = None


class _Said(Struct, frozen=True, rename="camel"):
    """Statistics of a file as Delta has them, if all of them are written so."""

    num_records: Annotated[int, Meta(ge=0, lt=MAX_OFFSET)] | None = None
    min_values: _Bounds = _Bounds()
    max_values: _Bounds = _Bounds()


def _added(one: DataFile) -> AddedFile:
    said = convert(parse_json(one.stats), _Said)
    least, largest = said.min_values, said.max_values
    return AddedFile(
        *(one.file.path, one.partition, one.segment, one.file.size_bytes, one.modified_ms),
        *(said.num_records, least.offset, largest.offset),
        *(_time_ms(least.timestamp), _time_ms(largest.timestamp)),
    )


def _time_ms(text: str | None) -> int | None:
    """Of a time as Delta writes it; None: it is not said."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (time.replace(tzinfo=None) - (time.utcoffset() or _NO_TIME) - _EPOCH) // _MS
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r:.80} is no time") from None
