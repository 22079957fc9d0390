"""Thrift's compact protocol, read without a schema: fields by number, and never past the end.

Parquet's own reader believes a footer and ends the process over some that are damaged; this one
looks first.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from typing import Any

#: A struct: its fields by their numbers. Lists are lists, binaries bytes, numbers int; a double is
#: left as its 8 bytes.
Struct = dict[int, Any]

_MAX_DEPTH = 32  # Parquet's deepest has 6

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class ThriftError(ValueError):
    """The bytes are no Thrift."""


def read_struct(data: bytes) -> Struct:
    """The struct that the bytes begin with.

    Raises:
        ThriftError: it ends early, nests deeper than anything of Parquet, or has an unknown type.
    """
    try:
        return _Reader(data).struct(0)
    except IndexError:
        raise ThriftError("it ends early") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise ThriftError("it nests too deep")
        fields: Struct = {}
        number = 0
        while head := self._byte():
            kind, delta = head & 0x0F, head >> 4
            number = number + delta if delta else self._zigzag()
            fields[number] = kind == _TRUE if kind <= _FALSE else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind in (_TRUE, _FALSE, _BYTE):  # within a list, a truth value takes a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _MAP:
            return self._map(depth + 1)
        raise ThriftError(f"it has a value of type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > _MAX_DEPTH:
            raise ThriftError("it nests too deep")
        head = self._byte()
        kind, count = head & 0x0F, head >> 4
        if count == 15:
            count = self._varint()
        self._check_left(count)
        return [self._value(kind, depth) for _ in range(count)]

    def _map(self, depth: int) -> list[tuple[Any, Any]]:
        if depth > _MAX_DEPTH:
            raise ThriftError("it nests too deep")
        count = self._varint()
        self._check_left(count)
        kinds = self._byte() if count else 0
        return [
            (self._value(kinds >> 4, depth), self._value(kinds & 0x0F, depth)) for _ in range(count)
        ]

    def _check_left(self, count: int) -> None:
        """Each item takes a byte at least."""
        if count > len(self._data) - self._at:
            raise ThriftError(f"it has a list of {count} items and ends before")

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _bytes(self, count: int) -> bytes:
        self._check_left(count)
        start = self._at
        self._at += count
        return self._data[start : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ThriftError("it has a number of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
