"""A few records of Kafka record batches ⇄ Python values, one by one.

| part             | type                                                                     |
|------------------|--------------------------------------------------------------------------|
| length           | varint: the bytes of all that follows                                    |
| attributes       | 8 bits, none of them used                                                |
| timestamp delta  | varlong: to the batch's base timestamp                                   |
| offset delta     | varint: to the batch's base offset                                       |
| key, value       | each a varint, the length (negative: null), then the bytes               |
| headers          | varint, their count; of each the key and the value likewise              |

A varint has 7 bits a byte, the lowest first; bit 0 of the number is its sign (zigzag). Many records
are read and written side by side (`kafka_records`), but the calls of NumPy for that take longer
than a few records do here. What one of the two reads, the other reads likewise.

Source: Kafka's "Message format" (Record) and ``DefaultRecord``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from .fields_entry import Row

#: Fewer records than this are read and written here.
FEW_RECORDS = 32

#: A record takes no less: its length, attributes, two deltas, no key, no value, no headers.
LEAST_RECORD_BYTES = 7

VARINT, VARLONG = 5, 10  # bytes at most

#: Timestamps and deltas below this: sums of two cannot overflow.
TIME_BOUND = 1 << 62


class RecordFlawError(ValueError):
    """Why bytes are no records: what is wrong with the first one that is not sound."""

    def __init__(self, index: int, flaw: str) -> None:
        super().__init__(f"record {index} {flaw}")
        self.index, self.flaw = index, flaw


class Section(NamedTuple):
    """Where the records of one batch lie, uncompressed."""

    start: int  # in bytes
    end: int
    record_count: int
    base_timestamp_ms: int


def parse_rows(data: bytes, section: Section, max_headers: int | None = None) -> list[Row]:
    """The records of a batch.

    Args:
        max_headers: bound on the headers of a record.

    Raises:
        RecordFlawError: the section does not hold its records and nothing else, their offset deltas
            are not 0, 1, 2 …, or a header's key is no UTF-8.
    """
    at, end, record_count, base_ms = section
    rows = []
    for index in range(record_count):
        try:
            size, at = read_varint(data, at)
            last = at + size
            delta_ms, at = read_varint(data, at + 1, VARLONG)  # behind the attributes
            offset_delta, at = read_varint(data, at)
            key, at = _read_bytes(data, at)
            value, at = _read_bytes(data, at)
            header_count, at = read_varint(data, at)
            headers: Sequence[tuple[str, bytes | None]] = ()
            if header_count:
                if not 0 < header_count <= (last - at) // 2:
                    raise ValueError("has another count of headers than it has bytes for")
                check_headers(index, header_count, max_headers)
                headers, at = _read_headers(data, at, header_count)
        except IndexError:
            raise RecordFlawError(index, BEYOND) from None
        except RecordFlawError:
            raise
        except ValueError as error:
            raise RecordFlawError(index, str(error)) from None
        if at != last or last > end:
            raise RecordFlawError(index, BEYOND if last > end else OTHER_LENGTH)
        if offset_delta != index:
            raise RecordFlawError(index, OTHER_OFFSET)
        if not (-TIME_BOUND < base_ms < TIME_BOUND and -TIME_BOUND < delta_ms < TIME_BOUND):
            raise RecordFlawError(index, BEYOND_TIME)
        rows.append((base_ms + delta_ms, key, value, headers))
    if at != end:
        raise RecordFlawError(record_count - 1, f"is the last, and {end - at} bytes follow it")
    return rows


def check_headers(index: int, count: int, max_headers: int | None) -> None:
    """Refuses a record that has more headers than are taken.

    Raises:
        RecordFlawError: it does.
    """
    if max_headers is not None and count > max_headers:
        raise RecordFlawError(index, f"has {count} headers, and at most {max_headers} are taken")


# What is said of a record in either way of reading.
BEYOND = "reaches beyond the batch"
OTHER_LENGTH = "says another length than it has"
OTHER_OFFSET = "has another offset delta than its place"
BEYOND_TIME = "has a timestamp beyond all times"


def rows_section(rows: Sequence[Row], offsets: Sequence[int] | None = None) -> bytes:
    """The bytes of one or more records, whose deltas are to the first one.

    Args:
        offsets: None: they follow each other.
    """
    base_ms, base_offset = rows[0][0], offsets[0] if offsets else 0
    parts = []
    for offset, (timestamp_ms, key, value, headers) in zip(offsets or count(), rows, strict=False):
        record = [b"\x00", varint(timestamp_ms - base_ms), varint(offset - base_offset)]
        _add_bytes(record, key)
        _add_bytes(record, value)
        record.append(varint(len(headers)))
        for name, data in headers:
            _add_bytes(record, name.encode())
            _add_bytes(record, data)
        parts.append(varint(sum(map(len, record))))
        parts += record
    return b"".join(parts)


def read_varint(data: bytes, at: int, most: int = VARINT) -> tuple[int, int]:
    """The varint there, of so many bytes at most, and where it ends.

    Raises:
        IndexError: the bytes end before it does.
        ValueError: it has more bytes.
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    raw, shift = byte & 0x7F, 7
    while shift < 7 * most:
        at += 1
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFF_FFFF_FFFF_FFFF
            return (raw >> 1) ^ -(raw & 1), at + 1
        shift += 7
    raise ValueError(f"has a number of more than {most} bytes")


def varint(value: int) -> bytes:
    """A number as a varint."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    if raw < 0x80:
        return _BYTES[raw]
    octets = bytearray()
    while raw >= 0x80:
        octets.append(raw & 0x7F | 0x80)
        raw >>= 7
    octets.append(raw)
    return bytes(octets)


_BYTES = [bytes([number]) for number in range(0x80)]


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def _add_bytes(parts: list[bytes], value: bytes | None) -> None:
    if value is None:
        parts.append(_NULL)
    else:
        parts += (varint(len(value)), value)


_NULL = varint(-1)


def _read_headers(data: bytes, at: int, count: int) -> tuple[list[tuple[str, bytes | None]], int]:
    headers = []
    for _ in range(count):
        name, at = _read_bytes(data, at)
        if name is None:
            raise ValueError("has a header without a key")
        value, at = _read_bytes(data, at)
        try:
            headers.append((name.decode(), value))
        except UnicodeDecodeError:
            raise ValueError("has a header's key that is no UTF-8") from None
    return headers, at
