"""How the charts look: colours, and a layout that reads well on white and on black.

Backgrounds are transparent and the text is a grey that stands out about equally against both, since
a notebook's front end may change its theme after the output was drawn. People who cannot see red or
green can tell the tiers' colours apart, and colour is never the only difference: what is skipped,
deleted or in both tiers is hatched.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence
from typing import Any

TEXT = "#7d7d7d"  # 4.1 : 1 on white, 4.6 : 1 on JupyterLab's dark #111
GRID = "rgba(128,128,128,0.25)"
COLD = "#0173b2"
HOT = "#de8f05"
GONE = "rgba(128,128,128,0.28)"
SKIPPED = "#cc78bc"
MISSING = "#d55e00"

_WRAP, _SMALL_WRAP = 76, 112  # characters in a line of a title, of a note
_TITLE_LINE, _NOTE_LINE, _LEGEND_LINE = 23, 17, 30  # px
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def layout(
    message: str,
    notes: Sequence[str] = (),
    *,
    plot_height: int,
    axis: str = "",
    legend: bool = True,
    right: int = 24,
) -> dict[str, Any]:
    """A figure's layout: what the chart says on top, notes below it, then the legend, the plot.

    Args:
        message: one sentence with its figures.
        notes: sentences in smaller type.
        plot_height: px between the axes.
        axis: the title of the x axis, in HTML; each line of it takes room.
        right: px beside the plot.
    """
    title = _wrapped(message, _WRAP)
    small = [line for note in notes if note for line in _wrapped(note, _SMALL_WRAP)]
    text = f"<b>{'<br>'.join(title)}</b>"
    if small:
        text += f"<br><span style='font-size:12px'>{'<br>'.join(small)}</span>"
    top = 12 + _TITLE_LINE * len(title) + _NOTE_LINE * len(small) + _LEGEND_LINE * legend + 8
    bottom = 34 + 18 * (axis.count("<br>") + 1 if axis else 0)
    return {
        "template": {},
        "title": {
            "text": text,
            "x": 0,
            "xanchor": "left",
            "xref": "container",
            "y": 1,
            "yanchor": "top",
            "yref": "container",
            "pad": {"l": 12, "t": 24},
            "font": {"size": 16, "color": TEXT},
        },
        "font": {"family": _FONT, "size": 12, "color": TEXT},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "height": top + plot_height + bottom,
        "autosize": True,
        "margin": {"l": 12, "r": right, "t": top, "b": bottom},
        "showlegend": legend,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "bgcolor": "rgba(0,0,0,0)",
        },
        "hoverlabel": {
            "bgcolor": "#2b2b2b",
            "bordercolor": "#8a8a8a",
            "font": {"color": "#f5f5f5", "family": _FONT},
            "align": "left",
        },
        "xaxis": {**AXIS, "title": {"text": axis, "standoff": 10}},
        "yaxis": {**AXIS, "automargin": True},
    }


AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "zerolinecolor": GRID,
    "linecolor": GRID,
    "tickcolor": GRID,
    "automargin": True,
}


def says(message: str, notes: Sequence[str] = ()) -> dict[str, Any]:
    """The layout of a chart with nothing to draw: the message takes the chart's place."""
    found = layout(message, notes, plot_height=24, legend=False)
    found["xaxis"] = found["yaxis"] = {"visible": False}
    found["height"] = max(found["height"], 100)
    return found


#: The space between a number and its unit, where no line ends.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|ms|s|min|h|B|[KMGT]iB)(?![\w/]))")


def _wrapped(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(_BEFORE_UNIT.sub("\u00a0", text), width)
    return [html.escape(line.replace("\u00a0", " "), quote=False) for line in lines]
