"""Thrift's compact protocol, read without a schema: fields by number, and never past the end.

pyarrow's own reader trusts a footer and ends the process over some that are damaged; this one
checks first. A footer of 64 row groups has 20,000 values, so the common cases are spelt out.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from typing import Any

#: A struct: its fields by their numbers. Lists are lists, binaries bytes, numbers int; a double
#: stays its 8 bytes.
Struct = dict[int, Any]

_MAX_DEPTH = 32  # Parquet's deepest has 6
_MAX_BITS = 63  # of a number, in groups of seven

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class ThriftError(ValueError):
    """The bytes are not Thrift."""


def read_struct(data: bytes) -> Struct:
    """The struct that the bytes begin with.

    Raises:
        ThriftError: it ends early, nests deeper than anything of Parquet, or has an unknown type.
    """
    try:
        return _struct(data, 0, 0)[0]
    except IndexError:
        raise ThriftError("it ends early") from None


# Each takes the position of a value, and returns the value and the position of the next.


def _struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    if depth > _MAX_DEPTH:
        raise ThriftError("it nests too deep")
    fields: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        kind, delta = head & 0x0F, head >> 4
        if delta:
            number += delta
        else:
            number, at = _zigzag(data, at)
        if _I16 <= kind <= _I64:
            first = data[at]
            if first < 0x80:
                fields[number] = (first >> 1) ^ -(first & 1)
                at += 1
            else:
                fields[number], at = _zigzag(data, at)
        elif kind <= _FALSE:
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _BINARY:
        count, at = _varint(data, at)
        return _bytes(data, at, count)
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (_LIST, _SET):
        return _list(data, at, depth + 1)
    if kind in (_I16, _I32, _I64):
        return _zigzag(data, at)
    if kind in (_TRUE, _FALSE, _BYTE):  # within a list, a boolean takes a byte
        return data[at], at + 1
    if kind == _DOUBLE:
        return _bytes(data, at, 8)
    if kind == _MAP:
        return _map(data, at, depth + 1)
    raise ThriftError(f"it has a value of type {kind}")


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    if depth > _MAX_DEPTH:
        raise ThriftError("it nests too deep")
    head = data[at]
    at += 1
    kind, count = head & 0x0F, head >> 4
    if count == 15:
        count, at = _varint(data, at)
    _check_left(data, at, count)
    items = []
    for _ in range(count):
        item, at = _value(data, at, kind, depth)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, depth: int) -> tuple[list[tuple[Any, Any]], int]:
    if depth > _MAX_DEPTH:
        raise ThriftError("it nests too deep")
    count, at = _varint(data, at)
    _check_left(data, at, count)
    pairs = []
    if count:
        kinds = data[at]
        at += 1
        for _ in range(count):
            key, at = _value(data, at, kinds >> 4, depth)
            value, at = _value(data, at, kinds & 0x0F, depth)
            pairs.append((key, value))
    return pairs, at


def _bytes(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    _check_left(data, at, count)
    return data[at : at + count], at + count


def _check_left(data: bytes, at: int, count: int) -> None:
    """Each item takes at least one byte."""
    if count > len(data) - at:
        raise ThriftError(f"{count} bytes or items are said to follow, and it ends before")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    shift = 0
    while byte >= 0x80:
        at += 1
        shift += 7
        if shift > _MAX_BITS:
            raise ThriftError("it has a number of more than 64 bits")
        byte = data[at]
        value |= (byte & 0x7F) << shift
    return value, at + 1


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
