"""CRC-32C (Castagnoli), the checksum of Kafka's record batches, as text."""

from __future__ import annotations

from collections.abc import Sequence

import google_crc32c


def crc32c(data: bytes) -> bytes:
    """The CRC of the bytes as 8 lower-case hex digits."""
    return b"%08x" % google_crc32c.value(data)


def crc32c_of_parts(parts: Sequence[bytes]) -> bytes:
    """The CRC of the parts, each behind its length (4 bytes), so that a byte that moved from one
    to the next is noticed too.
    """
    framed: list[bytes] = []
    for part in parts:
        framed += (len(part).to_bytes(4, "little"), part)
    return crc32c(b"".join(framed))
