"""How far groups were behind, over time, as the runs of the jobs saw it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...errors import InvalidArgumentError
from . import words
from .drawing import drawn
from .facts import NULL, checked, int64
from .lag_axis import lag_unit, limit_line, limit_text
from .style import COLD, HOT, SKIPPED, layout, says

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: The columns that are read of ``_lakelog_status``.
GROUP_LAGS = pa.schema(
    [
        ("group_id", pa.string()),
        ("group_type", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("group_lag_records", pa.int64()),
        ("group_lag_ms", pa.int64()),
    ]
)

_COLOURS = (HOT, COLD, "#029e73", SKIPPED, "#d55e00", "#949494")
_MOST_LINES = len(_COLOURS)
_MOST_POINTS = 400
_LEGEND_CHARACTERS = 48
_SILENT = 6  # times the usual time between looks: nobody looked
#: A group that is not behind has a row once an hour: so long, and some minutes, a zero holds.
_ZERO_HOLDS_MS = 75 * 60_000


def group_lag(
    table: pa.Table,
    *,
    by: Literal["time", "records"] = "time",
    limit_ms: int | None = None,
) -> Figure:
    """Draws how far groups were behind whenever a run looked, a line for each group and topic.

    By time it is the longest wait of any partition, by records the sum of all. Up to 6 lines are
    drawn, of those that were furthest behind. A line breaks where no run looked for a long time,
    and where a group went, since nothing is known of that time.

    Args:
        table: rows of the ``_lakelog_status`` table (`GROUP_LAGS` are read); those that are none of
            a group are passed over.
        by: what a line is the height of.
        limit_ms: by time, the wait that would be too long, drawn as a dotted line.

    Returns:
        A plotly Figure; a `PlainTable` where plotly is not installed.

    Raises:
        InvalidArgumentError: the table has other columns, or `by` is neither of them.
    """
    if by not in ("time", "records"):
        raise InvalidArgumentError(f"by={by!r}: a lag is drawn by 'time' or by 'records'")
    if limit_ms is not None and by == "records":
        raise InvalidArgumentError("limit_ms is a wait: draw the lag by='time', or leave it out")
    table = checked(table, GROUP_LAGS, "the _lakelog_status table")
    table = table.filter(pc.is_valid(table["group_id"]))
    seen = _Seen.of(table, by)
    message = seen.message(limit_ms)
    return drawn(table, message, lambda: _draw(seen, message, limit_ms))


class _Line(Struct, frozen=True, eq=False):
    """One group in one topic, at the moments at which something was told of it."""

    group: str
    topic: str
    at_ms: np.ndarray[Any, Any]  # ascending
    lag_ms: np.ndarray[Any, Any]  # NaN: not known
    records: np.ndarray[Any, Any]

    @property
    def name(self) -> str:
        return f"{self.group} in {self.topic}"


class _Seen(Struct, frozen=True, eq=False):
    lines: Sequence[_Line]  # the one that is furthest behind now first, then by the peak
    moments: np.ndarray[Any, Any]  # at which something was told of any group, ascending
    looks: int  # how many there were, before neighbours were joined
    by: str

    @classmethod
    def of(cls, table: pa.Table, by: str) -> _Seen:
        at, records, lag = (
            int64(table, name) for name in ("recorded_at", "group_lag_records", "group_lag_ms")
        )
        known = np.flatnonzero((at != NULL) & (records != NULL))
        at_ms, records, lag = at[known] // 1000, records[known], lag[known]
        waits = np.where(records == 0, 0.0, np.where(lag == NULL, np.nan, lag.astype(float)))
        every = np.unique(at_ms)
        # Of very many moments, neighbours become one point, at the time of the last.
        together = max(1, -(-len(every) // _MOST_POINTS))
        moments = every[together - 1 :: together]
        if len(every) and (not len(moments) or moments[-1] != every[-1]):
            moments = np.append(moments, every[-1])
        point = np.searchsorted(every, at_ms) // together
        keys = [
            tuple(row.values())
            for row in table.select(["group_id", "group_type", "topic"]).take(known).to_pylist()
        ]
        rows: dict[tuple[Any, ...], list[int]] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, []).append(row)
        lines = []
        for (group, kind, topic), own in rows.items():
            name = f"{group} (share group)" if kind == "share" else str(group)
            columns = (at_ms[own], point[own], waits[own], records[own])
            lines.append(_line(name, str(topic), moments, *columns))
        found = cls(lines, moments, len(every), by)
        return cls(sorted(lines, key=found._urgency), moments, len(every), by)

    @property
    def usual_ms(self) -> float:
        """The usual time between looks."""
        return max(1.0, float(np.median(np.diff(self.moments)))) if len(self.moments) > 1 else 1e15

    def heights(self, line: _Line) -> np.ndarray[Any, Any]:
        return line.lag_ms if self.by == "time" else line.records

    def now(self, line: _Line) -> float:
        """What is known of it at the last moment; NaN: nothing."""
        height = float(self.heights(line)[-1])
        silent_ms = float(self.moments[-1] - line.at_ms[-1])
        return height if silent_ms <= self.holds_ms(height) else float("nan")

    def holds_ms(self, height: float) -> float:
        """For how long a height says what is so, if nothing else is told."""
        silent_ms = _SILENT * self.usual_ms
        return max(silent_ms, _ZERO_HOLDS_MS) if height == 0 else silent_ms

    def said(self, height: float) -> str:
        return words.duration(height) if self.by == "time" else words.count(height, "record")

    def message(self, limit_ms: int | None) -> str:
        if not self.lines:
            return "No run has looked at groups yet, so nothing is known of their lag"
        first = self.lines[0]
        moment = f"{words.moment(self.moments[-1] // 1000 * 1000)} UTC"
        now = self.now(first)
        if now > 0:
            behind = sum(self.now(line) > 0 for line in self.lines)
            text = f"{first.name} is {self.said(now)} behind, at {moment}"
            if behind > 1:
                text += f", the furthest of {behind:,}"
        else:
            text = f"No group is known to be behind at {moment}"
        peaks = [np.nanmax(self.heights(line), initial=0.0) for line in self.lines]
        most = int(np.argmax(peaks))
        if peaks[most] > max(0.0, now if now > 0 else 0.0):
            line = self.lines[most]
            when = line.at_ms[int(np.nanargmax(self.heights(line)))]
            text += (
                f"; {line.name} was {self.said(peaks[most])} behind at "
                f"{words.moment(when // 1000 * 1000)}"
            )
        if limit_ms is not None:
            over = sum(peak > limit_ms for peak in peaks)
            text += f"; {over:,} of {len(peaks):,} were more than {words.duration(limit_ms)} behind"
        return text

    def _urgency(self, line: _Line) -> tuple[float, float, str]:
        now = self.now(line)
        peak = float(np.nanmax(self.heights(line), initial=0.0))
        return -now if now > 0 else 0.0, -peak, line.name


def _line(
    group: str,
    topic: str,
    moments: np.ndarray[Any, Any],
    at_ms: np.ndarray[Any, Any],
    point: np.ndarray[Any, Any],
    waits: np.ndarray[Any, Any],
    records: np.ndarray[Any, Any],
) -> _Line:
    """Of its rows, the longest wait and the most records of any moment at each point."""
    looks, first, which = np.unique(at_ms, return_index=True, return_inverse=True)
    longest, total = np.full(len(looks), np.nan), np.zeros(len(looks))
    np.fmax.at(longest, which, waits)
    np.add.at(total, which, records)
    points, place = np.unique(point[first], return_inverse=True)
    lag_ms, most = np.full(len(points), np.nan), np.zeros(len(points))
    np.fmax.at(lag_ms, place, longest)
    np.maximum.at(most, place, total)
    return _Line(group, topic, moments[points], lag_ms, most)


def _draw(
    seen: _Seen, message: str, limit_ms: int | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not seen.lines:
        return [], says(message)
    drawn_lines = seen.lines[:_MOST_LINES]
    notes = [f"{words.count(seen.looks, 'moment')} at which a run told of groups."]
    if len(seen.lines) > len(drawn_lines):
        notes.append(
            f"The chart shows {len(drawn_lines)} of {len(seen.lines):,}: those furthest behind."
        )
    if len(seen.moments) < seen.looks:
        notes.append(f"Moments are joined to {len(seen.moments)}, each with the most of them.")
    longest = max(
        limit_ms or 0, *(np.nanmax(seen.heights(line), initial=0.0) for line in drawn_lines)
    )
    unit, size = lag_unit(longest) if seen.by == "time" else ("records", 1)
    look = layout(message, notes, plot_height=300, axis="time of the run (UTC)")
    look["hovermode"] = "x unified"
    look["xaxis"] |= {"type": "date"}
    what = f"oldest unread record waits ({unit})" if seen.by == "time" else "unread records"
    look["yaxis"] |= {"title": {"text": what}}
    look["yaxis"] |= {"range": [0, max(longest / size, 1e-9 if seen.by == "time" else 1) * 1.08]}
    if limit_ms is not None:
        look |= limit_line(limit_ms / size, limit_text(limit_ms))
    return [
        _trace(seen, line, colour, size)
        for line, colour in zip(drawn_lines, _COLOURS, strict=False)
    ], look


def _trace(seen: _Seen, line: _Line, colour: str, size: int) -> dict[str, Any]:
    """A line: it goes on at zero where a group is not behind, and breaks where nothing is known."""
    x: list[int] = []
    y: list[float | None] = []
    said: list[list[str]] = []

    def add(at_ms: float, height: float | None, records: float = 0) -> None:
        is_known = height is not None and not np.isnan(height)
        x.append(int(at_ms))
        y.append(round(float(height) / size, 6) if is_known and height is not None else None)
        waits = words.duration(height or 0) + ", " if seen.by == "time" and is_known else ""
        said.append([f"{waits}{words.count(records, 'record')}"])

    heights = seen.heights(line)
    times = [*line.at_ms.tolist(), int(seen.moments[-1])]
    for place, (at_ms, height) in enumerate(zip(line.at_ms, heights, strict=True)):
        add(at_ms, float(height), float(line.records[place]))
        silent_ms = times[place + 1] - times[place]
        is_last = place == len(heights) - 1
        if silent_ms > seen.holds_ms(float(height)):
            if not is_last:
                add(at_ms + 1, None)
        elif height == 0 and silent_ms > seen.usual_ms * 1.5:
            add(times[place + 1] if is_last else times[place + 1] - seen.usual_ms, 0.0)
    markers = len(x) <= 60
    return {
        "type": "scatter",
        "mode": "lines+markers" if markers else "lines",
        "marker": {"size": 5},
        "connectgaps": False,
        "name": html.escape(_short(line.name), quote=False),
        "x": x,
        "y": y,
        "customdata": said,
        "line": {"color": colour, "width": 2.5 if line is seen.lines[0] else 1.8},
        "hovertemplate": "%{customdata[0]}",
    }


def _short(name: str) -> str:
    return name if len(name) <= _LEGEND_CHARACTERS else f"{name[: _LEGEND_CHARACTERS - 1]}…"
