"""The W3C headers that carry a record's trace context, as pairs and as Arrow columns.

| header        | value                                                                       |
|---------------|-----------------------------------------------------------------------------|
| `traceparent` | version, trace id, span id and flags, in hexadecimal: 55 bytes of ASCII     |
| `tracestate`  | what vendors keep beside it; only where there is some                       |

Source: W3C Trace Context, level 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..values.record import HEADERS_TYPE

TRACEPARENT = "traceparent"

Pair = tuple[str, bytes | None]


def carries_context(headers: Iterable[Pair]) -> bool:
    """Whether a record has a trace context already, which is not ours to change."""
    return any(name == TRACEPARENT for name, _ in headers)


def rows_with_context(column: pa.ListArray, most: int) -> list[list[Pair]]:
    """The headers of the first row of each trace context in a headers column.

    Args:
        column: of `HEADERS_TYPE`.
        most: how many are looked for.
    """
    pairs = column.flatten()
    if not len(pairs):
        return []
    is_context = pc.equal(pc.struct_field(pairs, "key"), TRACEPARENT)
    if not pc.any(is_context).as_py():
        return []
    rows = np.asarray(pc.list_parent_indices(column).filter(is_context))
    values = pc.struct_field(pairs, "value").filter(is_context).dictionary_encode()
    _, firsts = np.unique(np.asarray(values.indices.fill_null(-1)), return_index=True)
    chosen = column.take(pa.array(np.unique(rows[np.sort(firsts)[:most]])))
    return [[(pair["key"], pair["value"]) for pair in row] for row in chosen.to_pylist()]


def with_context(column: pa.ListArray, context: Sequence[tuple[str, bytes]]) -> pa.ListArray:
    """A headers column in which each row without a trace context has that one, as last headers."""
    lengths = np.asarray(pc.list_value_length(column)).astype(np.int64)
    pairs = column.flatten()
    parents = np.repeat(np.arange(len(lengths)), lengths)
    has_own = np.zeros(len(lengths), bool)
    is_context = pc.equal(pc.struct_field(pairs, "key"), TRACEPARENT)
    has_own[parents[np.asarray(is_context, bool)]] = True
    added = np.where(has_own, 0, len(context))
    ends = np.cumsum(lengths + added)
    starts = ends - lengths - added
    taken = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
    before = np.cumsum(lengths) - lengths
    taken[starts[parents] + np.arange(len(pairs)) - before[parents]] = np.arange(len(pairs))
    for place in range(len(context)):
        taken[ends[~has_own] - len(context) + place] = len(pairs) + place
    ours = pa.array(
        [{"key": name, "value": value} for name, value in context], HEADERS_TYPE.value_type
    )
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(
        offsets, pa.concat_arrays([pairs, ours]).take(pa.array(taken)), type=HEADERS_TYPE
    )
