"""The segment map: segments by time and offset, their sizes, and what compaction left of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...cold.segment import UNKNOWN_TIMESTAMP_MS
from ...cold.table import ColdSnapshot
from ...operate.check.finding import COLD, HOT
from ...operate.segments import BELOW_LOG_START, CLEANED, CLOSED, DIRTY, OPEN
from ...read.topic_log import TopicLog
from ...values.offsets import HotSegments, LogOffsets
from ...values.topic_partition import OffsetRange
from . import words
from .drawing import drawn
from .facts import NULL, about, checked, described, float64, int64, notes_of, partitions_of
from .lanes import MOST_LANES, lane_axis, plot_height
from .offset_scale import OffsetScale
from .style import AXIS, GONE, layout, says
from .style import COLD as COLD_COLOUR
from .style import HOT as HOT_COLOUR
from .times import inner_window

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_TIME = pa.timestamp("us", tz="UTC")

SEGMENTS = pa.schema(
    [
        ("partition", pa.int32()),
        ("tier", pa.string()),
        ("base_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("records", pa.int64()),
        ("size_bytes", pa.int64()),
        ("first_timestamp", _TIME),
        ("max_timestamp", _TIME),
        ("compacted", pa.float64()),
        ("state", pa.string()),
    ]
)

#: With more boxes than these, neighbours are drawn as one.
_MOST_BOXES, _MOST_BARS = 300, 3_000
#: Partitions that have room for an offset axis each.
_MOST_PANELS = 6
#: Px of the plot's width, about: who looks may make it wider, never much narrower.
_WIDTH = 800
_PANEL, _ONE_PANEL = 150, 400  # px of a panel's height
_SMALLEST_DOT, _DOT = 3, 13  # px: its least diameter, and what the largest has more
_NARROWEST = 0.002  # of the time: the narrowest box that can be seen
_TAIL = 0.05  # the share of segments at either end of the time that may lie outside
_COMPACTED = 0.0005  # a share below this cannot be seen


def segment_rows(log: TopicLog, partitions: Iterable[int] | None = None) -> pa.Table:
    """The segments of each partition in either tier; one look, no records and no files are read.

    Args:
        partitions: numbers; None for all.

    Returns:
        Rows of `SEGMENTS` by partition, tier (cold first) and offset. [base_offset, end_offset) is
        the segment's range, ``records`` counts what it holds (hot: without trimmed records), and
        ``size_bytes`` is the size of its files (hot: of its entries, without what was trimmed).
        ``first_timestamp`` is the smallest (hot: that of its first entry); it and ``max_timestamp``
        are null if the records have none or it is not known. ``compacted`` is the share of its
        offsets, without skipped ones, that no longer hold a record (cold; null if unknown).
        ``state`` is as in `operate.segments`. One more column, ``start_offset``, is the first
        offset that can be read.

    Raises:
        LakelogError: a tier cannot be read.
    """
    asked = list(range(log.topic.partitions) if partitions is None else partitions)
    look = log.tiers().look_at_segments(asked)
    parts = []
    for partition in asked:
        offsets, hot = look.offsets[partition], look.hot[partition]
        parts.append(
            _cold_rows(look.cold, partition, offsets, hot.gaps, log.topic.config.compacted)
        )
        parts.append(_hot_rows(partition, offsets, hot))
    schema = SEGMENTS.append(pa.field("start_offset", pa.int64()))
    table = pa.concat_tables(parts) if parts else schema.empty_table()
    return described(table, topic=log.topic.name, partitions=asked)


def _cold_rows(
    cold: ColdSnapshot,
    partition: int,
    offsets: LogOffsets,
    gaps: Sequence[OffsetRange],
    compacted: bool,
) -> pa.Table:
    files = cold.files.rows_of_partition(partition)
    files = files.append_column("covered", pa.array(covered(files, gaps)))
    unknown = pc.less(files["records"], 0)
    files = files.append_column("blind", pc.cast(unknown, pa.int64()))
    found = files.group_by("segment").aggregate(
        [
            ("end_offset", "max"),
            ("records", "sum"),
            ("size_bytes", "sum"),
            ("min_timestamp_ms", "min"),
            ("max_timestamp_ms", "max"),
            ("covered", "sum"),
            ("blind", "sum"),
        ]
    )
    found = found.sort_by("segment")
    base, end = int64(found, "segment"), int64(found, "end_offset_max")
    state = np.where(
        end <= cold.cleaned_end(partition), CLEANED, DIRTY if compacted else CLOSED
    ).astype(object)
    state[-1:] = OPEN
    state[end <= cold.log_start(partition)] = BELOW_LOG_START
    known = int64(found, "blind_sum") == 0
    records = int64(found, "records_sum")
    whole = np.maximum(1, int64(found, "covered_sum"))
    return _rows(
        partition,
        COLD,
        base,
        end,
        pa.array(records, mask=~known),
        int64(found, "size_bytes_sum"),
        int64(found, "min_timestamp_ms_min"),
        int64(found, "max_timestamp_ms_max"),
        pa.array(np.clip(1 - records / whole, 0, 1), mask=~known),
        state.tolist(),
        np.maximum(base, offsets.log_start),
    )


def covered(
    files: pa.Table, gaps: Sequence[OffsetRange], log_start: int = 0
) -> np.ndarray[Any, Any]:
    """How many offsets each file was made of: its records, and those that compaction removed.

    Offsets that were skipped after an unclean stop are in no file, though they may lie in a file's
    range: before its segment's base, or within it if compaction merged the segments on both sides.

    Args:
        gaps: as the hot tier declares them.
        log_start: records below it were deleted, and are not counted.
    """
    segment, start = int64(files, "segment"), int64(files, "start_offset")
    end = int64(files, "end_offset")
    first = np.maximum(segment, start)
    kept = np.maximum(first, log_start)
    found: np.ndarray[Any, Any] = np.maximum(0, end - kept)
    for gap in gaps:
        within = (first < gap.start) & (gap.end <= end)
        found = np.where(
            within, found - np.maximum(0, gap.end - np.maximum(gap.start, kept)), found
        )
    return found


def _hot_rows(partition: int, offsets: LogOffsets, hot: HotSegments) -> pa.Table:
    newest = hot.segments[-1].base_offset if hot.segments else 0
    start = hot.local_log_start
    # A closed segment that was trimmed whole while it was open is listed until the next trim.
    kept = [one for one in hot.segments if one.base_offset == newest or one.end_offset > start]
    base = np.array([one.base_offset for one in kept], np.int64)
    end = np.array([one.end_offset for one in kept], np.int64)
    return _rows(
        partition,
        HOT,
        base,
        end,
        pa.array(np.maximum(0, end - np.maximum(base, start))),
        np.array([one.bytes_from(start) for one in kept], np.int64),
        np.array([one.first_timestamp_ms for one in kept], np.int64),
        np.array([one.max_timestamp_ms for one in kept], np.int64),
        pa.array(np.zeros(len(kept))),
        [OPEN if one.base_offset == newest else CLOSED for one in kept],
        np.maximum(base, max(start, offsets.log_start)),
    )


def _rows(
    partition: int,
    tier: str,
    base: Any,
    end: Any,
    records: pa.Array,
    size_bytes: Any,
    first_ms: Any,
    max_ms: Any,
    compacted: pa.Array,
    state: list[str],
    start: Any,
) -> pa.Table:
    def times(milliseconds: Any) -> pa.Array:
        # Only unknown times are beyond what microseconds can hold.
        none = (milliseconds < 0) | (milliseconds >= UNKNOWN_TIMESTAMP_MS // 1_000)
        micro = np.where(none, 0, milliseconds) * 1_000
        return pa.array(micro, pa.int64(), mask=none).cast(_TIME)

    many = len(base)
    return pa.table(
        [
            pa.array([partition] * many, pa.int32()),
            pa.array([tier] * many, pa.string()),
            pa.array(base, pa.int64()),
            pa.array(end, pa.int64()),
            records.cast(pa.int64()),
            pa.array(size_bytes, pa.int64()),
            times(first_ms),
            times(max_ms),
            compacted.cast(pa.float64()),
            pa.array(state, pa.string()),
            pa.array(start, pa.int64()),
        ],
        schema=SEGMENTS.append(pa.field("start_offset", pa.int64())),
    )


# -- what is drawn -----------------------------------------------------------------------------

#: Where a segment lies, in the order of the legend.
_BELOW, _COLD, _BOTH, _HOT = range(4)
_NAMES = ("deleted, file not removed yet", "cold (Delta)", "in both tiers", "hot alone (Redis)")
_COLOURS = (GONE, COLD_COLOUR, COLD_COLOUR, HOT_COLOUR)
_LINES = ("#8a8a8a", COLD_COLOUR, HOT_COLOUR, HOT_COLOUR)
#: In both tiers: cold with hot stripes, as on the partition map.
_STRIPES = {
    "shape": "/",
    "bgcolor": COLD_COLOUR,
    "fgcolor": HOT_COLOUR,
    "size": 9,
    "solidity": 0.4,
}


class Boxes(Struct, frozen=True, eq=False):
    """The segments to draw, each once, or neighbours as one; columns of one length."""

    partition: np.ndarray[Any, Any]
    place: np.ndarray[Any, Any]  # number of `_NAMES`
    base: np.ndarray[Any, Any]
    start: np.ndarray[Any, Any]  # the first offset that can be read
    end: np.ndarray[Any, Any]
    records: np.ndarray[Any, Any]
    cold_bytes: np.ndarray[Any, Any]
    hot_bytes: np.ndarray[Any, Any]
    first_us: np.ndarray[Any, Any]  # `NULL`: not known
    max_us: np.ndarray[Any, Any]
    left: np.ndarray[Any, Any]  # share of the offsets that still hold a record
    segments: np.ndarray[Any, Any]  # how many it stands for

    def __len__(self) -> int:
        return len(self.base)

    def take(self, rows: Any) -> Boxes:
        return Boxes(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    @property
    def timed(self) -> np.ndarray[Any, Any]:
        """Which boxes have a place in time."""
        found: np.ndarray[Any, Any] = (self.first_us != NULL) & (self.max_us != NULL)
        return found

    @classmethod
    def of(cls, table: pa.Table) -> Boxes:
        """Each segment once: one that lies in both tiers is one box, up to where cold ends."""
        hot = np.asarray(pc.equal(table["tier"], HOT).to_numpy(), bool)
        below = np.asarray(pc.equal(table["state"], BELOW_LOG_START).to_numpy(), bool)
        partition, base = int64(table, "partition"), int64(table, "base_offset")
        order = np.lexsort((hot, base, partition))
        hot, below, partition, base = hot[order], below[order], partition[order], base[order]
        end, size = int64(table, "end_offset")[order], int64(table, "size_bytes")[order]
        records = int64(table, "records")[order]
        records = np.where(records == NULL, 0, records)
        first, last = (int64(table, f"{name}_timestamp")[order] for name in ("first", "max"))
        first = np.where(first == NULL, last, first)
        taken = float64(table, "compacted")[order]
        start = base
        if "start_offset" in table.column_names:
            start = int64(table, "start_offset")[order]
        twin = np.zeros(len(base), bool)  # a hot row right after the cold row of the same segment
        twin[1:] = hot[1:] & ~hot[:-1] & (base[1:] == base[:-1]) & (partition[1:] == partition[:-1])
        # Both tiers have a part of the segment, but only what Redis has not trimmed is in both.
        cold_twin = np.zeros(len(base), bool)
        cold_twin[:-1] = twin[1:] & (start[1:] < end[:-1])
        place = np.where(below, _BELOW, np.where(hot, _HOT, np.where(cold_twin, _BOTH, _COLD)))
        hot_size = np.where(hot, size, 0)
        hot_size[:-1] += np.where(cold_twin[:-1], size[1:], 0)
        # If a hot segment is partly archived, only the rest is drawn as hot.
        before = np.roll(end, 1)
        rest = np.where(twin, before, base)
        first = np.where(twin & (np.roll(last, 1) != NULL), np.roll(last, 1), first)
        first = np.minimum(first, last)
        # The open segment of an empty partition has no offsets yet, and is not drawn.
        kept = end > rest
        boxes = cls(
            partition,
            place,
            rest,
            np.maximum(start, rest),
            end,
            np.where(twin, np.maximum(0, end - rest), records),
            np.where(hot, 0, size),
            hot_size,
            first,
            last,
            np.where(np.isnan(taken), 1.0, 1 - taken),
            np.ones(len(base), np.int64),
        )
        return boxes.take(np.flatnonzero(kept))

    def merged(self, most: int) -> Boxes:
        """About `most` boxes at most: neighbours of a partition in the same place become one."""
        together = -(-len(self) // most)
        if together < 2:
            return self
        new = np.ones(len(self), bool)
        new[1:] = (self.partition[1:] != self.partition[:-1]) | (self.place[1:] != self.place[:-1])
        runs = np.flatnonzero(new)
        nth = np.arange(len(self)) - np.repeat(runs, np.diff([*runs, len(self)]))
        at = np.flatnonzero(nth % together == 0)
        last = np.append(at[1:], len(self)) - 1
        weight = np.maximum(0, self.end - self.base)
        whole = np.maximum(1, np.add.reduceat(weight, at))
        return Boxes(
            self.partition[at],
            self.place[at],
            self.base[at],
            self.start[at],
            self.end[last],
            np.add.reduceat(self.records, at),
            np.add.reduceat(self.cold_bytes, at),
            np.add.reduceat(self.hot_bytes, at),
            np.minimum.reduceat(self.first_us, at),
            np.maximum.reduceat(self.max_us, at),
            np.add.reduceat(self.left * weight, at) / whole,
            np.add.reduceat(self.segments, at),
        )


def segment_map(table: pa.Table) -> Figure:
    """Draws segments where they lie in time and offset.

    Up to 6 partitions have an offset axis each: a box is a segment, from its first to its largest
    timestamp and from its base offset to its end, filled as far as its offsets still hold records;
    the area of a dot, where it does not hide the box, is its size. More partitions get a row each,
    with the offsets on hover. If there are more segments than can be seen, a box stands for several
    neighbours, and a note says so.

    A plain Figure cannot call Python when it is clicked. For front ends that can, each dot's (or
    bar's) customdata begin with partition and base offset; `segment_choices` gives the same
    segments for a Dropdown.

    Args:
        table: as `segment_rows` gives it.

    Returns:
        A plotly Figure; a `PlainTable` where plotly is not installed.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    table = checked(table, SEGMENTS, "segment_rows")
    boxes = Boxes.of(table)
    message = about(table, _message(boxes, len(partitions_of(table))))
    return drawn(table, message, lambda: _draw(table, boxes, message))


