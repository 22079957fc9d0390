"""The text of an expression, read and written.

==============================================================  =================================
``N229JB``  ``delayed by``                                      that text in the key or the value
``key = "N229JB"``  ``key = 0x00ff``  ``key in ("a", "b")``     the whole key, as text or bytes
``value.dep_delay > 60``  ``value.legs[0].origin = "JFK"``      a member of values that are JSON
``value.legs[*].origin``  ``value["a b"]``                      any element; any name
``header.source = "x"``  ``header["a b"] exists``               headers
``time >= "2013-07-04 12:00"``  ``time < "1 hour ago"``         the timestamp, also by that name
``offset < 1000``  ``partition = 2``  ``size > 1000``           numbers; the bytes of the value
``= != < <= > >=  in (…)  not in (…)  contains  starts with``   comparisons
``exists``  ``is null``  ``is not null``                        it is there, or is not
``like "N%"``  ``between … and …``                              as SQL has them
``and  or  not  ( … )``                                         joined
==============================================================  =================================

What does not begin with a field, ``not`` or a bracket is a text to look for, unless it is meant as
an expression (see `near_miss`). A text in quotes is one too, and so are bytes (``0x00ff``); they
may be joined to the rest: ``"JFK" and time >= "yesterday"``.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

from ...base.json_text import ANY
from ...errors import InvalidArgumentError
from ...values.typed_time import clock_text, read_time
from .expression import (
    EQ,
    All,
    Always,
    Bytes,
    Compare,
    Contains,
    Either,
    Exists,
    Field,
    Header,
    Like,
    Member,
    Not,
    Number,
    OneOf,
    Scalar,
    Text,
    Time,
    Where,
)
from .near_miss import is_meant, no_field, quoted

#: So that neither this reader nor those of what it gives run out of stack.
MAX_DEPTH = 100

MAX_CHARACTERS = 1 << 20

#: So that neither reading an expression nor asking each record takes minutes. A list is one
#: comparison, however long it is.
MAX_COMPARISONS, MAX_STEPS = 1_000, 10_000

_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[()\[]|\.(?=[^\W\d])|\w+", re.DOTALL)
_SPECIAL = re.compile(
    r"""[\s(]*(?:not[\s(]+)*
    (?:(?:key|value|headers?|time(?:stamp)?|offset|partition|size)
         (?:[.\[]|\s*(?:[=<>!]|(?:in|not|contains|starts|exists)\b))
      |(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|0x(?:[0-9a-f]{2})+)[\s)]*(?:$|(?:and|or)\b))""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_SIMPLE_NAME = re.compile(r"[^\W\d][\w-]*")
_NAMES = {
    "SIGN": "a comparison",
    "TEXT": "a text in quotes",
    "NUMBER": "a number",
    "HEX": "bytes (0x00ff)",
    "FIELD": "a field (key, value, header, time, offset, partition, size)",
    "MEMBER": "a member (.name)",
    "ANY_MEMBER": None,
    "LSQB": None,
    "INDEX": "a number",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": "a comma",
    "STAR": "*",
    "$END": "the end",
}


def parse(text: str, zone: tzinfo | None = timezone.utc, now: datetime | None = None) -> Where:
    """The expression that a text means; without a text, one that always holds.

    Args:
        zone: of times without one; None refuses those.
        now: whose day is today, and from which ``1 hour ago`` counts.

    Raises:
        InvalidArgumentError: it cannot be read; the message points at the character.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{text!r} is not the text of an expression", value=text)
    if not text.strip():
        return Always()
    if len(text) > MAX_CHARACTERS:
        raise InvalidArgumentError(
            f"an expression of {len(text):,} characters is too long: at most {MAX_CHARACTERS:,} "
            "are read. Search for a part of the text, or for fewer values at a time"
        )
    if not _is_expression(text):
        return Text(_utf8(text.strip(), text))
    _check_depth(text)
    return _parsed(text, _Reader(text, zone, now or datetime.now(timezone.utc)))


def write(where: Where) -> str:
    """The text that is read as this expression; empty for one that always holds.

    Times are written in UTC, so that it means the same at any time and in any zone.
    """
    if isinstance(where, Always):
        return ""
    if isinstance(where, Text):
        text = where.text.decode(errors="replace")
        is_itself = text.encode() == where.text and text.isprintable() and text.strip() == text
        if is_itself and text and not _is_expression(text):
            return text
    return _written(where, 0)


# -- reading -----------------------------------------------------------------------------------


def _is_expression(text: str) -> bool:
    """Whether it is read as one, not looked for as it is."""
    return _SPECIAL.match(text) is not None or is_meant(text)


@cache
def _grammar() -> Any:
    from lark import Lark

    text = Path(__file__).with_name("where.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True)


def _parsed(text: str, reader: _Reader) -> Where:
    from lark import UnexpectedInput

    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        at = error.pos_in_stream
        if at is None or at < 0 or getattr(getattr(error, "token", None), "type", "") == "$END":
            at = len(text)
        raise _refused(text, at, _expected(text, at)) from None
    return reader.where(tree)


def _expected(text: str, at: int) -> str:
    """What might stand there."""
    so_far = _grammar().parse_interactive(text[:at])
    so_far.exhaust_lexer()
    accepted = so_far.accepts()
    meant = no_field(text[at:]) if "FIELD" in accepted else None
    to_find_it = "" if _SPECIAL.match(text) else quoted(text)
    if meant is not None:
        return _sentences(meant, to_find_it)
    words = {_NAMES.get(name, name.lower()): None for name in sorted(accepted)}
    said = f"expected {', '.join(word for word in words if word)}"
    unquoted = re.compile(r"[^\W\d][\w.-]*").match(text, at)
    if unquoted and "TEXT" in accepted:
        said += f'; texts stand in quotes: "{unquoted[0]}"'
    return _sentences(said, to_find_it)


def _sentences(first: str, second: str) -> str:
    if not second:
        return first
    return f"{first}{'' if first.endswith('?') else '.'} {second}"


def _refused(text: str, at: int, why: str) -> InvalidArgumentError:
    """Points at a character, in the part of the text around it."""
    start, end = max(0, at - 60), at + 30
    line = re.sub(r"\s", " ", text[start:end])
    before, after = "… " if start else "", " …" if end < len(text) else ""
    pointer = " " * (len(before) + at - start) + "^"
    said = f"the expression cannot be read:\n  {before}{line}{after}\n  {pointer} {why}"
    return InvalidArgumentError(said, value=text[:1000])


def _check_depth(text: str) -> None:
    """Brackets and ``not`` within each other, comparisons and steps, outside of quotes."""
    brackets = negations = joined = steps = 0
    for found in re.finditer(_TOKEN, text):
        token = found[0]
        joined += token.lower() in ("and", "or")
        steps += token in (".", "[")
        if joined >= MAX_COMPARISONS:
            why = f"more than {MAX_COMPARISONS:,} comparisons: those of one field fit into in (…)"
            raise _refused(text, found.start(), why)
        if steps > MAX_STEPS:
            raise _refused(text, found.start(), f"more than {MAX_STEPS:,} steps into members")
        brackets += {"(": 1, ")": -1}.get(token, 0)
        if token != "(":
            negations = negations + 1 if token.lower() == "not" else 0
        if brackets + negations > MAX_DEPTH:
            raise _refused(text, found.start(), f"more than {MAX_DEPTH} levels deep")


class _Reader:
    """Makes an expression of a parsed tree."""

    def __init__(self, text: str, zone: tzinfo | None, now: datetime) -> None:
        self._text = text
        self._zone = zone
        self._now = now

    def where(self, tree: Any) -> Where:
        make = getattr(self, f"_{tree.data}")
        return make(tree)  # type: ignore[no-any-return]

    def _either(self, tree: Any) -> Where:
        return Either(tuple(self.where(part) for part in tree.children))

    def _all(self, tree: Any) -> Where:
        return All(tuple(self.where(part) for part in tree.children))

    def _negated(self, tree: Any) -> Where:
        part = self.where(tree.children[0])
        return part.part if isinstance(part, Not) else Not(part)

    def _containing(self, tree: Any) -> Where:
        text = self._literal(tree.children[0])
        return Text(text if isinstance(text, bytes) else _utf8(str(text), self._text))

    def _compared(self, tree: Any) -> Where:
        field, sign, literal = tree.children
        written = {"==": EQ, "<>": "!="}.get(str(sign), str(sign))
        of = self._field(field)
        return Compare(of, written, self._literal_for(of, literal, sign))

    def _one_of(self, tree: Any) -> Where:
        field, *literals = tree.children
        of = self._field(field)
        return OneOf(of, tuple(self._literal_for(of, one, field.children[0]) for one in literals))

    def _none_of(self, tree: Any) -> Where:
        return Not(self._one_of(tree))

    def _contains(self, tree: Any) -> Where:
        return self._contained(tree, at_start=False)

    def _starts_with(self, tree: Any) -> Where:
        return self._contained(tree, at_start=True)

    def _contained(self, tree: Any, *, at_start: bool) -> Where:
        field, literal = tree.children
        of = self._field(field)
        value = self._literal(literal)
        is_text = isinstance(value, (str, bytes))
        if isinstance(of, (Number, Time)) or (not is_text and not isinstance(of, Member)):
            raise self._refuse(literal, "only texts contain something, and only texts")
        return Contains(of, value, at_start)

    def _exists(self, tree: Any) -> Where:
        return Exists(self._field(tree.children[0]))

    def _is_not_null(self, tree: Any) -> Where:
        of = self._field(tree.children[0])
        there = Exists(of)
        return All((there, Compare(of, "!=", None))) if isinstance(of, Member) else there

    def _is_null(self, tree: Any) -> Where:
        of = self._field(tree.children[0])
        absent = Not(Exists(of))
        return Either((absent, Compare(of, EQ, None))) if isinstance(of, Member) else absent

    def _like(self, tree: Any) -> Where:
        field, literal = tree.children
        of, value = self._field(field), self._literal(literal)
        if isinstance(of, (Number, Time)) or not isinstance(value, str):
            raise self._refuse(literal, "only texts are like something, and only texts")
        return Like(of, value)

    def _not_like(self, tree: Any) -> Where:
        return Not(self._like(tree))

    def _between(self, tree: Any) -> Where:
        field, *literals = tree.children
        of = self._field(field)
        low, high = (self._literal_for(of, one, field.children[0]) for one in literals)
        return All((Compare(of, ">=", low), Compare(of, "<=", high)))

    def _not_between(self, tree: Any) -> Where:
        return Not(self._between(tree))

    def _field(self, tree: Any) -> Field:
        token, *steps = tree.children
        name = str(token).lower()
        path = tuple(self._step(step) for step in steps)
        if name == "value":
            return Member(path) if path else Bytes("value")
        if name in ("header", "headers"):
            if len(path) != 1 or not isinstance(path[0], str):
                raise self._refuse(token, 'a header has a name: header.source, header["a b"]')
            return Header(path[0])
        if path:
            raise self._refuse(token, f"{name} has no members; those of values are value.name")
        if name == "key":
            return Bytes("key")
        return Time() if name in ("time", "timestamp") else Number(name)

    def _step(self, tree: Any) -> str | int | None:
        if tree.data == "any":
            return ANY
        token = tree.children[0]
        if tree.data == "index":
            return int(token)
        return str(token)[1:] if tree.data == "named" else self._quoted(token)

    def _literal_for(self, field: Field, literal: Any, token: Any) -> Scalar:
        value = self._literal(literal)
        if isinstance(field, Time):
            return self._time(literal, value)
        if isinstance(field, Number) and (
            isinstance(value, bool) or not isinstance(value, (int, float))
        ):
            raise self._refuse(literal, f"{field.name} is a number")
        if isinstance(value, bytes) and isinstance(field, Member):
            raise self._refuse(literal, "JSON has no bytes")
        if value is None and not isinstance(field, Member):
            raise self._refuse(literal, "write is null, or is not null")
        if isinstance(value, bool) and not isinstance(field, Member):
            raise self._refuse(literal, "only members of JSON are true or false")
        return value

    def _time(self, token: Any, value: Scalar) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise self._refuse(token, 'a time is a text: "2013-07-04 12:00"')
        try:
            found = read_time(value, self._zone, self._now)
        except InvalidArgumentError as error:
            raise self._refuse(token, str(error)) from None
        if found.timestamp_ms is not None:
            return found.timestamp_ms
        assert found.ago is not None
        return int(self._now.timestamp() * 1000) - found.ago // timedelta(milliseconds=1)

    def _literal(self, tree: Any) -> Scalar:
        if tree.data == "text":
            return self._quoted(tree.children[0])
        if tree.data == "bytes":
            return bytes.fromhex(str(tree.children[0])[2:])
        if tree.data == "number":
            return self._number(tree.children[0])
        return {"true": True, "false": False}.get(tree.data)

    def _number(self, token: Any) -> int | float:
        text = str(token)
        if re.fullmatch(r"-?\d{1,300}", text):
            return int(text)
        return float(text)

    def _quoted(self, token: Any) -> str:
        text = str(token)
        if text[0] == "'":  # as JSON has it, but for the quotes
            inner = re.sub(r"\\'|\"", lambda found: "'" if found[0] == r"\'" else r"\"", text[1:-1])
            text = f'"{inner}"'
        try:
            return str(json.loads(text, strict=False))
        except ValueError:
            raise self._refuse(token, r"not an escape that JSON has (a backslash is \\)") from None

    def _refuse(self, token: Any, why: str) -> InvalidArgumentError:
        where = token if hasattr(token, "start_pos") else token.meta
        return _refused(self._text, int(where.start_pos), why)


def _utf8(text: str, whole: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _refused(whole, error.start, "no character that UTF-8 has") from None


# -- writing -----------------------------------------------------------------------------------


def _written(where: Where, binds: int) -> str:
    """Args:
    binds: how tightly the place binds: 0 for the whole, 1 within ``or``, 2 within ``and``, 3
        after ``not``.
    """
    match where:
        case Either(parts):
            text, level = " or ".join(_written(part, 1) for part in parts), 0
        case All(parts):
            text, level = " and ".join(_written(part, 2) for part in parts), 1
        case Not(OneOf(field, literals)):
            text, level = f"{_field(field)} not in ({_literals(field, literals)})", 3
        case Not(part):
            text, level = f"not {_written(part, 3)}", 2
        case Text(found):
            text, level = _bytes(found), 3
        case Compare(field, sign, literal):
            text, level = f"{_field(field)} {sign} {_literals(field, (literal,))}", 3
        case OneOf(field, literals):
            text, level = f"{_field(field)} in ({_literals(field, literals)})", 3
        case Contains(field, literal, at_start):
            word = "starts with" if at_start else "contains"
            text, level = f"{_field(field)} {word} {_literals(field, (literal,))}", 3
        case Exists(field):
            text, level = f"{_field(field)} exists", 3
        case Like(field, pattern):
            text, level = f"{_field(field)} like {_literals(field, (pattern,))}", 3
        case _:
            raise TypeError(f"{where!r} has no text of its own")
    return f"({text})" if level < binds else text


def _field(field: Field) -> str:
    match field:
        case Bytes(name) | Number(name):
            return name
        case Time():
            return "time"
        case Header(name):
            return f"header{_step(name)}"
        case Member(steps):
            return "value" + "".join(map(_step, steps))


def _step(step: str | int | None) -> str:
    if step is ANY:
        return "[*]"
    if isinstance(step, int):
        return f"[{step}]"
    if _SIMPLE_NAME.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=False)}]"


def _literals(field: Field, literals: tuple[Scalar, ...]) -> str:
    if isinstance(field, Time):
        return ", ".join(json.dumps(clock_text(int(ms or 0), timezone.utc)) for ms in literals)
    return ", ".join(_literal(one) for one in literals)


def _literal(value: Scalar) -> str:
    return _bytes(value) if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False)


def _bytes(data: bytes) -> str:
    """As a text where it is one that can be read."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else f"0x{data.hex()}"
