"""Whether an export is what it says, by its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import pyarrow as pa
from msgspec import Meta, Struct, convert

from ...base.json_text import parse_json
from ...cold import contradictions
from ...cold.added_file import AddedFile, index_of
from ...cold.registers import Register
from ...cold.segment import SegmentIndex
from ...errors import ContradictionError
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
