"""CRC-32C (Castagnoli), the checksum of Kafka's record batches, as text."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import google_crc32c


def crc32c(data: bytes) -> bytes:
    """The CRC of the bytes as 8 lower-case hex digits."""
    return b"%08x" % google_crc32c.value(data)


def crc32c_of_parts(parts: Sequence[bytes]) -> bytes:
    """The CRC of the parts behind their count and lengths (4 bytes each, little-endian), so that a
    byte that moved from one part to the next is noticed too.
    """
    count = len(parts)
    frame = struct.pack(f"<{count + 1}I", count, *map(len, parts))
    return crc32c(b"".join((frame, *parts)))
