"""Columns as Spark writes them in a table definition: ``flight int, at timestamp COMMENT 'UTC'``.

A column's type is one of `PRIMITIVES`, ``decimal(p,s)``, ``array<type>``, ``map<string,type>`` or
``struct<name type, …>``. Names that are not plain words stand in backquotes. Behind its type a
column may have ``NOT NULL`` and ``DEFAULT`` a number, a boolean or a text, which stands for a
member that is missing or null. In the table it can be null even so: a value need not be what the
columns say.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NoReturn

import msgspec

from ..errors import InvalidConfigError

#: Type names by what else Spark calls them.
PRIMITIVES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
}
LEGAL_TYPES = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(precision,scale), string, "
    "date, timestamp, array<type>, map<string,type> and struct<name type, …>"
)

VALUE_ERROR = "value_error"

#: The table's own columns, and what DataFrames and views have besides; in lower case, for to Delta
#: names that differ by case alone are the same.
RESERVED = frozenset(
    {
        "partition",
        "segment",
        "offset",
        "timestamp",
        "timestamptype",
        "key",
        "value",
        "headers",
        "delete_horizon",
        "topic",
        "key_text",
        "value_text",
        "value_json",
        "headers_text",
        VALUE_ERROR,
    }
)

MAX_DECIMAL_PRECISION = 38
MAX_DEPTH = 32  # of types in types

#: What no column may have in its name: what Delta forbids where it maps no names, control
#: characters (a zero byte keeps a write from ever ending), and half a surrogate pair, which has no
#: UTF-8. Columns that lakelog makes for itself have a blank, so that no value column is called so.
_ILLEGAL_IN_NAME = re.compile(r"[ ,;{}()=`\x00-\x1f\x7f\ud800-\udfff]")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\d+\.\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
    |(?P<word>[A-Za-z0-9_]+)|(?P<quoted>`(?:[^`]|``)*`)
    |(?P<text>'(?:[^'\\]|\\.|'')*')|(?P<mark>[<>(),:])|(?P<other>\S)|(?P<end>$))""",
    re.VERBOSE | re.DOTALL,
)


#: Of a column: a number as it is written, so that none is rounded.
Default = bool | str | decimal.Decimal | None

_INT_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class Primitive(msgspec.Struct, frozen=True):
    """A type without others in it, by Spark's name."""

    name: str

    def __str__(self) -> str:
        return self.name


class Decimal(msgspec.Struct, frozen=True):
    precision: int  # 1..38 digits
    scale: int  # 0..precision of them after the point

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class Array(msgspec.Struct, frozen=True):
    element: Type

    def __str__(self) -> str:
        return f"array<{self.element}>"


class Map(msgspec.Struct, frozen=True):
    """From strings, as JSON's objects are."""

    value: Type

    def __str__(self) -> str:
        return f"map<string,{self.value}>"


class Column(msgspec.Struct, frozen=True):
    """A column, or a field of a struct.

    Args:
        is_required: whether a value without it is not what the columns say; of a column alone.
        default: what stands for a member that is missing or null; likewise.
    """

    name: str
    type: Type
    comment: str | None = None
    is_required: bool = False
    default: Default = None

    def __str__(self) -> str:
        rules = " NOT NULL" if self.is_required else ""
        if self.default is not None:
            rules += f" DEFAULT {_literal(self.default)}"
        return self._text(rules)

    @property
    def declaration(self) -> str:
        """As a table has it: there it can be null, and nothing is filled in."""
        return self._text("")

    def _text(self, rules: str) -> str:
        name = self.name if _WORD.fullmatch(self.name) else f"`{self.name}`"
        comment = "" if self.comment is None else f" COMMENT {_quoted(self.comment)}"
        return f"{name} {self.type}{rules}{comment}"


