"""Many records that people hand to a producer, as columns.

Takes Arrow's own tables and columns, and objects that export themselves: by Arrow's C stream or C
array (polars, DuckDB relations, readers, arrays, pandas) or by the DataFrame interchange protocol.
A column without a name holds values. What pandas calls missing (NaN, NaT, None, NA) is null here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from ..base import compute as pc
from ..errors import InvalidArgumentError
from ..values.record import HEADERS_TYPE, NO_TIMESTAMP_MS, PRODUCED, Record, no_headers
from .given_values import (
    HeadersLike,
    as_bytes,
    as_headers,
    as_timestamp_ms,
    refuse_rounded_to_none,
)

#: Types that Arrow stores in the same way as `as_bytes`.
_PLAIN = {bytes, str, type(None)}

_FIELDS = ("value", "key", "headers", "timestamp", "timestamp_ms", "partition")


def as_columns(records: object, now_ms: int) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """Records as a table of `PRODUCED`, and the partitions they ask for.

    Args:
        records: a table of any library (see `as_table`) with column value and perhaps key,
            headers, timestamp (or timestamp_ms) and partition, or such a column of values; or a
            sequence of values, (key, value) pairs, mappings with those names, or `Record` (whose
            partition and offset do not count).
        now_ms: the timestamp of records without one.

    Raises:
        InvalidArgumentError: they are something else.
    """
    table = as_table(records)
    if table is not None:
        return _of_table(table, now_ms)
    if not isinstance(records, Iterable) or _is_lone(records):
        _refuse_records(records)
    rows = records if isinstance(records, list) else list(records)
    pairs = _plain_pairs(rows)
    return _of_rows(rows, now_ms) if pairs is None else _of_table(pairs, now_ms)


def _is_lone(records: object) -> bool:
    """Whether it is a single value, although Python can iterate over it."""
    is_mapping = hasattr(records, "keys") and hasattr(records, "__getitem__")
    return is_mapping or isinstance(records, (str, bytes, bytearray, memoryview, Record))


def _of_table(table: pa.Table, now_ms: int) -> tuple[pa.Table, pa.ChunkedArray | None]:
    names = table.column_names
    unknown = [name for name in names if name not in _FIELDS]
    if (
        unknown
        or "value" not in names
        or len(set(names)) < len(names)
        or {"timestamp", "timestamp_ms"} <= set(names)
    ):
        raise InvalidArgumentError(
            f"a table of records has the column value, and perhaps {', '.join(_FIELDS[1:4])} (or "
            f"timestamp_ms) and partition, each once, not {', '.join(map(str, names)) or 'none'}; "
            "select or rename them"
        )
    count = table.num_rows
    if "timestamp" in names:
        times = _times(table["timestamp"], now_ms)
    elif "timestamp_ms" in names:
        times = _times(table["timestamp_ms"], now_ms)
    else:
        times = pa.chunked_array([pa.repeat(pa.scalar(now_ms, pa.int64()), count)])
    columns = [
        times,
        _binary("key", table["key"])
        if "key" in names
        else pa.chunked_array([pa.nulls(count, pa.binary())]),
        _binary("value", table["value"]),
        _headers(table["headers"]) if "headers" in names else _no_headers(count),
    ]
    partitions = None
    if "partition" in names:
        partitions = _cast("partition", table["partition"], pa.int32(), "whole numbers")
    return pa.table(columns, schema=PRODUCED), partitions


def _plain_pairs(rows: list[Any]) -> pa.Table | None:
    """Values or (key, value) pairs as columns, several times faster than row by row.

    None if there is anything else among them, or text that is not valid: `_of_rows` says which.
    """
    keys: list[Any] | None = None
    values = rows
    if set(map(type, rows)) == {tuple}:
        if set(map(len, rows)) != {2}:
            return None
        keys, values = [row[0] for row in rows], [row[1] for row in rows]
        if not set(map(type, keys)) <= _PLAIN:
            return None
    if not set(map(type, values)) <= _PLAIN:
        return None
    try:
        columns = {"value": pa.array(values, pa.binary())}
        if keys is not None:
            columns["key"] = pa.array(keys, pa.binary())
    except UnicodeEncodeError:
        return None
    return pa.table(columns)


def _of_rows(rows: Iterable[Any], now_ms: int) -> tuple[pa.Table, pa.ChunkedArray | None]:
    times, keys, values, headers, partitions = [], [], [], [], []
    for row in rows:
        key: object = None
        row_headers: HeadersLike | None = None
        timestamp: object = None
        partition = None
        if isinstance(row, Record):
            key, value, row_headers, timestamp = row.key, row.value, row.headers, row.timestamp_ms
        elif isinstance(row, Mapping):
            if "value" not in row or not set(row) <= set(_FIELDS):
                raise InvalidArgumentError(
                    f"a record is a mapping of {', '.join(_FIELDS)}, of which value is needed, not "
                    f"of {', '.join(map(str, row)) or 'nothing'}"
                )
            key, value, row_headers = row.get("key"), row["value"], row.get("headers")
            timestamp = row.get("timestamp", row.get("timestamp_ms"))
            partition = row.get("partition")
        elif isinstance(row, tuple):
            if len(row) != 2:
                raise InvalidArgumentError(f"a tuple of a record is (key, value), not {row!r:.80}")
            key, value = row
        else:
            value = row
        times.append(now_ms if timestamp is None else as_timestamp_ms(timestamp))
        keys.append(as_bytes("key", key))
        values.append(as_bytes("value", value))
        headers.append(as_headers(row_headers) if row_headers else [])
        partitions.append(partition)
    arrays = [
        pa.array(column, field.type)
        for column, field in zip((times, keys, values, headers), PRODUCED, strict=True)
    ]
    asked = None
    if any(partition is not None for partition in partitions):
        asked = _cast("partition", _array(partitions), pa.int32(), "whole numbers")
    return pa.table(arrays, schema=PRODUCED), asked


def _array(values: Sequence[object]) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([pa.array(values, pa.int64())])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidArgumentError(f"partitions are whole numbers: {error}") from None


def _binary(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    return (
        _cast(name, column, pa.binary(), "binary or text")
        if _is_bytes(column.type)
        else _refuse(name, column.type, "binary or text; cast or serialize it first")
    )


def _is_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return "binary" in str(kind) or "string" in str(kind) or pa.types.is_null(kind)


def _times(column: pa.ChunkedArray, now_ms: int) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = _cast("timestamp", column, kind, "times")
    if pa.types.is_date(kind):  # its begin in UTC, as of a `date`
        column = column.cast(pa.timestamp("ms", "UTC"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            _refuse(
                "timestamp",
                kind,
                "a timestamp with a zone: say pa.timestamp('ms', tz='UTC'), or "
                "dt.tz_localize('UTC') in pandas",
            )
        column = _whole_ms(column)
    elif not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        _refuse("timestamp", kind, "a timestamp with a zone, or epoch milliseconds as integers")
    times = pc.fill_null(_cast("timestamp", column, pa.int64(), "milliseconds"), now_ms)
    if len(times):
        bounds = pc.min_max(times).as_py()
        as_timestamp_ms(bounds["min"])
        as_timestamp_ms(bounds["max"])
    return times


_TICKS_A_MS = {"us": 1_000, "ns": 1_000_000}


def _whole_ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Epoch milliseconds of times with a zone; what is finer is rounded up, as in a search.

    Counted in the ticks since 1970 that Arrow stores in every zone: its functions of time go by the
    zone's clock, which shows an hour twice or skips one.
    """
    unit, ticks = times.type.unit, times.cast(pa.int64())
    if unit == "ms":
        return ticks
    if unit == "s":
        try:
            return pc.multiply_checked(ticks, 1_000)
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(
                f"column timestamp of type {times.type} takes seconds whose milliseconds are "
                f"below 2**63: {error}"
            ) from None
    size = _TICKS_A_MS[unit]
    whole = pc.divide(ticks, size)  # towards 1970, which rounds up what is before
    times_ms = pc.add(whole, pc.greater(ticks, pc.multiply(whole, size)).cast(pa.int64()))
    none = NO_TIMESTAMP_MS * size
    made = pc.and_(pc.equal(times_ms, NO_TIMESTAMP_MS), pc.not_equal(ticks, none))
    if pc.any(made).as_py():
        first = ticks.filter(made)[:1].cast(pa.timestamp(unit, "UTC")).cast(pa.string())
        refuse_rounded_to_none(first[0].as_py())
    return times_ms