def _message(boxes: Boxes, partitions: int) -> str:
    if not len(boxes):
        return f"no segments in {words.count(partitions, 'partition')}: nothing was appended yet"
    cold = np.isin(boxes.place, (_BELOW, _COLD, _BOTH))
    hot = np.isin(boxes.place, (_BOTH, _HOT))
    bases = {name: int(rows.sum()) for name, rows in (("cold", cold), ("hot", hot))}
    sizes = {"cold": boxes.cold_bytes.sum(), "hot": _hot_bytes(boxes)}
    parts = [
        f"{words.count(many, f'{name} segment')} ({words.size(sizes[name])})"
        for name, many in bases.items()
        if many
    ]
    timed = boxes.take(boxes.timed)
    when = ""
    if len(timed):
        when = f", {words.period(timed.first_us.min() / 1000, timed.max_us.max() / 1000)}"
    held = boxes.take(cold & (boxes.place != _BELOW))
    width = np.maximum(0, held.end - held.base)
    taken = (width * (1 - held.left)).sum()
    compacted = ""
    if len(held) and (1 - held.left).max() > _COMPACTED:
        compacted = f"; compaction left {words.percent(width.sum() - taken, width.sum())} of cold"
    return f"{' and '.join(parts)}{when}{compacted}"


def _hot_bytes(boxes: Boxes) -> int:
    """The bytes of each hot segment once, though a partly archived one is two boxes."""
    again = np.zeros(len(boxes), bool)
    again[1:] = (
        (boxes.place[1:] == _HOT)
        & (boxes.place[:-1] == _BOTH)
        & (boxes.partition[1:] == boxes.partition[:-1])
        & (boxes.hot_bytes[1:] == boxes.hot_bytes[:-1])
    )
    return int(boxes.hot_bytes[~again].sum())


