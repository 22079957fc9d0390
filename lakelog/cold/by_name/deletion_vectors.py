"""Deletion vectors of Delta: which rows of a file somebody deleted without rewriting it.

lakelog makes none; a DELETE, MERGE or UPDATE by somebody else does. Pure but for `DeletionVector.
where`, which only says where the bytes are.

Source: Delta's protocol, "Deletion Vector Format"; Roaring Bitmap's format specification.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np
from msgspec import Struct

_MAGIC = 1681511377  # RoaringBitmapArray, portable
_NO_RUNS, _RUNS = 12346, 12347  # cookies
_NO_OFFSETS_BELOW = 4  # containers: with runs, fewer have no header of offsets
_BITMAP_ABOVE = 4096  # values: a container of more is a bitmap
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_CHARACTERS = 20


class DeletionVector(Struct, frozen=True):
    """A vector as an add action names it."""

    kind: str  # i: within the log, u: in a file of the table, p: at an absolute path
    said: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> DeletionVector:
        """Of the member ``deletionVector`` of an add or remove action."""
        offset = action.get("offset")
        return cls(
            action["storageType"],
            action["pathOrInlineDv"],
            None if offset is None else int(offset),
            int(action["sizeInBytes"]),
            int(action["cardinality"]),
        )

    @property
    def unique_id(self) -> str:
        """Tells it from others of the same file."""
        return f"{self.kind}{self.said}@{self.offset}"

    @property
    def path(self) -> str | None:
        """The file that holds it, relative to the table; None if the log does, or it is elsewhere.

        Raises:
            ValueError: it is not written as the protocol says.
        """
        if self.kind != "u":
            return None
        prefix, coded = self.said[:-_UUID_CHARACTERS], self.said[-_UUID_CHARACTERS:]
        name = f"deletion_vector_{UUID(bytes=_decoded(coded))}.bin"
        return f"{prefix}/{name}" if prefix else name

    def rows(self, content: bytes | None) -> np.ndarray:
        """The numbers of the deleted rows, in order.

        Args:
            content: of the file at `path`.

        Raises:
            ValueError: it is not what the log says.
        """
        if self.kind == "i":
            data = _decoded(self.said)[: self.size_bytes]
        else:
            at = self.offset or 0
            (size_bytes,) = struct.unpack_from(">i", content or b"", at)
            if size_bytes != self.size_bytes:
                raise ValueError(f"it has {size_bytes} bytes, the log says {self.size_bytes}")
            data = (content or b"")[at + 4 : at + 4 + size_bytes]
        try:
            rows = _bitmaps(data)
        except struct.error as error:
            raise ValueError(f"it ends too early: {error}") from error
        if len(rows) != self.cardinality:
            raise ValueError(f"it has {len(rows)} rows, the log says {self.cardinality}")
        return rows


def _decoded(text: str) -> bytes:
    """Z85: five characters for four bytes."""
    decoded = bytearray()
    for start in range(0, len(text), 5):
        number = 0
        for character in text[start : start + 5]:
            number = number * 85 + _Z85.index(character)
        decoded += struct.pack(">I", number)
    return bytes(decoded)


def _bitmaps(data: bytes) -> np.ndarray:
    (magic,) = struct.unpack_from("<i", data)
    if magic != _MAGIC:
        raise ValueError(f"it begins with {magic}, not with {_MAGIC}")
    (count,) = struct.unpack_from("<q", data, 4)
    found, at = [np.empty(0, np.int64)], 12
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, at)
        if high >> 31:
            raise ValueError(f"it numbers rows from {high << 32} on")
        low, at = _bitmap(data, at + 4)
        found.append(low + (high << 32))
    return np.concatenate(found)


def _bitmap(data: bytes, at: int) -> tuple[np.ndarray, int]:
    """The values of a bitmap of 32 bits, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    start = at
    if cookie & 0xFFFF == _RUNS:
        count, at = (cookie >> 16) + 1, at + 4
        flags = np.unpackbits(
            np.frombuffer(data, np.uint8, (count + 7) // 8, at), bitorder="little"
        )
        at += (count + 7) // 8
        has_offsets = count >= _NO_OFFSETS_BELOW
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, at + 4)
        at, flags, has_offsets = at + 8, np.zeros(count, np.uint8), True
    else:
        raise ValueError(f"a bitmap begins with {cookie}")
    if count > (len(data) - start) // 4:
        raise ValueError(f"a bitmap of {len(data) - start} bytes has {count} containers")
    header = np.frombuffer(data, "<u2", 2 * count, at).astype(np.int64).reshape(count, 2)
    at += 4 * count + (4 * count if has_offsets else 0)
    found = [np.empty(0, np.int64)]
    for (key, less_one), is_run in zip(header, flags[:count], strict=True):
        values, at = _container(data, at, int(less_one) + 1, is_run=bool(is_run))
        found.append(values + (int(key) << 16))
    return np.concatenate(found), at


def _container(data: bytes, at: int, count: int, *, is_run: bool) -> tuple[np.ndarray, int]:
    if is_run:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = np.frombuffer(data, "<u2", 2 * runs, at + 2).astype(np.int64).reshape(runs, 2)
        values = [np.arange(first, first + more + 1) for first, more in pairs]
        return np.concatenate([np.empty(0, np.int64), *values]), at + 2 + 4 * runs
    if count <= _BITMAP_ABOVE:
        return np.frombuffer(data, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + 8192