def _headers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_null(kind):
        return _no_headers(len(column))
    if pa.types.is_map(kind):
        column = column.cast(
            pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
        )
    if kind == HEADERS_TYPE and not column.null_count:
        return column
    column = _cast("headers", column, _NULLABLE_HEADERS, HEADERS_LEGAL)
    return pa.chunked_array([_filled(chunk) for chunk in column.chunks], HEADERS_TYPE)


HEADERS_LEGAL = "lists of (key text, value binary)"

#: pyarrow below 20 casts no nullable field to one that is not nullable.
_NULLABLE_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _filled(headers: pa.ListArray) -> pa.ListArray:
    """The headers with empty lists for null ones, and with keys that are not nullable."""
    lengths = pc.fill_null(pc.list_value_length(headers), 0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    keys, values = headers.flatten().flatten()
    if keys.null_count:
        raise InvalidArgumentError(f"column headers takes {HEADERS_LEGAL}: a key is null")
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS_TYPE.value_type))
    return pa.ListArray.from_arrays(offsets, pairs, type=HEADERS_TYPE)


def _no_headers(count: int) -> pa.ChunkedArray:
    return pa.chunked_array([no_headers(count)])


def _cast(name: str, column: pa.ChunkedArray, kind: pa.DataType, legal: str) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    try:
        return pa.chunked_array([_cast_chunk(chunk, kind) for chunk in column.chunks], kind)
    except pa.ArrowException as error:
        raise InvalidArgumentError(f"column {name} takes {legal}: {error}") from error


def _cast_chunk(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):
        # Cast the values before taking rows: Arrow cannot take rows of views, which polars uses.
        return _cast_chunk(chunk.dictionary, kind).take(chunk.indices)
    try:
        return chunk.cast(kind)
    except pa.ArrowNotImplementedError:
        if "_view" not in str(chunk.type):
            raise
        return pa.array(chunk.to_pylist(), kind)  # pyarrow 17 casts no view


def _refuse(name: str, kind: pa.DataType, legal: str) -> NoReturn:
    raise InvalidArgumentError(f"column {name} is of type {kind}, but takes {legal}")


def _refuse_records(records: object) -> NoReturn:
    raise InvalidArgumentError(
        "send_batch takes a table, or a sequence of records (values, (key, value) pairs or "
        f"mappings), not one {type(records).__name__}; for one record use send, or put it in a list"
    )


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
