"""A Parquet file's footer: whether it is the one that was written, and what it says of row groups.

That is the sparse index within a file.

| at the end of a file lakelog wrote | bytes     |
|------------------------------------|-----------|
| checksums of its `bloom_filters`   | see there |
| ``LKCS``                           | 4         |
| CRC-32C of the footer, hex digits  | 8         |
| the footer                         | see below |
| its length, little-endian          | 4         |
| ``PAR1``                           | 4         |

A footer does not say where it begins, so readers that do not know what lies before it never see
that. The footer says that they must be there (`SEALED`), so a footer whose seal was damaged does
not pass for one without a seal. Files of other writers, and older files, have no checksum.

The checksum lies in the file because a Delta add has no place for it: delta-rs writes no tags.

It is parsed here, not by pyarrow, which ends the process over some inconsistent footers (statistics
of another length than their type's, a missing column, a histogram that is too long). Its own
`pq.FileMetaData` is made of the same bytes and only handed to its readers, which raise.

Source: Apache Parquet, "File format", ``parquet.thrift``; seen with pyarrow 26.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from ...codec.crc import crc32c
from ...values.config import MIB
from ...values.record import MAX_OFFSET
from ..scan import Tombstones
from .bloom_filters import MOST_FILTER_BYTES, FilterPlace, checksums_before, filter_range
from .thrift import Struct, ThriftError, read_struct

#: Footer bytes kept, as they lie in the files; parsed, they take several times that. At 1–2 KB a
#: row group this is some ten thousand row groups.
CACHE_BYTES = 16 * MIB


UNKNOWN_TIME_US = 2**63 - 1


class RowGroup(msgspec.Struct, frozen=True):
    """One row group; the ranges are None where it has no statistics that can be used."""

    index: int
    rows: int
    size_bytes: int  # uncompressed, but values of a dictionary count once
    compressed_bytes: int
    compression: str  # of its columns, joined by "+"
    offsets: tuple[int, int] | None  # smallest, largest
    times_us: tuple[int, int] | None  # likewise
    has_dictionary: bool  # for keys, values or headers
    key_filter: FilterPlace | None = None  # None: none that can be trusted

    @property
    def first(self) -> int:
        """The smallest offset it may have."""
        return 0 if self.offsets is None else self.offsets[0]

    @property
    def last(self) -> int:
        """The largest offset it may have, inclusive."""
        return MAX_OFFSET if self.offsets is None else self.offsets[1]

    @property
    def max_time_us(self) -> int:
        """The largest timestamp; `UNKNOWN_TIME_US` if only its rows can tell."""
        return UNKNOWN_TIME_US if self.times_us is None else self.times_us[1]


@dataclass(frozen=True, slots=True)
class Footer:
    metadata: Any  # pq.FileMetaData: to be passed to pyarrow's readers only
    size_bytes: int
    columns: tuple[str, ...]  # dotted paths of all leaves
    payload: tuple[str, ...]  # the leaves of keys, values and headers that are bytes, as stored
    row_groups: tuple[RowGroup, ...]
    tombstones: Tombstones | None  # None: the file does not say
    #: Row groups whose rows were found to be in the order of their offsets.
    ascending: set[int] = field(default_factory=set, compare=False)


class FooterCache:
    """The footers used last, by path. Files never change, so none is ever stale. Thread-safe."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str) -> Footer | None:
        with self._lock:
            footer = self._footers.get(path)
            if footer is not None:
                self._footers.move_to_end(path)
            return footer

    def put(self, path: str, footer: Footer) -> None:
        with self._lock:
            if path in self._footers:
                return
            self._footers[path] = footer
            self._held_bytes += footer.size_bytes
            while self._held_bytes > self._limit_bytes and len(self._footers) > 1:
                _, oldest = self._footers.popitem(last=False)
                self._held_bytes -= oldest.size_bytes


def read_footer(
    source: Any, size_bytes: int | None = None, names: Mapping[str, str] | None = None
) -> Footer:
    """The footer of an open file, checked as far as possible to be what was written.

    Args:
        source: `pa.NativeFile`, open for reading.
        size_bytes: the size that the table's log gives; None: not known.
        names: those of columns by the names that they are stored under, where these differ.

    Raises:
        pa.ArrowInvalid: it is damaged, or not of a file of this table.
    """
    return parse_footer(footer_bytes(source, size_bytes), source.size(), names=names)


