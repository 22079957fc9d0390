"""Shows bytes as JSON, text or hexadecimal; long values are cut."""

from __future__ import annotations

import re
import unicodedata

from msgspec import Struct

from ...base.json_text import indented, parse_json
from ...errors import InvalidArgumentError

AUTO, JSON, UTF_8, HEX = "auto", "json", "utf-8", "hex"
FORMATS = (AUTO, JSON, UTF_8, HEX)
NULL, EMPTY = "null", "empty"

#: Larger values are not parsed to find out whether they are JSON.
_PARSED_BYTES = 64 * 1024

#: Bytes a line of a hexadecimal dump.
_DUMP_BYTES = 16

#: Letters that change how their neighbours are drawn, or are invisible, could make a value look
#: like another one, so they are spelt out.
_SPELT_OUT = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}

#: What text has not, but for tabs and ends of lines.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Decoded(Struct, frozen=True):
    """How bytes are shown."""

    kind: str  # null, empty, json, utf-8 or hex
    text: str
    size_bytes: int  # of all
    shown_bytes: int  # that the text shows; less than all if it was cut

    @property
    def cut(self) -> bool:
        return self.shown_bytes < self.size_bytes


def decode(
    value: bytes | None, kind: str = AUTO, *, limit: int | None = None, pretty: bool = False
) -> Decoded:
    """Bytes as text.

    A value that cannot be shown as asked (bytes that are not UTF-8, text that is not JSON) is shown
    in the next plainer form.

    Args:
        kind: one of `FORMATS`.
        limit: the most bytes to show; None: all.
        pretty: JSON over several lines; hexadecimal with offsets and letters beside it.
    """
    if kind not in FORMATS:
        raise InvalidArgumentError(f"{kind!r} is not a format; choose {', '.join(FORMATS)}")
    if value is None:
        return Decoded(NULL, NULL, 0, 0)
    if not value:
        return Decoded(EMPTY, "", 0, 0)
    if kind != HEX:
        text = _text(value, limit, binary=kind == AUTO)
        if text is not None:
            as_json = _json(value, limit, pretty) if kind != UTF_8 else None
            if as_json is not None:
                return Decoded(JSON, _lines(as_json), len(value), len(value))
            shown = len(value) if limit is None or len(value) <= limit else limit
            return Decoded(UTF_8, _lines(text), len(value), shown)
    shown = len(value) if limit is None else min(limit, len(value))
    part = value[:shown]
    return Decoded(HEX, dump(part) if pretty else part.hex(" "), len(value), shown)


def dump(value: bytes) -> str:
    """Hexadecimal in lines of 16 bytes, each with its offset and its letters."""
    lines = []
    for at in range(0, len(value), _DUMP_BYTES):
        part = value[at : at + _DUMP_BYTES]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<{3 * _DUMP_BYTES}} {letters}")
    return "\n".join(lines)


def one_line(text: str) -> str:
    """The same without line breaks, for a cell of a table."""
    return text.replace("\n", "⏎").replace("\t", " ")


def _text(value: bytes, limit: int | None, *, binary: bool) -> str | None:
    """The beginning as text; None if it is not text.

    Args:
        binary: bytes with control characters are not text.
    """
    cut = limit is not None and len(value) > limit
    part = value[:limit] if cut else value
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        if not cut or error.reason != "unexpected end of data" or error.start < len(part) - 3:
            return None
        text = part[: error.start].decode()
    if binary and _CONTROL.search(text):
        return None
    return text


def _json(value: bytes, limit: int | None, pretty: bool) -> str | None:
    """The value as JSON, if it is an object or an array that fits."""
    fits = len(value) <= (_PARSED_BYTES if limit is None else limit)
    if (not fits and not pretty) or value.lstrip()[:1] not in (b"{", b"["):
        return None
    if limit is not None and len(value) > limit:
        return None
    try:
        parse_json(value)
    except ValueError:
        return None
    return indented(value.decode()) if pretty else value.decode()


def _lines(text: str) -> str:
    # Nearly all lines are printable, which is told a hundred times as fast as letter by letter.
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line if line.isprintable() else _spelt_out(line) for line in lines)


def _spelt_out(line: str) -> str:
    return "".join(
        rf"\u{ord(letter):04x}"
        if letter != "\t" and unicodedata.category(letter) in _SPELT_OUT
        else letter
        for letter in line
    )
