"""A JSON object's members, each with the text in which it is written.

Reading a number and writing it again changes it (``1.10``, ``1E400``, twenty digits), and reading
an object that names a member twice loses one. So values are passed on as cut from their source.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_BLANKS = re.compile(r"[ \t\r\n]*")


def members_with_source(line: bytes) -> dict[str, tuple[Any, str]]:
    """The members of the object in a line: as Python reads each, and as it is written.

    Raises:
        ValueError: it is not a JSON object, or names a member twice.
        RecursionError: it is nested too deep.
    """
    text = line.decode("utf-8-sig")
    found: dict[str, tuple[Any, str]] = {}
    at = _after(text, 0, "{")
    if text[at : at + 1] == "}":
        _expect_end(text, at + 1)
        return found
    while True:
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("a name in double quotes should stand here", text, at)
        name, at = _DECODER.raw_decode(text, at)
        start = _after(text, at, ":")
        member, at = _DECODER.raw_decode(text, start)
        if name in found:
            raise ValueError(f"field {name!r} is there twice")
        found[name] = member, text[start:at]
        at = _skipped(text, at)
        if text[at : at + 1] == "}":
            _expect_end(text, at + 1)
            return found
        at = _after(text, at, ",")


def _skipped(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None  # it also matches no blanks
    return blanks.end()


def _after(text: str, at: int, mark: str) -> int:
    """The position after a mark and the blanks around it."""
    at = _skipped(text, at)
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"{mark!r} should stand here", text, at)
    return _skipped(text, at + 1)


def _expect_end(text: str, at: int) -> None:
    at = _skipped(text, at)
    if at < len(text):
        raise json.JSONDecodeError("nothing should follow", text, at)


def _whole(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # Python makes no int of thousands of digits
        return float(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_constant=_refuse)
