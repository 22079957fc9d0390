"""How far behind archiving and groups were, over time, as the runs of the jobs saw it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...errors import InvalidArgumentError
from .. import words
from .look import COLD, HOT, MISSING, SKIPPED_COLOUR, Numbers, layout, line_across, says
from .shown import NULL, checked, drawn, int64

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_STATUS = "the _lakelog_status table"

#: The columns that are read of ``_lakelog_status``.
LAGS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("archive_lag_records", pa.int64()),
        ("archive_lag_ms", pa.int64()),
    ]
)
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

_COLOURS = (HOT, COLD, "#029e73", SKIPPED_COLOUR, MISSING, "#949494")
_MOST_LINES = len(_COLOURS)
_MOST_PARTITIONS = 4  # that have a line each, beside that of the longest wait
_MOST_POINTS = 400
_LEGEND_CHARACTERS = 48
_SILENT = 6  # times the usual time between looks: nobody looked
#: A group that is not behind has a row once an hour: so long, and some minutes, a zero holds.
_ZERO_HOLDS_MS = 75 * 60_000

#: Unit, what it is in ms, and the least of waits that it is for.
_UNITS = (
    ("days", 86_400_000, 172_800_000),
    ("h", 3_600_000, 7_200_000),
    ("min", 60_000, 120_000),
    ("s", 1_000, 0),
)


def archive_lag(table: pa.Table, *, limit_ms: int | None = None) -> Figure:
    """Draws how long the oldest unarchived record had waited whenever a run looked.

    The bold line is the longest wait of any partition; up to 4 partitions also have a line each. A
    line breaks where no run looked for a long time, since nothing is known of that time.

    Args:
        table: rows of the ``_lakelog_status`` table (`LAGS` are read), of any runs and topics.
        limit_ms: the wait that would be too long, drawn as a dotted line.

    Returns:
        A plotly Figure; a `PlainTable` where plotly is not installed.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    table = checked(table, LAGS, _STATUS)
    # A run that failed unseen has no partition; without Redis, what waits is not known.
    known = _with(table, "partition", "recorded_at", "archive_lag_records")
    waits = int64(known, "archive_lag_ms").astype(float)
    waits = np.where(waits == NULL, 0.0, waits)  # null: nothing waits
    names = [
        f"{topic or ''}-{number}"
        for topic, number in zip(
            *(known[n].to_pylist() for n in ("topic", "partition")), strict=True
        )
    ]
    each = _Lags.of(known, names, waits, "archive_lag_records")
    several = len(each.lines) > 1
    name = "longest of all partitions" if several else "".join(names[:1])
    worst = _Lags.of(known, [name] * len(names), waits, "archive_lag_records").lines
    message = _archive_message(each, worst, limit_ms)
    notes = [
        f"{words.count(len(each.lines), 'partition')}, {words.count(each.looks, 'moment')} at "
        "which a run looked; between them the lag may have been longer."
    ]
    own = sorted(each.lines, key=lambda line: line.name) if several else []
    lines = [*worst, *(own if len(own) <= _MOST_PARTITIONS else ())]
    title = "oldest unarchived record waits"
    return drawn(table, message, lambda: _draw(each, lines, message, notes, title, limit_ms))


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
    table = checked(table, GROUP_LAGS, _STATUS)
    table = _with(table, "group_id")
    known = _with(table, "recorded_at", "group_lag_records")
    records, waits = int64(known, "group_lag_records"), int64(known, "group_lag_ms").astype(float)
    waits = np.where(records == 0, 0.0, np.where(waits == NULL, np.nan, waits))
    names = [
        f"{group}{' (share group)' if kind == 'share' else ''} in {topic}"
        for group, kind, topic in zip(
            *(known[name].to_pylist() for name in ("group_id", "group_type", "topic")), strict=True
        )
    ]
    seen = _Lags.of(known, names, waits, "group_lag_records", by, _ZERO_HOLDS_MS)
    message = _group_message(seen, limit_ms)
    lines = seen.lines[:_MOST_LINES]
    notes = [f"{words.count(seen.looks, 'moment')} at which a run told of groups."]
    if len(seen.lines) > len(lines):
        notes.append(f"The chart shows {len(lines)} of {len(seen.lines):,}: those furthest behind.")
    title = "oldest unread record waits" if by == "time" else "unread records"
    return drawn(table, message, lambda: _draw(seen, lines, message, notes, title, limit_ms))


