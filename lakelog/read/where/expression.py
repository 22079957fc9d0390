"""An expression over records, and which rows of a batch it holds for.

It is two-valued: a comparison holds only of what is there, and ``not`` turns that around. So
``key != "a"`` is of records with another key, and ``not key = "a"`` also of those without one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...base.json_text import parse_json, reached
from ...codec.formats.decoders import decoded
from ...values.value_format import JSON_FORMAT, ValueFormat

#: The longest text that is handed to RE2 as a pattern.
_PATTERN_BYTES = 1_000

Mask = np.ndarray  # of booleans, one a row

EQ, NE, LT, LE, GT, GE = "=", "!=", "<", "<=", ">", ">="
Scalar = str | bytes | int | float | bool | None

#: What Arrow calls them.
_ARROW = {
    EQ: "equal",
    NE: "not_equal",
    LT: "less",
    LE: "less_equal",
    GT: "greater",
    GE: "greater_equal",
}

#: From here on not each whole number is a double.
_EXACT_DOUBLES = 2**53

#: What a part costs a row, so that the cheap ones decide first.
_BY_NUMBER, _BY_BYTES, _BY_SEARCH, _BY_HEADER, _BY_DOCUMENT = range(5)


class Rows:
    """Some rows of a `RECORDS` batch.

    Args:
        partition: of all of them, or of each.
    """

    def __init__(self, records: pa.RecordBatch, partition: int | np.ndarray) -> None:
        self.records = records
        self.partition = partition

    def __len__(self) -> int:
        return int(self.records.num_rows)

    def where(self, mask: Mask) -> Rows:
        """Those of them for which it is true."""
        of = self.partition if isinstance(self.partition, int) else self.partition[mask]
        return Rows(self.records.filter(pa.array(mask)), of)

    def column(self, name: str) -> pa.Array:
        return self.records.column(name)

    @cached_property
    def timestamps_ms(self) -> np.ndarray:
        """Epoch milliseconds; -1 where there is none."""
        micros = self.column("timestamp").view(pa.int64())
        return np.asarray(micros.to_numpy(zero_copy_only=False)) // 1000


class Where(Protocol):
    """An expression."""

    @property
    def cost(self) -> int: ...

    def holds(self, rows: Rows) -> Mask:
        """Of which of the rows it is true."""
        ...


def is_all(where: Where) -> bool:
    """Whether it asks for nothing, so that every record matches."""
    return isinstance(where, Always)


def matching(
    where: Where,
    records: pa.RecordBatch,
    partition: int,
    form: ValueFormat = JSON_FORMAT,
) -> pa.RecordBatch:
    """The rows of a `RECORDS` batch that match, in their order.

    Args:
        form: of the values, which are looked at as JSON, and given as they are.
    """
    if is_all(where) or not records.num_rows:
        return records
    seen = records
    if not form.is_json:
        values = decoded(records.column("value"), form).values
        seen = records.set_column(records.schema.get_field_index("value"), "value", values)
    return records.filter(pa.array(where.holds(Rows(seen, partition))))


# -- what is joined ----------------------------------------------------------------------------


class Always(Struct, frozen=True):
    """Every record matches."""

    cost: int = _BY_NUMBER

    def holds(self, rows: Rows) -> Mask:
        return np.ones(len(rows), np.bool_)


class All(Struct, frozen=True):
    """All of them hold."""

    parts: tuple[Where, ...]

    @property
    def cost(self) -> int:
        return max(part.cost for part in self.parts)

    def holds(self, rows: Rows) -> Mask:
        return _in_turn(self.parts, rows, decides=False)


class Either(Struct, frozen=True):
    """One of them holds at least."""

    parts: tuple[Where, ...]

    @property
    def cost(self) -> int:
        return max(part.cost for part in self.parts)

    def holds(self, rows: Rows) -> Mask:
        return _in_turn(self.parts, rows, decides=True)


def _in_turn(parts: Sequence[Where], rows: Rows, *, decides: bool) -> Mask:
    """The cheap parts first; the others see the rows that are not decided yet."""
    mask = np.full(len(rows), not decides)
    at = np.arange(len(rows))
    for part in sorted(parts, key=lambda part: part.cost):
        if not len(rows):
            break
        found = part.holds(rows) == decides
        mask[at[found]] = decides
        at, rows = at[~found], rows.where(~found)
    return mask


class Not(Struct, frozen=True):
    """It does not hold."""

    part: Where

    @property
    def cost(self) -> int:
        return self.part.cost

    def holds(self, rows: Rows) -> Mask:
        return ~self.part.holds(rows)


# -- fields ------------------------------------------------------------------------------------


class Number(Struct, frozen=True):
    """A number that each record has: ``offset``, ``partition``, or ``size``, its value's bytes."""

    name: str

    cost = _BY_NUMBER

    def of(self, rows: Rows) -> pa.Array:
        if self.name == "offset":
            return rows.column("offset")
        if self.name == "partition":
            return pa.array(np.broadcast_to(rows.partition, len(rows)))
        return pc.binary_length(rows.column("value")).cast(pa.int64())


