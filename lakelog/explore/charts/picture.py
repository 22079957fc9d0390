"""A chart as a still picture: SVG of the same traces and layout, drawn without a browser.

A saved notebook shows it where plotly.js does not run: on GitHub, in what nbconvert makes, in a
front end without the extension. It knows what this package's charts use of plotly and no more.
Whatever is text comes from a topic's name or a number, and is escaped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Any

from .picture_axis import Axis, date_ticks, number_ticks
from .style import GRID, TEXT

WIDTH = 1000  # px; it shrinks with the page
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_CHARACTER = 6.4  # px of one in small type, about
_TAGS = re.compile(r"<[^>]*>")

Trace = Mapping[str, Any]


def picture(traces: Sequence[Trace], layout: Mapping[str, Any], message: str = "") -> str:
    """One SVG element, with nothing in it that a page would have to fetch or run.

    Args:
        traces, layout: as plotly has them, plain values.
        message: what the chart says; read aloud in the picture's place.
    """
    height = int(layout["height"])
    parts = [*_Plot(traces, layout, height).parts()] if traces else []
    # Ids count for all pictures of a page.
    own = hashlib.sha256("".join(parts).encode()).hexdigest()[:8]
    body = "".join(parts).replace(_OWN, own)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" style="max-width:100%;height:auto" role="img" '
        f'font-family="{escape(_FONT)}" font-size="12" fill="{TEXT}">'
        f"<title>{escape(message)}</title>{''.join(_title(layout))}{body}</svg>"
    )


_OWN = "@own@"


def _title(layout: Mapping[str, Any]) -> Iterator[str]:
    """The lines above the plot: those in bold, then the notes."""
    y = 12.0
    bold = True
    for line in layout["title"]["text"].split("<br>"):
        size, step = (16, 23) if bold else (12, 17)
        y += step
        weight = ' font-weight="bold"' if bold else ""
        bold = bold and "</b>" not in line
        yield _text(12, y - step / 4, _plain(line), f'font-size="{size}"{weight}')


class _Plot:
    """The plot below the title: axes, traces, what stands beside them."""

    def __init__(self, traces: Sequence[Trace], layout: Mapping[str, Any], height: int) -> None:
        self._traces, self._layout = traces, layout
        margin = layout["margin"]
        # plotly makes room for the labels by itself.
        self._left = margin["l"] + (96 if layout["yaxis"].get("title") else 40)
        self._right = WIDTH - margin["r"]
        self._top, self._bottom = margin["t"], height - margin["b"]
        self._bars = _placed_bars(traces, layout)
        self._x = self._axis(layout["xaxis"], "x", self._left, self._right)
        self._y = {
            name: self._axis(axis, "y", *self._span(axis), only=name)
            for name, axis in self._y_axes()
        }

    def parts(self) -> Iterator[str]:
        yield from self._grid()
        for nth, trace in enumerate(self._traces):
            if trace["type"] == "bar":
                yield from self._bar(trace, nth)
            else:
                yield from self._scatter(trace, nth)
        yield from self._shapes()
        yield from self._annotations()
        if self._layout.get("showlegend"):
            yield from self._legend()

    # -- axes ------------------------------------------------------------------------------------

    def _y_axes(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for key, axis in self._layout.items():
            if key.startswith("yaxis"):
                yield f"y{key.removeprefix('yaxis')}", axis

    def _span(self, axis: Mapping[str, Any]) -> tuple[float, float]:
        low, high = axis.get("domain", (0, 1))
        tall = self._bottom - self._top
        return self._bottom - low * tall, self._bottom - high * tall

    def _axis(
        self, axis: Mapping[str, Any], which: str, start: float, end: float, only: str = ""
    ) -> Axis:
        if axis.get("range") is not None:
            low, high = axis["range"]
        else:
            values = [*self._values(which, only)]
            low, high = min(values, default=0), max(values, default=1)
            if axis.get("rangemode") == "tozero":
                low = min(0, low)
            elif axis.get("type") != "date":
                low -= (high - low) * 0.05
            high += (high - low) * (0.0 if axis.get("type") == "date" else 0.05)
        ticks: list[tuple[float, str]]
        if axis.get("showticklabels") is False:
            ticks = []
        elif "tickvals" in axis:
            ticks = [*zip(axis["tickvals"], map(str, axis["ticktext"]), strict=True)]
        elif axis.get("type") == "date":
            ticks = date_ticks(low, high)
        else:
            ticks = number_ticks(low, high, axis.get("ticksuffix", ""))
        return Axis(low, high, start, end, ticks)

    def _values(self, which: str, only: str) -> Iterator[float]:
        for nth, trace in enumerate(self._traces):
            if only and trace.get("yaxis", "y") != only:
                continue
            if trace["type"] == "bar" and which == "x":
                for start, length in self._bars[nth]:
                    yield from (start, start + length)
            else:
                yield from (value for value in trace[which] if value is not None)

    def _grid(self) -> Iterator[str]:
        layout = self._layout
        for name, axis in self._y_axes():
            y = self._y[name]
            low, high = max(y.start, y.end), min(y.start, y.end)
            for at, label in y.ticks:
                px = y.px(at)
                if not high - 1 <= px <= low + 1:
                    continue
                if axis.get("showgrid", True):
                    yield _line(self._left, px, self._right, px)
                yield _text(self._left - 6, px + 4, label, 'text-anchor="end"')
            for at, _ in self._x.ticks:
                if layout["xaxis"].get("showgrid", True):
                    yield _line(self._x.px(at), high, self._x.px(at), low)
            yield _line(self._left, low, self._right, low)
            title = _plain(str(axis.get("title", {}).get("text", "")).replace("<br>", ", "))
            if title:
                place = 'transform="rotate(-90)" text-anchor="middle"'
                yield _text(-(low + high) / 2, 14, title, place)
        for at, label in self._x.ticks:
            if self._left - 1 <= self._x.px(at) <= self._right + 1:
                yield _text(self._x.px(at), self._bottom + 17, label, 'text-anchor="middle"')
        title = _plain(str(layout["xaxis"].get("title", {}).get("text", "")))
        middle = (self._left + self._right) / 2
        yield _text(middle, self._bottom + 36, title, 'text-anchor="middle" font-size="13"')

    # -- traces ----------------------------------------------------------------------------------

    def _bar(self, trace: Trace, nth: int) -> Iterator[str]:
        y = self._y["y"]
        thick = trace.get("width") or 1 - self._layout.get("bargap", 0.2)
        tall = abs(y.px(thick) - y.px(0))
        opacity = trace["marker"].get("opacity", 1)
        each = opacity if isinstance(opacity, (list, tuple)) else [opacity] * len(trace["y"])
        paths: dict[float, list[str]] = {}
        for (start, length), lane, faint in zip(self._bars[nth], trace["y"], each, strict=True):
            left, right = self._x.px(start), self._x.px(start + length)
            if right > left:
                top = y.px(lane) - tall / 2
                rectangle = f"M{left:.1f} {top:.1f}h{right - left:.1f}v{tall:.1f}H{left:.1f}z"
                paths.setdefault(faint, []).append(rectangle)
        pattern, fill = _fill(trace["marker"], nth)
        yield pattern
        for faint, path in paths.items():
            yield f'<path d="{"".join(path)}" fill="{fill}" opacity="{faint}"/>'

    def _scatter(self, trace: Trace, nth: int) -> Iterator[str]:
        y = self._y[trace.get("yaxis", "y")]
        runs = [*_runs(trace["x"], trace["y"])]
        line = trace.get("line", {})
        stroke = f'stroke="{line.get("color", TEXT)}" stroke-width="{line.get("width", 2)}"'
        if trace.get("fill") in ("toself", "tozeroy"):
            pattern, fill = _fill({**trace, "color": trace["fillcolor"]}, nth, "fillpattern")
            zero = "" if trace["fill"] == "toself" else "zero"
            path = "".join(self._path(run, y, line, zero) + "z" for run in runs)
            yield f'{pattern}<path d="{path}" fill="{fill}"/>'
        if "lines" in trace.get("mode", "lines") and line.get("width", 2):
            path = "".join(self._path(run, y, line) for run in runs)
            yield f'<path d="{path}" fill="none" {stroke}/>'
        if "markers" in trace.get("mode", "lines"):
            yield from self._markers(trace, y)

    def _path(self, run: Sequence[tuple[float, float]], y: Axis, line: Trace, to: str = "") -> str:
        points = [(self._x.px(a), y.px(b)) for a, b in run]
        steps = line.get("shape") == "hv"
        path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for a, b in points[1:]:
            path += f"H{a:.1f}V{b:.1f}" if steps else f"L{a:.1f} {b:.1f}"
        if to:
            path += f"V{y.px(0):.1f}H{points[0][0]:.1f}"
        return path

    def _markers(self, trace: Trace, y: Axis) -> Iterator[str]:
        marker = trace.get("marker", {})
        many = len(trace["x"])

        def each(name: str, default: Any) -> Iterable[Any]:
            value = marker.get(name, default)
            return value if isinstance(value, (list, tuple)) else [value] * many

        colour = marker.get("color", trace.get("line", {}).get("color", TEXT))
        edge = marker.get("line", {})
        for a, b, size, faint in zip(
            trace["x"], trace["y"], each("size", 6), each("opacity", 1), strict=True
        ):
            if a is None or b is None or not faint:
                continue
            yield (
                f'<circle cx="{self._x.px(a):.1f}" cy="{y.px(b):.1f}" r="{size / 2:.1f}" '
                f'fill="{colour}" opacity="{faint}" stroke="{edge.get("color", "none")}"/>'
            )

    # -- beside them -----------------------------------------------------------------------------

    def _shapes(self) -> Iterator[str]:
        for shape in self._layout.get("shapes", ()):
            y = self._y.get(shape.get("yref", "y"))
            if y is not None and shape.get("xref") == "paper":
                px = y.px(shape["y0"])
                yield _line(self._left, px, self._right, px, shape["line"]["color"], dotted=True)

    def _annotations(self) -> Iterator[str]:
        for said in self._layout.get("annotations", ()):
            y = self._y.get(said.get("yref", "y"))
            px = self._top - 6 if y is None else y.px(said["y"])
            if said.get("yanchor") == "bottom" and y is not None:
                px -= 8
            elif said.get("yanchor") == "top":
                px += 10
            end = said.get("xanchor") == "right"
            x = self._right + said.get("xshift", 0)
            anchor = 'text-anchor="end"' if end else ""
            yield _text(x, px + 4, _plain(said["text"]), anchor)

    def _legend(self) -> Iterator[str]:
        x = float(self._left)
        y = self._top - 12
        for nth, trace in enumerate(self._traces):
            name = trace.get("name")
            if not name or trace.get("showlegend") is False:
                continue
            if trace["type"] == "bar":
                _, fill = _fill(trace["marker"], nth)
            elif trace.get("fill") == "toself":
                _, fill = _fill({**trace, "color": trace["fillcolor"]}, nth, "fillpattern")
            else:
                fill = trace.get("line", {}).get("color", TEXT)
            thin = trace["type"] == "scatter" and trace.get("fill") != "toself"
            tall = 3 if thin else 10
            yield f'<rect x="{x:.0f}" y="{y - tall / 2}" width="22" height="{tall}" fill="{fill}"/>'
            yield _text(x + 28, y + 4, name)
            x += 48 + _CHARACTER * len(name)


def _placed_bars(
    traces: Sequence[Trace], layout: Mapping[str, Any]
) -> dict[int, list[tuple[float, float]]]:
    """Where each bar begins, and how long it is, by the number of its trace."""
    stacked = layout.get("barmode") == "stack"
    ends: dict[Any, float] = {}
    found: dict[int, list[tuple[float, float]]] = {}
    for nth, trace in enumerate(traces):
        if trace["type"] != "bar":
            continue
        base = trace.get("base") or [0] * len(trace["x"])
        if stacked:
            base = [ends.get(lane, 0) for lane in trace["y"]]
            ends |= {
                lane: start + length
                for lane, start, length in zip(trace["y"], base, trace["x"], strict=True)
            }
        found[nth] = [*zip(base, trace["x"], strict=True)]
    return found


def _runs(x: Sequence[Any], y: Sequence[Any]) -> Iterator[list[tuple[float, float]]]:
    """The points of a line, where it is not broken."""
    run: list[tuple[float, float]] = []
    for a, b in zip(x, y, strict=True):
        if a is None or b is None:
            if run:
                yield run
            run = []
        else:
            run.append((a, b))
    if run:
        yield run


def _fill(marker: Mapping[str, Any], nth: int, name: str = "pattern") -> tuple[str, str]:
    """A pattern to define, or nothing, and the colour or pattern to fill with."""
    pattern = marker.get(name)
    colour = str(marker["color"])
    if not pattern:
        return "", colour
    own = f"ll-{_OWN}-{nth}"
    size = pattern.get("size", 8)
    behind = pattern.get("bgcolor")
    # Corners have a piece of the next tile's stroke.
    up, down = (
        f"M0 {size}L{size} 0M-2 2L2 -2M{size - 2} {size + 2}L{size + 2} {size - 2}",
        (f"M0 0L{size} {size}M-2 {size - 2}L2 {size + 2}M{size - 2} -2L{size + 2} 2"),
    )
    path = {"/": up, "\\": down, "x": up + down}[pattern["shape"]]
    ground = f'<rect width="{size}" height="{size}" fill="{behind or "none"}"/>'
    if behind is None and pattern["shape"] == "/":
        ground = f'<rect width="{size}" height="{size}" fill="{colour}"/>'
    wide = max(1, round(0.7 * size * pattern.get("solidity", 0.3)))
    return (
        f'<pattern id="{own}" width="{size}" height="{size}" patternUnits="userSpaceOnUse">{ground}'
        f'<path d="{path}" stroke="{pattern["fgcolor"]}" stroke-width="{wide}"/></pattern>'
    ), f"url(#{own})"


def _plain(text: str) -> str:
    return unescape(_TAGS.sub("", text))


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str = GRID, *, dotted: bool = False
) -> str:
    dots = ' stroke-dasharray="2 3"' if dotted else ""
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" fill="none"{dots}/>'
