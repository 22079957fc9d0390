"""Expressions in Spark's words, as far as those mean the same of every record."""

from __future__ import annotations

import re

from ...read.where import Always, Where
from ...read.where.expression import (
    All,
    Bytes,
    Compare,
    Contains,
    Either,
    Exists,
    Field,
    Header,
    Member,
    Not,
    Number,
    OneOf,
    Text,
    Time,
    as_bytes,
)
from .spark_members import member_compared, member_contains, member_exists

_SIGNS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def spark_condition(where: Where) -> str | None:
    """A condition on the columns of `TopicLog.dataframe`.

    Each part is false, not null, of a record that lacks the field: then ``NOT`` means the same.

    Returns:
        None if Spark has no words for it: a header that is compared with a number, all members of
        a value, a number that a double does not hold.
    """
    match where:
        case Always():
            return "true"
        case All(parts) | Either(parts):
            written = [spark_condition(part) for part in parts]
            if None in written:
                return None
            word = " AND " if isinstance(where, All) else " OR "
            return f"({word.join(filter(None, written))})"
        case Not(part):
            inner = spark_condition(part)
            return None if inner is None else f"NOT {inner}"
        case Text(text):
            return f"({_contains('key', text)} OR {_contains('value', text)})"
        case Compare(field, sign, literal):
            return _compared(field, sign, literal)
        case OneOf(field, literals):
            each = [_compared(field, "=", literal) for literal in literals]
            return None if None in each else f"({' OR '.join(filter(None, each))})"
        case Contains(Member() as field, literal, at_start):
            return member_contains(field, literal, "startswith" if at_start else "contains")
        case Exists(Member() as field):
            return member_exists(field)
        case Contains(Bytes(name), str() | bytes() as literal, at_start):
            call = "startswith" if at_start else "contains"
            return _contains(name, as_bytes(literal), call)
        case Contains(Header(name), str() | bytes() as literal, at_start):
            call = "startswith" if at_start else "contains"
            return _any_header(name, f"{call}(h.value, {_bytes(as_bytes(literal))})")
        case Exists(Header(name)):
            return _any_header(name, "true")
        case Exists(Bytes(name)):
            return f"({name} IS NOT NULL)"
        case Exists(Time()):
            return "coalesce(unix_millis(timestamp) >= 0, false)"
    return None


def _compared(field: Field, sign: str, literal: object) -> str | None:
    number = isinstance(literal, (int, float)) and not isinstance(literal, bool)
    match field:
        case Member():
            return member_compared(field, sign, literal)
        case Bytes(name) if isinstance(literal, (str, bytes)):
            return f"coalesce({name} {_SIGNS[sign]} {_bytes(as_bytes(literal))}, false)"
        case Header(name) if isinstance(literal, (str, bytes)):
            return _any_header(name, f"h.value {_SIGNS[sign]} {_bytes(as_bytes(literal))}")
        case Number(name) if number:
            column = "length(value)" if name == "size" else f"`{name}`"
            return f"coalesce({column} {_SIGNS[sign]} {literal}, false)"
        case Time() if number:
            time = "unix_millis(timestamp)"
            return f"coalesce({time} >= 0 AND {time} {_SIGNS[sign]} {literal}, false)"
    return None


def _any_header(name: str, holds: str) -> str:
    """That one of the headers of a name has such a value."""
    plain = re.fullmatch(r"[\w.-]+", name, re.ASCII)
    written = f"'{name}'" if plain else f"decode({_bytes(name.encode())}, 'UTF-8')"
    inner = f"h.key = {written} AND coalesce({holds}, false)"
    return f"coalesce(exists(headers, h -> {inner}), false)"


def _contains(name: str, text: bytes, call: str = "contains") -> str:
    return f"coalesce({call}({name}, {_bytes(text)}), false)"


def _bytes(data: bytes) -> str:
    return f"X'{data.hex()}'"