class Time(Struct, frozen=True):
    """The timestamp, in epoch milliseconds; not there where a record has none."""

    cost = _BY_NUMBER

    def of(self, rows: Rows) -> pa.Array:
        times = rows.timestamps_ms
        return pa.array(times, mask=times < 0)


class Bytes(Struct, frozen=True):
    """The ``key`` or the ``value``, whole."""

    name: str

    cost = _BY_BYTES

    def of(self, rows: Rows) -> pa.Array:
        return rows.column(self.name)


class Header(Struct, frozen=True):
    """The headers of a name, of which a record may have several."""

    name: str

    cost = _BY_HEADER


class Member(Struct, frozen=True):
    """What a path leads to in a value that is JSON; see `json_text.reached`."""

    steps: tuple[str | int | None, ...]

    cost = _BY_DOCUMENT


Field = Number | Time | Bytes | Header | Member


# -- conditions --------------------------------------------------------------------------------


class Text(Struct, frozen=True):
    """A text in the key or in the value, as it is."""

    text: bytes

    cost = _BY_SEARCH

    def holds(self, rows: Rows) -> Mask:
        in_value = _contains(rows.column("value"), self.text)
        return np.asarray(in_value | _contains(rows.column("key"), self.text))


class Compare(Struct, frozen=True):
    """A field against a literal. Numbers compare with numbers and texts with texts.

    Bytes (keys, values, headers) compare with texts as their UTF-8, and with a number if they are
    the text of one.
    """

    field: Field
    sign: str
    literal: Scalar

    @property
    def cost(self) -> int:
        return self.field.cost

    def holds(self, rows: Rows) -> Mask:
        if isinstance(self.field, Member):
            hint = self.literal if self.sign == EQ and isinstance(self.literal, str) else None
            return _of_documents(rows, self.field, self._member_holds, hint)
        return _of_field(rows, self.field, self._holds)

    def _holds(self, values: pa.Array) -> Mask:
        literal = self.literal
        if pa.types.is_binary(values.type):
            if isinstance(literal, (str, bytes)):
                wanted = pa.scalar(as_bytes(literal), values.type)
                return _mask(getattr(pc, _ARROW[self.sign])(values, wanted))
            numbers = _numbers(values)
            if isinstance(literal, int) and abs(literal) >= _EXACT_DOUBLES:
                return self._holds_of_large(values, numbers, literal)
            values = numbers
        if isinstance(literal, bool) or not isinstance(literal, (int, float)):
            return np.zeros(len(values), np.bool_)
        if isinstance(literal, int) and not -(2**63) <= literal < 2**63:
            literal = math.inf if literal > 0 else -math.inf
        return _mask(getattr(pc, _ARROW[self.sign])(values, pa.scalar(literal)))

    def _holds_of_large(self, texts: pa.Array, numbers: pa.Array, literal: int) -> Mask:
        """As `_holds`; ids of 64 bits that differ may be one double, so those are read as texts."""
        mask = _mask(getattr(pc, _ARROW[self.sign])(numbers, math.copysign(math.inf, literal)))
        for row in np.flatnonzero(_mask(pc.greater_equal(pc.abs(numbers), _EXACT_DOUBLES))):
            number = Decimal(texts[int(row)].as_py().decode())
            order = (number > literal) - (number < literal)
            mask[row] = compares(order, self.sign, 0)
        return mask

    def _member_holds(self, found: Any) -> bool:
        return compares(found, self.sign, self.literal)


