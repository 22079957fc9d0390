"""The axis of waits: the unit that suits the longest, and a line at the wait that is too long."""

from __future__ import annotations

from typing import Any

from . import words
from .style import MISSING, TEXT

#: Unit, what it is in ms, and the least of waits that it is for.
_UNITS = (
    ("days", 86_400_000, 172_800_000),
    ("h", 3_600_000, 7_200_000),
    ("min", 60_000, 120_000),
    ("s", 1_000, 0),
)


def lag_unit(longest_ms: float) -> tuple[str, int]:
    """The unit for waits up to that, and what it is in ms."""
    return next((name, size_ms) for name, size_ms, least in _UNITS if longest_ms >= least)


def limit_line(height: float, text: str) -> dict[str, Any]:
    """What a layout has for a dotted line across the chart."""
    return {
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": height,
                "y1": height,
                "line": {"color": MISSING, "width": 1.5, "dash": "dot"},
            }
        ],
        "annotations": [
            {
                "xref": "paper",
                "x": 1,
                "xanchor": "right",
                "y": height,
                "yanchor": "bottom",
                "showarrow": False,
                "text": text,
                "font": {"color": TEXT},
            }
        ],
    }


def limit_text(limit_ms: float) -> str:
    """What stands at the line."""
    return f"limit {words.duration(limit_ms)}"
