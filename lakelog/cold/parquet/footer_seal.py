"""Where a Parquet file's footer lies, and whether its bytes are those that were written.

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

Source: Apache Parquet, "File format".
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
from msgspec import Struct

from ...codec.crc import crc32c
from .bloom_filters import checksums_before, checksums_of

#: Footer key-value metadata of a file with a checksum.
SEALED = {"lakelog.footer.checksum": "crc32c"}

MAGIC = b"PAR1"
_SEAL = b"LKCS"
SEAL_BYTES = len(_SEAL) + 8
_END = struct.Struct("<I4s")

#: Read at once; holds most footers with their seal.
_TAIL_BYTES = 64 * 1024

#: Read with a footer that is larger than that, and at most: what lies in front of its seal.
_BEFORE_BYTES, _MOST_BEFORE_BYTES = 4 * 1024, 1024 * 1024


class FooterBytes(Struct, frozen=True):
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
    if found_bytes < len(MAGIC) + _END.size:
        raise pa.ArrowInvalid(f"it has {found_bytes} bytes, too few for Parquet")
    tail = _last(source, found_bytes, min(found_bytes, _TAIL_BYTES))
    length, magic = _END.unpack(tail[-_END.size :])
    if magic != MAGIC:
        raise pa.ArrowInvalid(f"it ends in {magic!r}, not in {MAGIC!r}")
    if length > found_bytes - len(MAGIC) - _END.size:
        raise pa.ArrowInvalid(f"its footer is said to have {length} of its {found_bytes} bytes")
    needed = min(found_bytes, length + SEAL_BYTES + _END.size)
    if needed > len(tail):
        tail = _last(source, found_bytes, min(found_bytes, needed + _BEFORE_BYTES))
    at = len(tail) - length - _END.size
    footer, seal = tail[at : -_END.size], tail[max(0, at - SEAL_BYTES) : at]
    if seal[: len(_SEAL)] != _SEAL:
        return FooterBytes(footer)
    if seal != _seal(footer):
        raise pa.ArrowInvalid(
            f"its footer's CRC-32C is {crc32c(footer)!r}, stored is {seal[len(_SEAL) :]!r}"
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
    return MAGIC + footer + _END.pack(len(footer), MAGIC)


class SealingSink:
    """What a Parquet writer writes to: puts the seal in front of the footer.

    Args:
        out: `pa.NativeFile`, open for writing, or what is like one.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._end: list[bytes] | None = None
        self.closed = False
        self.size_bytes = 0  # given up to now; of the file, once it is closed

    @property
    def target(self) -> pa.PythonFile:
        """For the writer."""
        return pa.PythonFile(self, mode="w")

    def write(self, data: Any) -> int:
        if self._end is None:
            self._out.write(data)
        else:
            self._end.append(bytes(data))
        self.size_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None: ...

    def hold(self) -> None:
        """Hold back what comes from now on: it is the file's end."""
        self._end = []

    def close(self) -> None:
        """Write the end, and close the file."""
        if self.closed:
            return
        self.closed = True
        if self._end is not None:
            held = b"".join(self._end)
            end = sealed_end(held, self.size_bytes - len(held))
            self._out.write(end)
            self.size_bytes += len(end) - len(held)
        self._out.close()


def sealed_end(end: bytes, at_byte: int = 0) -> bytes:
    """The last bytes of a file, from before its Bloom filters on, with what seals them.

    Args:
        at_byte: where in the file they begin.
    """
    length, _ = _END.unpack(end[-_END.size :])
    at = len(end) - length - _END.size
    footer = end[at : -_END.size]
    return end[:at] + checksums_of(end, at_byte, footer) + _seal(footer) + end[at:]


def _seal(footer: bytes) -> bytes:
    return _SEAL + crc32c(footer)
