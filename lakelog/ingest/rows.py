"""People's rows as records: a frame or a list of objects, of which each row becomes a JSON value.

What a column becomes is said in `codec.json_rows`; of rows that are Python's objects (mappings,
dataclasses, named tuples, models of pydantic or msgspec) the members become the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn, cast
from uuid import UUID

import msgspec
import pyarrow as pa

from ..base import compute as pc
from ..codec.json_rows import in_zone, json_objects, key_texts
from ..errors import InvalidArgumentError
from ..values.typed_time import on_clock, zone_named
from .given_records import as_table
from .given_values import as_timestamp_ms


class Given(NamedTuple):
    """As `Producer.send_batch` takes them."""

    records: pa.Table
    partition: int | None  # of all


def given_rows(
    rows: object,
    *,
    key: str | None,
    timestamp: str | None,
    partition: str | int | None,
    value: str | None,
    zone: str | None,
) -> Given:
    """Rows with what `Lakelog.append` says of them.

    Raises:
        InvalidArgumentError: as `records_of_rows`, or this machine knows no such zone.
    """
    where = None if zone is None else zone_named(zone)
    of_all = None if isinstance(partition, str) else partition
    of_field = partition if isinstance(partition, str) else None
    fields = RowFields(key, timestamp, of_field, value, where)
    return Given(records_of_rows(rows, fields), of_all)


#: How many milliseconds each is.
EPOCH_UNITS = {"s": 1_000, "ms": 1}


class RowFields(msgspec.Struct, frozen=True):
    """Which fields of rows are what of records; the value has all fields unless it is one.

    Args:
        key: its text or bytes are the key; of another kind, its text in JSON.
        timestamp: a time, or epoch milliseconds.
        partition: a whole number.
        value: is the value as it is, text or bytes.
        zone: of times without one.
        time_format: of times that are not ISO, as `datetime.strptime` takes it; or, of numbers, the
            unit of `EPOCH_UNITS` that they count since 1970.
    """

    key: str | None = None
    timestamp: str | None = None
    partition: str | None = None
    value: str | None = None
    zone: tzinfo | None = None
    time_format: str | None = None


def records_of_rows(rows: object, fields: RowFields) -> pa.Table:
    """The records as `Producer.send_batch` takes them.

    Args:
        rows: a table of any library (see `given_records.as_table`), or an iterable of objects.

    Raises:
        InvalidArgumentError: they are neither, a field is not there, or a value is of no kind that
            can be told.
    """
    table = as_table(rows)
    if table is not None:
        return _of_table(table, fields)
    if isinstance(rows, (str, bytes, Mapping, PurePath)) or not isinstance(rows, Iterable):
        is_path = isinstance(rows, (str, PurePath))
        raise InvalidArgumentError(
            f"rows are a table (pandas, polars, Arrow, DuckDB) or a list of mappings, dataclasses "
            f"or models, not one {type(rows).__name__}; "
            + ("lake.load(topic, path) takes a file" if is_path else "for one row put it in a list")
        )
    return _of_objects(rows, fields)


def _of_table(table: pa.Table, fields: RowFields) -> pa.Table:
    for name in (fields.key, fields.timestamp, fields.partition, fields.value):
        if name is not None and table.column_names.count(name) != 1:
            _refuse_name(name, table.column_names)
    columns: dict[str, Any] = {}
    if fields.value is None:
        columns["value"] = json_objects(table, fields.zone)
    else:
        columns["value"] = table[fields.value]
    if fields.key is not None:
        columns["key"] = key_texts(table[fields.key], fields.key, fields.zone)
    if fields.timestamp is not None:
        columns["timestamp"] = _times(table[fields.timestamp], fields.timestamp, fields)
    if fields.partition is not None:
        columns["partition"] = table[fields.partition]
    return pa.table(columns)


def _times(column: pa.ChunkedArray, name: str, fields: RowFields) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if "string" in str(column.type):
        return pa.chunked_array(
            [[_time_ms(one, name, fields) for one in column.to_pylist()]], pa.int64()
        )
    if pa.types.is_integer(column.type) and fields.time_format in EPOCH_UNITS:
        return pc.multiply(column.cast(pa.int64()), EPOCH_UNITS[fields.time_format])
    zone = fields.zone
    if pa.types.is_date(column.type) and zone is not None:
        column = column.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        if zone is None:
            _refuse_naive(name)
        return in_zone(column, name, zone)
    return column


def _time_ms(value: object, name: str, fields: RowFields) -> int | None:
    """Epoch milliseconds of a time that somebody gave in a row; None: none was."""
    if value is None:
        return None
    zone = fields.zone
    try:
        if fields.time_format in EPOCH_UNITS:
            return int(Decimal(str(value)) * EPOCH_UNITS[fields.time_format])
        if isinstance(value, str):
            value = _time_of(value.strip(), fields.time_format)
        if isinstance(value, datetime) and value.tzinfo is None:
            if zone is None:
                _refuse_naive(name)
            value = on_clock(value, zone)
        elif isinstance(value, date) and not isinstance(value, datetime) and zone is not None:
            value = on_clock(datetime.combine(value, time()), zone)
        return as_timestamp_ms(value)
    except (ValueError, ArithmeticError) as error:
        raise InvalidArgumentError(f"field {name!r}: {error}") from error


def _time_of(text: str, time_format: str | None) -> datetime:
    if time_format is not None:
        try:
            return datetime.strptime(text, time_format)  # noqa: DTZ007 - its zone comes next
        except ValueError as error:
            raise InvalidArgumentError(
                f"{error}; forms are those of Python's strptime, such as '%d.%m.%Y %H:%M'"
            ) from None
    try:
        return datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "zZ" else text)
    except ValueError:
        raise InvalidArgumentError(
            f"{text!r} is no time as ISO writes it. A load takes another form of times by "
            "time_format (--time-format), such as '%d.%m.%Y %H:%M'"
        ) from None


def _of_objects(rows: Iterable[Any], fields: RowFields) -> pa.Table:
    found: dict[str, list[Any]] = {"value": []}
    for number, row in enumerate(rows):
        try:
            members = _members(row)
            if members is None:
                raise InvalidArgumentError(f"{type(row).__name__} has no fields")
            for name in (fields.key, fields.timestamp, fields.partition, fields.value):
                if name is not None and name not in members:
                    _refuse_name(name, list(members))
            if fields.value is None:
                plain = {str(name): _plain(one, fields.zone) for name, one in members.items()}
                found["value"].append(_JSON.encode(plain))
            else:
                found["value"].append(members[fields.value])
            if fields.key is not None:
                found.setdefault("key", []).append(_key(members[fields.key], fields.zone))
            if fields.timestamp is not None:
                time_ms = _time_ms(members[fields.timestamp], fields.timestamp, fields)
                found.setdefault("timestamp", []).append(time_ms)
            if fields.partition is not None:
                found.setdefault("partition", []).append(members[fields.partition])
        except (InvalidArgumentError, TypeError, ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"row {number}: {error}") from error
    return pa.table({name: _column(name, column) for name, column in found.items()})


def _column(name: str, column: list[Any]) -> pa.Array:
    try:
        if name in ("timestamp", "partition"):
            return pa.array(column)
        texts = [one.encode() if isinstance(one, str) else one for one in column]
        return pa.array(texts, pa.binary())
    except (pa.ArrowException, TypeError, OverflowError) as error:
        takes = "whole numbers" if name == "partition" else "text or bytes"
        raise InvalidArgumentError(f"a {name} takes {takes}: {error}") from error


_JSON = msgspec.json.Encoder(decimal_format="number")
#: What JSON has words for; NaN and infinity become null.
_WORDS = (str, int, bool, float, type(None), Decimal)


def _members(row: Any) -> Mapping[Any, Any] | None:
    """The fields of an object; None: it has none."""
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    if isinstance(row, msgspec.Struct):
        return msgspec.structs.asdict(row)
    for name in ("model_dump", "_asdict"):  # of pydantic; of named tuples
        if not isinstance(row, type) and callable(getattr(row, name, None)):
            return cast("Mapping[Any, Any]", getattr(row, name)())
    return None


def _plain(value: Any, zone: tzinfo | None) -> Any:
    """The value by words of JSON."""
    if type(value) in _WORDS:
        return value
    if isinstance(value, Enum):
        return _plain(value.value, zone)
    if isinstance(value, datetime):
        if value != value:  # pandas' NaT
            return None
        moment = value if value.tzinfo is not None or zone is None else value.replace(tzinfo=zone)
        if moment.tzinfo is None:
            return moment.isoformat()
        return moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        ticks = value // timedelta(microseconds=1)
        sign, ticks = "-" * (ticks < 0), abs(ticks)
        return f"PT{sign}{ticks // 1_000_000}.{ticks % 1_000_000:06}S"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)  # which the encoder writes as base64
    members = _members(value)
    if members is not None:
        return {str(name): _plain(one, zone) for name, one in members.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one, zone) for one in value]
    if hasattr(value, "tolist"):  # of NumPy: a number of its own, or an array
        return _plain(value.tolist(), zone)
    if type(value).__name__ == "NAType":  # what pandas calls missing
        return None
    if isinstance(value, _WORDS):
        return value
    raise TypeError(
        f"{type(value).__name__} is nothing that JSON has a word for; give text, numbers, times, "
        "lists, or objects of them"
    )


def _key(value: Any, zone: tzinfo | None) -> str | bytes | None:
    plain = _plain(value, zone)
    return plain if plain is None or isinstance(plain, (str, bytes)) else _JSON.encode(plain)


def _refuse_name(name: str, names: list[Any]) -> NoReturn:
    count = names.count(name)
    what = f"field {name!r} is there {count} times" if count else f"there is no field {name!r}"
    shown = [str(one) for one in names if not str(one).startswith("\0")]  # none of ours
    raise InvalidArgumentError(f"{what}; fields are {', '.join(shown)}")


def _refuse_naive(name: str) -> NoReturn:
    raise InvalidArgumentError(
        f"the times of field {name!r} have no zone: say in which they are, such as zone='UTC' or "
        "zone='Europe/Berlin'",
        name="zone",
    )