def parse_footer(
    found: FooterBytes, file_bytes: int, *, names: Mapping[str, str] | None = None
) -> Footer:
    """A footer, parsed from its bytes.

    Args:
        file_bytes: the size of the file that it may point into.
        names: see `read_footer`.

    Raises:
        pa.ArrowInvalid: it is damaged, or not of a file of this table.
    """
    import pyarrow.parquet as pq

    try:
        footer = read_struct(found.data)
        leaves = list(_leaves(_structs(footer, _SCHEMA), names or {}))
        payload = [b".".join(leaf.parts).decode() for leaf in leaves if leaf.is_payload]
        groups = tuple(
            _row_group(index, group, leaves, file_bytes, found.filter_checksums)
            for index, group in enumerate(_structs(footer, _ROW_GROUPS))
        )
        said = dict(_key_values(footer))
        tombstones = Tombstones.from_metadata(said)
    except (ThriftError, UnicodeDecodeError) as error:
        raise pa.ArrowInvalid(f"its footer is damaged: {error}") from error
    if not found.is_sealed and any(name.encode() in said for name in SEALED):
        raise pa.ArrowInvalid("its footer says that it has a checksum, and there is none")
    columns = tuple(leaf.path for leaf in leaves)
    if not {"offset", "timestamp"} <= set(columns):
        raise pa.ArrowInvalid("it has no columns offset and timestamp")
    metadata = pq.read_metadata(pa.BufferReader(as_file(found.data)))
    return Footer(metadata, len(found.data), columns, tuple(payload), groups, tombstones)


# -- its bytes -----------------------------------------------------------------------------------

#: Footer key-value metadata of a file with a checksum.
SEALED = {"lakelog.footer.checksum": "crc32c"}

MAGIC = b"PAR1"
SEAL_MARK = b"LKCS"
SEAL_BYTES = len(SEAL_MARK) + 8
FOOTER_END = struct.Struct("<I4s")

#: Read at once; holds most footers with their seal.
_TAIL_BYTES = 64 * 1024

#: Read with a footer that is larger than that, and at most: what lies in front of its seal.
_BEFORE_BYTES, _MOST_BEFORE_BYTES = 4 * 1024, 1024 * 1024


class FooterBytes(msgspec.Struct, frozen=True):
    """A footer as it lies in a file.

    Attributes:
        is_sealed: whether it has a checksum; if so, it is correct.
        filter_checksums: of the row groups' Bloom filters.
    """

    data: bytes
    is_sealed: bool = False
    filter_checksums: tuple[bytes, ...] = ()


def footer_bytes(source: Any, size_bytes: int | None = None) -> FooterBytes:
    """The footer of an open file.

    Args:
        source: `pa.NativeFile`, open for reading.
        size_bytes: the size that the table's log gives; None: not known.

    Raises:
        pa.ArrowInvalid: the file is not what was written.
    """
    found_bytes = source.size()
    if size_bytes is not None and found_bytes != size_bytes:
        raise pa.ArrowInvalid(f"it has {found_bytes} bytes, the table's log says {size_bytes}")
    if found_bytes < len(MAGIC) + FOOTER_END.size:
        raise pa.ArrowInvalid(f"it has {found_bytes} bytes, too few for Parquet")
    tail = _last(source, found_bytes, min(found_bytes, _TAIL_BYTES))
    length, magic = FOOTER_END.unpack(tail[-FOOTER_END.size :])
    if magic != MAGIC:
        raise pa.ArrowInvalid(f"it ends in {magic!r}, not in {MAGIC!r}")
    if length > found_bytes - len(MAGIC) - FOOTER_END.size:
        raise pa.ArrowInvalid(f"its footer is said to have {length} of its {found_bytes} bytes")
    needed = min(found_bytes, length + SEAL_BYTES + FOOTER_END.size)
    if needed > len(tail):
        tail = _last(source, found_bytes, min(found_bytes, needed + _BEFORE_BYTES))
    at = len(tail) - length - FOOTER_END.size
    footer, seal = tail[at : -FOOTER_END.size], tail[max(0, at - SEAL_BYTES) : at]
    if seal[: len(SEAL_MARK)] != SEAL_MARK:
        return FooterBytes(footer)
    if seal != seal_of(footer):
        raise pa.ArrowInvalid(
            f"its footer's CRC-32C is {crc32c(footer)!r}, stored is {seal[len(SEAL_MARK) :]!r}"
        )
    checksums = checksums_before(tail[: at - SEAL_BYTES])
    if checksums is None:
        tail = _last(source, found_bytes, min(found_bytes, needed + _MOST_BEFORE_BYTES))
        checksums = checksums_before(tail[:-needed])
    return FooterBytes(footer, True, checksums or ())


