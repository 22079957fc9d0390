"""One JSON object in Python: its members, and their conversion to Arrow's values, type by type.

The types are those of `value_columns`, which has the rules and reads blocks of values with Arrow's
own reader. The few values that Arrow's reader refuses are read here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import pyarrow as pa

NOT_AN_OBJECT = "not a JSON object"
NOT_JSON = "not JSON"
NOT_UTF8 = "not UTF-8"

TIMESTAMP = pa.timestamp("us", tz="UTC")

#: By their names in DDL.
ARROW_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
}

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_US = timedelta(microseconds=1)

#: Years 1 to 9999, the range that all libraries' dates share.
MIN_DATE = (date.min - _EPOCH.date()).days
MAX_DATE = (date.max - _EPOCH.date()).days
MIN_TIMESTAMP_US = (datetime.min.replace(tzinfo=timezone.utc) - _EPOCH) // _US
MAX_TIMESTAMP_US = (datetime.max.replace(tzinfo=timezone.utc) - _EPOCH) // _US

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)?)?"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EXACTLY = Context(prec=76, traps=[Inexact, InvalidOperation])


class Unfit(Exception):
    """Why a value has no columns."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def members(value: bytes) -> dict[str, Any]:
    """The members of a JSON object; numbers are int or text (see `is_number`).

    Raises:
        Unfit: it is not a JSON object.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise Unfit(NOT_UTF8) from None
    try:
        found = _DECODER.decode(text)
    except json.JSONDecodeError:
        raise Unfit(NOT_JSON) from None
    if not isinstance(found, dict):
        raise Unfit(NOT_AN_OBJECT)
    return found


#: A text, or a bracket.
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def depth(value: bytes) -> int:
    """How many levels deep it is nested."""
    levels = deepest = 0
    for found in _BRACKETS.finditer(value):
        bracket = found[0]
        if bracket in b"[{":
            levels += 1
            deepest = max(deepest, levels)
        elif bracket in b"]}":
            levels -= 1
    return deepest


def _refuse_constant(name: str) -> None:
    raise Unfit(NOT_JSON)


def _whole(text: str) -> int | _Number:
    if text == _MINUS_ZERO:
        return _MINUS_ZERO
    try:
        return int(text)
    except ValueError:  # Python makes no int of thousands of digits
        return _Number(text)


#: A number without a fraction whose sign an int would lose; doubles and texts keep it.
_MINUS_ZERO = _Number("-0")

_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_whole, parse_constant=_refuse_constant)

Converter = Callable[[Any], Any]


def converter(type_: pa.DataType, path: str) -> Converter:
    """Converts a member (None if it is not there) to what Arrow takes for the type."""
    convert = _converter_of_there(type_, path)
    why = f"{path}: not {_named(type_)}"

    def converted(member: Any) -> Any:
        if member is None:
            return None
        try:
            return convert(member)
        except (ValueError, ArithmeticError):
            raise Unfit(why) from None

    return converted


def _converter_of_there(type_: pa.DataType, path: str) -> Converter:
    """As `converter`, for members that are not null; raises ValueError or ArithmeticError."""
    if pa.types.is_struct(type_):
        fields = [(f.name, converter(f.type, f"{path}.{f.name}")) for f in type_]
        return lambda member: {
            name: convert(_of_type(member, dict).get(name)) for name, convert in fields
        }
    if pa.types.is_list(type_):
        element = converter(type_.value_type, f"{path}[]")
        return lambda member: list(map(element, _of_type(member, list)))
    if pa.types.is_map(type_):
        item = converter(type_.item_type, f"{path}[]")
        return lambda member: [
            (_text(name), item(one)) for name, one in _of_type(member, dict).items()
        ]
    if pa.types.is_integer(type_):
        bound = 1 << (type_.bit_width - 1)
        return lambda member: _integer(member, bound)
    if pa.types.is_decimal(type_):
        return lambda member: _decimal(member, type_.precision, type_.scale)
    return _CONVERTERS[type_]


def _of_type(member: Any, type_: type) -> Any:
    if type(member) is not type_:
        raise ValueError
    return member


def _integer(member: Any, bound: int) -> int:
    if member is _MINUS_ZERO:
        return 0
    if not -bound <= _of_type(member, int) < bound:
        raise ValueError
    return int(member)


def is_whole(member: Any) -> bool:
    """Whether it is a number without fraction and exponent, of at most thousands of digits."""
    return type(member) is int or member is _MINUS_ZERO


def is_number(member: Any) -> bool:
    return type(member) in (int, _Number)


def _written(member: Any) -> str:
    """A number as text."""
    if type(member) is int:
        return str(member)
    return str(_of_type(member, _Number))


def _double(member: Any) -> float:
    return _finite(float(_written(member)))


def _float(member: Any) -> float:
    # Not through a double, which would round twice.
    return _finite(pa.scalar(_written(member)).cast(pa.float32()).as_py())


def _finite(number: float) -> float:
    if math.isinf(number):
        raise ValueError
    return number


def _decimal(member: Any, precision: int, scale: int) -> Decimal:
    if type(member) is str:
        if not _DECIMAL.fullmatch(member):
            raise ValueError
        number = Decimal(member)
    else:
        number = Decimal(_written(member))
    if number and number.adjusted() >= precision - scale:
        raise ValueError
    return number.quantize(Decimal((0, (1,), -scale)), context=_EXACTLY)


def _text(member: Any) -> str:
    text = member if type(member) is str else _json(member)
    text.encode()  # refuses half a surrogate pair
    return text


def _json(member: Any) -> str:
    """A member as compact JSON, numbers as they are written."""
    if type(member) is str:
        return json.dumps(member, ensure_ascii=False)
    if isinstance(member, list):
        return f"[{','.join(map(_json, member))}]"
    if isinstance(member, dict):
        pairs = (f"{_json(name)}:{_json(one)}" for name, one in member.items())
        return f"{{{','.join(pairs)}}}"
    if is_number(member):
        return str(member)
    return json.dumps(member)


def date_of(member: Any) -> int:
    """The date in days since the epoch; ValueError if it is not a date."""
    found = _DATE.fullmatch(_of_type(member, str))
    if found is None:
        raise ValueError
    return (date(*map(int, found.groups())) - _EPOCH.date()).days


def timestamp_of(member: Any) -> int:
    """The time in µs since the epoch; ValueError if it is not a timestamp."""
    found = _TIMESTAMP.fullmatch(_of_type(member, str))
    if found is None:
        raise ValueError
    *local, fraction, sign, zone_hours, zone_minutes = found.groups(default="")
    year, month, day, hour, minute, second = (int(part or 0) for part in local)
    micros = int(fraction.ljust(6, "0")[:6])
    at = datetime(year, month, day, hour, minute, second, micros, timezone.utc)
    ahead_hours, ahead_minutes = int(zone_hours or 0), int(zone_minutes or 0)
    if ahead_hours > 23 or ahead_minutes > 59:
        raise ValueError
    ahead_us = (ahead_hours * 60 + ahead_minutes) * 60_000_000
    found_us = (at - _EPOCH) // _US + (ahead_us if sign == "-" else -ahead_us)
    if not MIN_TIMESTAMP_US <= found_us <= MAX_TIMESTAMP_US:
        raise ValueError
    return found_us


#: For types without inner types and without parameters.
_CONVERTERS: dict[pa.DataType, Converter] = {
    pa.bool_(): lambda member: _of_type(member, bool),
    pa.float32(): _float,
    pa.float64(): _double,
    pa.string(): _text,
    pa.date32(): date_of,
    TIMESTAMP: timestamp_of,
}


def _named(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"a decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return "an array"
    if pa.types.is_map(type_) or pa.types.is_struct(type_):
        return "an object"
    name = next(name for name, one in ARROW_TYPES.items() if one == type_)
    return f"an {name}" if name == "int" else f"a {name}"
