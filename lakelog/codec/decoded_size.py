"""How large an entry is once it is decoded, told without decoding it.

A fields entry and a plain arrow entry are as large as they are stored. Of a compressed arrow entry,
the message's metadata (a flatbuffer) says where its buffers lie, and each buffer begins with its
length before compression: 8 bytes, little-endian; -1 where compression would not have paid.

Source: Arrow columnar format, "Compression", and ``format/Message.fbs``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from .entry import EntryId

MESSAGE_FIELD = b"a"

_PREFIX_BYTES = 8  # continuation mark and metadata length
_LENGTH_BYTES = 8  # what a compressed buffer begins with
_NOT_COMPRESSED = -1

# Where the vtables of Message and RecordBatch have their fields: two lengths, then 16 bits a field.
_HEADER, _BUFFERS, _COMPRESSION = 4 + 2 * 2, 4 + 2 * 2, 4 + 2 * 3

_INT32, _UINT16, _UINT32 = struct.Struct("<i"), struct.Struct("<H"), struct.Struct("<I")
_LENGTH = struct.Struct("<q")
_PREFIX = struct.Struct("<II")

Id = TypeVar("Id", EntryId, bytes)


def decoded_bytes(fields: Sequence[bytes]) -> int:
    """The bytes of an entry's names and values, those of a compressed message decompressed.

    Of bytes that are no Arrow message, as stored: decoding them takes no more than that.
    """
    stored = sum(map(len, fields))
    if len(fields) < 2 or fields[0] != MESSAGE_FIELD:
        return stored
    lengths = buffer_lengths(fields[1])
    return stored if lengths is None else stored - len(fields[1]) + sum(lengths)


def buffer_lengths(message: bytes) -> list[int] | None:
    """The lengths that the buffers of a compressed message declare; None if it is none."""
    try:
        return _lengths(message)
    except struct.error:  # it points outside itself
        return None


def _lengths(message: bytes) -> list[int] | None:
    _, metadata_bytes = _PREFIX.unpack_from(message)
    batch = _field(message, _table(message, _PREFIX_BYTES), _HEADER)
    if batch is None:
        return None
    batch = _table(message, batch)
    buffers = _field(message, batch, _BUFFERS)
    if buffers is None or _field(message, batch, _COMPRESSION) is None:
        return None
    body = _PREFIX_BYTES + metadata_bytes
    at = _table(message, buffers)
    (count,) = _UINT32.unpack_from(message, at)
    places = struct.unpack_from(f"<{2 * count}q", message, at + 4)
    lengths = []
    for offset, stored in zip(places[::2], places[1::2], strict=True):
        if not stored:
            continue
        if offset < 0 or stored < _LENGTH_BYTES:
            return None
        (length,) = _LENGTH.unpack_from(message, body + offset)
        lengths.append(stored - _LENGTH_BYTES if length == _NOT_COMPRESSED else length)
    return None if any(length < 0 for length in lengths) else lengths


def _table(message: bytes, at: int) -> int:
    """Where the reference that stands there leads to."""
    return at + int(_UINT32.unpack_from(message, at)[0])


def _field(message: bytes, table: int, place: int) -> int | None:
    """Where a table has a field; None if it leaves it out."""
    vtable = table - int(_INT32.unpack_from(message, table)[0])
    if vtable < 0 or place >= _UINT16.unpack_from(message, vtable)[0]:
        return None
    offset = int(_UINT16.unpack_from(message, vtable + place)[0])
    return table + offset if offset else None


def in_steps(
    entries: Iterable[tuple[Id, list[bytes]]], max_bytes: int
) -> Iterator[list[tuple[Id, list[bytes]]]]:
    """The entries in runs of at most `max_bytes` decoded; a larger one is a run of its own."""
    run: list[tuple[Id, list[bytes]]] = []
    run_bytes = 0
    for entry in entries:
        size_bytes = decoded_bytes(entry[1])
        if run and run_bytes + size_bytes > max_bytes:
            yield run
            run, run_bytes = [], 0
        run.append(entry)
        run_bytes += size_bytes
    if run:
        yield run
