"""Rows of Arrow columns as JSON objects, one a row, column by column.

| Arrow | JSON |
|---|---|
| null, NaN, ±infinity | ``null``: JSON has no other word for them |
| boolean, whole numbers, decimals | as they are, every digit |
| floating point | the shortest text that reads back as the same number |
| text, also of categories | text |
| binary | base64 text (RFC 4648) |
| timestamp with a zone | ISO 8601 in UTC: ``"2013-07-04T10:00:00.000Z"``, digits as its unit has |
| timestamp without one | the same in the zone that was given; without a zone given, without ``Z`` |
| date, time | ``"2013-07-04"``, ``"10:00:00"`` |
| duration | ISO 8601 in seconds: ``"PT90.500S"`` |
| list, struct, map with text as keys | array, object, object |

Columns keep their order and names. Nothing is done row by row but base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import tzinfo
from typing import NoReturn

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..errors import InvalidArgumentError

_NULL = pa.scalar("null")
#: Digits behind the point of a second, by the unit of a duration.
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
#: Rows that are made together: bounds what they take in between, and offsets below 2 GiB.
ROWS_AT_ONCE = 65_536


def json_objects(table: pa.Table, zone: tzinfo | None = None) -> pa.ChunkedArray:
    """The rows as JSON objects.

    Args:
        zone: of timestamps without one.

    Returns:
        Text, without nulls.

    Raises:
        InvalidArgumentError: a column is of a type that JSON has nothing for, two have one name, or
            a time is in an hour that the zone skips.
    """
    if len(set(table.column_names)) < table.num_columns:
        twice = next(one for one in table.column_names if table.column_names.count(one) > 1)
        raise InvalidArgumentError(f"column {twice!r} is there twice; rename one of them")
    chunks = []
    for batch in table.to_batches(ROWS_AT_ONCE):
        columns = [
            _column(name, column, zone)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        chunks.append(_object(batch.schema.names, columns, batch.num_rows))
    return pa.chunked_array(chunks, pa.string())


def key_texts(column: pa.ChunkedArray, name: str, zone: tzinfo | None = None) -> pa.ChunkedArray:
    """The values of a column as keys: text and bytes as they are, others as JSON writes them.

    Raises:
        InvalidArgumentError: as `json_objects`.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if "string" in str(kind) or "binary" in str(kind) or pa.types.is_null(kind):
        return column
    chunks = []
    for chunk in column.chunks:
        text = pc.utf8_trim(_column(name, chunk, zone), '"')  # of times and the like
        chunks.append(_where(chunk, text))
    return pa.chunked_array(chunks, pa.string())


def _column(name: str, column: pa.Array, zone: tzinfo | None) -> pa.Array:
    try:
        return _text(column, name, zone)
    except pa.ArrowException as error:
        raise InvalidArgumentError(f"column {name!r} of type {column.type}: {error}") from error


def _object(names: Sequence[str], columns: Sequence[pa.Array], count: int) -> pa.Array:
    if not names:
        return pa.array(["{}"] * count, pa.string())
    pieces: list[pa.Array | pa.Scalar] = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        before = "{" if number == 0 else ","
        pieces += [pa.scalar(f"{before}{json.dumps(name, ensure_ascii=False)}:"), column]
    return _joined(*pieces, "}")


def _joined(*pieces: pa.Array | pa.Scalar | str) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, "")


def _text(column: pa.Array, name: str, zone: tzinfo | None) -> pa.Array:
    """The values of a column as JSON, as text without nulls."""
    kind, types = column.type, pa.types
    if isinstance(kind, pa.ExtensionType):
        return _text(column.storage, name, zone)
    if types.is_dictionary(kind):
        made = _text(column.dictionary, name, zone).take(column.indices)
    elif types.is_null(kind):
        made = pa.nulls(len(column), pa.string())
    elif types.is_struct(kind):
        fields = [_text(one, name, zone) for one in column.flatten()]
        made = _where(column, _object([field.name for field in kind], fields, len(column)))
    elif types.is_map(kind):
        made = _map(column, name, zone)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        made = _list(column, name, zone)
    else:
        made = _scalars(column, name, zone)
    return pc.fill_null(made, _NULL)


