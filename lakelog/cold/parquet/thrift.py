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
_MAX_DEPTH = 64  # of structs and lists within each other; Parquet's footers have about ten

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _, _STRUCT = range(1, 13)


class ThriftError(ValueError):
    """The bytes are not Thrift, or have a map: nothing of Parquet has one."""


def read_struct(data: bytes) -> Struct:
    """The struct that the bytes begin with.

    Raises:
        ThriftError: there is none.
    """
    try:
        return _read(data)
    except IndexError:
        raise ThriftError("it ends early") from None


def _read(data: bytes) -> Struct:
    """In one loop, without a call for each level: of what is open, the innermost is at hand."""
    root: Struct = {}
    fields: Any = root
    items: Any = None  # of a list; one of both is None
    number = kind = left = 0  # the last field's number; the type of items, how many still come
    around: list[tuple[Any, Any, int, int, int]] = []  # the same of all that it lies in
    at = 0
    while True:
        if items is None:
            head = data[at]
            at += 1
            if head:
                kind = head & 0x0F
                if head >> 4:
                    number += head >> 4
                else:
                    number, at = _zigzag(data, at)
                if kind <= _FALSE:
                    fields[number] = kind == _TRUE
                    continue
            elif around:
                fields, items, number, kind, left = around.pop()
                continue
            else:
                return root
        elif left:
            left -= 1
        else:
            fields, items, number, kind, left = around.pop()
            continue

        inner: tuple[Any, Any, int, int, int] | None = None
        value: Any
        if _I16 <= kind <= _I64:
            value, at = _zigzag(data, at)
        elif kind == _BINARY:
            count, at = _varint(data, at)
            value, at = _bytes(data, at, count)
        elif kind == _STRUCT:
            value = {}
            inner = value, None, 0, 0, 0
        elif kind in (_LIST, _SET):
            value = []
            of, count = data[at] & 0x0F, data[at] >> 4
            at += 1
            if count == 15:
                count, at = _varint(data, at)
            inner = None, value, 0, of, count
        elif kind in (_TRUE, _FALSE, _BYTE):  # within a list, a boolean takes a byte
            value = data[at]
            at += 1
        elif kind == _DOUBLE:
            value, at = _bytes(data, at, 8)
        else:
            raise ThriftError(f"it has a value of type {kind}")
        if items is None:
            fields[number] = value
        else:
            items.append(value)
        if inner is not None:
            around.append((fields, items, number, kind, left))
            if len(around) > _MAX_DEPTH:
                raise ThriftError("it nests too deep")
            fields, items, number, kind, left = inner


# Each takes the position of a value, and returns the value and the position of the next.


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
