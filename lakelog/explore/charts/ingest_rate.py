"""How many records come in over time, by their own timestamps, without reading any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...cold.segment import UNKNOWN_TIMESTAMP_MS
from ...cold.table import ColdSnapshot
from ...errors import InvalidArgumentError
from ...offsets import HotOffsets, LogOffsets, timestamp_ms
from ...operate.segments import inspection_of
from ...read.tiers import Look
from ...read.topic_log import TopicLog
from ...record import TopicPartition
from . import words
from .drawing import drawn
from .facts import about, checked, described, float64, int64, notes_of
from .segment_map import covered
from .style import COLD, HOT, layout, says
from .times import inner_window

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
    ]
)

DEFAULT_BINS = 120
#: The share of records, at either end of the time, that may lie outside the default window.
_TAIL = 0.001


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Groups of records, each with its number, first timestamp and largest timestamp."""

    records: np.ndarray[Any, Any]
    start_ms: np.ndarray[Any, Any]
    end_ms: np.ndarray[Any, Any]  # exclusive

    @classmethod
    def of(cls, records: Any, first_ms: Any, max_ms: Any) -> Stretches:
        """The groups that have timestamps; -1 is none."""
        records, last = np.asarray(records, float), np.asarray(max_ms, np.int64)
        first = np.asarray(first_ms, np.int64)
        first = np.where(first < 0, last, np.minimum(first, last))
        known = (last >= 0) & (last < UNKNOWN_TIMESTAMP_MS) & (records > 0)
        return cls(records[known], first[known], last[known] + 1)

    def __add__(self, other: Stretches) -> Stretches:
        return Stretches(
            np.concatenate([self.records, other.records]),
            np.concatenate([self.start_ms, other.start_ms]),
            np.concatenate([self.end_ms, other.end_ms]),
        )

    def spread(
        self, edges_ms: Sequence[float]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The records between neighbouring edges, with each stretch spread evenly over its time;
        and the time they are spread over, on average, in ms.
        """
        wide = self.end_ms - self.start_ms
        up_to, weighted = [], []
        for edge in edges_ms:
            before = self.records * np.clip((edge - self.start_ms) / wide, 0, 1)
            up_to.append(before.sum())
            weighted.append((before * wide).sum())
        records = np.diff(up_to)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(records > 0, np.diff(weighted) / records, np.nan)
        return records, over


def ingest_rates(
    log: TopicLog,
    partitions: Iterable[int] | None = None,
    *,
    start: int | str | datetime | None = None,
    end: int | str | datetime | None = None,
    bins: int = DEFAULT_BINS,
) -> pa.Table:
    """How many records came in when, by their timestamps.

    The cold tier's segment index and, for records not yet archived, Redis's segments and time index
    say how many offsets lie between two known timestamps. They are spread evenly in between, so a
    rate is as fine as ``spread_seconds`` says. Records that compaction has removed count; deleted
    records do not, nor do offsets that were skipped after an unclean stop.

    Args:
        partitions: numbers; None for all.
        start, end: the time to look at, [start, end): epoch milliseconds, an aware datetime, or
            ISO text with a zone. Default: all there is, except a few records (0.1 %) with
            timestamps far from the others', which a note of the chart counts.
        bins: the largest number of equal parts that the time is cut into.

    Returns:
        Rows of `RATES` by partition and time, a row for each partition and part. ``records`` is an
        estimate unless a part is wider than the spread. ``spread_seconds`` is the time that they
        were spread over, on average; null without records.

    Raises:
        InvalidArgumentError: a time without a zone, an end before the start, no bins.
        LakelogError: a tier cannot be read.
    """
    if bins < 1:
        raise InvalidArgumentError(f"bins={bins} is no number of parts ≥ 1")
    asked = list(range(log.topic.partitions) if partitions is None else partitions)
    look = log.tiers().look(asked)
    cold = {n: _cold_stretches(look, n) for n in asked}
    hot = {n: _hot_stretches(look.offsets[n], look.hot[n], look.cold, n) for n in asked}
    every = sum(
        (cold[n] + Stretches.of(*_columns(hot[n], 2, 3, 4)) for n in asked),
        Stretches.of([], [], []),
    )
    window, notes = _window(every, start, end)
    empty = described(RATES.empty_table(), topic=log.topic.name, partitions=asked, notes=notes)
    if window is None:
        return empty
    # Whole milliseconds: an edge within one would split records that have the same timestamp.
    many = max(1, min(bins, int((window[1] - window[0]) // 1_000)))
    edges = np.unique(np.linspace(*window, many + 1).round().astype(np.int64))
    tables = []
    for partition in asked:
        fine = [
            part
            for rows in hot[partition]
            for part in _refined(rows, edges, log, log.topic.partition(partition))
        ]
        stretches = cold[partition] + Stretches.of(*_columns(fine, 2, 3, 4))
        tables.append(_rows(partition, stretches, edges))
    table = pa.concat_tables(tables) if tables else RATES.empty_table()
    return described(table, topic=log.topic.name, partitions=asked, notes=notes)


def _rows(partition: int, stretches: Stretches, edges: np.ndarray[Any, Any]) -> pa.Table:
    records, over = stretches.spread(edges.tolist())
    # A burst within a millisecond is not a rate of a million a second.
    seconds = np.maximum(1.0, np.diff(edges) / 1000)
    return pa.table(
        [
            pa.array([partition] * len(records), pa.int32()),
            pa.array(edges[:-1] * 1000, pa.int64()).cast(RATES.field("start").type),
            pa.array(seconds),
            pa.array(records),
            pa.array(records / seconds),
            pa.array(over / 1000, mask=np.isnan(over)),
        ],
        schema=RATES,
    )


def _cold_stretches(look: Look, partition: int) -> Stretches:
    """The offsets above the log start that files were made of, with the times of their records.

    A file that compaction emptied has no times: its records came between its neighbours'.
    """
    hot = look.hot[partition]
    files = look.cold.files.rows_of_partition(partition)
    first_ms = int64(files, "min_timestamp_ms").copy()
    max_ms = int64(files, "max_timestamp_ms").copy()
    known = (max_ms >= 0) & (max_ms < UNKNOWN_TIMESTAMP_MS)
    timed = np.flatnonzero(known)
    end = int64(files, "end_offset")
    for row in np.flatnonzero(int64(files, "records") == 0).tolist():
        at = int(np.searchsorted(timed, row))
        times = [int(max_ms[timed[at - 1]])] if at else []
        if at < len(timed):
            times.append(int(first_ms[timed[at]]))
        else:
            later = (one for one in hot.segments if one.end_offset > end[row])
            times += [one.first_timestamp_ms for one in later if one.first_timestamp_ms >= 0][:1]
        if times:
            first_ms[row], max_ms[row] = max(0, min(times)), max(times)
    appended = covered(files, hot.gaps, look.offsets[partition].log_start)
    return Stretches.of(appended, first_ms, max_ms)


#: start offset, end offset, how many, first and largest timestamp in ms
_Hot = tuple[int, int, int, int, int]


def _hot_stretches(
    offsets: LogOffsets, hot: HotOffsets, cold: ColdSnapshot, partition: int
) -> list[_Hot]:
    """The parts of the hot segments that are not archived."""
    first = max(offsets.archived_end, offsets.local_log_start)
    files = cold.files.rows_of_partition(partition)
    newest = files["max_timestamp_ms"][-1].as_py() if files.num_rows else -1
    found = []
    for one in hot.segments:
        start = max(first, one.base_offset)
        if start >= one.end_offset:
            continue
        since = one.first_timestamp_ms
        if start > one.base_offset and since <= newest <= one.max_timestamp_ms:
            since = newest  # the part before is archived, and this is where it ended
        found.append((start, one.end_offset, one.end_offset - start, since, one.max_timestamp_ms))
    return found


def _refined(
    rows: _Hot, edges: np.ndarray[Any, Any], log: TopicLog, topic_partition: TopicPartition
) -> list[_Hot]:
    """A hot stretch, cut where the time index knows the time, near the edges that lie in it."""
    start, end, _, first_ms, max_ms = rows
    inside = edges[(edges > max(0, first_ms)) & (edges <= max_ms)].tolist()
    found: list[_Hot] = []
    at, since = start, first_ms
    indexed = inspection_of(log).indexed_around(topic_partition, inside) if inside else ()
    for last, time_ms in indexed:
        # The index has the last offset of an entry: all up to it came by then.
        upper, until = min(end, last + 1), min(max(since, time_ms), max_ms)
        if upper > at:
            found.append((at, upper, upper - at, since, until))
            at = upper
        since = until
    if at < end:
        found.append((at, end, end - at, since, max_ms))
    return found


def _columns(rows: Sequence[_Hot], *places: int) -> list[list[int]]:
    return [[row[place] for row in rows] for place in places]


def _window(
    every: Stretches, start: int | str | datetime | None, end: int | str | datetime | None
) -> tuple[tuple[int, int] | None, list[str]]:
    """[start, end) in ms, or None if nothing has a timestamp; and notes on what lies outside."""
    low = None if start is None else timestamp_ms(start)
    high = None if end is None else timestamp_ms(end)
    if low is not None and high is not None and high <= low:
        raise InvalidArgumentError(f"the time from {start} to {end} ends before it begins")
    if not len(every.records):
        return None, []
    if low is None and high is None:
        inner = inner_window(every.start_ms, every.end_ms, every.records, _TAIL)
        if inner is not None:
            before, after = every.start_ms.min(), every.end_ms.max()
            counted, _ = every.spread([before, *inner, after])
            return (int(inner[0]), int(inner[1])), [
                f"Not shown: {words.count(counted[0] + counted[2], 'record')} outside this time, "
                f"in {words.period(before, after)}. Ask for them with start= and end=."
            ]
    low = int(every.start_ms.min()) if low is None else low
    high = int(every.end_ms.max()) if high is None else high
    return (low, max(high, low + 1)), []


def ingest_rate(table: pa.Table) -> Figure:
    """Draws how many records came in per second, in all partitions together and in the busiest.

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


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    start_ms: np.ndarray[Any, Any]  # of each part
    seconds: np.ndarray[Any, Any]
    total: np.ndarray[Any, Any]  # records
    busiest: np.ndarray[Any, Any]  # records of the partition that has most
    partition: int
    partitions: int
    spread_seconds: float  # the time that most records were spread over

    @classmethod
    def of(cls, table: pa.Table) -> _Seen:
        start, where = np.unique(int64(table, "start"), return_inverse=True)
        partition, whose = np.unique(int64(table, "partition"), return_inverse=True)
        records = np.zeros((len(partition), len(start)))
        np.add.at(records, (whose, where), np.nan_to_num(float64(table, "records")))
        seconds = np.zeros(len(start))
        np.maximum.at(seconds, where, float64(table, "seconds"))
        most = int(records.sum(axis=1).argmax()) if len(partition) else 0
        spread, counted = float64(table, "spread_seconds"), float64(table, "records")
        known = np.flatnonzero(~np.isnan(spread))
        order = known[np.argsort(spread[known], kind="stable")]
        share = np.cumsum(counted[order])
        typical = 0.0
        if len(order):
            typical = float(spread[order[np.searchsorted(share, share[-1] * 0.9)]])
        return cls(
            start // 1000,
            seconds,
            records.sum(axis=0),
            records[most] if len(partition) else records.sum(axis=0),
            int(partition[most]) if len(partition) else 0,
            len(partition),
            typical,
        )

    def message(self) -> str:
        records = self.total.sum()
        if not records:
            return "no records with a timestamp, so no rate"
        peak = int((self.total / self.seconds).argmax())
        end_ms = self.start_ms[-1] + self.seconds[-1] * 1000
        text = (
            f"{words.rate(records / self.seconds.sum())} on average, "
            f"{words.period(self.start_ms[0], end_ms)}"
        )
        if len(self.total) > 1:
            most, second = self.total[peak] / self.seconds[peak], self.start_ms[peak] // 1000
            text += f"; at most {words.rate(most)}, at {words.moment(second * 1000)}"
        if self.partitions > 1:
            share = words.percent(self.busiest.sum(), records)
            text += f"; partition {self.partition} takes {share}"
        return text


def _draw(
    seen: _Seen, message: str, notes: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not seen.total.sum():
        return [], says(message, notes)
    said = [
        f"By the records' timestamps, in steps of {words.duration(seen.seconds[0] * 1000)}. For "
        "nine in ten records the time is known to "
        f"{words.duration(max(1, seen.spread_seconds * 1000))}; within it they are spread evenly.",
        *notes,
    ]
    look = layout(
        message,
        said,
        plot_height=300,
        axis="timestamps of the records (UTC)",
        legend=seen.partitions > 1,
    )
    look["hovermode"] = "x unified"
    look["xaxis"] |= {"type": "date"}
    look["yaxis"] |= {"title": {"text": "records per second"}, "rangemode": "tozero"}
    traces = [_steps(seen, seen.total, "all partitions", COLD, "tozeroy")]
    if seen.partitions > 1:
        name = f"partition {seen.partition}, the busiest"
        traces.append(_steps(seen, seen.busiest, name, HOT, "none"))
    return traces, look


def _steps(
    seen: _Seen, records: np.ndarray[Any, Any], name: str, colour: str, fill: str
) -> dict[str, Any]:
    rates = (records / seen.seconds).tolist()
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
        "hovertemplate": f"{name}: %{{y:,.4~g}} records/s<extra></extra>",
    }
