"""The partition map: which offsets of each partition lie where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...read.topic_log import TopicLog
from ...values.offsets import LogOffsets
from .. import words
from .look import (
    BOTH_STRIPES,
    COLD,
    GONE,
    HOT,
    MISSING,
    MOST_LANES,
    SKIPPED_COLOUR,
    Numbers,
    lanes,
    says,
)
from .shown import about, checked, described, drawn, notes_of, partitions_asked, partitions_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Where offsets lie, in the order of the legend.
DELETED, COLD_ONLY, BOTH, HOT_ONLY, SKIPPED, NOWHERE = KINDS = (
    "deleted",
    "cold",
    "both",
    "hot",
    "skipped",
    "missing",
)

RANGES = pa.schema(
    [
        ("partition", pa.int32()),
        ("kind", pa.string()),
        ("start_offset", pa.int64()),
        ("end_offset", pa.int64()),
    ]
)

_MEANING = {
    DELETED: "deleted (below the log start)",
    COLD_ONLY: "cold (Delta)",
    BOTH: "in both tiers",
    HOT_ONLY: "hot alone (Redis, not archived)",
    SKIPPED: "skipped after an unclean stop",
    NOWHERE: "missing: in neither tier",
}
_LOOK: dict[str, dict[str, Any]] = {
    DELETED: {"color": GONE},
    COLD_ONLY: {"color": COLD},
    BOTH: {"color": COLD, "pattern": BOTH_STRIPES},
    HOT_ONLY: {"color": HOT},
    SKIPPED: {
        "color": SKIPPED_COLOUR,
        "pattern": {"shape": "x", "fgcolor": SKIPPED_COLOUR, "size": 7, "solidity": 0.4},
    },
    NOWHERE: {
        "color": MISSING,
        "pattern": {"shape": "\\", "fgcolor": MISSING, "size": 6, "solidity": 0.5},
    },
}

_NO_RECORDS = (DELETED, SKIPPED, NOWHERE)

#: Shares of a row in the fitted view: the least that a range gets, the most that ranges without
#: records get together.
_LEAST, _GONE_MOST = 0.012, 0.16


_RANGE = ("kind", "start_offset", "end_offset")


class PlacedRange(Struct, frozen=True):
    """Offsets that lie in the same place."""

    kind: str  # of `KINDS`
    start_offset: int
    end_offset: int  # exclusive


def partition_ranges(log: TopicLog, partitions: Iterable[int] | None = None) -> pa.Table:
    """Which offsets of each partition are deleted, cold, hot, in both tiers, or skipped.

    One look at both tiers; reads no records.

    Args:
        partitions: numbers; None for all.

    Returns:
        Rows of `RANGES` by partition and offset, half-open and without a hole from 0 to the log
        end: ``deleted`` (below the log start), ``cold``, ``both``, ``hot`` (in Redis alone, not
        archived yet), ``skipped`` (after an unclean stop of Redis), ``missing`` (in neither tier;
        `verify` says why). One more column, ``waiting_ms`` (int64), says for a partition's hot
        offsets how long the oldest has waited to be archived; null if none waits.
        A partition without offsets has no row.

    Raises:
        InvalidArgumentError: `log` is not the log of a topic.
        LakelogError: a tier cannot be read.
    """
    asked = partitions_asked("partition_ranges", log, partitions)
    now_ms = log.hot.now_ms()
    look = log.tiers().look(asked)
    rows: list[tuple[int, str, int, int, int | None]] = []
    for partition in asked:
        offsets, since = look.offsets[partition], look.hot[partition].unarchived_since_ms
        waiting = None
        if log.topic.config.tiered and offsets.unarchived and since is not None:
            waiting = max(0, now_ms - since)
        rows += [
            (
                partition,
                one.kind,
                one.start_offset,
                one.end_offset,
                waiting if one.kind == HOT_ONLY else None,
            )
            for one in placed(offsets)
        ]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    schema = RANGES.append(pa.field("waiting_ms", pa.int64()))
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    unsure = [partition for partition in asked if not look.offsets[partition].recovered]
    notes = []
    if unsure:
        notes.append(
            f"Redis came back without the end of {words.names(unsure)}: what was appended last "
            "is known after the next append or archive run."
        )
    return described(table, topic=log.topic.name, partitions=asked, notes=notes)


def placed(offsets: LogOffsets) -> list[PlacedRange]:
    """Where the offsets from 0 to the log end lie, in order; neighbours differ in kind."""
    bounds = {0, offsets.log_start, offsets.local_log_start, offsets.archived_end, offsets.log_end}
    bounds |= {edge for gap in offsets.gaps for edge in gap}
    edges = sorted(edge for edge in bounds if 0 <= edge <= offsets.log_end)
    found: list[PlacedRange] = []
    for start, end in pairwise(edges):
        kind = _kind_at(offsets, start)
        if found and found[-1].kind == kind:
            found[-1] = PlacedRange(kind, found[-1].start_offset, end)
        else:
            found.append(PlacedRange(kind, start, end))
    return found


def _kind_at(offsets: LogOffsets, offset: int) -> str:
    if offset < offsets.log_start:
        return DELETED
    if any(gap.start <= offset < gap.end for gap in offsets.gaps):
        return SKIPPED
    cold, hot = offset < offsets.archived_end, offset >= offsets.local_log_start
    return {
        (True, True): BOTH,
        (True, False): COLD_ONLY,
        (False, True): HOT_ONLY,
        (False, False): NOWHERE,
    }[cold, hot]


def partition_map(table: pa.Table) -> Figure:
    """Draws where the offsets of each partition lie, one row for each partition.

    Each row is fitted to the width: short ranges are widened so that none disappears, and ranges
    without records are shortened. Exact numbers appear on hover. Of more than 300 partitions only
    those are drawn where most waits or something was skipped, with a note.

    Args:
        table: as `partition_ranges` gives it.

    Returns:
        A plotly Figure with a trace for each kind there is, whose customdata are partition, start
        offset, end offset and number of offsets; a `PlainTable` where plotly is not installed.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    table = checked(table, RANGES, "partition_ranges")
    seen = _Seen.of(table)
    message = about(table, seen.message())
    return drawn(table, message, lambda: _draw(seen, message, notes_of(table)))


