"""Tables and columns of other libraries, as Arrow's.

Takes Arrow's own, and objects that export themselves: by Arrow's C stream or C array (polars,
DuckDB relations, readers, arrays, pandas) or by the DataFrame interchange protocol. A column
without a name holds values. What pandas calls missing (NaN, NaT, None, NA) is null here.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgumentError
from ..values.record import HEADERS_TYPE
from .given_values import as_headers


def as_table(records: object) -> pa.Table | None:
    """The table that an object holds or exports; None if it is not of that kind.

    A reader is read to its end.

    Raises:
        InvalidArgumentError: it cannot be exported, or a whole row of it is null.
    """
    if isinstance(records, pa.Table):
        return records
    try:
        return _exported(records)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(
            f"cannot read the records of this {type(records).__name__}: {error}. A column holds "
            "one kind of data: encode or cast what differs, or give a list of records"
        ) from error


def _exported(records: Any) -> pa.Table | None:
    # There is no pandas frame before pandas is imported. Another thread may be importing it right
    # now (pyarrow does so by itself): then the module is there, but its content is not yet.
    pandas: Any = sys.modules.get("pandas")
    if isinstance(records, _classes(pandas, "DataFrame")):
        return _of_pandas(records, pandas)
    if isinstance(records, _classes(pandas, "Series", "Index")):
        return pa.table({"value": pa.Array.from_pandas(records)})
    if hasattr(records, "__arrow_c_stream__"):
        return _of_chunks(pa.chunked_array(records))
    if hasattr(records, "__arrow_c_array__"):
        return _of_chunks(pa.chunked_array([pa.array(records)]))
    if hasattr(records, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(records)
    return None


def _classes(module: Any, *names: str) -> tuple[type, ...]:
    """The ones that the module has by now."""
    return tuple(vars(module)[name] for name in names if module and name in vars(module))


def _of_pandas(frame: Any, pandas: Any) -> pa.Table:
    """An index counts as columns if it has a name: a frame may be indexed by its key."""
    has_names = any(name is not None for name in frame.index.names)
    headers = None
    if list(frame.columns).count("headers") == 1 and frame["headers"].dtype == object:
        # Lists of pairs or mappings, which pandas keeps as plain objects and Arrow does not read.
        headers = [
            None if pandas.api.types.is_scalar(one) and pandas.isna(one) else as_headers(one)
            for one in frame["headers"]
        ]
        frame = frame.drop(columns="headers")
    table = pa.Table.from_pandas(frame, preserve_index=has_names)
    if headers is None:
        return table
    return table.append_column("headers", pa.array(headers, HEADERS_TYPE))


def _of_chunks(column: pa.ChunkedArray) -> pa.Table:
    """The rows as a table; a column without a name becomes the column of values."""
    if not pa.types.is_struct(column.type):
        return pa.table({"value": column})
    if column.null_count:
        raise InvalidArgumentError(
            f"{column.null_count} of {len(column)} rows are null as a whole, which is no record: "
            "leave them out; a tombstone is a key and a null value"
        )
    batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in column.chunks]
    return pa.Table.from_batches(batches, pa.schema(list(column.type)))
