"""Some columns of a record, in the types that readers of every kind of table give them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import InvalidArgumentError
from ..values.record import HEADERS_TYPE, RECORDS
from .row_sizes import items_of
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
