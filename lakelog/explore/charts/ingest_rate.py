"""How many records come in over time, by their own timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...base import compute as pc
from ...cold.segment import UNKNOWN_TIMESTAMP_MS
from ...errors import InvalidArgumentError
from ...read.topic_log import TopicLog
from ...values.offsets import timestamp_ms
from .. import record_times, words
from ..histogram import Groups, edges, histogram, whole
from .look import COLD, HOT, Numbers, layout, says
from .shown import about, checked, described, drawn, float64, int64, notes_of, partitions_asked

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RATES = pa.schema(
    [
        ("partition", pa.int32()),
        ("start", pa.timestamp("us", tz="UTC")),
        ("seconds", pa.float64()),
        ("records", pa.float64()),
        ("records_per_second", pa.float64()),
        ("spread_seconds", pa.float64()),
        ("exact", pa.bool_()),
    ]
)

DEFAULT_BINS = 120


def ingest_rates(
    log: TopicLog,
    partitions: Iterable[int] | None = None,
    *,
    start: int | str | datetime | None = None,
    end: int | str | datetime | None = None,
    bins: int = DEFAULT_BINS,
) -> pa.Table:
    """How many records came in when, by their timestamps.

    The cold tier's segment index and Redis's segments say how many records lie between two known
    timestamps. Files and hot segments that reach over an edge of the parts are read, their
    timestamps alone where they are cold, as far as `record_times.CHART` allows. What stays unread
    is spread evenly over its time, so a rate is as fine as ``spread_seconds`` says. Records that
    compaction has removed count, over the time of their file; deleted records do not, nor do
    offsets that were skipped after an unclean stop.

    Args:
        partitions: numbers; None for all.
        start, end: the time to look at, [start, end): epoch milliseconds, an aware datetime, or
            a text that `typed_time` reads. Default: all there is, except a few records (0.1 %) with
            timestamps far from the others', which a note of the chart counts.
        bins: the largest number of equal parts that the time is cut into.

    Returns:
        Rows of `RATES` by partition and time, a row for each partition and part. ``records`` is an
        estimate, unless ``exact``.
        ``spread_seconds`` is the time that they were spread over, on average; null without records.

    Raises:
        InvalidArgumentError: `log` is not the log of a topic, a time without a zone, an end before
            the start, no bins.
        LakelogError: a tier cannot be read.
    """
    if bins < 1:
        raise InvalidArgumentError(f"bins={bins} is no number of parts ≥ 1")
    asked = partitions_asked("ingest_rates", log, partitions)
    look, budget = log.tiers().look_at_segments(asked), record_times.CHART
    groups, removed = record_times.groups_of(look), record_times.removed_groups(look)
    # Of a hot segment the first time is not known, so the whole time is only known once it is read.
    uncertain = np.flatnonzero((groups.certain == 0) & (groups.records > 0))
    read = record_times.affordable(look, groups, uncertain, budget)
    read_bytes = float(record_times.hot_bytes(look, groups.where(read), budget).sum())
    budget = replace(budget, hot_bytes=budget.hot_bytes - read_bytes)
    groups = record_times.counted(log, look, groups, read, budget)
    window, notes = _window(Groups.joined([groups, removed]), start, end)
    if window is None:
        empty = RATES.empty_table()
        return described(empty, topic=log.topic.name, partitions=asked, notes=notes)
    edges_ms = edges(window, max(1, min(bins, (window[1] - window[0]) // 1_000)))
    groups = record_times.refined(log, look, groups, edges_ms, budget)
    groups = Groups.joined([groups, removed])
    tables = [_rows(number, groups.where(groups.partition == number), edges_ms) for number in asked]
    table = pa.concat_tables(tables) if tables else RATES.empty_table()
    return described(table, topic=log.topic.name, partitions=asked, notes=notes)


def _rows(partition: int, groups: Groups, edges_ms: Numbers) -> pa.Table:
    found = histogram(groups, edges_ms)
    # What is not certain of its time may have had any.
    may_have_time = groups.is_timed | (groups.max_ms == UNKNOWN_TIMESTAMP_MS)
    guessed = may_have_time & (groups.certain == 0) & (groups.records > 0)
    # A burst within a millisecond is not a rate of a million a second.
    seconds = np.maximum(1.0, np.diff(edges_ms) / 1000)
    return pa.table(
        [
            pa.array([partition] * len(seconds), pa.int32()),
            pa.array(edges_ms[:-1] * 1000, pa.int64()).cast(RATES.field("start").type),
            pa.array(seconds),
            pa.array(found.totals),
            pa.array(found.totals / seconds),
            pa.array(found.spread_ms / 1000, mask=np.isnan(found.spread_ms)),
            pa.array(found.exact & ~guessed.any()),
        ],
        schema=RATES,
    )


def _window(
    groups: Groups, start: int | str | datetime | None, end: int | str | datetime | None
) -> tuple[tuple[int, int] | None, list[str]]:
    """[start, end) in ms, or None if nothing has a timestamp; and notes on what lies outside."""
    low = None if start is None else timestamp_ms(start)
    high = None if end is None else timestamp_ms(end)
    if low is not None and high is not None and high <= low:
        raise InvalidArgumentError(f"the time from {start} to {end} ends before it begins")
    inner, timed = whole(groups), groups.where(groups.is_timed & (groups.records > 0))
    if inner is None:
        return None, []
    first, last = int(timed.min_ms.min()), int(timed.max_ms.max()) + 1
    if low is None and high is None:
        left_out = (timed.max_ms < inner[0]) | (timed.min_ms >= inner[1])
        if inner == (first, last) or not left_out.any():
            return (first, last), []
        outside = words.count(timed.records[left_out].sum(), "record")
        return inner, [
            f"Not shown: {outside} outside this time, in {words.period(first, last)}. Ask for them "
            "with start= and end=."
        ]
    low, high = first if low is None else low, last if high is None else high
    return (low, max(high, low + 1)), []


def ingest_rate(table: pa.Table) -> Figure:
    """Draws how many records came in, in all partitions together and in the busiest.

    Title, axis and hover speak in one unit, records per second, minute, hour or day. The title
    names the busiest part of the time if all parts are exact.

    Args:
        table: as `ingest_rates` gives it.

    Returns:
        A plotly Figure of one trace (one partition) or two; a `PlainTable` where plotly is not
        installed.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    table = checked(table, RATES, "ingest_rates")
    seen = _Seen.of(table)
    message = about(table, seen.message())
    return drawn(table, message, lambda: _draw(seen, message, notes_of(table)))


