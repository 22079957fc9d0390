"""Arrow columns of plain Python values.

`pyarrow.array` looks at each value for its type, which of a few takes ten times as long as to write
them down, and imports pandas first: a third of a second.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa


def texts(values: Sequence[str]) -> pa.Array:
    """Strings, of 2 GiB at most.

    Raises:
        OverflowError: they are longer together.
        ValueError: one is no Unicode.
    """
    text = "".join(values)
    data = text.encode()
    lengths = map(len, values if len(data) == len(text) else (value.encode() for value in values))
    ends = array("i", accumulate(lengths, initial=0))
    return _of_buffers(pa.string(), len(values), ends, data)


def repeated(values: Sequence[str], count: int) -> pa.Array:
    """These strings in turn, so often; of 2 GiB at most.

    Raises:
        OverflowError: they are longer together.
        ValueError: one is no Unicode.
    """
    encoded = [value.encode() for value in values]
    data = b"".join(encoded)
    if len(data) * count >= 2**31:
        raise OverflowError(f"{count} times {len(data)} bytes are too many for a column")
    lengths = np.array([len(value) for value in encoded], np.int32)
    ends = np.zeros(len(values) * count + 1, np.int32)
    np.cumsum(np.tile(lengths, count), dtype=np.int32, out=ends[1:])
    return _of_buffers(pa.string(), len(values) * count, ends, data * count)


def numbers(kind: pa.DataType, values: Sequence[float] | np.ndarray) -> pa.Array:
    """Of type float64, or of one of 32 or 64 bits that counts: int32, int64, timestamps; of
    NumPy's without a copy, if they are of that type.

    Raises:
        OverflowError: one is too large.
        TypeError: one is no number, or no whole one.
    """
    code = "d" if kind == pa.float64() else _CODES[kind.bit_width]
    if isinstance(values, np.ndarray):
        return _of_buffers(kind, len(values), np.ascontiguousarray(values, code))
    return _of_buffers(kind, len(values), array(code, values))


def binaries(values: Sequence[bytes | None]) -> pa.Array:
    """Of type binary; of 2 GiB at most."""
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        return pa.array(values, pa.binary())
    ends = array("i", accumulate(map(len, there), initial=0))
    return _of_buffers(pa.binary(), len(there), ends, b"".join(there))


def bits(values: Sequence[bool] | np.ndarray) -> pa.Array:
    """Booleans."""
    packed = np.packbits(np.array(values, bool), bitorder="little")
    return _of_buffers(pa.bool_(), len(values), packed)


def no_rows(schema: pa.Schema) -> pa.Table:
    """A table without rows, each column of one chunk."""
    return pa.Table.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)


_CODES = {32: "i", 64: "q"}  # by bits


def _of_buffers(kind: pa.DataType, count: int, *buffers: Any) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, *map(pa.py_buffer, buffers)], 0)
