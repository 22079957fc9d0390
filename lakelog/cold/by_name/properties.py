"""Long properties of a table by name, in pieces: Unity Catalog may keep 255 characters of one.

| property             | value                                                     |
|----------------------|-----------------------------------------------------------|
| name                 | all of it, or the first `PIECE_CHARACTERS` of a long one  |
| name.1, name.2 …     | what follows each full piece                              |
| lakelog.format       | 2 if any is in pieces                                     |

A full piece is followed by another, so what is left of a longer value is not read. Only lakelog's
own properties are long: settings, the keyspace's defaults, registers. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..properties import FORMAT_PROPERTY

PIECE_CHARACTERS = 250

_OWN = "lakelog."
_FORMAT_OF_PIECES = "2"


def in_pieces(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as the catalog keeps them."""
    kept: dict[str, str] = dict(properties)
    for name, value in properties.items():
        if not name.startswith(_OWN) or len(value) < PIECE_CHARACTERS:
            continue
        kept[FORMAT_PROPERTY] = _FORMAT_OF_PIECES
        for number, start in enumerate(range(0, len(value) + 1, PIECE_CHARACTERS)):
            kept[_piece(name, number)] = value[start : start + PIECE_CHARACTERS]
    return kept


def joined(kept: Mapping[str, str]) -> dict[str, str]:
    """The properties that `in_pieces` cut, and the others."""
    properties = dict(kept)
    for name, value in kept.items():
        piece, number = value, 0
        while name.startswith(_OWN) and len(piece) == PIECE_CHARACTERS:
            number += 1
            piece = kept.get(_piece(name, number), "")
            properties[name] += piece
    return properties


def _piece(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name
