"""JSON that somebody else may have written, and JSON as people read it."""

from __future__ import annotations

import json
import re
from typing import Any

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
