"""Members of values that are JSON in Spark's words, by its type VARIANT, which knows their kinds.

Of sound JSON they mean the same. Spark alone takes what has a text behind it, and alone refuses a
name that occurs twice in an object.
"""

from __future__ import annotations

import re

from ...read.where.expression import ANY, Member

_SIGNS = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

#: Beyond, a double is not exact.
_MOST_EXACT = 2**53

_VALUE = "try_parse_json(CAST(value AS STRING))"


def text_literal(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    if re.fullmatch(r"[^\x00-\x1f'\\\x7f-\uffff\U00010000-\U0010ffff]*", text):
        return f"'{text}'"
    return f"decode(X'{text.encode(errors='replace').hex()}', 'UTF-8')"


def member_as(name: str, kind: str) -> str | None:
    """A member of the value, of one of Spark's types; None if there are no words for its name."""
    path = _path((name,))
    if path is None:
        return None
    return f"try_variant_get({_VALUE}, {path}, {text_literal(kind)})"


def member_compared(field: Member, sign: str, literal: object) -> str | None:
    """That what a path leads to compares so with a literal; what is of another kind is unequal."""
    member = _member(field)
    if member is None:
        return None
    if sign == "!=":
        equal = _compared(member, "=", literal)
        return None if equal is None else f"({member} IS NOT NULL AND NOT {equal})"
    return _compared(member, sign, literal)


def member_contains(field: Member, literal: object, call: str) -> str | None:
    """That it is a text with such a text in it, or a list with such an element."""
    member = _member(field)
    if member is None:
        return None
    found = []
    if isinstance(literal, str):
        text = f"{call}(try_variant_get({member}, '$', 'string'), {text_literal(literal)})"
        found.append(f"coalesce({_is(member, 'STRING')} AND {text}, false)")
    if call == "contains":
        equal = _compared("e", "=", literal)
        if equal is None:
            return None
        elements = f"try_variant_get({member}, '$', 'array<variant>')"
        found.append(f"coalesce(exists({elements}, e -> {equal}), false)")
    return f"({' OR '.join(found)})" if found else "false"


def member_exists(field: Member) -> str | None:
    """That the path leads to something, be it null."""
    member = _member(field)
    return None if member is None else f"({member} IS NOT NULL)"


def _member(field: Member) -> str | None:
    path = _path(field.steps)
    return None if path is None else f"try_variant_get({_VALUE}, {path}, 'variant')"


def _path(steps: tuple[str | int | None, ...]) -> str | None:
    """As a literal; None where a step is to several members, from the end, or has odd signs."""
    path = "$"
    for step in steps:
        if step is ANY or (isinstance(step, int) and step < 0):
            return None
        if isinstance(step, int):
            path += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z_]\w*", step, re.ASCII):
            path += f".{step}"
        else:
            quote = '"' if "'" in step else "'"
            if quote in step or "\\" in step or not step.isprintable():
                return None
            path += f"[{quote}{step}{quote}]"
    return text_literal(path)


def _compared(member: str, sign: str, literal: object) -> str | None:
    if literal is None:
        return f"coalesce(is_variant_null({member}), false)" if sign == "=" else "false"
    if isinstance(literal, bool):
        value = f"try_variant_get({member}, '$', 'boolean') = {str(literal).lower()}"
        is_it = f"coalesce({_is(member, 'BOOLEAN')} AND {value}, false)"
        return is_it if sign == "=" else "false"
    if isinstance(literal, str):
        value = f"try_variant_get({member}, '$', 'string') {_SIGNS[sign]} {text_literal(literal)}"
        return f"coalesce({_is(member, 'STRING')} AND {value}, false)"
    if isinstance(literal, (int, float)) and abs(literal) <= _MOST_EXACT:
        is_number = f"schema_of_variant({member}) RLIKE '^(BIGINT|DECIMAL|DOUBLE)'"
        value = f"try_variant_get({member}, '$', 'double') {_SIGNS[sign]} {literal!r}"
        return f"coalesce({is_number} AND {value}, false)"
    return None if isinstance(literal, (int, float)) else "false"


def _is(member: str, kind: str) -> str:
    return f"schema_of_variant({member}) = '{kind}'"
