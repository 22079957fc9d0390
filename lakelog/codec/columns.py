"""Arrow's columns of Python values, made of their buffers.

``pa.array`` looks at each value's type, and asks the environment for pandas; of a single record
that takes longer than to read it, of hundreds twice as long as this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

from ..values.record import HEADERS_TYPE

_NO_HEADER = pa.nulls(0, HEADERS_TYPE.value_type)


def number_column(values: Sequence[int], kind: pa.DataType) -> pa.Array:
    """A column of a type of whole numbers, also of a time, without nulls."""
    found = np.array(values, np.dtype(f"i{kind.bit_width // 8}"))
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(found)])


def binary_column(values: Sequence[bytes | None]) -> pa.Array:
    """A ``pa.binary()`` column."""
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        return pa.array(values, pa.binary())
    buffers = [None, _ends(map(len, there)), pa.py_buffer(b"".join(there))]
    return pa.Array.from_buffers(pa.binary(), len(there), buffers)


def headers_column(rows: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.Array:
    """A ``HEADERS_TYPE`` column."""
    if any(rows):
        items = [[{"key": name, "value": data} for name, data in row] for row in rows]
        return pa.array(items, HEADERS_TYPE)
    ends = _ends(map(len, rows))
    return pa.Array.from_buffers(HEADERS_TYPE, len(rows), [None, ends], children=[_NO_HEADER])


def _ends(lengths: Iterable[int]) -> pa.Buffer:
    """Where each value ends, after where the first begins."""
    return pa.py_buffer(np.array([*accumulate(lengths, initial=0)], np.int32))
