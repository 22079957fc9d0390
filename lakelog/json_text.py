"""JSON that somebody else may have written."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """What the text says.

    Raises:
        ValueError: it is no JSON, no UTF-8, or nests deeper than Python goes.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
