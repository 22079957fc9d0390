"""Lines over a count as an SVG: small panels side by side, each with its own scales."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from .measures import Unit

WIDTH, HEIGHT = 400, 230  # of a panel's plot, with its words
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 36
LINE = 15  # of a legend
COLUMNS = 2
#: Okabe and Ito's, which people tell apart whatever colors they see.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f")


@dataclass(frozen=True)
class Line:
    """Points in order of x; `dashed` is what is computed and not measured."""

    label: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One picture. Both scales are logarithmic; x is not where `linear_x` is set."""

    title: str
    x: str
    unit: Unit
    lines: Sequence[Line]
    linear_x: bool = False

    @property
    def height(self) -> int:
        return HEIGHT + LINE * len(self.lines) + 14


def svg(title: str, panels: Sequence[Panel]) -> str:
    """The panels in rows of `COLUMNS`; of each line the x and y that are positive."""
    drawn, y = [], 0
    for first in range(0, len(panels), COLUMNS):
        row = panels[first : first + COLUMNS]
        for number, panel in enumerate(row):
            inner = "\n".join(_panel(panel))
            drawn.append(f'<g transform="translate({number * WIDTH} {y})">\n{inner}\n</g>')
        y += max(panel.height for panel in row)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * WIDTH} {y}" '
            'font-family="system-ui, sans-serif" font-size="11">',
            "<style>text{fill:#57606a}path{fill:none}"
            "@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>",
            f"<title>{escape(title)}</title>",
            *drawn,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel) -> Iterator[str]:
    shown = [
        Line(line.label, [(x, y) for x, y in line.points if y > 0], line.dashed)
        for line in panel.lines
    ]
    xs = [x for line in shown for x, _ in line.points] or [1.0]
    ys = [y for line in shown for _, y in line.points] or [1.0]
    across = _scale(min(xs), max(xs), LEFT, WIDTH - RIGHT, logarithmic=not panel.linear_x)
    up = _scale(*_decades(min(ys), max(ys)), HEIGHT - BOTTOM, TOP, logarithmic=True)
    yield f'<text x="{LEFT}" y="16" font-size="13" font-weight="600">{escape(panel.title)}</text>'
    for value in _marks(*_decades(min(ys), max(ys))):
        y = up(value)
        yield f'<path d="M{LEFT} {y:.0f}H{WIDTH - RIGHT}" stroke="#8c959f" stroke-opacity=".4"/>'
        yield (
            f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">'
            f"{escape(panel.unit.show(value))}</text>"
        )
    for value in sorted(set(xs)) if len(set(xs)) <= 8 else _few(sorted(set(xs))):
        yield (
            f'<text x="{across(value):.0f}" y="{HEIGHT - BOTTOM + 15}" '
            f'text-anchor="middle">{_count(value)}</text>'
        )
    yield (
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end" font-style="italic">'
        f"{escape(panel.x)}</text>"
    )
    for number, line in enumerate(shown):
        color = COLORS[number % len(COLORS)]
        dash = ' stroke-dasharray="5 3"' if line.dashed else ""
        places = [f"{across(x):.0f} {up(y):.0f}" for x, y in line.points]
        yield f'<path d="M{"L".join(places) or "0 0"}" stroke="{color}" stroke-width="2"{dash}/>'
        if not line.dashed:
            dots = "".join(f"M{place}h0" for place in places)
            yield f'<path d="{dots}" stroke="{color}" stroke-width="6" stroke-linecap="round"/>'
        y = HEIGHT + LINE * number
        yield f'<path d="M{LEFT} {y + 4}h18" stroke="{color}" stroke-width="2"{dash}/>'
        yield f'<text x="{LEFT + 24}" y="{y + 8}">{escape(line.label)}</text>'


class _Scale:
    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        self._log = log
        self._low, self._high = self._of(low), self._of(high)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        span = self._high - self._low
        share = (self._of(value) - self._low) / span if span else 0.5
        return self._start + share * (self._end - self._start)

    def _of(self, value: float) -> float:
        return math.log10(value) if self._log else value


def _scale(low: float, high: float, start: float, end: float, *, logarithmic: bool) -> _Scale:
    return _Scale(low, high, start, end, logarithmic)


def _decades(low: float, high: float) -> tuple[float, float]:
    """Whole powers of ten around both, one apart at least."""
    down, up = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return 10.0**down, 10.0 ** max(up, down + 1)


def _marks(low: float, high: float) -> list[float]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, (last - first + 5) // 6)
    return [10.0**power for power in range(first, last + 1, step)]


def _few(values: list[float]) -> list[float]:
    return values[:: max(1, math.ceil(len(values) / 8))]


def _count(value: float) -> str:
    for size, name in ((1e6, " M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"
