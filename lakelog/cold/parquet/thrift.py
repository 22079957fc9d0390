"""Thrift's compact protocol, read without a schema: fields by number, and never past the end.

pyarrow's own reader trusts a footer and ends the process over some that are damaged; this one
checks first.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from typing import Any

#: A struct: its fields by their numbers. Lists are lists, binaries bytes, numbers int; a double
#: stays its 8 bytes.
Struct = dict[int, Any]

_MAX_BITS = 63  # of a number, in groups of seven

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _, _STRUCT = range(1, 13)


class ThriftError(ValueError):
    """The bytes are not Thrift, or have a map: nothing of Parquet has one."""


def read_struct(data: bytes) -> Struct:
    """The struct that the bytes begin with.

    Raises:
        ThriftError: there is none.
    """
    try:
        return _struct(data, 0)[0]
    except IndexError:
        raise ThriftError("it ends early") from None
    except RecursionError:
        raise ThriftError("it nests too deep") from None


# Each takes the position of a value, and returns the value and the position of the next.


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        kind, delta = head & 0x0F, head >> 4
        if delta:
            number += delta
        else:
            number, at = _zigzag(data, at)
        if kind <= _FALSE:
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if _I16 <= kind <= _I64:
        return _zigzag(data, at)
    if kind == _BINARY:
        count, at = _varint(data, at)
        return _bytes(data, at, count)
    if kind == _STRUCT:
        return _struct(data, at)
    if kind in (_LIST, _SET):
        return _list(data, at)
    if kind in (_TRUE, _FALSE, _BYTE):  # within a list, a boolean takes a byte
        return data[at], at + 1
    if kind == _DOUBLE:
        return _bytes(data, at, 8)
    raise ThriftError(f"it has a value of type {kind}")


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    kind, count = data[at] & 0x0F, data[at] >> 4
    at += 1
    if count == 15:
        count, at = _varint(data, at)
    items = []
    for _ in range(count):
        item, at = _value(data, at, kind)
        items.append(item)
    return items, at


def _bytes(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    if count > len(data) - at:
        raise ThriftError(f"{count} bytes are said to follow, and it ends before")
    return data[at : at + count], at + count


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] >= 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        if shift > _MAX_BITS:
            raise ThriftError("it has a number of more than 64 bits")
        at += 1
    return value | data[at] << shift, at + 1


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
