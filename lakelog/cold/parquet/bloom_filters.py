"""Parquet's Bloom filters of keys: which row groups cannot hold a key.

A filter that lost a bit hides records, and Parquet has no checksum for it. So lakelog's files have
one, and a filter without a checksum that fits is not asked:

| in front of a footer's seal                      | bytes |
|--------------------------------------------------|-------|
| CRC-32C of each row group's filter, hex digits   | 8 each |
| how many there are, little-endian                | 4     |
| ``LKBF``                                         | 4     |

Sources: Apache Parquet, "Bloom Filter" (split blocks of 256 bits, xxHash64) and ``parquet.thrift``.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
import xxhash

from ...codec.crc import crc32c
from .thrift import Struct, ThriftError, read_struct

#: How often a filter may say that a row group holds a key that it does not hold. Its keys are then
#: read, which finds out; half of it would cost a sixth more bytes.
FALSE_POSITIVES = 0.05

#: More than the filter of a row group takes that is as large as one may be.
MOST_FILTER_BYTES = 16 * 1024 * 1024

_MAGIC = b"LKBF"
_COUNT = struct.Struct("<I")
_CRC_BYTES = 8

_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA = 4, 1, 3  # FileMetaData, RowGroup, ColumnChunk
_FILTER_OFFSET, _FILTER_LENGTH = 14, 15  # ColumnMetaData
_SET_BYTES, _ALGORITHM, _HASH, _COMPRESSION = 1, 2, 3, 4  # BloomFilterHeader
_FIRST = 1  # of each union: BLOCK, XXHASH, UNCOMPRESSED

_BLOCK_BYTES = 32
_SALTS = np.array(
    [
        *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
        *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
    ],
    np.uint32,
)


class FilterPlace(msgspec.Struct, frozen=True):
    """Where in a file a row group's filter of keys lies, and the checksum that it must have."""

    start: int
    end: int
    checksum: bytes


# -- writing -------------------------------------------------------------------------------------


@cache
def can_be_written() -> bool:
    """Whether the pyarrow that is installed writes Bloom filters."""
    import pyarrow.parquet as pq

    return "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters


def filter_options(distinct: int, column: str) -> dict[str, Any]:
    """For `pq.ParquetWriter`: a filter of a column's values in each row group.

    Args:
        distinct: values in the file's first row group. Others are as large, so their filters are,
            too.
        column: what the file calls it.
    """
    if not distinct or not can_be_written():
        return {}
    return {"bloom_filter_options": {column: {"ndv": distinct, "fpp": FALSE_POSITIVES}}}


def checksums_of(end: bytes, at_byte: int, footer: bytes) -> bytes:
    """What to write in front of a footer's seal; nothing if the file has no filters.

    Args:
        end: the file's last bytes, with all filters.
        at_byte: where in the file they begin.
    """
    groups = read_struct(footer)[_ROW_GROUPS]
    places = [_first_filter(group[_COLUMNS]) for group in groups]
    if not any(places):
        return b""
    crcs = [b"0" * _CRC_BYTES if at is None else crc32c(_at(end, at_byte, at)) for at in places]
    return b"".join([*crcs, _COUNT.pack(len(crcs)), _MAGIC])


def _at(end: bytes, at_byte: int, place: tuple[int, int]) -> bytes:
    return end[place[0] - at_byte : place[1] - at_byte]


def _first_filter(chunks: Iterable[Struct]) -> tuple[int, int] | None:
    places = (filter_range(chunk[_COLUMN_METADATA]) for chunk in chunks)
    return next((place for place in places if place), None)


# -- finding them --------------------------------------------------------------------------------


def filter_range(column: Struct) -> tuple[int, int] | None:
    """Where a column chunk's filter begins and ends; None: it has none, or says not how long.

    Args:
        column: its ``ColumnMetaData``.
    """
    start, length = column.get(_FILTER_OFFSET), column.get(_FILTER_LENGTH)
    if not isinstance(start, int) or not isinstance(length, int):
        return None
    return (start, start + length) if start >= 0 and length > 0 else None


def checksums_before(before: bytes) -> tuple[bytes, ...] | None:
    """The checksums in front of a footer's seal, by row group; none where a file has no filters.

    Args:
        before: what lies there, as much as is known.

    Returns:
        None: more of it must be known.
    """
    head = len(_MAGIC) + _COUNT.size
    if len(before) < head:
        return None
    if before[-len(_MAGIC) :] != _MAGIC:
        return ()
    (count,) = _COUNT.unpack(before[-head : -len(_MAGIC)])
    start = len(before) - head - count * _CRC_BYTES
    if start < 0:
        return None
    return tuple(before[start + n * _CRC_BYTES :][:_CRC_BYTES] for n in range(count))


# -- asking them ---------------------------------------------------------------------------------


def hashes(keys: Iterable[bytes]) -> np.ndarray:
    """What filters know of keys."""
    return np.array([xxhash.xxh64_intdigest(key) for key in keys], np.uint64)


def may_hold(data: bytes, place: FilterPlace, wanted: np.ndarray) -> bool:
    """Whether a row group may hold one of the keys: False is sure, and so is nothing else.

    Args:
        data: the filter's bytes, with its header.
        wanted: `hashes` of the keys.
    """
    bits = _bits(data) if crc32c(data) == place.checksum else None
    if bits is None:
        return True
    blocks = np.frombuffer(bits, np.dtype("<u4")).reshape(-1, len(_SALTS))
    at = ((wanted >> np.uint64(32)) * np.uint64(len(blocks))) >> np.uint64(32)
    low = (wanted & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    masks = np.uint32(1) << ((low[:, None] * _SALTS) >> np.uint32(27))
    return bool(np.any(np.all(blocks[at.astype(np.int64)] & masks, axis=1)))


def _bits(data: bytes) -> bytes | None:
    """The filter without its header; None: it is of another kind."""
    try:
        header = read_struct(data)
    except ThriftError:
        return None
    kinds: Sequence[Any] = [header.get(one) for one in (_ALGORITHM, _HASH, _COMPRESSION)]
    if not all(isinstance(kind, dict) and _FIRST in kind for kind in kinds):
        return None
    count = header.get(_SET_BYTES)
    if not isinstance(count, int) or not 0 < count < len(data) or count % _BLOCK_BYTES:
        return None
    return data[-count:]
