"""How long the oldest unarchived record waited, over time, as the runs of the jobs saw it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from . import words
from .drawing import drawn
from .facts import NULL, checked, int64
from .lag_axis import lag_unit, limit_line, limit_text
from .style import COLD, HOT, SKIPPED, layout, says

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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

_MOST_LINES = 4  # of partitions, beside that of the worst
_MOST_POINTS = 400
_SILENT = 6  # times the usual time between rows: no run looked
_COLOURS = (COLD, SKIPPED, "#029e73", "#949494")
_SHADE = "rgba(222,143,5,0.18)"


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
    table = checked(table, LAGS, "the _lakelog_status table")
    seen = _Seen.of(table)
    message = seen.message(limit_ms)
    return drawn(table, message, lambda: _draw(seen, message, limit_ms))


class _Seen(Struct, frozen=True, eq=False):
    names: list[str]  # of the topic-partitions
    at_ms: np.ndarray[Any, Any]  # of each point, ascending
    lag_ms: np.ndarray[Any, Any]  # names × points; NaN: not looked at
    records: np.ndarray[Any, Any]  # likewise
    runs: int  # how many moments there were

    @classmethod
    def of(cls, table: pa.Table) -> _Seen:
        at, partition = int64(table, "recorded_at"), int64(table, "partition")
        lag, records = int64(table, "archive_lag_ms"), int64(table, "archive_lag_records")
        topics = pc.fill_null(table["topic"], "").combine_chunks().dictionary_encode()
        if isinstance(topics, pa.ChunkedArray):
            topics = topics.combine_chunks()
        codes = topics.dictionary.to_pylist()
        # A run that failed unseen has no partition; without Redis, what waits is not known.
        known = np.flatnonzero((at != NULL) & (partition != NULL) & (records != NULL))
        topic_code = np.asarray(topics.indices)[known]
        pairs, whose = np.unique(
            (topic_code.astype(np.int64) << 32) + partition[known], return_inverse=True
        )
        at_ms = at[known] // 1000
        moments = np.unique(at_ms)
        # Of very many moments, neighbours become one point, at the time of the last.
        together = max(1, -(-len(moments) // _MOST_POINTS))
        point = np.searchsorted(moments, at_ms) // together
        points = moments[together - 1 :: together]
        if len(moments) and (not len(points) or points[-1] != moments[-1]):
            points = np.append(points, moments[-1])
        shape = (len(pairs), len(points))
        lags, waiting = np.full(shape, np.nan), np.full(shape, np.nan)
        # Null: nothing waits.
        np.fmax.at(lags, (whose, point), np.where(lag[known] == NULL, 0, lag[known]))
        np.fmax.at(waiting, (whose, point), np.where(records[known] == NULL, 0, records[known]))
        names = [f"{codes[pair >> 32]}-{pair & 0xFFFFFFFF}" for pair in pairs.tolist()]
        return cls(names, points, lags, waiting, len(moments))

    @property
    def worst(self) -> np.ndarray[Any, Any]:
        """The longest wait at each point."""
        if not self.lag_ms.size:
            return np.empty(0)
        return np.asarray(np.nanmax(self.lag_ms, axis=0))

    def message(self, limit_ms: int | None) -> str:
        if not len(self.at_ms):
            return "No run has looked yet, so nothing is known of archive lag"
        worst = self.worst
        now = self.lag_ms[:, -1]
        first = f"at {words.moment(self.at_ms[-1] // 1000 * 1000)} UTC"
        if worst[-1]:
            waits = self.names[int(np.nanargmax(now))]
            text = f"{waits} waits {words.duration(worst[-1])} to be archived, {first}"
        else:
            text = f"Nothing waits to be archived {first}"
        if len(worst) > 1:
            peak = int(worst.argmax())
            if worst[peak] > worst[-1]:
                text += (
                    f"; the longest wait was {words.duration(worst[peak])}, at "
                    f"{words.moment(self.at_ms[peak] // 1000 * 1000)}"
                )
            elif worst[peak]:
                text += ", the longest of all"
        if limit_ms is not None:
            over = int((worst > limit_ms).sum())
            text += (
                f"; above {words.duration(limit_ms)} at {words.percent(over, len(worst))} of the "
                "moments"
            )
        return text


def _draw(
    seen: _Seen, message: str, limit_ms: int | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not len(seen.at_ms):
        return [], says(message)
    worst = seen.worst
    longest = max(worst.max(), limit_ms or 0)
    unit, unit_ms = lag_unit(longest)
    notes = [
        f"{words.count(len(seen.names), 'partition')}, {words.count(seen.runs, 'moment')} at which "
        "a run looked; between them the lag may have been longer."
    ]
    if len(seen.at_ms) < seen.runs:
        notes.append(
            f"The chart shows {len(seen.at_ms)} of {seen.runs:,} moments, each the longest of "
            "those around it."
        )
    lines = range(len(seen.names)) if len(seen.names) <= _MOST_LINES else range(0)
    several = len(seen.names) > 1
    look = layout(message, notes, plot_height=300, axis="time of the run (UTC)", legend=several)
    look["hovermode"] = "x unified"
    look["xaxis"] |= {"type": "date"}
    look["yaxis"] |= {"title": {"text": f"oldest unarchived record waits ({unit})"}}
    look["yaxis"] |= {"range": [0, max(1e-9, longest / unit_ms) * 1.08]}
    traces: list[dict[str, Any]] = []
    if several:
        traces += [
            _line(seen, seen.lag_ms[nth], seen.records[nth], seen.names[nth], unit_ms)
            | {"line": {"color": _COLOURS[nth], "width": 1.5}, "opacity": 0.9}
            for nth in lines
        ]
    # The sum of what is known; the partition that waits longest changes from point to point.
    everyone = np.nansum(seen.records, axis=0)
    name = "longest of all partitions" if several else seen.names[0]
    bold = _line(seen, worst, everyone, name, unit_ms)
    bold |= {"line": {"color": HOT, "width": 3}}
    if len(seen.at_ms) <= 60:
        bold |= {"mode": "lines+markers", "marker": {"size": 5}}
    traces = [_shade(bold), bold, *traces]
    if limit_ms is not None:
        look |= limit_line(limit_ms / unit_ms, limit_text(limit_ms))
    return traces, look


def _shade(line: dict[str, Any]) -> dict[str, Any]:
    """What lies below a line, stretch by stretch: a fill to zero goes on where a line breaks."""
    x: list[Any] = []
    y: list[Any] = []
    ends = [at for at, value in enumerate(line["y"]) if value is None]
    for start, end in pairwise([-1, *ends, len(line["y"])]):
        part = slice(start + 1, end)
        if end - start > 2:  # one point has nothing below it
            x += [line["x"][start + 1], *line["x"][part], line["x"][end - 1], None]
            y += [0, *line["y"][part], 0, None]
    return {
        "type": "scatter",
        "mode": "none",
        "fill": "toself",
        "fillcolor": _SHADE,
        "x": x[:-1],
        "y": y[:-1],
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _line(
    seen: _Seen,
    lag_ms: np.ndarray[Any, Any],
    records: np.ndarray[Any, Any],
    name: str,
    unit_ms: int,
) -> dict[str, Any]:
    """The line of one partition or of all, broken where no run looked for a long time."""
    known = np.flatnonzero(~np.isnan(lag_ms))
    at, lag, waiting = seen.at_ms[known], lag_ms[known], np.nan_to_num(records[known])
    x: list[Any] = []
    y: list[Any] = []
    said: list[Any] = []
    usual = float(np.median(np.diff(seen.at_ms))) if len(seen.at_ms) > 2 else float("inf")
    for place in range(len(at)):
        if place and at[place] - at[place - 1] > _SILENT * max(1, usual):
            x.append(int(at[place - 1]) + 1)
            y.append(None)
            said.append(["", 0])
        x.append(int(at[place]))
        y.append(round(float(lag[place]) / unit_ms, 6))
        said.append([words.duration(float(lag[place])), int(waiting[place])])
    return {
        "type": "scatter",
        "mode": "lines" if len(x) > 1 else "markers",
        "connectgaps": False,
        "name": name,
        "x": x,
        "y": y,
        "customdata": said,
        "hovertemplate": f"{name}: %{{customdata[0]}}, %{{customdata[1]:,}} records<extra></extra>",
    }
