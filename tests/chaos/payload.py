"""How a record says which one it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: The header that names the payload of a record without a value.
PAYLOAD_HEADER = "payload"


#: The payload of a record that lost key, value and headers: the last of a partition, erased.
NULLED = "?"


def payload_of(value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> str:
    """The unique name of what was sent: up to the bar in its value, or in a header."""
    if value is not None:
        return value.partition(b"|")[0].decode()
    return (dict(headers).get(PAYLOAD_HEADER) or NULLED.encode()).decode()


def header_pairs(rows: Iterable[Mapping[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    """Headers as Arrow gives them."""
    return [(row["key"], row["value"]) for row in rows or ()]