def _scalars(column: pa.Array, name: str, zone: tzinfo | None) -> pa.Array:
    kind, types = column.type, pa.types
    if "string" in str(kind):
        return _quoted(_plain(column, pa.string()))
    if "binary" in str(kind):
        texts = [None if one is None else base64.b64encode(one) for one in column.to_pylist()]
        return _joined('"', pa.array(texts, pa.binary()).cast(pa.string()), '"')
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return column.cast(pa.string())
    if types.is_floating(kind):
        if kind == pa.float16():
            column = column.cast(pa.float32())
        return _where(pc.is_finite(column), column.cast(pa.string()))
    if types.is_timestamp(kind):
        return _joined('"', _iso(column, name, zone), '"')
    if types.is_date(kind):
        return _joined('"', column.cast(pa.date32()).cast(pa.string()), '"')
    if types.is_time(kind):
        return _joined('"', column.cast(pa.string()), '"')
    if types.is_duration(kind):
        seconds = _shifted(column.cast(pa.int64()), _DIGITS[kind.unit])
        return _joined('"PT', seconds, 'S"')
    return _refuse(name, kind)


def _where(known: pa.Array, made: pa.Array) -> pa.Array:
    """What was made, and null where the other is null or false."""
    if not pa.types.is_boolean(known.type):
        known = known.is_valid()
    return pc.if_else(known, made, pa.scalar(None, pa.string()))


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Of the one type that all functions take; of a view as well, which few do."""
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:
        return pa.array(column.to_pylist(), kind)


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts between quotes; what JSON does not take between them is escaped."""
    there = np.bincount(_bytes_of(texts), minlength=256)
    for sign in ("\\", '"', *map(chr, range(0x20))):
        if there[ord(sign)]:
            texts = pc.replace_substring(texts, sign, json.dumps(sign)[1:-1])
    return _joined('"', texts, '"')


def _bytes_of(texts: pa.StringArray) -> np.ndarray:
    """All of them one behind the other."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]


def _shifted(ticks: pa.Array, digits: int) -> pa.Array:
    """Ticks as seconds, every digit."""
    if not digits:
        return ticks.cast(pa.string())
    text = pc.utf8_lpad(pc.abs(ticks).cast(pa.string()), digits + 1, "0")
    whole = pc.utf8_slice_codeunits(text, 0, -digits)
    sign = pc.if_else(pc.less(ticks, 0), "-", "")
    return _joined(sign, whole, ".", pc.utf8_slice_codeunits(text, -digits))


def _iso(column: pa.Array, name: str, zone: tzinfo | None) -> pa.Array:
    kind = column.type
    if kind.tz is None and zone is not None:
        column = in_zone(column, name, zone)
        kind = column.type
    plain = column.cast(pa.timestamp(kind.unit, None if kind.tz is None else "UTC"))
    if kind.tz is not None:
        plain = plain.cast(pa.int64()).cast(pa.timestamp(kind.unit))
    text = plain.cast(pa.string())
    lengths = pc.min_max(pc.binary_length(text))
    if lengths["min"] == lengths["max"]:  # years of four digits
        made = pc.binary_replace_slice(text.cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    else:
        made = pc.replace_substring(text, " ", "T", max_replacements=1)
    return made if kind.tz is None else _joined(made, "Z")


def in_zone(column: pa.Array | pa.ChunkedArray, name: str, zone: tzinfo) -> pa.Array:
    """Timestamps without a zone as times of that one; of an hour that is there twice, the first.

    Raises:
        InvalidArgumentError: one is in an hour that the zone skips.
    """
    try:
        return pc.assume_timezone(column, str(zone), ambiguous="earliest")
    except pa.ArrowInvalid:
        moved = pc.assume_timezone(column, str(zone), ambiguous="earliest", nonexistent="earliest")
        wrong = column.filter(pc.not_equal(pc.local_timestamp(moved), column))
        raise InvalidArgumentError(
            f"column {name!r}: {wrong[0]} is no time of {zone}, whose clocks are put forward "
            "across it"
        ) from None


def _list(column: pa.Array, name: str, zone: tzinfo | None) -> pa.Array:
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    items = _text(column.flatten(), name, zone)
    return _where(column, _joined("[", _each_joined(column, items), "]"))


def _map(column: pa.Array, name: str, zone: tzinfo | None) -> pa.Array:
    if "string" not in str(column.type.key_type):
        _refuse(name, column.type)
    entries = column.cast(
        pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)]))
    )
    keys, values = entries.flatten().flatten()
    members = _joined(_quoted(_plain(keys, pa.string())), ":", _text(values, name, zone))
    return _where(column, _joined("{", _each_joined(entries, members), "}"))


def _each_joined(lists: pa.Array, items: pa.Array) -> pa.Array:
    """The items of each list with commas between them."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays(
        [pa.array([0], pa.int64()), pc.cumulative_sum(lengths.cast(pa.int64()))]
    )
    together = pa.ListArray.from_arrays(offsets.cast(pa.int32()), items)
    return pc.binary_join(together, ",")


def _refuse(name: str, kind: pa.DataType) -> NoReturn:
    raise InvalidArgumentError(
        f"column {name!r} is of type {kind}, which JSON has nothing for; cast it, leave it out, or "
        "give values of your own (value=…)"
    )