def _last(source: Any, size_bytes: int, count: int) -> bytes:
    data = bytes(source.read_at(count, size_bytes - count))
    if len(data) != count:
        raise pa.ArrowInvalid(f"it ends before its {size_bytes} bytes")
    return data


def as_file(footer: bytes) -> bytes:
    """A Parquet file of nothing but that footer."""
    return MAGIC + footer + FOOTER_END.pack(len(footer), MAGIC)


def seal_of(footer: bytes) -> bytes:
    """What lies in front of a footer of lakelog's."""
    return SEAL_MARK + crc32c(footer)


# -- Parquet's structs, by the numbers of their fields -----------------------------------------

_SCHEMA, _ROW_GROUPS, _KEY_VALUES = 2, 4, 5  # FileMetaData
_KIND, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 1, 4, 5, 6, 10  # SchemaElement
_COLUMNS, _GROUP_BYTES, _GROUP_ROWS = 1, 2, 3  # RowGroup
_COLUMN_METADATA = 3  # ColumnChunk
_CODEC, _STORED_BYTES, _DATA_PAGE, _DICTIONARY_PAGE, _STATISTICS = 4, 7, 9, 11, 12  # ColumnMetaData
_PATH = 3
_OLD_MAX, _OLD_MIN, _MAX, _MIN = 1, 2, 5, 6  # Statistics
_TIMESTAMP, _UNIT = 8, 2  # LogicalType, TimestampType
_UNITS_US = {1: 1000, 2: 1}  # TimeUnit: milliseconds, microseconds
_CONVERTED_UNITS_US = {9: 1000, 10: 1}  # ConvertedType: TIMESTAMP_MILLIS, TIMESTAMP_MICROS

_INT64, _BYTE_ARRAY = 2, 6
_CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4")
_INT64_VALUE = struct.Struct("<q")


class _Leaf(msgspec.Struct, frozen=True):
    """A column of the schema."""

    path: str  # dotted
    parts: list[bytes]  # as stored
    kind: int | None  # Parquet's physical type
    unit_us: int | None  # of a stored time; None for those without an order (Spark's INT96)

    @property
    def is_payload(self) -> bool:
        return self.kind == _BYTE_ARRAY and self.path.split(".")[0] in ("key", "value", "headers")


def _leaves(elements: list[Struct], names: Mapping[str, str]) -> Iterator[_Leaf]:
    open_groups: list[list[Any]] = []  # name, children still to come
    for element in elements[1:]:  # the first is the root
        name, children = element.get(_NAME), element.get(_CHILDREN) or 0
        if not isinstance(name, bytes) or not isinstance(children, int):
            raise ThriftError("its schema has an element without a name")
        if children > 0:
            open_groups.append([name, children])
            continue
        parts = [group for group, _ in open_groups] + [name]
        kind = element.get(_KIND)
        path = ".".join(names.get(part.decode(), part.decode()) for part in parts)
        yield _Leaf(path, parts, kind, _unit_us(element, kind))
        while open_groups:
            open_groups[-1][1] -= 1
            if open_groups[-1][1]:
                break
            open_groups.pop()


