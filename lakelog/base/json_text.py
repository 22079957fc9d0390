"""JSON that somebody else may have written, and JSON as people read it.

What a text of JSON holds is found here, and in `codec.json_object` what is of a column's type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # which typeshed lacks
from typing import Any, NoReturn

#: What JSON's own escapes leave that a terminal obeys, or UTF-8 does not have.
_OBEYED = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def parse_json(text: str | bytes) -> Any:
    """What the text says.

    Raises:
        ValueError: it is no JSON, no UTF-8, or nests deeper than Python goes.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None


ANY = None  # the step to each member or element


def reached(document: Any, steps: Sequence[str | int | None]) -> list[Any]:
    """What a path leads to: by the names of members, the places of elements (-1: the last), `ANY`.

    Args:
        document: as `parse_json` gives it.
    """
    found = [document]
    for step in steps:
        if isinstance(step, str):
            found = [one[step] for one in found if isinstance(one, dict) and step in one]
        elif isinstance(step, int):
            lists = [one for one in found if isinstance(one, list)]
            found = [one[step] for one in lists if -len(one) <= step < len(one)]
        else:
            found = [inner for one in found for inner in _within(one)]
    return found


def _within(document: Any) -> list[Any]:
    if isinstance(document, dict):
        return list(document.values())
    return document if isinstance(document, list) else []


def sourced_members(text: str) -> list[tuple[str, Any, str]]:
    """The members of a JSON object: the name, the value as Python reads it, and as it is written.

    Reading a number and writing it again changes it (``1.10``, ``1E400``, twenty digits), and
    reading an object that names a member twice loses one. So values are cut from their source.

    Raises:
        ValueError: it is not a JSON object.
        RecursionError: it is nested too deep.
    """
    found: list[tuple[str, Any, str]] = []
    at, mark = 0, _BEGIN.match(text)
    while mark is not None and mark[1]:
        name, at = scanstring(text, mark.end())
        colon = _COLON.match(text, at)
        if colon is None:
            raise json.JSONDecodeError("a colon should stand here", text, at)
        start = colon.end()
        member, at = _DECODER.raw_decode(text, start)
        found.append((name, member, text[start:at]))
        mark = _NEXT.match(text, at)
    if mark is None:
        raise json.JSONDecodeError("an object does not go on like this", text, at)
    return found


#: Before a member's name, or at the end of the object.
_BEGIN = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*(?:(")|\}[ \t\r\n]*\Z)')
_NEXT = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*(")|\}[ \t\r\n]*\Z)')
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")


def _whole(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # Python makes no int of thousands of digits
        return float(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_constant=_refuse)


def readable_json(value: Any, indent: int | None = None) -> str:
    """Any text as it is, ``ж``, but for what a terminal would obey."""
    text = json.dumps(value, indent=indent, default=str, ensure_ascii=False)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quoted(text: str) -> str:
    """A text as `readable_json` has it."""
    written = json.encoder.encode_basestring(text)
    if written.isprintable():
        return written
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


#: A text, a sign, or a word (number, true, null) of JSON; space between them is left out.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_INDENT = "  "

#: Deeper levels are not indented further: a short value could fill the page.
_DEEPEST = 20


def indented(text: str) -> str:
    """JSON over several lines. Numbers, texts and repeated members stay as they are spelt, which
    parsing and writing would change.
    """
    pieces: list[str] = []
    depth = 0
    line = "\n"  # with the indent of what follows
    lines = ["\n" + _INDENT * level for level in range(_DEEPEST + 1)]
    after_opening = False
    for token in _TOKEN.findall(text):
        if token in "}]":
            depth -= 1
            line = lines[min(depth, _DEEPEST)]
            pieces.append(token if after_opening else line + token)
            after_opening = False
            continue
        if after_opening:
            pieces.append(line)
            after_opening = False
        if token == ",":
            pieces.append("," + line)
        elif token == ":":
            pieces.append(": ")
        else:
            pieces.append(token)
            if token in "{[":
                depth += 1
                line = lines[min(depth, _DEEPEST)]
                after_opening = True
    return "".join(pieces)
