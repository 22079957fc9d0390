"""A JSON object as its top-level members, when they give back exactly its bytes.

A member's text is that in the object (``5``, ``true``, ``[1,2]``), except that a string loses its
quotes if it cannot be mistaken: ``"N14228"`` becomes ``N14228``, but ``"5"`` keeps its quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.encoder import encode_basestring

#: Member and name separators of the two layouts that are told apart.
COMPACT = (",", ":")
SPACED = (", ", ": ")  # Python's json.dumps by default

Members = list[tuple[str, str]]  # name, text; names may repeat

_DECODER = json.JSONDecoder()
# Reading back must not depend on a JSON parser (its limits differ between Python versions), so a
# bare text is understood by its form alone.
_JSON_LOOK = re.compile(
    r'["\[{].*|true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?', re.DOTALL
)


def split_object(value: bytes) -> tuple[Members, tuple[str, str]] | None:
    """The members of a JSON object and its separators; None if they would not give it back."""
    try:
        text = value.decode()
        if not text.startswith('{"'):
            return None
        separators = SPACED if text[_DECODER.raw_decode(text, 1)[1] :][:2] == ": " else COMPACT
        members = list(_scan(text, separators))
    except (ValueError, IndexError, RecursionError):
        return None
    return (members, separators) if join_object(members, separators) == text else None


def join_object(members: Sequence[tuple[str, str]], separators: tuple[str, str]) -> str:
    """The JSON object of the members."""
    between, colon = separators
    return (
        "{"
        + between.join(
            encode_basestring(name)
            + colon
            + (text if _JSON_LOOK.fullmatch(text) else encode_basestring(text))
            for name, text in members
        )
        + "}"
    )


def _scan(text: str, separators: tuple[str, str]) -> Members:
    between, colon = separators
    members: Members = []
    position = 1
    while True:
        name, position = _DECODER.raw_decode(text, position)
        if not isinstance(name, str):
            raise ValueError("a member has no name")
        start = position + len(colon)
        member, position = _DECODER.raw_decode(text, start)
        raw = text[start:position]
        bare = isinstance(member, str) and encode_basestring(member) == raw
        members.append((name, member if bare and not _JSON_LOOK.fullmatch(member) else raw))
        if text[position:] == "}":
            return members
        position += len(between)