class _Seen(Struct, frozen=True, eq=False):
    start_ms: Numbers  # of each part
    seconds: Numbers
    total: Numbers  # records
    is_exact: bool
    busiest: Numbers  # records of the partition that has most
    partition: int
    partitions: int
    spread_seconds: float  # the time that most records were spread over

    @classmethod
    def of(cls, table: pa.Table) -> _Seen:
        start, where = np.unique(int64(table, "start"), return_inverse=True)
        partition, whose = np.unique(int64(table, "partition"), return_inverse=True)

        def summed(name: str) -> Numbers:
            found = np.zeros((len(partition), len(start)))
            np.add.at(found, (whose, where), np.nan_to_num(float64(table, name)))
            return found

        records = summed("records")
        seconds = np.zeros(len(start))
        np.maximum.at(seconds, where, float64(table, "seconds"))
        most = int(records.sum(axis=1).argmax()) if len(partition) else 0
        spread, weights = float64(table, "spread_seconds"), float64(table, "records")
        known = np.flatnonzero(~np.isnan(spread))
        order = known[np.argsort(spread[known], kind="stable")]
        share = np.cumsum(weights[order])
        typical = 0.0
        if len(order):
            typical = float(spread[order[np.searchsorted(share, share[-1] * 0.9)]])
        return cls(
            start // 1000,
            seconds,
            records.sum(axis=0),
            pc.all(table["exact"]).as_py() is not False,
            records[most] if len(partition) else records.sum(axis=0),
            int(partition[most]) if len(partition) else 0,
            len(partition),
            typical,
        )

    @property
    def unit(self) -> words.RateUnit:
        """The one that the average reads well in."""
        return words.rate_unit(self.total.sum() / self.seconds.sum())

    def message(self) -> str:
        records = self.total.sum()
        if not records:
            return "no records with a timestamp, so no rate"
        end_ms = self.start_ms[-1] + self.seconds[-1] * 1000
        text = (
            f"{self.unit.text(records / self.seconds.sum())} on average, "
            f"{words.period(self.start_ms[0], end_ms)}"
        )
        if self.is_exact and len(self.total) > 1:
            peak = int((self.total / self.seconds).argmax())
            step_ms, since_ms = self.seconds[peak] * 1000, self.start_ms[peak] // 1000 * 1000
            text += (
                f"; busiest are the {words.duration(step_ms)} from {words.moment(since_ms)}, with "
                f"{self.unit.text(self.total[peak] / self.seconds[peak])}"
            )
        if self.partitions > 1:
            share = words.percent(self.busiest.sum(), records)
            text += f"; partition {self.partition} takes {share}"
        return text

    def note(self) -> str:
        """How far the times are known."""
        said = f"By the records' timestamps, in steps of {words.duration(self.seconds[0] * 1000)}. "
        if self.is_exact:
            return said + "Each record is counted in its step."
        return (
            f"{said}For nine in ten records the time is known to "
            f"{words.duration(max(1, self.spread_seconds * 1000))}; within it they are spread "
            "evenly."
        )


def _draw(
    seen: _Seen, message: str, notes: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not seen.total.sum():
        return [], says(message, notes)
    look = layout(
        message,
        [seen.note(), *notes],
        plot_height=300,
        axis="timestamps of the records (UTC)",
        legend=seen.partitions > 1,
    )
    look["hovermode"] = "x unified"
    look["xaxis"] |= {"type": "date"}
    look["yaxis"] |= {"title": {"text": f"records per {seen.unit.name}"}, "rangemode": "tozero"}
    traces = [_steps(seen, seen.total, "all partitions", COLD, "tozeroy")]
    if seen.partitions > 1:
        name = f"partition {seen.partition}, the busiest"
        traces.append(_steps(seen, seen.busiest, name, HOT, "none"))
    return traces, look


def _steps(seen: _Seen, records: Numbers, name: str, colour: str, fill: str) -> dict[str, Any]:
    rates = (records / seen.seconds * seen.unit.seconds).tolist()
    start = seen.start_ms.tolist()
    # The last part has a width too: a step ends where the next would begin.
    end = start[-1] + round(seen.seconds[-1] * 1000)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [*start, end],
        "y": [float(f"{rate:.6g}") for rate in (*rates, rates[-1])],
        "line": {"color": colour, "width": 2, "shape": "hv"},
        "fill": fill,
        "fillcolor": "rgba(1,115,178,0.25)",
        "hovertemplate": f"{name}: %{{y:,.4~g}} records/{seen.unit.short}<extra></extra>",
    }