def _with(table: pa.Table, *names: str) -> pa.Table:
    """The rows that have all of these columns."""
    for name in names:
        table = table.filter(pc.is_valid(table[name]))
    return table


class _Line(Struct, frozen=True, eq=False):
    """One that may be behind, at the moments at which something was told of it."""

    name: str
    at_ms: Numbers  # ascending
    heights: Numbers  # waits in ms, or records; NaN: not known
    records: Numbers

    @property
    def peak(self) -> float:
        return float(np.nanmax(self.heights, initial=0.0))


class _Lags(Struct, frozen=True, eq=False):
    """What the runs saw."""

    lines: Sequence[_Line]  # the one that is furthest behind now first, then by the peak
    moments: Numbers  # at which something was told, ascending
    looks: int  # how many there were, before neighbours were joined
    by: str
    zero_holds_ms: int

    @classmethod
    def of(
        cls,
        table: pa.Table,
        names: Sequence[str],
        waits_ms: Numbers,
        records: str,
        by: str = "time",
        zero_holds_ms: int = 0,
    ) -> _Lags:
        """Lines of the rows of each name: at a moment, the longest wait and the sum of records.

        Args:
            records: the name of their column.
        """
        at_ms, many = int64(table, "recorded_at") // 1000, int64(table, records).astype(float)
        every = np.unique(at_ms)
        # Of very many moments, neighbours become one point, at the time of the last.
        together = max(1, -(-len(every) // _MOST_POINTS))
        moments = np.unique(np.append(every[together - 1 :: together], every[-1:]))
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            rows.setdefault(name, []).append(row)
        lines = []
        for name, own in rows.items():
            looks, which = np.unique(at_ms[own], return_inverse=True)
            longest, total = np.full(len(looks), np.nan), np.zeros(len(looks))
            np.fmax.at(longest, which, waits_ms[own])
            np.add.at(total, which, many[own])
            points, place = np.unique(
                np.searchsorted(every, looks) // together, return_inverse=True
            )
            waits, most = np.full(len(points), np.nan), np.zeros(len(points))
            np.fmax.at(waits, place, longest)
            np.maximum.at(most, place, total)
            lines.append(_Line(name, moments[points], waits if by == "time" else most, most))
        found = cls(lines, moments, len(every), by, zero_holds_ms)
        lines.sort(key=lambda line: (-max(0.0, found.now(line)), -line.peak, line.name))
        return found

    @property
    def usual_ms(self) -> float:
        """The usual time between looks."""
        return max(1.0, float(np.median(np.diff(self.moments)))) if len(self.moments) > 1 else 1e15

    def now(self, line: _Line) -> float:
        """What is known of it at the last moment; -1: nothing."""
        height = float(line.heights[-1])
        is_known = self.moments[-1] - line.at_ms[-1] <= self.holds_ms(height)
        return height if is_known and not np.isnan(height) else -1.0

    def holds_ms(self, height: float) -> float:
        """For how long a height says what is so, if nothing else is told."""
        silent_ms = _SILENT * self.usual_ms
        return max(silent_ms, self.zero_holds_ms) if height == 0 else silent_ms

    def said(self, height: float) -> str:
        return words.duration(height) if self.by == "time" else words.count(height, "record")

    def when(self, at_ms: float) -> str:
        return words.moment(at_ms // 1000 * 1000)


def _archive_message(each: _Lags, worst: Sequence[_Line], limit_ms: int | None) -> str:
    if not worst:
        return "No run has looked yet, so nothing is known of archive lag"
    (line,) = worst
    first, now, peak = each.lines[0], line.heights[-1], int(line.heights.argmax())
    moment = f"at {each.when(each.moments[-1])} UTC"
    text = f"Nothing waits to be archived {moment}"
    if now:
        text = f"{first.name} waits {words.duration(now)} to be archived, {moment}"
    if line.peak > now:
        text += (
            f"; the longest wait was {words.duration(line.peak)}, at {each.when(line.at_ms[peak])}"
        )
    elif now and len(line.heights) > 1:
        text += ", the longest of all"
    if limit_ms is not None:
        share = words.percent(int((line.heights > limit_ms).sum()), len(line.heights))
        text += f"; above {words.duration(limit_ms)} at {share} of the moments"
    return text


def _group_message(seen: _Lags, limit_ms: int | None) -> str:
    if not seen.lines:
        return "No run has looked at groups yet, so nothing is known of their lag"
    first, moment = seen.lines[0], f"{seen.when(seen.moments[-1])} UTC"
    now = max(0.0, seen.now(first))
    text = f"No group is known to be behind at {moment}"
    if now:
        text = f"{first.name} is {seen.said(now)} behind, at {moment}"
        behind = sum(seen.now(line) > 0 for line in seen.lines)
        text += f", the furthest of {behind:,}" if behind > 1 else ""
    worst = max(seen.lines, key=lambda line: line.peak)
    if worst.peak > now:
        when = worst.at_ms[int(np.nanargmax(worst.heights))]
        text += f"; {worst.name} was {seen.said(worst.peak)} behind at {seen.when(when)}"
    if limit_ms is not None:
        over = sum(line.peak > limit_ms for line in seen.lines)
        limit = words.duration(limit_ms)
        text += f"; {over:,} of {len(seen.lines):,} were more than {limit} behind"
    return text


def _draw(
    seen: _Lags,
    lines: Sequence[_Line],
    message: str,
    notes: Sequence[str],
    title: str,
    limit_ms: int | None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not lines:
        return [], says(message)
    said = [*notes]
    if len(seen.moments) < seen.looks:
        said.append(
            f"The chart shows {len(seen.moments)} of {seen.looks:,} moments, each the longest of "
            "those around it."
        )
    longest = max(limit_ms or 0, *(line.peak for line in lines))
    unit, size, least = "", 1, 1.0
    if seen.by == "time":
        unit, size = next((name, size_ms) for name, size_ms, of in _UNITS if longest >= of)
        unit, least = f" ({unit})", 1e-9
    look = layout(message, said, plot_height=300, axis="time of the run (UTC)")
    look["hovermode"] = "x unified"
    look["xaxis"] |= {"type": "date"}
    look["yaxis"] |= {"title": {"text": f"{title}{unit}"}}
    look["yaxis"] |= {"range": [0, max(longest / size, least) * 1.08]}
    if limit_ms is not None:
        line, text = line_across(limit_ms / size, f"limit {words.duration(limit_ms)}")
        look |= {"shapes": [line], "annotations": [text]}
    traces = [
        _trace(seen, line, size, {"color": colour, "width": 4 if line is lines[0] else 1.5})
        for line, colour in zip(lines, _COLOURS, strict=False)
    ]
    return traces, look


def _trace(seen: _Lags, line: _Line, size: int, style: Mapping[str, Any]) -> dict[str, Any]:
    """A line: it goes on at zero where nothing is behind, and breaks where nothing is known."""
    points: list[tuple[int, float | None, str]] = []

    def add(at_ms: float, height: float | None, records: float = 0) -> None:
        text = words.count(records, "record")
        if height is None or np.isnan(height):
            points.append((int(at_ms), None, text))
            return
        waits = f"{words.duration(height)}, " if seen.by == "time" else ""
        points.append((int(at_ms), round(height / size, 6), waits + text))

    times = [*line.at_ms.tolist(), int(seen.moments[-1])]
    last = len(line.at_ms) - 1
    for place, (height, records) in enumerate(zip(line.heights, line.records, strict=True)):
        at_ms, until_ms = times[place], times[place + 1]
        add(at_ms, float(height), float(records))
        if until_ms - at_ms > seen.holds_ms(float(height)):
            if place < last:
                add(at_ms + 1, None)
        elif height == 0 and until_ms - at_ms > seen.usual_ms * 1.5:
            add(until_ms if place == last else until_ms - seen.usual_ms, 0.0)
    x, y, said = zip(*points, strict=True)
    short = line.name
    if len(short) > _LEGEND_CHARACTERS:
        short = f"{short[: _LEGEND_CHARACTERS - 1]}…"
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(x) <= 60 else "lines",
        "marker": {"size": 5},
        "connectgaps": False,
        "name": html.escape(short, quote=False),
        "x": list(x),
        "y": list(y),
        "customdata": [[text] for text in said],
        "line": dict(style),
        "hovertemplate": "%{customdata[0]}",
    }
