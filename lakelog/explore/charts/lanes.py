"""Bars side by side, one row for each partition: what the partition charts have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .style import AXIS, TEXT

#: More rows than this cannot be told apart.
MOST_LANES = 300
_NAMED = 40  # rows that have room for a name each
_FEW = 3  # rows that have no room for an axis title beside them
_TALLEST, _LOWEST, _PLOT = 34, 3, 620  # px of a row, and of all


def plot_height(lanes: int) -> int:
    """The height of this many rows, in px."""
    return round(lanes * min(_TALLEST, max(_LOWEST, _PLOT / max(1, lanes))))


def lane_axis(partitions: Sequence[int]) -> dict[str, Any]:
    """A y axis with a row for each partition, the first on top."""
    lanes = len(partitions)
    every = 1 if lanes <= _NAMED else -(-lanes // 20)
    places = list(range(0, lanes, every))
    named = "partition " if lanes <= _FEW else ""
    return {
        **AXIS,
        "automargin": True,
        "title": {"text": "" if named else "partition", "standoff": 6},
        "range": [lanes - 0.5, -0.5],
        "fixedrange": lanes <= _NAMED,
        "tickvals": places,
        "ticktext": [f"{named}{partitions[place]}" for place in places],
        "showgrid": False,
        "zeroline": False,
    }


def beside(texts: Sequence[str], heading: str) -> list[dict[str, Any]]:
    """Annotations right of the rows, one text each, under a heading; none if there is no room."""
    if len(texts) > _NAMED:
        return []
    common = {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "xshift": 8,
        "showarrow": False,
        "align": "left",
        "font": {"color": TEXT, "size": 12},
    }
    return [
        {**common, "yref": "paper", "y": 1, "yanchor": "bottom", "text": f"<i>{heading}</i>"},
        *({**common, "yref": "y", "y": lane, "text": text} for lane, text in enumerate(texts)),
    ]


def room_beside(texts: Sequence[str], heading: str) -> int:
    """Px of the right margin that `beside` needs."""
    if len(texts) > _NAMED:
        return 24
    return 30 + 7 * max(map(len, [*texts, heading]))
