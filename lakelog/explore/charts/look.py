"""How the charts look: colours, a layout that reads well on white and on black, and axes.

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

import numpy as np
from msgspec import Struct

from .. import words

Numbers = np.ndarray[Any, Any]

TEXT = "#7d7d7d"  # 4.1 : 1 on white, 4.6 : 1 on JupyterLab's dark #111
GRID = "rgba(128,128,128,0.25)"
COLD = "#0173b2"
HOT = "#de8f05"
GONE = "rgba(128,128,128,0.28)"
SKIPPED_COLOUR = "#cc78bc"
MISSING = "#d55e00"

_WRAP, _SMALL_WRAP = 76, 112  # characters in a line of a title, of a note
_TITLE_LINE, _NOTE_LINE, _LEGEND_LINE = 23, 17, 30  # px

#: More rows of partitions than this cannot be told apart; so many have room for a name each.
MOST_LANES, _NAMED = 300, 40
_FEW = 3  # rows that have no room for an axis title beside them
_TALLEST, _LOWEST, _PLOT = 34, 3, 620  # px of a row, and of all

#: A stretch of offsets without segments is cut when it is wider than this share of those with, and
#: so much of it is left.
_WIDE, _LEFT = 0.2, 0.06

#: What is in both tiers: cold with hot stripes.
BOTH_STRIPES = {"shape": "/", "bgcolor": COLD, "fgcolor": HOT, "size": 9, "solidity": 0.4}

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


# -- a row for each partition ---------------------------------------------------------------------


def lanes(
    message: str,
    notes: Sequence[str],
    partitions: Sequence[int],
    texts: Sequence[str],
    heading: str,
    axis: str,
) -> dict[str, Any]:
    """The layout of bars, one row for each partition, the first on top.

    Args:
        texts: right of the rows, one each, under the heading, where there is room.
        axis: the title of the x axis.
    """
    many = len(partitions)
    has_room = many <= _NAMED
    right = 30 + 7 * max(map(len, [*texts, heading])) if has_room else 24
    height = round(many * min(_TALLEST, max(_LOWEST, _PLOT / max(1, many)))) + 6
    look = layout(message, notes, plot_height=height, axis=axis, right=right)
    places = list(range(0, many, 1 if has_room else -(-many // 20)))
    named = "partition " if many <= _FEW else ""
    look["bargap"] = 0.28 if has_room else 0.1
    look["yaxis"] |= {
        "title": {"text": "" if named else "partition", "standoff": 6},
        "range": [many - 0.5, -0.5],
        "fixedrange": has_room,
        "tickvals": places,
        "ticktext": [f"{named}{partitions[place]}" for place in places],
        "showgrid": False,
        "zeroline": False,
    }
    if has_room:
        common = {
            "xref": "paper",
            "x": 1,
            "xanchor": "left",
            "xshift": 8,
            "showarrow": False,
            "align": "left",
            "font": {"color": TEXT, "size": 12},
        }
        above = {"yref": "paper", "y": 1, "yanchor": "bottom", "text": f"<i>{heading}</i>"}
        look["annotations"] = [
            {**common, **above},
            *({**common, "yref": "y", "y": lane, "text": text} for lane, text in enumerate(texts)),
        ]
    return look


# -- offsets --------------------------------------------------------------------------------------


class OffsetScale(Struct, frozen=True, eq=False):
    """An axis of offsets without the wide stretches in which there are none.

    A gap spans millions, which would squeeze all else flat.
    """

    bottom: int
    top: int
    jumps: Numbers  # rows of (end of the segment below, base of the one above)
    held: int  # offsets that the segments cover

    @classmethod
    def of(cls, base: Numbers, end: Numbers) -> OffsetScale:
        """The scale for segments of these ranges; there is at least one."""
        order = np.argsort(base, kind="stable")
        base, reach = base[order], np.maximum.accumulate(end[order])
        wide = base[1:] - reach[:-1]
        held = int(reach[-1] - base[0] - np.maximum(0, wide).sum())
        at = np.flatnonzero(wide > _WIDE * max(1, held))
        return cls(int(base[0]), int(reach[-1]), np.column_stack([reach[at], base[at + 1]]), held)

    def drawn(self, offsets: Numbers) -> Numbers:
        """The places of offsets on the axis."""
        left = int(_LEFT * self.held)
        cuts = np.append(0, np.cumsum(self.jumps[:, 1] - self.jumps[:, 0] - left))
        passed = np.searchsorted(self.jumps[:, 1], offsets, side="right")
        inside_up_to = np.append(self.jumps[:, 0] + left, np.iinfo(np.int64).max)[passed]
        found: Numbers = np.minimum(offsets, inside_up_to) - cuts[passed]
        return found

    def ticks(self) -> dict[str, Any]:
        """The axis's ticks, labelled with the real offsets."""
        step = 10 ** int(np.floor(np.log10(max(1, self.held / 4))))
        step *= next(times for times in (1, 2, 5, 10) if step * times >= self.held / 6)
        edges = [self.bottom, *self.jumps.reshape(-1).tolist(), self.top]
        at: list[int] = []
        for low, high in zip(edges[::2], edges[1::2], strict=True):
            at += list(range(-(-low // step) * step, high + 1, step)) or [low]
        drawn = self.drawn(np.array(at)).tolist()
        return {"tickvals": drawn, "ticktext": [words.count(offset) for offset in at]}

    def marks(self, axis: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """A dotted line across each jump, and a text: which offsets it leaves out."""
        lines, texts = [], []
        for y, (low, high) in zip(
            self.drawn(self.jumps[:, 0]).tolist(), self.jumps.tolist(), strict=True
        ):
            line = line_across(y + _LEFT * self.held / 2, f"no segments in [{low:,}, {high:,})")
            lines.append({**line[0], "yref": axis, "line": {**line[0]["line"], "color": TEXT}})
            texts.append({**line[1], "yref": axis, "yanchor": "top"})
        return lines, texts


def line_across(y: float, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dotted line across the chart, and the text at its end."""
    line = {"color": MISSING, "width": 1.5, "dash": "dot"}
    return (
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line},
        {
            "xref": "paper",
            "x": 1,
            "xanchor": "right",
            "y": y,
            "yanchor": "bottom",
            "showarrow": False,
            "text": text,
            "font": {"color": TEXT},
        },
    )
