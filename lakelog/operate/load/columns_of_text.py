"""What a column of text is of, by how its values are written: nothing is guessed.

A column is of whole numbers, numbers, true and false, or ISO dates or times, if each of its values
is written so; else it is of text, as it is written. ``01067``, ``1e400`` and ``01/02/2013`` stay
text. ``NULL`` and ``NaN`` stand for no value, but in a column of text.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

from ...base import compute as pc

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
_EXPONENT = "[eE][+-]?[0-9]+"
#: But for whole ones.
_NUMBER = f"-?((0|[1-9][0-9]*)[.][0-9]*|[.][0-9]+)({_EXPONENT})?|-?(0|[1-9][0-9]*){_EXPONENT}|-0"
_DAY, _LOCAL, _MOMENT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")

#: Years of four digits.
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999

#: What of a number is none of its significant digits.
_NO_DIGITS = "^-?[0.]*|[.]|[eE].*$"

_MISSING = pa.array(["NULL", "NaN", "nan"])


def _is_number(text: str) -> bool:
    """Whether a double has all of its digits, as far as doubles do."""
    digits = text.lower().partition("e")[0].lstrip("-0.").replace(".", "")
    return len(digits) <= 17 and abs(float(text)) < float("inf")


def _casts(kind: pa.DataType) -> Callable[[str], bool]:
    """Whether a text is one of that kind, and of a year of four digits."""

    def does(text: str) -> bool:
        try:
            value = pa.scalar(text).cast(kind)
        except pa.ArrowInvalid:
            return False
        if kind == _DAY:
            return True
        return bool(_EARLIEST_US <= value.cast(pa.int64()).as_py() <= _LATEST_US)

    return does


class _Way(NamedTuple):
    """A way to write a value."""

    sign: int
    pattern: str
    holds: Callable[[str], bool] | None = None  # what must hold besides
    kind: pa.DataType | None = None  # that Arrow reads all of them as, if it does


TEXT = 256
_WAYS = (
    _Way(1, "0|-?[1-9][0-9]{0,14}"),
    _Way(2, "-?[1-9][0-9]{15,17}"),
    _Way(4, "-?[1-9][0-9]{18,37}"),
    _Way(8, _NUMBER, _is_number, pa.float64()),
    _Way(16, "(?i)true|false"),
    _Way(32, _DATE, _casts(_DAY), _DAY),
    _Way(64, f"{_DATE}[ T]{_CLOCK}", _casts(_LOCAL), _LOCAL),
    _Way(128, f"{_DATE}[ T]{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)", _casts(_MOMENT), _MOMENT),
)
#: The kind of a column whose values are written in some of these ways.
_KINDS = {
    1 | 2: pa.int64(),
    1 | 2 | 4: pa.decimal128(38, 0),
    1 | 8: pa.float64(),  # which holds every whole number of 15 digits
    16: pa.bool_(),
    32: _DAY,
    64: _LOCAL,
    128: _MOMENT,
}


def ways_of(texts: pa.Array, before: int = 0) -> int:
    """In which ways the values are written: the sum of their signs, `TEXT` for none of them.

    Args:
        before: the ways of values before these, which are tried first.
    """
    left = _told(texts).drop_null()
    signs = 0
    for way in sorted(_WAYS, key=lambda one: not one.sign & before):
        if not len(left):
            break
        matched = pc.match_substring_regex(left, f"^(?:{way.pattern})$")
        if not pc.any(matched).as_py():
            continue
        if way.holds is not None and not _all_are(left.filter(matched), way):
            holds = [
                is_so and way.holds(text)
                for is_so, text in zip(matched.to_pylist(), left.to_pylist(), strict=True)
            ]
            matched = pa.array(holds)
        signs |= way.sign * pc.any(matched).as_py()
        left = left.filter(pc.invert(matched))
    return signs | TEXT * bool(len(left))


def _all_are(texts: pa.Array, way: _Way) -> bool:
    """Whether all of them hold, as can be told at once; else each is asked."""
    try:
        read = texts.cast(way.kind)
    except pa.ArrowInvalid:
        return False
    if way.kind == pa.float64():
        digits = pc.binary_length(pc.replace_substring_regex(texts, _NO_DIGITS, ""))
        return bool(pc.all(pc.and_(pc.less_equal(digits, 17), pc.is_finite(read))).as_py())
    if way.kind == _DAY:
        return True
    bounds = pc.min_max(read.cast(pa.int64()))
    return bool(bounds["min"].as_py() >= _EARLIEST_US and bounds["max"].as_py() <= _LATEST_US)


def kind_of(signs: int) -> pa.DataType:
    """What a column is of whose values are written in these ways."""
    found = (kind for ways, kind in _KINDS.items() if signs and not signs & ~ways)
    return next(found, pa.string())


def as_kind(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values; `kind_of` has told their kind."""
    if kind == pa.string():
        return texts
    texts = _told(texts)
    if kind == pa.bool_():
        return pc.equal(pc.utf8_lower(texts), "true")
    if pa.types.is_decimal(kind):
        return pa.array([one and Decimal(one) for one in texts.to_pylist()], kind)
    return texts.cast(kind)


def _told(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_in(texts, value_set=_MISSING), pa.scalar(None, pa.string()), texts)
