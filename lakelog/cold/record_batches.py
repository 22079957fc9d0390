"""Batches of a table's rows as readers give them: which columns, in which types, and how large.

Where a foreign writer kept values in a dictionary, a page of a few bytes may decode to gigabytes.
So pyarrow leaves those columns as dictionaries, and they are decoded piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..errors import InvalidArgumentError
from ..values.record import HEADERS_TYPE, RECORDS
from .schema import FILE_SCHEMA


def projection(columns: Sequence[str] | None) -> pa.Schema:
    """The schema in which a reader gives these columns of a record; None: `RECORDS`.

    Raises:
        InvalidArgumentError: a record has no such column.
    """
    if columns is None:
        return RECORDS
    unknown = [name for name in columns if name not in FILE_SCHEMA.names]
    if unknown:
        raise InvalidArgumentError(
            f"a record has no column {unknown[0]!r}; it has {', '.join(FILE_SCHEMA.names)}"
        )
    return pa.schema([FILE_SCHEMA.field(name) for name in columns])


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The schema's columns in its types; other writers choose nullability differently.

    A cast is enough for all but headers: pyarrow 19 casts nothing nullable within a struct.
    """
    columns = [batch.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(
        [_cast(column, field) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type.equals(field.type):
        return column
    if field.name != "headers":
        return column.cast(field.type)
    items, offsets = items_of(column)
    fields = [HEADERS_TYPE.value_type.field(name) for name in ("key", "value")]
    pairs = pa.StructArray.from_arrays(
        [items.field(field.name).cast(field.type) for field in fields], fields=fields
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs, type=HEADERS_TYPE)


_FIXED_BYTES = 24  # offset, timestamp, type, and where the others begin


def row_bytes(batch: pa.RecordBatch) -> np.ndarray:
    """About how many bytes each row takes in plain columns of `FILE_SCHEMA`, or of values."""
    sizes = np.full(batch.num_rows, _FIXED_BYTES, np.int64)
    for column in batch.columns:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            items, offsets = items_of(column)
            upto = np.zeros(len(items) + 1, np.int64)
            np.cumsum(sum(_lengths(items.field(i)) for i in range(2)), out=upto[1:])
            sizes += np.diff(upto[offsets])
        elif not pa.types.is_primitive(column.type) and not pa.types.is_decimal(column.type):
            sizes += _lengths(column)
    return sizes


def cut_rows(batch: pa.RecordBatch, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows in pieces of at most `max_bytes` once decoded, or of one row."""
    if not any(_has_dictionary(kind) for kind in batch.schema.types):
        yield batch
        return
    for start, end in cuts(row_bytes(batch), max_bytes):
        yield batch.slice(start, end - start)


def cuts(sizes: np.ndarray, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Where rows of these sizes are cut into runs of at most `max_bytes`, or of one row."""
    upto = np.cumsum(sizes)
    start = 0
    while start < len(upto):
        before = int(upto[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(upto, before + max_bytes, side="right")))
        yield start, end
        start = end


def items_of(lists: pa.Array) -> tuple[pa.StructArray, np.ndarray]:
    """The items of lists, only those; and where each list's begin, and the last one's end."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if first < 0 or last > len(lists.values) or bool(np.any(offsets[1:] < offsets[:-1])):
        raise pa.ArrowInvalid("its lists lie outside their items")
    return lists.values.slice(first, last - first), offsets - first


def _lengths(column: pa.Array) -> np.ndarray:
    if not pa.types.is_dictionary(column.type):
        return _numbers(pc.binary_length(column))
    lengths = np.append(_numbers(pc.binary_length(column.dictionary)), 0)  # null: the last
    indices = _numbers(column.indices, null=len(lengths) - 1)
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < len(lengths):
        raise pa.ArrowInvalid("it names values that its dictionary does not have")
    return np.asarray(lengths[indices])


def _numbers(column: pa.Array, null: int = 0) -> np.ndarray:
    numbers = pc.fill_null(column.cast(pa.int64()), null)
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))
