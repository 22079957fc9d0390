"""Which columns a topic's values could have, judged by a sample."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa

from ..values.value_ddl import (
    MAX_DEPTH,
    RESERVED,
    Array,
    Column,
    Decimal,
    Primitive,
    Struct,
    Type,
    ddl_of,
    illegal_in_name,
    parse_columns,
)
from .json_object import Unfit, date_of, is_number, is_whole, members, timestamp_of
from .value_columns import columns_of, value_schema

_UNKNOWN = Primitive("unknown")  # the type of a null, and of the items of an empty array
_STRING, _DOUBLE, _BIGINT = Primitive("string"), Primitive("double"), Primitive("bigint")
_DECIMAL = Decimal(
    20, 0
)  # of whole numbers beyond bigint; those of unsigned 64 bits have 20 digits
_BOOLEAN, _DATE, _TIMESTAMP = Primitive("boolean"), Primitive("date"), Primitive("timestamp")


class _Numbers(Primitive, frozen=True):
    """Numbers, and which types give back each of them as it was written."""

    whole: bool  # without fraction and exponent
    bigint: bool
    decimal: bool  # `_DECIMAL`
    double: bool

    @classmethod
    def of(cls, number: Any) -> _Numbers:
        whole = is_whole(number) or number.removeprefix("-").isdecimal()
        value = int(number) if is_whole(number) else None
        return cls(
            "number",
            whole,
            value is not None and -(2**63) <= value < 2**63,
            value is not None and abs(value) < 10**_DECIMAL.precision,
            _is_double(str(number)),
        )

    def __and__(self, other: _Numbers) -> _Numbers:
        return _Numbers(
            "number",
            self.whole and other.whole,
            self.bigint and other.bigint,
            self.decimal and other.decimal,
            self.double and other.double,
        )

    def known(self) -> Type:
        if self.bigint:
            return _BIGINT
        if self.decimal:
            return _DECIMAL
        # Of numbers beyond all of these, the next one may be what a double makes of two.
        return _DOUBLE if self.double and not self.whole else _STRING


def _is_double(number: str) -> bool:
    """Whether a double is written as that number, perhaps with other zeros or another exponent."""
    try:
        return decimal.Decimal(repr(float(number))) == decimal.Decimal(number)
    except ArithmeticError:  # an exponent beyond those of all types
        return False


class InferredColumn(msgspec.Struct, frozen=True):
    """A member of the objects among the values."""

    name: str
    type: str | None  # None: it cannot be a column
    present: int  # the number of values that have it, not null
    note: str = ""


class Inferred(msgspec.Struct, frozen=True):
    """The columns that some values could have."""

    sampled: int
    null: int  # tombstones
    unparsed: int  # values that would have a value_error
    columns: tuple[InferredColumn, ...]
    ddl: str  # of ``lakelog.value.columns``; empty if there is no column


def infer(values: pa.Array | pa.ChunkedArray, known: str = "") -> Inferred:
    """Columns that take every member of the values that are JSON objects.

    Whole numbers become bigint, or decimal(20,0) beyond it, as unsigned 64-bit ids are; others
    double, or string where a double has no room for their digits. Strings that are all dates or
    times become date or timestamp; arrays and objects keep their items. What differs from value to
    value becomes string, which holds other JSON as text.

    Args:
        values: binary; a few thousand at most, since they are read one by one.
        known: columns that the topic has already. They stay as they are and come first.
    """
    objects = []
    for value in values.to_pylist():
        try:
            objects.append({} if value is None else members(value))
        except (Unfit, RecursionError):  # the columns' own reader counts levels before it reads
            continue
    kept = parse_columns(known)
    taken = {column.name.lower() for column in kept}
    found: list[InferredColumn] = []
    new: list[Column] = []
    for name, types in _types_by_name(objects).items():
        present = sum(type_ != _UNKNOWN for type_ in types)
        column = next((column for column in kept if column.name == name), None)
        if column is not None:
            why = "is there already" + _lost_digits(column.type, reduce(_merged, types))
            found.append(InferredColumn(name, str(column.type), present, why))
            continue
        type_, why_not = reduce(_merged, types), _why_not(name, taken)
        if type_ == _UNKNOWN and not why_not:
            why_not = "is always null"
        if why_not:
            shown = name.encode(errors="backslashreplace").decode()  # it may not be valid UTF-8
            found.append(InferredColumn(shown, None, present, f"{why_not}; left out"))
            continue
        taken.add(name.lower())
        new.append(Column(name, _known(type_)))
        note = "differs from value to value" if _differs(types) else _note(type_)
        found.append(InferredColumn(name, str(new[-1].type), present, note))
    ddl = ddl_of([*kept, *new])
    unparsed = _unparsed(values, ddl) if ddl else len(values) - len(objects)
    return Inferred(len(values), values.null_count, unparsed, tuple(found), ddl)


def _types_by_name(objects: Iterable[dict[str, Any]]) -> dict[str, list[Type]]:
    """The types by name, in the order in which the names first occur."""
    found: dict[str, list[Type]] = {}
    for one in objects:
        for name, member in one.items():
            found.setdefault(name, []).append(_type_of(member))
    return found


def _type_of(member: Any, depth: int = 0) -> Type:
    if member is None:
        return _UNKNOWN
    if isinstance(member, bool):
        return _BOOLEAN
    if is_number(member):
        return _Numbers.of(member)
    if isinstance(member, (list, dict)) and depth == MAX_DEPTH:
        return _STRING
    if isinstance(member, list):
        unknown: Type = _UNKNOWN
        return Array(reduce(_merged, (_type_of(one, depth + 1) for one in member), unknown))
    if isinstance(member, dict):
        types = ((name, _type_of(one, depth + 1)) for name, one in member.items())
        return Struct(tuple(Column(name, type_) for name, type_ in types))
    for type_, reads in ((_DATE, date_of), (_TIMESTAMP, timestamp_of)):
        try:
            reads(member)
        except ValueError:
            continue
        return type_
    return _STRING


def _merged(one: Type, other: Type) -> Type:
    """A type that takes the values of both."""
    if one == other or other == _UNKNOWN:
        return one
    if one == _UNKNOWN:
        return other
    if isinstance(one, Array) and isinstance(other, Array):
        return Array(_merged(one.element, other.element))
    if isinstance(one, Struct) and isinstance(other, Struct):
        types = {field.name: field.type for field in one.fields}
        for field in other.fields:
            types[field.name] = _merged(types.get(field.name, _UNKNOWN), field.type)
        return Struct(tuple(Column(name, type_) for name, type_ in types.items()))
    if isinstance(one, _Numbers) and isinstance(other, _Numbers):
        return one & other
    return _TIMESTAMP if {one, other} == {_DATE, _TIMESTAMP} else _STRING


def _known(type_: Type) -> Type:
    """The type, with string for parts that were never seen, or that no table can have."""
    if isinstance(type_, Array):
        return Array(_known(type_.element))
    if isinstance(type_, Struct):
        taken: set[str] = set()
        for field in type_.fields:
            if _why_not(field.name, taken, frozenset()):
                return _STRING
            taken.add(field.name.lower())
        fields = tuple(Column(field.name, _known(field.type)) for field in type_.fields)
        return Struct(fields) if fields else _STRING
    if isinstance(type_, _Numbers):
        return type_.known()
    return _STRING if type_ == _UNKNOWN else type_


def _why_not(name: str, taken: set[str], reserved: frozenset[str] = RESERVED) -> str:
    if name.lower() in reserved:
        return "has the name of a column of lakelog's own"
    if name.lower() in taken:
        return "differs from another by case alone"
    return "has a name that no column of a table has" if illegal_in_name(name) else ""


def _differs(types: Sequence[Type]) -> bool:
    """Whether only string takes all of them, though not all are strings."""
    texts = (_STRING, _DATE, _TIMESTAMP, _UNKNOWN)
    return reduce(_merged, types) == _STRING and any(type_ not in texts for type_ in types)


def _note(type_: Type) -> str:
    """What numbers in it are beyond, if they are neither bigint nor double."""
    found = {numbers.known() for numbers in _numbers_in(type_)}
    if _STRING in found:
        return "has numbers of more digits than a double keeps: text keeps them"
    return "has whole numbers beyond bigint" if _DECIMAL in found else ""


def _lost_digits(kept: Type, seen: Type) -> str:
    """What is wrong with a column of doubles that is there already."""
    if kept in (_DOUBLE, Primitive("float")) and any(not n.double for n in _numbers_in(seen)):
        return ", and does not keep all digits of some: two numbers may be one in it"
    return ""


def _numbers_in(type_: Type) -> Iterator[_Numbers]:
    if isinstance(type_, _Numbers):
        yield type_
    elif isinstance(type_, Array):
        yield from _numbers_in(type_.element)
    elif isinstance(type_, Struct):
        for field in type_.fields:
            yield from _numbers_in(field.type)


def _unparsed(values: pa.Array | pa.ChunkedArray, ddl: str) -> int:
    errors = columns_of(values, value_schema(ddl)).column("value_error")
    return int(len(errors) - errors.null_count)