def _literal(value: Default) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class Struct(msgspec.Struct, frozen=True):
    fields: tuple[Column, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"


Type = Primitive | Decimal | Array | Map | Struct


@lru_cache(maxsize=256)
def parse_columns(ddl: str) -> tuple[Column, ...]:
    """The columns that a text defines; none if it is empty.

    Raises:
        InvalidConfigError: it cannot be read, or a name cannot be a column's; says where.
    """
    parser = _Parser(ddl)
    if not ddl.strip():
        return ()
    columns = parser.columns(RESERVED, 0)
    parser.expect_end()
    return columns


def illegal_in_name(name: str) -> bool:
    """Whether no column of a plain Delta table can have the name."""
    return not name or _ILLEGAL_IN_NAME.search(name) is not None


def ddl_of(columns: Sequence[Column]) -> str:
    """The text that `parse_columns` reads as those columns."""
    return ", ".join(map(str, columns))


def check_additive(old: Sequence[Column], new: Sequence[Column]) -> None:
    """Refuse a change that the files written so far could not follow; comments may change.

    Raises:
        InvalidConfigError: a column went, or has another type or another spelling.
    """
    by_name = {column.name: column for column in new}
    folded = {column.name.lower(): column.name for column in new}
    for column in old:
        found = by_name.get(column.name)
        if found is None:
            other = folded.get(column.name.lower())
            what = f"is gone or is spelt {other!r} now" if other else "is gone"
        elif _bare(found.type) != _bare(column.type):
            what = f"is {found.type}, and was {column.type}"
        else:
            continue
        raise InvalidConfigError(
            f"value column {column.name!r} {what}, but files with it are written already: columns "
            f"can only be added. Keep `{column}`, and give what you want instead a name of its "
            "own, or another topic",
            column=column.name,
        )


def _bare(type_: Type) -> Type:
    """The type without comments."""
    if isinstance(type_, Array):
        return Array(_bare(type_.element))
    if isinstance(type_, Map):
        return Map(_bare(type_.value))
    if isinstance(type_, Struct):
        return Struct(tuple(Column(field.name, _bare(field.type)) for field in type_.fields))
    return type_


class _Parser:
    def __init__(self, ddl: str) -> None:
        self._ddl = ddl
        self._tokens = self._split()
        self._next()

    def columns(self, reserved: frozenset[str], depth: int) -> tuple[Column, ...]:
        columns: list[Column] = []
        seen: dict[str, str] = {}
        while True:
            columns.append(self._column(reserved, seen, depth))
            if self._text != ",":
                return tuple(columns)
            self._next()

    def expect_end(self) -> None:
        if self._kind != "end":
            self._refuse("a comma or the end should follow")

    def _column(self, reserved: frozenset[str], seen: dict[str, str], depth: int) -> Column:
        name = self._name()
        if name.lower() in seen:
            self._refuse(
                f"there is a column {seen[name.lower()]!r} already, and case does not tell them "
                "apart"
            )
        seen[name.lower()] = name
        if name.lower() in reserved:
            self._refuse(
                f"{name!r} is a column of lakelog's own; a value's member of that name "
                "stays in value"
            )
        self._next()
        if self._text == ":":
            self._next()
        type_ = self._type(depth)
        is_required, default = self._rules(type_, depth)
        return Column(name, type_, self._comment(), is_required, default)

    def _rules(self, type_: Type, depth: int) -> tuple[bool, Default]:
        """``NOT NULL`` and ``DEFAULT literal``, in either order."""
        is_required, default = False, None
        while self._kind == "word" and (rule := self._text.upper()) in ("NOT", "DEFAULT"):
            if depth:
                self._refuse("a field of a struct has neither NOT NULL nor DEFAULT, only a column")
            self._next()
            if rule == "DEFAULT":
                default = self._default(type_)
            elif self._text.upper() == "NULL":
                is_required = True
            else:
                self._refuse("NULL should stand here")
            self._next()
        return is_required, default

    def _default(self, type_: Type) -> Default:
        kind = type_.name if isinstance(type_, Primitive) else ""
        if kind == "string" and self._kind == "text":
            return self._unquoted()
        if kind == "boolean" and self._text.lower() in ("true", "false"):
            return self._text.lower() == "true"
        wanted = {"string": "a text in 'single quotes'", "boolean": "true or false"}.get(kind)
        if wanted is not None:
            self._refuse(f"{wanted} should stand here")
        if not (isinstance(type_, Decimal) or kind in {*_INT_BITS, "float", "double"}):
            self._refuse(
                f"a column of type {type_} has no DEFAULT; numbers, booleans and strings have one"
            )
        return self._default_number(type_)

    def _default_number(self, type_: Type) -> decimal.Decimal:
        try:
            number = decimal.Decimal(self._text)
        except decimal.InvalidOperation:
            number = decimal.Decimal("nan")
        if not number.is_finite():
            self._refuse("a number should stand here")
        if isinstance(type_, Decimal):
            *_, exponent = number.normalize().as_tuple()
            digits = max(0, number.adjusted() + 1)
            is_one = -int(exponent) <= type_.scale and digits <= type_.precision - type_.scale
        elif isinstance(type_, Primitive) and type_.name in _INT_BITS:
            most = 1 << (_INT_BITS[type_.name] - 1)
            is_one = self._text.lstrip("+-").isdecimal() and -most <= number < most
        else:
            most_exponent = 38 if type_ == Primitive("float") else 308
            is_one = not number or number.adjusted() < most_exponent
        if not is_one:
            self._refuse(f"it is no {type_}")
        return number

    def _name(self) -> str:
        if self._kind == "quoted":
            name = self._text[1:-1].replace("``", "`")
        elif self._kind == "word":
            name = self._text
        else:
            self._refuse("a column's name should stand here")
        if illegal_in_name(name):
            self._refuse(
                f"{name!r} cannot be a column's name: a table takes none that is empty or has a "
                "blank, a control character, half a surrogate pair or one of ,;{}()=`"
            )
        return name

    def _comment(self) -> str | None:
        if self._text.upper() != "COMMENT" or self._kind != "word":
            return None
        self._next()
        if self._kind != "text":
            self._refuse("COMMENT takes a text in 'single quotes'")
        comment = self._unquoted()
        self._next()
        return comment

    def _unquoted(self) -> str:
        return re.sub(r"\\(.)|''", lambda m: m[1] or "'", self._text[1:-1], flags=re.DOTALL)

    def _type(self, depth: int) -> Type:
        if depth > MAX_DEPTH:
            self._refuse(f"types are nested deeper than {MAX_DEPTH}")
        name = self._text.lower() if self._kind == "word" else ""
        if name in PRIMITIVES:
            self._next()
            return Primitive(PRIMITIVES[name])
        if name in {"decimal", "dec", "numeric"}:
            self._next()
            return self._decimal()
        if name not in {"array", "map", "struct"}:
            self._refuse(f"a type should stand here: {LEGAL_TYPES}")
        self._next()
        self._expect("<")
        found: Type
        if name == "array":
            found = Array(self._type(depth + 1))
        elif name == "map":
            if self._text.lower() != "string":
                self._refuse("the keys of a map are strings, as the names in a JSON object are")
            self._next()
            self._expect(",")
            found = Map(self._type(depth + 1))
        else:
            found = Struct(self.columns(frozenset(), depth + 1))
        self._expect(">")
        return found

    def _decimal(self) -> Decimal:
        if self._text != "(":
            return Decimal(10, 0)  # Spark's
        self._next()
        precision, scale = self._number(1, MAX_DECIMAL_PRECISION), 0
        if self._text == ",":
            self._next()
            scale = self._number(0, precision)
        self._expect(")")
        return Decimal(precision, scale)

    def _number(self, low: int, high: int) -> int:
        if not (self._text.isdecimal() and len(self._text) < 4 and low <= int(self._text) <= high):
            self._refuse(f"a number in {low}..{high} should stand here")
        number = int(self._text)
        self._next()
        return number

    # -- tokens --------------------------------------------------------------------------------

    def _split(self) -> Iterator[tuple[str, str, int]]:
        at = 0
        while True:
            found = _TOKEN.match(self._ddl, at)
            assert found is not None  # "other" takes what nothing else does
            assert found.lastgroup is not None
            yield found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)
            at = found.end()

    def _next(self) -> None:
        self._kind, self._text, self._at = next(self._tokens)

    def _expect(self, mark: str) -> None:
        if self._text != mark:
            self._refuse(f"{mark!r} should stand here")
        self._next()

    def _refuse(self, why: str) -> NoReturn:
        shown = repr(self._text) if self._text else "the end"
        raise InvalidConfigError(
            f"at character {self._at + 1} of the columns ({shown}): {why}",
            position=self._at,
            value=self._ddl,
        )
