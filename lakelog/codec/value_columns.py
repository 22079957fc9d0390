"""Typed columns from JSON values: a pure function of a value's bytes and the topic's columns.

Each value is judged by itself: it is a JSON object (RFC 8259, in UTF-8) in which every member that
has a column is of the column's type, or all of its columns are null and ``value_error`` says why. A
null value has neither columns nor an error. What counts as of a type:

| type               | JSON                                                                      |
|--------------------|---------------------------------------------------------------------------|
| tinyint … bigint   | a number without fraction or exponent, within the type's bounds           |
| float, double      | a number that does not overflow it                                        |
| decimal(p,s)       | a number, or a string that holds one, that fits without rounding          |
| boolean            | true or false                                                             |
| string             | a string; anything else as its JSON text                                  |
| date               | a string ``YYYY-MM-DD``                                                   |
| timestamp          | a string, ISO 8601; UTC where it has no zone; what is below a µs is cut   |
| array, struct, map | an array, an object, an object                                            |

A null or missing member gives the column's DEFAULT, or a null column, which a column that is NOT
NULL refuses; if a member occurs twice, the last one counts.

Arrow's JSON reader reads values in blocks, and takes all of a block or none. If it refuses one
value, those around it are read one by one by Python's reader (``json_object.py``). So everything
that Arrow takes must read the same there, and what only Arrow would take (two documents in a value,
numbers that overflow, NaN) is kept from it.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from ..base import compute as pc
from ..values.config import MIB
from ..values.value_ddl import VALUE_ERROR, Array, Column, Decimal, Map, Struct, Type, parse_columns
from ..values.value_format import JSON_FORMAT, ValueFormat
from .formats.decoders import Decoded, decoded
from .json_object import (
    ARROW_TYPES,
    MAX_DATE,
    MAX_TIMESTAMP_US,
    MIN_DATE,
    MIN_TIMESTAMP_US,
    NOT_AN_OBJECT,
    TIMESTAMP,
    Unfit,
    converter,
    depth,
    members,
)

#: A block's bytes and values: large enough for Arrow's reader, small enough to be tried again.
BLOCK_BYTES = 4 * MIB
BLOCK_ROWS = 16 * 1024

#: A block that Arrow refuses is cut into this many pieces, of at least so many values, which take
#: about as long as another call of Arrow. The refused pieces are read one by one.
PIECES = 32
FEW_ROWS = 64

#: Python's reader is recursive, and 1,000 levels are all that the whole process has.
MAX_DEPTH = 200

TOO_DEEP = f"nested deeper than {MAX_DEPTH}"

_BLANKS = np.frombuffer(b" \t\r\n", np.uint8)
_OBJECT = r"(?s)^[ \t\r\n]*\{.*\}[ \t\r\n]*$"
_LINE_ENDS_TO_TABS = bytes.maketrans(b"\r\n", b"\t\t")
_NOT_A_NUMBER = re.compile(rb"[:,\[\s]-?(?:NaN|Inf)")


_TIME_BOUNDS = {
    pa.date32(): (MIN_DATE, MAX_DATE),
    TIMESTAMP: (MIN_TIMESTAMP_US, MAX_TIMESTAMP_US),
}


#: Of a schema's metadata: the format of the values, where it is not JSON; and the columns, where
#: one of them is NOT NULL or has a DEFAULT.
_FORMAT = b"lakelog.value.format"
_RULES = b"lakelog.value.columns"


@lru_cache(maxsize=64)
def value_schema(columns: str, form: ValueFormat = JSON_FORMAT) -> pa.Schema:
    """The columns of a DDL string as Arrow types, and ``value_error``; nothing for an empty string.

    Args:
        form: what the values are; `columns_of` knows it from the schema.

    Raises:
        InvalidConfigError: it cannot be read.
    """
    parsed = parse_columns(columns)
    fields = [_field(column) for column in parsed]
    if fields:
        fields.append(pa.field(VALUE_ERROR, pa.string()))
    told = {}
    if fields and not form.is_json:
        told[_FORMAT] = msgspec.json.encode(form)
    if any(one.is_required or one.default is not None for one in parsed):
        told[_RULES] = columns.encode()
    return pa.schema(fields, told or None)


def columns_of(values: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of values.

    Args:
        values: binary, of any of Arrow's layouts.
        schema: from `value_schema`, not empty.

    Returns:
        As many rows as values, in `schema`.

    Raises:
        MissingExtraError: what reads values of their format is not installed.

    Runs on: executor (or anywhere).
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.type != pa.binary():
        values = values.cast(pa.binary())
    told = (schema.metadata or {}).get(_FORMAT)
    form = JSON_FORMAT if told is None else msgspec.json.decode(told, type=ValueFormat)
    return columns_of_decoded(decoded(values, form), schema)


def columns_of_decoded(found: Decoded, schema: pa.Schema) -> pa.RecordBatch:
    """As `columns_of`, of values that are decoded already."""
    values = found.values
    errors = np.full(len(values), None, object)
    for row, why in found.errors.items():
        errors[row] = why
    rows = np.flatnonzero(_read(found))
    for refuse, why in ((_not_objects, NOT_AN_OBJECT), (_too_deep, TOO_DEEP)):
        refused = refuse(values.take(pa.array(rows)))
        errors[rows[refused]] = why
        rows = rows[~refused]
    objects = values if len(rows) == len(values) else values.take(pa.array(rows))
    read = _Objects(pa.schema(list(schema)[:-1]))
    for start, end in _blocks(objects):
        read.read(objects.slice(start, end - start), rows[start:end], errors)
    table = _ruled(read.table(), rows, errors, schema)
    if len(rows) < len(values):
        places = np.full(len(values), -1)
        places[rows] = np.arange(len(rows))
        table = table.take(pa.array(places, mask=places < 0))
    return pa.RecordBatch.from_arrays(
        [*(_whole(column) for column in table.columns), pa.array(errors, pa.string())],
        schema=schema,
    )


def _ruled(table: pa.Table, rows: np.ndarray, errors: np.ndarray, schema: pa.Schema) -> pa.Table:
    """The columns of values with what stands for missing members; sets the errors of rows that lack
    what must be there, which then have no columns.
    """
    ddl = (schema.metadata or {}).get(_RULES)
    if ddl is None or not len(table):
        return table
    is_wrong = np.array([error is not None for error in errors[rows]])
    for at, column in enumerate(parse_columns(ddl.decode())):
        found = table.column(at)
        if column.default is not None:
            filled = pc.fill_null(found, _default(column))
            table = table.set_column(at, table.field(at), filled)
        elif column.is_required:
            lacks = np.flatnonzero(np.array(found.is_null()) & ~is_wrong)
            errors[rows[lacks]] = f"{column.name}: missing or null, and it is NOT NULL"
            is_wrong[lacks] = True
    if is_wrong.any():
        table = table.take(pa.array(np.arange(len(table)), mask=is_wrong))
    return table


def _read(found: Decoded) -> np.ndarray:
    """Which values are there, and were decoded."""
    read = np.array(found.values.is_valid())
    read[[*found.errors]] = False
    return read


class _Objects:
    """Reads values that begin and end as JSON objects do, block after block."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._found: list[pa.RecordBatch] = []
        self._converters = [(field.name, converter(field.type, field.name)) for field in schema]
        self._nothing = [None] * len(schema)
        self._has_maps = any(_has_map(field.type) for field in schema)
        self._options = pj.ParseOptions(
            explicit_schema=pa.schema(
                [pa.field(field.name, _as_read(field.type)) for field in schema]
            ),
            unexpected_field_behavior="ignore",
        )

    def read(self, values: pa.Array, rows: np.ndarray, errors: np.ndarray) -> None:
        """Append the columns of a block, and set the errors of its rows."""
        if not self._has_maps and self._by_arrow(values):
            return
        step = max(FEW_ROWS, -(-len(values) // PIECES))
        for at in range(0, len(values), step):
            piece = values.slice(at, step)
            if self._has_maps or len(values) <= step or not self._by_arrow(piece):
                self._one_by_one(piece, rows[at : at + step], errors)

    def table(self) -> pa.Table:
        """What was read, in order."""
        return pa.Table.from_batches(self._found, schema=self._schema)

    def _by_arrow(self, values: pa.Array) -> bool:
        """Append the columns of values if Arrow's reader takes all of them.

        Each value begins with an opening brace and ends with a closing one. Between two values is a
        line end, which no string may hold, and no comma. So every value is one document or several:
        if there are as many rows as values, each is one.

        Returns:
            Whether it took them; if not, none is appended.
        """
        try:
            text = _lines(values)
            table = pj.read_json(
                pa.BufferReader(text),
                read_options=pj.ReadOptions(use_threads=False, block_size=text.size + 1),
                parse_options=self._options,
            )
            if table.num_rows != len(values):
                return False
            table = table.cast(self._schema)
            for column in table.columns:
                _check_bounds(_whole(column))
        except pa.ArrowInvalid:
            return False
        self._found += table.to_batches()
        return True

    def _one_by_one(self, values: pa.Array, rows: np.ndarray, errors: np.ndarray) -> None:
        found = []
        for row, value in zip(rows, values.to_pylist(), strict=True):
            try:
                there = members(value)
                found.append([convert(there.get(name)) for name, convert in self._converters])
            except Unfit as error:
                errors[row] = str(error)
                found.append(self._nothing)
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*found, strict=True), self._schema, strict=True)
        ]
        self._found.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))