def _unit_us(element: Struct, kind: int | None) -> int | None:
    if kind != _INT64:
        return None
    logical = element.get(_LOGICAL)
    if isinstance(logical, dict) and logical:
        time = logical.get(_TIMESTAMP)
        unit = time.get(_UNIT) if isinstance(time, dict) else None
        return _UNITS_US.get(next(iter(unit), 0)) if isinstance(unit, dict) else None
    return _CONVERTED_UNITS_US.get(element.get(_CONVERTED, -1))


def _row_group(
    index: int,
    group: Struct,
    leaves: list[_Leaf],
    file_bytes: int,
    filter_checksums: Sequence[bytes],
) -> RowGroup:
    rows, size_bytes = _number(group, _GROUP_ROWS), _number(group, _GROUP_BYTES)
    chunks = _structs(group, _COLUMNS)
    if len(chunks) != len(leaves):
        raise ThriftError(
            f"row group {index} has {len(chunks)} columns, the schema has {len(leaves)}"
        )
    offsets = times_us = key_filter = None
    compressed_bytes = 0
    codecs = set()
    has_dictionary = False
    for chunk, leaf in zip(chunks, leaves, strict=True):
        column = chunk.get(_COLUMN_METADATA)
        if not isinstance(column, dict) or column.get(_PATH) != leaf.parts:
            raise ThriftError(f"row group {index} has another column where {leaf.path!r} should be")
        stored, start = _number(column, _STORED_BYTES), _number(column, _DATA_PAGE)
        dictionary = column.get(_DICTIONARY_PAGE)
        if dictionary is not None:
            start = min(start, _number(column, _DICTIONARY_PAGE))
        if start + stored > file_bytes:
            raise ThriftError(f"row group {index} lies outside the file in {leaf.path!r}")
        compressed_bytes += stored
        codec = _number(column, _CODEC)
        codecs.add(_CODECS[codec] if codec < len(_CODECS) else f"codec {codec}")
        if leaf.is_payload:
            has_dictionary = has_dictionary or dictionary is not None
        elif leaf.path == "offset":
            offsets = _bounds(column, leaf, 1)
        elif leaf.path == "timestamp" and leaf.unit_us is not None:
            times_us = _bounds(column, leaf, leaf.unit_us)
        if leaf.path == "key" and index < len(filter_checksums):
            key_filter = _filter_place(column, file_bytes, filter_checksums[index])
    return RowGroup(
        index,
        rows,
        size_bytes,
        compressed_bytes,
        "+".join(sorted(codecs)),
        offsets,
        times_us,
        has_dictionary,
        key_filter,
    )


def _filter_place(column: Struct, file_bytes: int, checksum: bytes) -> FilterPlace | None:
    found = filter_range(column)
    if found is None or found[1] > file_bytes or found[1] - found[0] > MOST_FILTER_BYTES:
        return None
    return FilterPlace(*found, checksum)


def _bounds(column: Struct, leaf: _Leaf, unit: int) -> tuple[int, int] | None:
    statistics = column.get(_STATISTICS)
    if not isinstance(statistics, dict) or leaf.kind != _INT64:
        return None
    low = statistics.get(_MIN, statistics.get(_OLD_MIN))
    high = statistics.get(_MAX, statistics.get(_OLD_MAX))
    if low is None or high is None:
        return None
    values = []
    for value in (low, high):
        if not isinstance(value, bytes) or len(value) != _INT64_VALUE.size:
            raise ThriftError(f"the statistics of {leaf.path!r} are no values of its type")
        values.append(_INT64_VALUE.unpack(value)[0] * unit)
    return values[0], values[1]


def _key_values(footer: Struct) -> Iterator[tuple[bytes, bytes]]:
    if footer.get(_KEY_VALUES) is None:
        return
    for pair in _structs(footer, _KEY_VALUES):
        key, value = pair.get(1), pair.get(2, b"")
        if not isinstance(key, bytes) or not isinstance(value, bytes):
            raise ThriftError("its key-value metadata are no texts")
        yield key, value


def _structs(parent: Struct, field: int) -> list[Struct]:
    found = parent.get(field)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ThriftError(f"its field {field} is no list of structs")
    return found


def _number(parent: Struct, field: int) -> int:
    found = parent.get(field)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ThriftError(f"its field {field} is no number ≥ 0")
    return found
