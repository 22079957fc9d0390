"""What a stored entry says of itself, without decoding its records: for inspection."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from msgspec import Struct

from .arrow_entry import CRC_FIELD as ARROW_CRC_FIELD
from .crc import crc32c, crc32c_of_parts
from .decoded_size import MESSAGE_FIELD
from .entry import DECODED_FIELD, GAP_FIELD
from .fields_entry import CRC_FIELD, TIMESTAMP_FIELD
from .kafka_batch import HEADER_BYTES, BatchHeader, crc_of
from .kafka_entry import is_kafka

_CODECS = {0: "lz4", 1: "zstd"}  # Arrow's CompressionType


class EntryDescription(Struct, frozen=True):
    """One entry, sound or not."""

    format: str  # arrow, fields, kafka, gap; unknown: lakelog did not write it
    size_bytes: int  # as `Entry.size_bytes`: without the append time
    compression: str | None  # of arrow's buffers, or kafka's records; None: nothing is compressed
    crc: str | None  # as stored, 8 hex digits
    crc_holds: bool | None  # None: there is none


def describe(fields: Sequence[bytes]) -> EntryDescription:
    """What the fields say; never raises."""
    name = fields[0] if fields else b""
    everything = sum(map(len, fields))
    if name == MESSAGE_FIELD and len(fields) >= 4 and fields[2] == ARROW_CRC_FIELD:
        message, crc = fields[1], fields[3]
        return EntryDescription(
            "arrow",
            sum(map(len, fields[:4])),
            message_compression(message),
            _text(crc),
            crc32c(message) == crc,
        )
    if name == TIMESTAMP_FIELD:
        names = fields[::2]
        if CRC_FIELD not in names[: len(fields) // 2]:
            return EntryDescription("fields", everything, None, None, None)
        end = 2 * names.index(CRC_FIELD)
        return EntryDescription(
            "fields",
            sum(map(len, fields[: end + 2])),
            None,
            _text(fields[end + 1]),
            crc32c_of_parts(fields[:end]) == fields[end + 1],
        )
    if is_kafka(fields) and len(fields[3]) >= HEADER_BYTES:
        return _of_batch(fields)
    return EntryDescription("gap" if name == GAP_FIELD else "unknown", everything, None, None, None)


def _of_batch(fields: Sequence[bytes]) -> EntryDescription:
    end = 6 if fields[4:5] == [DECODED_FIELD] else 4
    header = BatchHeader.parse(fields[3])
    return EntryDescription(
        "kafka",
        sum(map(len, fields[:end])),
        None if header.codec == "none" else header.codec,
        f"{header.crc:08x}",
        crc_of(fields[3]) == header.crc,
    )


def message_compression(message: bytes) -> str | None:
    """The codec of an Arrow IPC record-batch message's buffers; None: plain, or no such message.

    pyarrow does not tell, so this follows the flatbuffer: ``Message.header`` (field 2) is a
    ``RecordBatch``, whose ``compression`` (field 3) is a ``BodyCompression``, whose ``codec`` is
    field 0.

    Source: Arrow's Message.fbs; the FlatBuffers internals page (tables and vtables).
    """
    try:
        start = 8 if message[:4] == b"\xff\xff\xff\xff" else 4  # continuation mark, metadata length
        table = start + _unsigned(message, start)
        for field in (2, 3):
            place = _field(message, table, field)
            if place is None:
                return None
            table = place + _unsigned(message, place)
        place = _field(message, table, 0)
        return _CODECS.get(message[place] if place is not None else 0)
    except (struct.error, IndexError):
        return None


def _unsigned(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int | None:
    """The position of a table's field; None if it has its default."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    if 4 + 2 * number >= size:
        return None
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    return table + offset if offset else None


def _text(crc: bytes) -> str:
    return crc.decode("latin-1")