# -- what it says ------------------------------------------------------------------------------


class _Seen(Struct, frozen=True, eq=False):
    """The rows of the table, and what is in it by kind and partition."""

    partitions: list[int]
    ranges: Mapping[int, list[PlacedRange]]  # by partition, those that have some; in order
    held: Mapping[str, dict[int, int]]  # kind → partition → offsets, where there are some
    waiting: Mapping[int, int]  # partition → ms

    @classmethod
    def of(cls, table: pa.Table) -> _Seen:
        ranges: dict[int, list[PlacedRange]] = {}
        held: dict[str, dict[int, int]] = {kind: {} for kind in KINDS}
        waiting: dict[int, int] = {}
        order = [("partition", "ascending"), ("start_offset", "ascending")]
        for row in table.sort_by(order).to_pylist():
            partition, one = row["partition"], PlacedRange(*(row[name] for name in _RANGE))
            if one.kind in held and one.start_offset < one.end_offset:
                ranges.setdefault(partition, []).append(one)
                offsets = held[one.kind].get(partition, 0) + one.end_offset - one.start_offset
                held[one.kind][partition] = offsets
                waiting[partition] = max(row.get("waiting_ms") or 0, waiting.get(partition, 0))
        return cls(partitions_of(table), ranges, held, waiting)

    def offsets(self, kind: str) -> int:
        return sum(self.held[kind].values())

    def message(self) -> str:
        many = len(self.partitions)
        if not many:
            return "no partition was asked for"
        if not self.ranges:
            return f"{words.count(many, 'partition')}, nothing was appended yet"
        parts = [self._archived(many)]
        for kind, word in ((SKIPPED, "skipped"), (NOWHERE, "misses")):
            at = self.held[kind]
            if at:
                verb = word if word == "skipped" or len(at) == 1 else "miss"
                parts.append(f"{words.names(list(at))} {verb} offsets")
        return "; ".join(parts)

    def _archived(self, many: int) -> str:
        alone = self.held[HOT_ONLY]
        held, waits = self.offsets(COLD_ONLY) + self.offsets(BOTH), sum(alone.values())
        if not alone and not held:
            return f"all that {words.count(many, 'partition')} held is deleted"
        of = "" if many == 1 else f" of {many:,} partitions"
        text = f"{words.percent(held, held + waits)}{of} is archived"
        if not alone:
            return f"{text}, {words.count(held, 'offset')}"
        text += f"; {words.count(waits, 'offset')} in Redis alone"
        oldest = max(self.waiting.get(partition, 0) for partition in alone)
        if oldest:
            text += f", the oldest for {words.duration(oldest)}"
        if many > 1:
            worst = max(alone, key=lambda partition: alone[partition])
            text += f", most in partition {worst} ({words.count(alone[worst])})"
        return text

    def notes(self) -> Iterator[str]:
        held = [f"{kind} {words.count(self.offsets(kind))}" for kind in KINDS if self.offsets(kind)]
        if held:
            yield f"Offsets: {', '.join(held)}."
        if self.offsets(SKIPPED):
            yield (
                "Skipped offsets are numbers, not records: some may have been given out before the "
                "stop, so none is used again."
            )

    def chosen(self, most: int) -> list[int]:
        """The partitions to draw, ascending: where there are too many, those with most to see."""
        if len(self.partitions) <= most:
            return self.partitions
        gone, alone = self.held[NOWHERE], self.held[HOT_ONLY]
        skipped = self.held[SKIPPED]
        worst = sorted(
            self.partitions,
            key=lambda n: (-gone.get(n, 0), -(n in skipped), -alone.get(n, 0), n),
        )
        return sorted(worst[:most])


