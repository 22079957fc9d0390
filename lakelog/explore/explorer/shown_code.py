"""The rows shown as code in other words: Python, Spark, a command, a link.

Spark's words are given as far as they mean the same of every record. Members of values that are
JSON are told by its type VARIANT, which knows their kinds. Of sound JSON they mean the same: Spark
alone takes what has a text behind it, and alone refuses a name that occurs twice in an object.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import timezone

from ...base.json_text import ANY
from ...errors import InvalidArgumentError
from ...read.where import Always, Where, is_all, write
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
from ...values.offsets import AtOffset
from ...values.typed_time import clock_text
from .member_columns import PREFIX
from .view import Shown, View

#: What the rows shown can be copied as.
PYTHON, FRAME, SQL, CLI, LINK = "Python", "Spark DataFrame", "Spark SQL", "command line", "link"
CODES = (PYTHON, FRAME, SQL, CLI, LINK)

#: So much of a call is shown on a page, and kept in a notebook.
SHOWN_CHARACTERS = 4_000

_SIGNS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

#: Beyond, a double is not exact.
_MOST_EXACT = 2**53

_VALUE = "try_parse_json(CAST(value AS STRING))"


def code(shown: Shown, form: str = PYTHON, members: Sequence[tuple[str, str]] = ()) -> str:
    """The call that gives the rows shown, or for `LINK` that shows them.

    Args:
        members: of the values, by name and Spark's type, that Spark gives as columns, too.

    Raises:
        InvalidArgumentError: another form.
    """
    view = shown.view
    if form == PYTHON:
        return f"lake.log({view.topic!r}).{view.expression.removeprefix('log.')}"
    if form == FRAME:
        return _frame(view, members)
    if form == SQL:
        return _sql(view, members)
    if form == CLI:
        return _command(view)
    if form == LINK:
        return _link(shown)
    raise InvalidArgumentError(f"{form!r} is none of {', '.join(CODES)}", value=form)


def shortened(text: str) -> str:
    """A call as it is shown: cut if it holds a very long text; it says where all of it is."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]} … ({len(text):,} characters; explorer.code() has them all)"


def _selected(members: Sequence[tuple[str, str]]) -> list[str]:
    """All columns, and the members as such that the table gives them as."""
    written = ((name, member_as(name, kind)) for name, kind in members)
    found = [f"{text} AS `{PREFIX}{name}`" for name, text in written if text is not None]
    return ["*", *found]


def _frame(view: View, members: Sequence[tuple[str, str]]) -> str:
    starts = {number: start for number, (start, _) in view.spans.items()}
    ends = {number: end for number, (_, end) in view.spans.items()}
    frame = f"lake.dataframe({view.topic!r}, {starts}, {ends})"
    condition = spark_condition(view.match)
    if condition not in (None, "true"):
        frame += f".where({condition!r})"
    selected = _selected(members)
    if len(selected) > 1:
        frame += f".selectExpr({', '.join(map(repr, selected))})"
    return f"{frame}  # to be filtered: {write(view.match)}" if condition is None else frame


def _sql(view: View, members: Sequence[tuple[str, str]]) -> str:
    name = "".join(one if one.isalnum() else "_" for one in view.topic)
    spans = " OR ".join(
        f"(partition = {number} AND offset >= {start} AND offset < {end})"
        for number, (start, end) in view.spans.items()
    )
    parts = [f"({spans})" if spans else "false"]
    condition = spark_condition(view.match)
    if condition not in (None, "true"):
        parts.append(str(condition))
    note = f"  -- to be filtered: {write(view.match)}" if condition is None else ""
    return (
        f"SELECT {', '.join(_selected(members))} FROM {name} WHERE {' AND '.join(parts)}{note}"
        f"  -- after lake.dataframe({view.topic!r}).createOrReplaceTempView({name!r})"
    )


def _command(view: View) -> str:
    words = ["lakelog", "consume", view.topic]
    where = "" if is_all(view.match) else write(view.match)
    if view.partition is not None:
        start, end = view.spans[view.partition]
        words += ["-p", str(view.partition), "--from", str(start), "--to", str(end)]
    else:
        words.append("--merge")
        spans = " or ".join(
            f"partition = {number} and offset >= {start} and offset < {end}"
            for number, (start, end) in view.spans.items()
        )
        where = " and ".join(f"({part})" for part in (where, spans) if part)
    if where:
        words += ["--where", where]
    return shlex.join(words)


def _link(shown: Shown) -> str:
    view = shown.view
    arguments = [repr(view.topic)]
    if view.partition is not None:
        arguments += [str(view.partition), f"at={view.start_offset}"]
    elif shown.records.num_rows:
        arguments.append(f"at={_time_text(shown.records['timestamp'][0].value // 1000)!r}")
    elif isinstance(shown.ask.where, AtOffset):
        arguments.append(f"at={shown.ask.where.offset}")
    if not is_all(view.match):
        arguments.append(f"where={write(view.match)!r}")
    return f"lake.explore({', '.join(arguments)})"


def _time_text(time_ms: int) -> str:
    """A time as `read_time` reads it; what is before 1970 comes first in any case."""
    if time_ms < 0:
        return "earliest"
    return clock_text(time_ms, timezone.utc).replace(" ", "T")


# -- conditions in Spark's words ----------------------------------------------------------------


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
        case Contains(field, literal, at_start):
            return _contained(field, literal, "startswith" if at_start else "contains")
        case Exists(Member() as field):
            member = _member(field)
            return None if member is None else f"({member} IS NOT NULL)"
        case Exists(Header(name)):
            return _any_header(name, "true")
        case Exists(Bytes(name)):
            return f"({name} IS NOT NULL)"
        case Exists(Time()):
            return "coalesce(unix_millis(timestamp) >= 0, false)"
    return None


def _contained(field: Field, literal: object, call: str) -> str | None:
    match field:
        case Member():
            return member_contains(field, literal, call)
        case Bytes(name) if isinstance(literal, (str, bytes)):
            return _contains(name, as_bytes(literal), call)
        case Header(name) if isinstance(literal, (str, bytes)):
            return _any_header(name, f"{call}(h.value, {_bytes(as_bytes(literal))})")
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


# -- members of values --------------------------------------------------------------------------


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
        equal = _member_compared(member, "=", literal)
        return None if equal is None else f"({member} IS NOT NULL AND NOT {equal})"
    return _member_compared(member, sign, literal)


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
        equal = _member_compared("e", "=", literal)
        if equal is None:
            return None
        elements = f"try_variant_get({member}, '$', 'array<variant>')"
        found.append(f"coalesce(exists({elements}, e -> {equal}), false)")
    return f"({' OR '.join(found)})" if found else "false"


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


def _member_compared(member: str, sign: str, literal: object) -> str | None:
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
