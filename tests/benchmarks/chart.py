"""How many times as good as its peers lakelog is, as a picture: a bar a row, on a log scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from .report import Report, ratio

PEERS = (
    "confluent-kafka",
    "Kafka",
    "Kafka's log cleaner",
    "Spark's Kafka source",
    "Spark's Kafka sink",
)
SCALE, RIGHT, STEP = 460, 70, 22
LETTER = 6.8  # as wide as most are
LEAST, MOST = 0.25, 64.0


def ratios(report: Report) -> str:
    """An SVG; where lakelog is better, a bar reaches to the right of the line at 1."""
    bars = list(_bars(report))
    height = STEP * len(bars) + 50
    left = round(LETTER * max((len(label) for label, _ in bars), default=0)) + 16

    def at(times: float) -> float:
        return left + _share(times) * SCALE

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + SCALE + RIGHT} {height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        # Both themes of a page: the text takes the page's color where it can be asked for.
        "<style>text{fill:#57606a}@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>",
        f"<title>lakelog beside its peers, {escape(report.taken)}</title>",
    ]
    for mark in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
        x = at(mark)
        dash = "" if mark == 1 else ' stroke-dasharray="2 4"'
        lines.append(
            f'<path d="M{x:.1f} 24V{height - 8}" stroke="#8c959f"{dash}/>'
            f'<text x="{x:.1f}" y="16" text-anchor="middle">{mark:g} ×</text>'
        )
    for number, (label, times) in enumerate(bars):
        y = 30 + STEP * number
        start, end = sorted((at(1), at(times)))
        color = "#1a7f64" if times >= 1 else "#c2571a"
        lines.append(
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{start:.1f}" y="{y}" width="{max(1.0, end - start):.1f}" height="15" '
            f'rx="2" fill="{color}"/>'
            f'<text x="{max(end, at(1)) + 6:.1f}" y="{y + 12}">{ratio(times)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _bars(report: Report) -> Iterator[tuple[str, float]]:
    for rows in report.rows.values():
        for row in rows:
            for side in row.others:
                if side in PEERS:
                    yield f"{row.what.replace('`', '')} : {side}", row.times(side)


def _share(times: float) -> float:
    """Of the way from the least to the most, on a log scale."""
    return (math.log2(min(MOST, max(LEAST, times))) - math.log2(LEAST)) / (
        math.log2(MOST) - math.log2(LEAST)
    )