class OneOf(Struct, frozen=True):
    """A field equals one of the literals."""

    field: Field
    literals: tuple[Scalar, ...]

    @property
    def cost(self) -> int:
        return self.field.cost

    def holds(self, rows: Rows) -> Mask:
        if isinstance(self.field, Member):
            return _of_documents(
                rows,
                self.field,
                lambda found: any(compares(found, EQ, literal) for literal in self.literals),
            )
        mask = np.zeros(len(rows), np.bool_)
        for literal in self.literals:
            mask |= Compare(self.field, EQ, literal).holds(rows)
        return mask


class Contains(Struct, frozen=True):
    """A text somewhere in a text, or at its begin; of a list in a value, one of its elements."""

    field: Field
    literal: Scalar
    at_start: bool = False

    @property
    def cost(self) -> int:
        return max(self.field.cost, _BY_SEARCH)

    def holds(self, rows: Rows) -> Mask:
        if isinstance(self.field, Member):
            return _of_documents(rows, self.field, self._member_holds)
        return _of_field(rows, self.field, self._holds)

    def _holds(self, values: pa.Array) -> Mask:
        literal = self.literal
        if not isinstance(literal, (str, bytes)) or not pa.types.is_binary(values.type):
            return np.zeros(len(values), np.bool_)
        literal = as_bytes(literal)
        if self.at_start:
            return _mask(pc.starts_with(values, literal))
        return _contains(values, literal)

    def _member_holds(self, found: Any) -> bool:
        if isinstance(found, list) and not self.at_start:
            return any(compares(one, EQ, self.literal) for one in found)
        if not isinstance(found, str) or not isinstance(self.literal, str):
            return False
        return found.startswith(self.literal) if self.at_start else self.literal in found


class Like(Struct, frozen=True):
    """A whole text is like SQL's pattern: ``%`` is any text, ``_`` one character of it."""

    field: Field
    pattern: str

    @property
    def cost(self) -> int:
        return max(self.field.cost, _BY_SEARCH)

    def holds(self, rows: Rows) -> Mask:
        is_like = _is_like(self.pattern)
        if isinstance(self.field, Member):
            return _of_documents(
                rows, self.field, lambda found: isinstance(found, str) and is_like(found)
            )
        return _of_field(rows, self.field, lambda values: self._holds(values, is_like))

    def _holds(self, values: pa.Array, is_like: Callable[[str], bool]) -> Mask:
        longest = max(re.split("[%_]", self.pattern), key=len).encode()
        mask = _contains(values, longest) if longest else _mask(pc.is_valid(values))
        for row in np.flatnonzero(mask):
            mask[row] = is_like(values[int(row)].as_py().decode(errors="surrogateescape"))
        return mask


class Exists(Struct, frozen=True):
    """The field is there: a key or a value that is not null, a header, a member, a timestamp."""

    field: Field

    @property
    def cost(self) -> int:
        return self.field.cost

    def holds(self, rows: Rows) -> Mask:
        if isinstance(self.field, Member):
            return _of_documents(rows, self.field, lambda _: True)
        if isinstance(self.field, Header):
            return _with_header(
                rows, self.field.name, lambda values: np.ones(len(values), np.bool_)
            )
        return _mask(pc.is_valid(self.field.of(rows)))


# -- how ---------------------------------------------------------------------------------------


def as_bytes(literal: str | bytes) -> bytes:
    """What keys, values and headers are compared with."""
    return literal.encode() if isinstance(literal, str) else literal


def compares(found: Any, sign: str, literal: Scalar) -> bool:
    """Whether a JSON value compares so with a literal. What is of another kind is only unequal."""
    same_kind = _kind(found) == _kind(literal)
    if sign in (EQ, NE):
        return (same_kind and found == literal) == (sign == EQ)
    if not same_kind or _kind(found) not in ("number", "text"):
        return False
    if sign in (LT, LE):
        return bool(found < literal or (sign == LE and found == literal))
    return bool(found > literal or (sign == GE and found == literal))