# -- how it looks ------------------------------------------------------------------------------


def _draw(
    seen: _Seen, message: str, notes: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    said = [*seen.notes(), *notes]
    if not seen.ranges:
        return [], says(message, said)
    chosen = seen.chosen(MOST_LANES)
    if len(chosen) < len(seen.partitions):
        said.append(
            f"The chart shows {len(chosen)} of {len(seen.partitions):,} partitions: those that "
            "skipped or miss something, or have most in Redis alone. The table has all."
        )
    said.append("A row widens short ranges and shortens those that hold no records.")
    thickness = 0.72 if len(chosen) <= 40 else 0.88 if len(chosen) <= 100 else 1
    bars: dict[str, list[tuple[int, float, float, list[int]]]] = {}
    ends = []
    for lane, partition in enumerate(chosen):
        found = seen.ranges.get(partition, [])
        ends.append(found[-1].end_offset if found else 0)
        lengths = np.array([one.end_offset - one.start_offset for one in found], float)
        widths = fitted_widths(lengths, np.array([one.kind in _NO_RECORDS for one in found], bool))
        for one, width, stop in zip(found, widths.tolist(), np.cumsum(widths), strict=True):
            start, end = one.start_offset, one.end_offset
            custom = [partition, start, end, end - start]
            bar = (lane, round(width, 5), round(float(stop) - width, 5), custom)
            bars.setdefault(one.kind, []).append(bar)
    traces = []
    for kind in (kind for kind in KINDS if kind in bars):
        y, x, base, custom_data = zip(*bars[kind], strict=True)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "width": thickness,  # else plotly goes by the distance between this kind's lanes
                "name": _MEANING[kind],
                "y": list(y),
                "x": list(x),
                "base": list(base),
                "marker": {**_LOOK[kind], "line": {"width": 0}},
                "customdata": list(custom_data),
                "hovertemplate": (
                    "partition %{customdata[0]}<br>"
                    f"<b>{kind}</b> [%{{customdata[1]:,}}, %{{customdata[2]:,}})<br>"
                    "%{customdata[3]:,} offsets<extra></extra>"
                ),
            }
        )
    texts = [words.count(end) for end in ends]
    axis = "offsets, each row from 0 to its log end"
    look = lanes(message, said, chosen, texts, "log end", axis)
    look["barmode"] = "overlay"
    hidden = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False}
    look["xaxis"] |= {**hidden, "range": [0, 1]}
    return traces, look


def fitted_widths(lengths: Numbers, gone: Numbers) -> Numbers:
    """Shares of a row for ranges of these lengths: they sum to 1, and none is too small to see.

    Args:
        lengths: offsets of each, above 0.
        gone: whether a range holds no records: all such together get at most 16 %.
    """
    if not len(lengths):
        return np.zeros(0)
    weights = np.asarray(lengths, dtype=float)
    live, dead = weights[~gone].sum(), weights[gone].sum()
    if live and dead > live * _GONE_MOST / (1 - _GONE_MOST):
        weights = np.where(gone, weights / dead * live * _GONE_MOST / (1 - _GONE_MOST), weights)
    least = min(_LEAST, 0.5 / len(weights))
    shares = weights / weights.sum()
    small = shares < least
    while True:  # widening some makes others small; each round finds at least one more, or ends
        room = 1 - least * small.sum()
        scaled = np.where(small, least, shares * room / max(shares[~small].sum(), 1e-300))
        again = small | (scaled < least)
        if (again == small).all():
            return scaled
        small = again
