"""A path into JSON values, with a comparison if one is given: ``$.origin == "JFK"``.

======================  ==============================================================
``$.a.b``  ``$["a b"]``  a member of an object
``$[0]``  ``$[-1]``      an element of an array
``$.*``  ``$[*]``        any member or element
``== != < <= > >=``     then a JSON literal, or a text in single quotes; ``=`` is ``==``
======================  ==============================================================

Without a comparison the path matches if it leads to anything, even null. Numbers compare
with numbers and texts with texts; nothing is smaller or larger than something of another kind.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgumentError

ANY = None  # the step to each member or element

_STEP = re.compile(
    r"""\.(?P<name>\w[\w-]*)
      | (?P<any>\.\*|\[\s*\*\s*\])
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<double>"(?:[^"\\]|\\.)*")\s*\]
      | \[\s*'(?P<single>[^']*)'\s*\]""",
    re.VERBOSE,
)
_COMPARISON = re.compile(r"\s*(?P<sign>==|!=|<=|>=|[=<>](?!=))\s*(?P<literal>.+?)\s*", re.DOTALL)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITY = (operator.eq, operator.ne)


def is_json_path(text: str) -> bool:
    """Whether a text is meant as a path: ``$``, alone or followed by a step."""
    return re.match(r"\$(?:[.\[]|\s*$|\s*[=!<>])", text) is not None


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Where to look in a value, and what must be there."""

    text: str
    steps: tuple[str | int | None, ...]
    compare: Callable[[Any, Any], bool] | None = None
    literal: Any = None

    @classmethod
    def of(cls, text: str) -> JsonPath:
        """Parses a path.

        Raises:
            InvalidArgumentError: it is not a path; the message shows where it goes wrong.
        """
        text = text.strip()
        if not text.startswith("$"):
            _refuse(text, text)
        steps: list[str | int | None] = []
        at = 1
        while found := _STEP.match(text, at):
            try:
                steps.append(_step(found))
            except ValueError:  # an invalid escape, or a number that is too long
                _refuse(text, text[at:])
            at = found.end()
        if at == len(text):
            return cls(text, tuple(steps))
        comparison = _COMPARISON.fullmatch(text, at)
        if comparison is None:
            _refuse(text, text[at:])
        compare = _SIGNS[comparison["sign"]]
        return cls(text, tuple(steps), compare, _literal(text, comparison["literal"]))

    def matches(self, value: bytes | None) -> bool:
        """Whether a record's value is JSON in which the path leads to such a thing."""
        if value is None:
            return False
        try:
            document = json.loads(value)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested too deep
            return False
        return any(self._holds(found) for found in _reached(document, self.steps))

    def rows(self, values: pa.Array) -> pa.Array:
        """The numbers of the rows whose values match; only those that may are parsed."""
        may = pc.is_valid(values)
        for step in self.steps:
            if isinstance(step, str):
                # The text holds a name as it is, unless something in it is escaped.
                spelt = pc.match_substring(values, step.encode(errors="surrogatepass"))
                may = pc.and_kleene(may, pc.or_(spelt, pc.match_substring(values, "\\")))
        candidates = pc.indices_nonzero(pc.fill_null(may, False))
        found = [
            row
            for row, value in zip(
                candidates.to_pylist(), values.take(candidates).to_pylist(), strict=True
            )
            if self.matches(value)
        ]
        return pa.array(found, pa.int64())

    def _holds(self, found: Any) -> bool:
        if self.compare is None:
            return True
        if self.compare in _EQUALITY:
            same = _kind(found) == _kind(self.literal) and found == self.literal
            return same == (self.compare is operator.eq)
        comparable = _kind(found) == _kind(self.literal) and _kind(found) in {"number", "text"}
        return comparable and self.compare(found, self.literal)


def _reached(document: Any, steps: tuple[str | int | None, ...]) -> Iterator[Any]:
    if not steps:
        yield document
        return
    step, rest = steps[0], steps[1:]
    inner: Iterable[Any] = ()
    if isinstance(document, dict):
        if step is ANY:
            inner = document.values()
        elif isinstance(step, str) and step in document:
            inner = (document[step],)
    elif isinstance(document, list):
        if step is ANY:
            inner = document
        elif isinstance(step, int) and -len(document) <= step < len(document):
            inner = (document[step],)
    for one in inner:
        yield from _reached(one, rest)


def _kind(value: Any) -> str:
    """The JSON kind of a value; to Python, true is 1."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _step(found: re.Match[str]) -> str | int | None:
    if found["any"]:
        return ANY
    if found["index"] is not None:
        return int(found["index"])
    if found["double"] is not None:
        return str(json.loads(found["double"]))
    return found["name"] if found["name"] is not None else found["single"]


def _literal(text: str, literal: str) -> Any:
    quoted = re.fullmatch(r"'([^']*)'", literal)
    if quoted:
        return quoted[1]
    try:
        return json.loads(literal)
    except (ValueError, RecursionError):
        raise InvalidArgumentError(
            f"{literal!r} in {text!r} is not a JSON value to compare with: write a number, true, "
            'false, null, or a text in quotes ("JFK")',
            value=text,
        ) from None


def _refuse(text: str, rest: str) -> NoReturn:
    raise InvalidArgumentError(
        f"{text!r} is not a JSON path: {rest!r} is not understood. Write $.name, "
        '$["any name"], $[0], $.* and, if you like, a comparison: $.origin == "JFK"',
        value=text,
    )