# -- before Arrow ------------------------------------------------------------------------------


def _not_objects(values: pa.Array) -> np.ndarray:
    """Which values do not begin and end with a brace, apart from blanks."""
    offsets, data = _layout(values)
    starts, ends = offsets[:-1], offsets[1:]
    filled = ends > starts
    first = np.zeros(len(values), np.uint8)
    last = np.zeros(len(values), np.uint8)
    first[filled] = data[starts[filled]]
    last[filled] = data[ends[filled] - 1]
    refused: np.ndarray = (first != ord("{")) | (last != ord("}"))
    blank = np.flatnonzero(np.isin(first, _BLANKS) | np.isin(last, _BLANKS))
    if len(blank):
        matches = pc.match_substring_regex(values.take(pa.array(blank)), _OBJECT)
        refused[blank] = ~matches.to_numpy(zero_copy_only=False)
    return refused


def _too_deep(values: pa.Array) -> np.ndarray:
    """Which values are nested deeper than `MAX_DEPTH`."""
    refused = np.zeros(len(values), bool)
    offsets, _ = _layout(values)
    long = np.flatnonzero(np.diff(offsets) > 2 * MAX_DEPTH)
    if len(long):
        taken = values.take(pa.array(long))
        opening = pc.add(pc.count_substring(taken, "{"), pc.count_substring(taken, "["))
        for at in np.flatnonzero(opening.to_numpy() > MAX_DEPTH):
            refused[long[at]] = depth(taken[int(at)].as_py()) > MAX_DEPTH
    return refused


