"""Reads what is typed into the filter boxes, and writes a match back into them."""

from __future__ import annotations

import json
import re

from ...read.json_path import is_json_path
from ...read.matching import Match

_HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})+)")


def typed_match(key: str = "", header: str = "", text: str = "") -> Match:
    """The match that the boxes ask for; an empty box asks for nothing.

    Args:
        key: the whole key as text, ``0x…`` for bytes, or in double quotes (``""`` is the empty
            key, ``"0x00"`` a text).
        header: ``name`` or ``name=value``.
        text: part of the value, or a JSON path, which begins with ``$.`` or ``$[``; in double
            quotes it is always a text.

    Raises:
        InvalidArgumentError: the JSON path is not valid.
    """
    path = text.strip() if is_json_path(text.strip()) else None
    return Match.of(
        key=typed_bytes(key.strip()) if key.strip() else None,
        header=header.strip() or None,
        text=None if path is not None or not text else (_quoted(text.strip()) or text),
        json=path,
    )


def typed_bytes(text: str) -> bytes:
    """The bytes that a text in the key's box means."""
    found = _HEX.fullmatch(text)
    if found:
        return bytes.fromhex(found[1])
    quoted = _quoted(text)
    return (text if quoted is None else quoted).encode()


def typed(match: Match) -> tuple[str, str, str]:
    """The texts for key, header and value that `typed_match` reads as this match."""
    key = "" if match.key is None else _typed_key(match.key)
    header = ""
    if match.header is not None:
        name, value = match.header
        header = name if value is None else f"{name}={value.decode(errors='replace')}"
    if match.json is not None:
        return key, header, match.json.text
    text = "" if match.text is None else match.text.decode(errors="replace")
    plain = typed_match(text=text).text == match.text
    return key, header, text if plain else json.dumps(text, ensure_ascii=False)


def _typed_key(key: bytes) -> str:
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    if not text or not text.isprintable() or text != text.strip() or typed_bytes(text) != key:
        return json.dumps(text, ensure_ascii=False)
    return text


def _quoted(text: str) -> str | None:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return None
    try:
        return str(json.loads(text))
    except ValueError:
        return None