# -- how it looks ------------------------------------------------------------------------------

_FIELDS = (
    "partition %{customdata[0]}<br><b>[%{customdata[1]:,}, %{customdata[2]:,})</b> %{customdata[3]}"
    "<br>%{customdata[4]:,} records, %{customdata[5]}<br>%{customdata[6]} –<br>%{customdata[7]} UTC"
    "%{customdata[8]}<extra></extra>"
)


def _customdata(boxes: Boxes) -> list[list[Any]]:
    """Partition and base offset come first: a click seeks to them."""
    rows = []
    for at in range(len(boxes)):
        place, many = int(boxes.place[at]), int(boxes.segments[at])
        sizes = [
            f"{words.size(int(size))} {tier}"
            for tier, size in ((COLD, boxes.cold_bytes[at]), (HOT, boxes.hot_bytes[at]))
            if size
        ]
        more = f"<br>{words.percent(float(boxes.left[at]), 1)} of its offsets hold a record"
        rows.append(
            [
                int(boxes.partition[at]),
                int(boxes.base[at]),
                int(boxes.end[at]),
                _NAMES[place].split(" (")[0] + (f", {many} segments" if many > 1 else ""),
                int(boxes.records[at]),
                " and ".join(sizes) or "no bytes",
                words.moment(int(boxes.first_us[at]) // 1000),
                words.moment(int(boxes.max_us[at]) // 1000),
                more if 1 - boxes.left[at] > _COMPACTED else "",
            ]
        )
    return rows


def _draw(
    table: pa.Table, boxes: Boxes, message: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    notes = notes_of(table)
    timed = boxes.take(np.flatnonzero(boxes.timed))
    if len(timed) < len(boxes):
        notes.append(
            f"{words.count(len(boxes) - len(timed), 'segment')} without timestamps "
            "cannot be placed in time: see the table."
        )
    if not len(timed):
        return [], says(message, notes)
    partitions = partitions_of(table)
    window = inner_window(timed.first_us, timed.max_us + 1_000, np.ones(len(timed)), _TAIL)
    if window is not None:
        outside = int(((timed.max_us > window[1]) | (timed.first_us < window[0])).sum())
        notes.append(
            f"{words.count(outside, 'segment')} reach{'es' if outside == 1 else ''} far outside "
            "the time shown: double-click to see all."
        )
    held = set(timed.partition.tolist())
    none = [number for number in partitions if number not in held]
    panels = len(held) <= _MOST_PANELS
    if panels and none:
        partitions = sorted(held)
        notes.append(f"No segment of {words.names(none)} is drawn.")
    drawn_boxes = timed.merged(_MOST_BOXES if panels else _MOST_BARS)
    if len(drawn_boxes) < len(timed):
        together = int(drawn_boxes.segments.max())
        notes.append(
            f"Up to {together:,} neighbouring segments are drawn as one: {len(timed):,} could not "
            "be told apart. The table has all."
        )
    draw = _panels if panels else _lanes
    span = window or (timed.first_us.min(), timed.max_us.max())
    traces, look = draw(partitions, drawn_boxes, message, notes, int(span[1] - span[0]))
    margin = max(1_000, (span[1] - span[0]) * 0.015)  # µs
    look["xaxis"] |= {"type": "date"}
    if window is not None or span[0] == span[1]:
        look["xaxis"]["range"] = [(span[0] - margin) / 1000, (span[1] + margin) / 1000]
    return traces, look


def _panels(
    partitions: Sequence[int], boxes: Boxes, message: str, notes: Sequence[str], span_us: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A plane of time and offset for each partition, one below the other."""
    many = len(partitions)
    hollow = bool((1 - boxes.left > _COMPACTED).any())
    filled = ", filled as far as its offsets still hold records" if hollow else ""
    said = [f"A box is a segment{filled}; the area of its dot, where one fits, is its size."]
    least = span_us * _NARROWEST
    look = layout(
        message,
        [*said, *notes],
        plot_height=_ONE_PANEL if many == 1 else _PANEL * many,
        axis="timestamps of the records (UTC)",
    )
    look["hovermode"] = "closest"
    gap = 0.04 if many > 1 else 0
    tall = (1 - gap * (many - 1)) / many
    traces: list[dict[str, Any]] = []
    seen: set[int] = set()
    largest = max(1, int((boxes.cold_bytes + boxes.hot_bytes).max()))
    for nth, partition in enumerate(partitions):
        name = "" if nth == 0 else str(nth + 1)
        top = 1 - nth * (tall + gap)
        look[f"yaxis{name}"] = {
            **AXIS,
            "domain": [max(0, top - tall), top],
            "title": {"text": f"partition {partition}<br>offset"},
            "zeroline": False,
            "tickformat": ",d",
            "nticks": 6,
        }
        here = boxes.take(np.flatnonzero(boxes.partition == partition))
        scale = OffsetScale.of(here.base, here.end)
        if len(scale.jumps):
            look[f"yaxis{name}"] |= scale.ticks()
            look.setdefault("shapes", []).extend(scale.lines(f"y{name}"))
            look.setdefault("annotations", []).extend(scale.says(f"y{name}"))
        offsets = max(1, int(scale.drawn(np.array(scale.top)) - scale.bottom))
        offsets_a_px = offsets / (_ONE_PANEL if many == 1 else _PANEL)
        for place in range(len(_NAMES)):
            some = here.take(np.flatnonzero(here.place == place))
            if not len(some):
                continue
            common = {
                "yaxis": f"y{name}",
                "legendgroup": _NAMES[place],
                "name": _NAMES[place],
            }
            line = {"color": _LINES[place], "width": 1}
            low, high = scale.drawn(some.base), scale.drawn(some.end)
            height = high - low
            full = low + height * some.left
            if hollow:
                traces.append(
                    {
                        **common,
                        **_rectangles(some.first_us, some.max_us, low, high, least),
                        "fillcolor": "rgba(128,128,128,0.12)",
                        "line": line,
                        "showlegend": False,
                    }
                )
            traces.append(
                {
                    **common,
                    **_rectangles(some.first_us, some.max_us, low, full, least),
                    "fillcolor": _COLOURS[place],
                    **({"fillpattern": _STRIPES} if place == _BOTH else {}),
                    "line": {"color": line["color"], "width": 0 if hollow else 1},
                    "showlegend": place not in seen,
                }
            )
            seen.add(place)
            dots = _SMALLEST_DOT + _DOT * np.sqrt((some.cold_bytes + some.hot_bytes) / largest)
            wide = np.maximum(least, some.max_us - some.first_us) / max(1, span_us) * _WIDTH
            # A dot that would hide its box is there for the pointer alone.
            fits = 2 * dots <= np.minimum(wide, height / offsets_a_px)
            traces.append(
                {
                    **common,
                    "type": "scatter",
                    "mode": "markers",
                    "x": _ms((some.first_us + some.max_us) // 2),
                    "y": (low + height // 2).tolist(),
                    "marker": {
                        "size": [round(dot, 1) for dot in dots.tolist()],
                        "color": "#ffffff",
                        "line": {"color": "#3a3a3a", "width": 1},
                        "opacity": np.where(fits, 0.8, 0).tolist(),
                    },
                    "customdata": _customdata(some),
                    "hovertemplate": _FIELDS,
                    "showlegend": False,
                }
            )
    look["xaxis"]["anchor"] = "y" if many == 1 else f"y{many}"
    return traces, look


def _rectangles(first_us: Any, max_us: Any, low: Any, high: Any, least: float) -> dict[str, Any]:
    """One closed line for each box, all in one trace; none too narrow to be seen."""
    wide = np.maximum(0, least - (max_us - first_us)) / 2
    left, right = first_us - wide, max_us + wide
    x = np.column_stack([left, right, right, left, left]) / 1000
    y = np.column_stack([low, low, high, high, low])
    return {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "x": [at for row in np.round(x).astype(np.int64).tolist() for at in (*row, None)],
        "y": [at for row in np.round(y).astype(np.int64).tolist() for at in (*row, None)],
        "hoverinfo": "skip",
    }


def _lanes(
    partitions: Sequence[int], boxes: Boxes, message: str, notes: Sequence[str], span_us: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A row for each partition."""
    chosen = list(partitions)
    if len(chosen) > MOST_LANES:
        order = np.argsort(-boxes.records, kind="stable")
        large = list(dict.fromkeys(boxes.partition[order].tolist()))
        chosen = sorted(large[:MOST_LANES])
        boxes = boxes.take(np.flatnonzero(np.isin(boxes.partition, chosen)))
        notes = [
            *notes,
            f"The chart shows {len(chosen)} of {len(partitions):,} partitions, those with the "
            "largest segments.",
        ]
    lane_of = {partition: lane for lane, partition in enumerate(chosen)}
    least = span_us * _NARROWEST
    faint = bool((1 - boxes.left > _COMPACTED).any())
    said = f"Offsets are on hover; up to {_MOST_PANELS} partitions have an axis of offsets each."
    if faint:
        said += " The fainter a bar, the more compaction removed."
    look = layout(
        message,
        [said, *notes],
        plot_height=max(140, plot_height(len(chosen))),
        axis="timestamps of the records (UTC)",
    )
    look |= {"barmode": "overlay", "hovermode": "closest"}
    look["bargap"] = 0.28 if len(chosen) <= 40 else 0.1
    look["yaxis"] = lane_axis(chosen)
    traces: list[dict[str, Any]] = []
    for place in range(len(_NAMES)):
        some = boxes.take(np.flatnonzero(boxes.place == place))
        if not len(some):
            continue
        wide = np.maximum(some.max_us - some.first_us, max(1_000, least))
        marker: dict[str, Any] = {"color": _COLOURS[place], "line": {"width": 0}}
        if place == _BOTH:
            marker["pattern"] = _STRIPES
        if faint:
            marker["opacity"] = [round(0.25 + 0.75 * one, 2) for one in some.left.tolist()]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": _NAMES[place],
                "y": [lane_of[one] for one in some.partition.tolist()],
                "base": _ms(some.first_us),
                "x": [round(one / 1000) or 1 for one in wide.tolist()],
                "marker": marker,
                "customdata": _customdata(some),
                "hovertemplate": _FIELDS,
            }
        )
    return traces, look


def _ms(microseconds: Any) -> list[int]:
    return [at // 1000 for at in microseconds.tolist()]