def _blocks(values: pa.Array) -> Iterator[tuple[int, int]]:
    """Ranges of about `BLOCK_BYTES`, with at least one value and at most `BLOCK_ROWS`."""
    offsets, _ = _layout(values)
    start = 0
    while start < len(values):
        end = int(np.searchsorted(offsets, offsets[start] + BLOCK_BYTES, side="right")) - 1
        end = min(max(end, start + 1), start + BLOCK_ROWS, len(values))
        yield start, end
        start = end


def _lines(values: pa.Array) -> pa.Buffer:
    """The values, one a line.

    Raises:
        pa.ArrowInvalid: one is not UTF-8, or holds what Arrow's reader would misread.
    """
    values.cast(pa.string())
    offsets, data = _layout(values)
    content = data[offsets[0] : offsets[-1]].tobytes()
    if b"\0" in content:  # the reader takes it for the end of the input
        raise pa.ArrowInvalid("a value holds a zero byte")
    if (b"NaN" in content or b"Inf" in content) and _NOT_A_NUMBER.search(content):
        raise pa.ArrowInvalid("a number is none")
    if b"\n" in content or b"\r" in content:
        # A tab is allowed exactly where a line end is.
        values = pa.Array.from_buffers(
            pa.binary(),
            len(values),
            [
                None,
                pa.py_buffer((offsets - offsets[0]).tobytes()),
                pa.py_buffer(content.translate(_LINE_ENDS_TO_TABS)),
            ],
        )
    together = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return pc.binary_join(together, b"\n")[0].as_buffer()


def _layout(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The offsets of a binary array and the bytes they point into."""
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    found = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4)
    return found, np.frombuffer(data or b"", np.uint8)


# -- after Arrow -------------------------------------------------------------------------------


def _as_read(type_: pa.DataType) -> pa.DataType:
    """The type that Arrow's reader reads before the cast: it reads no strings as dates."""
    if pa.types.is_date32(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return pa.list_(_as_read(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _as_read(field.type)) for field in type_])
    return type_


def _check_bounds(column: pa.Array) -> None:
    """Refuse values that Arrow's reader takes though they exceed the bounds of a type.

    Raises:
        pa.ArrowInvalid: there is such a value.
    """
    type_ = column.type
    if pa.types.is_struct(type_):
        for child in column.flatten():
            _check_bounds(child)
    elif pa.types.is_list(type_):
        _check_bounds(column.flatten())
    elif pa.types.is_floating(type_):
        if pc.any(pc.is_inf(column)).as_py():
            raise pa.ArrowInvalid("a number overflows")
    elif pa.types.is_decimal(type_):
        column.validate(full=True)
    elif type_ in _TIME_BOUNDS:
        number = pa.int32() if pa.types.is_date32(type_) else pa.int64()
        found = pc.min_max(column.cast(number)).as_py()
        low, high = _TIME_BOUNDS[type_]
        if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
            raise pa.ArrowInvalid("a time lies outside the years 1 to 9999")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """As one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _field(column: Column) -> pa.Field:
    metadata = None if column.comment is None else {"comment": column.comment}
    return pa.field(column.name, _arrow_type(column.type), metadata=metadata)


def _default(column: Column) -> pa.Scalar:
    """What stands for a missing member."""
    type_, value = _arrow_type(column.type), column.default
    if isinstance(value, decimal.Decimal) and not pa.types.is_decimal(type_):
        return pa.scalar(float(value) if pa.types.is_floating(type_) else int(value), type_)
    return pa.scalar(value, type_)


def _arrow_type(type_: Type) -> pa.DataType:
    if isinstance(type_, Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, Array):
        return pa.list_(pa.field("element", _arrow_type(type_.element)))
    if isinstance(type_, Map):
        return pa.map_(pa.string(), _arrow_type(type_.value))
    if isinstance(type_, Struct):
        return pa.struct([_field(field) for field in type_.fields])
    return ARROW_TYPES[type_.name]


def _has_map(type_: pa.DataType) -> bool:
    """Whether Arrow's reader does not know the type."""
    if pa.types.is_map(type_):
        return True
    if pa.types.is_list(type_):
        return _has_map(type_.value_type)
    return pa.types.is_struct(type_) and any(_has_map(field.type) for field in type_)