def _kind(value: Any) -> str:
    """The JSON kind of a value; to Python, true is 1."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _mask(array: pa.Array | pa.ChunkedArray) -> Mask:
    """As booleans, null being false."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.bool_)


def _contains(values: pa.Array, text: bytes) -> Mask:
    """Where a text lies within.

    RE2 finds one several times as fast as `match_substring`, whose steps are by the byte. What it
    makes of a pattern takes memory that grows with it and is bounded, so long texts are not its.
    """
    if len(text) > _PATTERN_BYTES:
        return _mask(pc.match_substring(values, text))
    return _mask(pc.match_substring_regex(values, "".join(f"\\x{byte:02x}" for byte in text)))


def _numbers(values: pa.Array) -> pa.Array:
    """The numbers whose text the values are; null where they are of something else."""
    texts = pc.if_else(pc.match_substring_regex(values, r"^-?[0-9]{1,300}(?:\.[0-9]{1,300})?$"),
                       values, pa.scalar(None, values.type))  # fmt: skip
    return texts.cast(pa.string()).cast(pa.float64())


def _is_like(pattern: str) -> Callable[[str], bool]:
    """The parts between the ``%``, one after the other, each as early as it can be.

    In linear time, which one regular expression of them all would not take.
    """
    first, *parts = (
        re.compile(re.escape(part).replace("_", "."), re.DOTALL) for part in pattern.split("%")
    )
    last = parts.pop() if parts else None

    def is_like(text: str) -> bool:
        if last is None:
            return first.fullmatch(text) is not None
        found = first.match(text)
        for part in parts:
            if found is None:
                return False
            found = part.search(text, found.end())
        end = len(text) - len(pattern.rsplit("%", 1)[1])
        return found is not None and end >= found.end() and last.match(text, end) is not None

    return is_like


def _of_field(rows: Rows, field: Field, holds: Callable[[pa.Array], Mask]) -> Mask:
    if isinstance(field, Header):
        return _with_header(rows, field.name, holds)
    assert not isinstance(field, Member)
    return holds(field.of(rows))


def _with_header(rows: Rows, name: str, holds: Callable[[pa.Array], Mask]) -> Mask:
    """The rows that have a header of that name whose value is so."""
    headers = rows.column("headers")
    flat = headers.flatten()
    named = _mask(pc.equal(pc.struct_field(flat, "key"), name))
    parents = np.asarray(pc.list_parent_indices(headers))[named]
    values = pc.struct_field(flat, "value").filter(pa.array(named))
    mask = np.zeros(len(rows), np.bool_)
    mask[parents[holds(values)]] = True
    return mask


def _of_documents(
    rows: Rows, field: Member, holds: Callable[[Any], bool], equals: str | None = None
) -> Mask:
    """The rows whose values are JSON in which the path leads to such a thing.

    Only values that may match are parsed: they hold the names of the path, and the text that is to
    be equal, as they are, unless they escape something.
    """
    values = rows.column("value")
    may = _mask(pc.is_valid(values))
    needles = [step for step in field.steps if isinstance(step, str)]
    if equals is not None:
        needles.append(equals)
    plain = [one.encode(errors="surrogatepass") for one in needles if _is_plain(one)]
    if plain:
        spelt = np.ones(len(rows), np.bool_)
        for needle in plain:
            spelt &= _contains(values, needle)
        may &= spelt | _contains(values, b"\\")
    mask = np.zeros(len(rows), np.bool_)
    at, steps = np.flatnonzero(may), field.steps
    for row, value in zip(at.tolist(), values.take(pa.array(at)).to_pylist(), strict=True):
        try:
            document = parse_json(value.decode())
        except ValueError:
            continue
        for found in reached(document, steps):
            if holds(found):
                mask[row] = True
                break
    return mask


def _is_plain(text: str) -> bool:
    """Whether JSON holds a text as it is if it escapes nothing."""
    return json.dumps(text, ensure_ascii=False) == f'"{text}"'
