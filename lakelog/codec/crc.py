"""CRC-32C (Castagnoli), the checksum of Kafka's record batches, as text."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import google_crc32c
import numpy as np
import pyarrow as pa


def crc32c(data: bytes) -> bytes:
    """The CRC of the bytes as 8 lower-case hex digits."""
    return b"%08x" % google_crc32c.value(data)


def crc32c_of_parts(parts: Sequence[bytes]) -> bytes:
    """The CRC of the parts, preceded by their count and lengths (4 bytes each, little-endian), so
    that it also detects a byte that moved from one part to the next.
    """
    count = len(parts)
    frame = struct.pack(f"<{count + 1}I", count, *map(len, parts))
    return crc32c(b"".join((frame, *parts)))


def crc32c_extended(crc: int, column: pa.Array) -> int:
    """A CRC continued with the values of a ``pa.binary()`` or ``pa.string()`` column: their lengths
    (4 bytes each in this machine's order, -1 for null), then their bytes.
    """
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(column) + 1, column.offset * 4)
    lengths = np.diff(offsets)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    crc = google_crc32c.extend(crc, lengths)
    if data is None:
        return int(crc)
    start, end = int(offsets[0]), int(offsets[-1])
    return int(google_crc32c.extend(crc, data.slice(start, end - start)))
