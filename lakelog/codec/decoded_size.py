"""How large an entry is once it is decoded, computed without decoding it.

A fields entry is as large as it is stored, and so are a plain arrow and a plain kafka entry. A
compressed kafka entry says how long its records are (``d``). Of a compressed arrow entry,
the message's metadata (a flatbuffer) says where its buffers lie, and each buffer begins with its
length before compression: 8 bytes, little-endian; -1 where compression would not have paid.

Source: Arrow columnar format, "Compression", and ``format/Message.fbs``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ..base.batched import batched
from ..values.config import INT32_MAX
from .entry import BATCH_FIELD, DECODED_FIELD, VERSION_FIELD, EntryId
from .kafka_batch import HEADER_BYTES

MESSAGE_FIELD = b"a"

_PREFIX_BYTES = 8  # continuation mark and metadata length
_LENGTH_BYTES = 8  # what a compressed buffer begins with
_NOT_COMPRESSED = -1

# A flatbuffer's table begins with the distance back to its vtable: two lengths, then 16 bits per
# field, which say where in the table it is (0: left out). Read up to the last one needed here, of
# Message (version, header's type, header) and RecordBatch (length, nodes, buffers, compression).
_MESSAGE, _BATCH = struct.Struct("<5H"), struct.Struct("<6H")

_INT32, _UINT32 = struct.Struct("<i").unpack_from, struct.Struct("<I").unpack_from
_LENGTH = struct.Struct("<q").unpack_from
_PREFIX = struct.Struct("<III").unpack_from  # mark, metadata's length, where its root table is

Id = TypeVar("Id", EntryId, bytes)


def decoded_bytes(fields: Sequence[bytes]) -> int:
    """The bytes of an entry's names and values, those of a compressed message decompressed.

    If the bytes are not an Arrow message, or a batch that says its length, their stored size:
    decoding takes no more than that.
    """
    stored = sum(map(len, fields))
    if len(fields) < 2 or fields[0] != MESSAGE_FIELD:
        length = decoded_length(fields)
        return stored if length is None else stored - len(fields[3]) + HEADER_BYTES + length
    lengths = buffer_lengths(fields[1])
    return stored if lengths is None else stored - len(fields[1]) + sum(lengths)


def decoded_length(fields: Sequence[bytes]) -> int | None:
    """What a kafka entry says of the length of its records, decompressed; None: nothing."""
    if len(fields) < 6 or fields[4] != DECODED_FIELD or fields[0] != VERSION_FIELD:
        return None
    if fields[2] != BATCH_FIELD or len(fields[3]) < HEADER_BYTES or len(fields[5]) > 10:
        return None
    return int(fields[5]) if fields[5].isdigit() and int(fields[5]) <= INT32_MAX else None


def buffer_lengths(message: bytes) -> list[int] | None:
    """The lengths that the buffers of a compressed message declare; None if it is not one."""
    try:
        return _lengths(message)
    except struct.error:  # it points outside itself
        return None


def _lengths(message: bytes) -> list[int] | None:
    # Runs once per entry when appending, reading and archiving: few calls, no helpers.
    _, metadata_bytes, root = _PREFIX(message)
    table = _PREFIX_BYTES + root
    vtable = table - _INT32(message, table)[0]
    size, _, _, _, header = _MESSAGE.unpack_from(message, vtable) if vtable >= 0 else (0,) * 5
    if size < _MESSAGE.size or not header:
        return None
    table += header
    table += _UINT32(message, table)[0]
    vtable = table - _INT32(message, table)[0]
    size, _, _, _, buffers, compression = (
        _BATCH.unpack_from(message, vtable) if vtable >= 0 else (0,) * 6
    )
    if size < _BATCH.size or not buffers or not compression:
        return None
    at = table + buffers
    at += _UINT32(message, at)[0]
    (count,) = _UINT32(message, at)
    places = struct.unpack_from(f"<{2 * count}q", message, at + 4)
    body = _PREFIX_BYTES + metadata_bytes
    lengths = []
    for offset, stored in zip(places[::2], places[1::2], strict=True):
        if not stored:
            continue
        if offset < 0 or stored < _LENGTH_BYTES:
            return None
        (length,) = _LENGTH(message, body + offset)
        if length < 0:
            if length != _NOT_COMPRESSED:
                return None
            length = stored - _LENGTH_BYTES
        lengths.append(length)
    return lengths


def in_steps(
    entries: Iterable[tuple[Id, list[bytes]]], max_bytes: int
) -> Iterator[list[tuple[Id, list[bytes]]]]:
    """The entries in runs of at most `max_bytes` decoded; a larger one is a run of its own."""
    return batched(entries, lambda entry: decoded_bytes(entry[1]), max_bytes)
