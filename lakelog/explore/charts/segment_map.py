"""The segment map: segments by time and offset, their sizes, and what compaction left of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...cold.segment import UNKNOWN_TIMESTAMP_MS
from ...operate.check.finding import COLD, HOT
from ...operate.segments import BELOW_LOG_START, segments
from ...read.tiers import SegmentedLook
from ...read.topic_log import TopicLog
from .. import words
from ..histogram import inner_window
from ..record_times import covered
from .look import AXIS, BOTH_STRIPES, GONE, Numbers, OffsetScale, layout, says
from .look import COLD as COLD_COLOUR
from .look import HOT as HOT_COLOUR
from .shown import (
    NULL,
    about,
    checked,
    described,
    drawn,
    float64,
    int64,
    notes_of,
    partitions_of,
)

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
_MOST_BOXES = 300
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
    """The segments of each partition in either tier; no records and no files are read.

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
    whole = {
        (partition, base): offsets
        for partition in asked
        for base, offsets in _whole(look, partition).items()
    }
    rows = []
    for one in segments(log, asked):
        partition, base = one.topic_partition.partition, one.base_offset
        offsets, local = look.offsets[partition], look.hot[partition].local_log_start
        is_known = one.records >= 0
        compacted: float | None = 0.0
        if one.tier == COLD:
            of = whole.get((partition, base))
            compacted = None if of is None or not is_known else max(0.0, 1 - one.records / of)
        rows.append(
            {
                "partition": partition,
                "tier": one.tier,
                "base_offset": base,
                "end_offset": one.end_offset,
                "records": one.records if is_known else None,
                "size_bytes": one.size_bytes,
                "first_timestamp": _micros(one.first_timestamp_ms),
                "max_timestamp": _micros(one.max_timestamp_ms),
                "compacted": compacted,
                "state": one.state,
                "start_offset": max(base, offsets.log_start, local if one.tier == HOT else 0),
            }
        )
    schema = SEGMENTS.append(pa.field("start_offset", pa.int64()))
    table = pa.Table.from_pylist(rows, schema=schema)
    return described(table, topic=log.topic.name, partitions=asked)


def _whole(look: SegmentedLook, partition: int) -> dict[int, int]:
    """How many offsets each cold segment was made of, by its base."""
    files = look.cold.files.rows_of_partition(partition)
    bases, which = np.unique(int64(files, "segment"), return_inverse=True)
    offsets = np.zeros(len(bases), np.int64)
    np.add.at(offsets, which, covered(files, look.hot[partition].gaps))
    return dict(zip(bases.tolist(), np.maximum(1, offsets).tolist(), strict=True))


def _micros(timestamp_ms: int | None) -> int | None:
    """Only unknown times are beyond what microseconds can hold."""
    if timestamp_ms is None or not 0 <= timestamp_ms < UNKNOWN_TIMESTAMP_MS // 1_000:
        return None
    return timestamp_ms * 1_000


# -- what is drawn -----------------------------------------------------------------------------

#: Where a segment lies, in the order of the legend.
_BELOW, _COLD, _BOTH, _HOT = range(4)
_NAMES = ("deleted, file not removed yet", "cold (Delta)", "in both tiers", "hot alone (Redis)")
_COLOURS = (GONE, COLD_COLOUR, COLD_COLOUR, HOT_COLOUR)
_LINES = ("#8a8a8a", COLD_COLOUR, HOT_COLOUR, HOT_COLOUR)


class Boxes(Struct, frozen=True, eq=False):
    """The segments to draw, each once, or neighbours as one; columns of one length."""

    partition: Numbers
    place: Numbers  # number of `_NAMES`
    base: Numbers
    start: Numbers  # the first offset that can be read
    end: Numbers
    records: Numbers
    cold_bytes: Numbers
    hot_bytes: Numbers
    first_us: Numbers  # `NULL`: not known
    max_us: Numbers
    left: Numbers  # share of the offsets that still hold a record
    segments: Numbers  # how many it stands for

    def __len__(self) -> int:
        return len(self.base)

    def take(self, rows: Any) -> Boxes:
        return Boxes(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    @property
    def timed(self) -> Numbers:
        """Which boxes have a place in time."""
        found: Numbers = (self.first_us != NULL) & (self.max_us != NULL)
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
    the area of a dot, where it does not hide the box, is its size. Of more partitions, those with
    most segments are drawn. If there are more segments than can be seen, a box stands for several
    neighbours. Notes say so.

    A plain Figure cannot call Python when it is clicked. For front ends that can, each dot's
    customdata begin with partition and base offset; `segment_choices` gives the same
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


# -- to choose from ----------------------------------------------------------------------------

DEFAULT_CHOICES = 500


def segment_choices(
    table: pa.Table, partition: int | None = None, *, most: int = DEFAULT_CHOICES
) -> list[tuple[str, tuple[int, int]]]:
    """The segments that can be read, the newest first: a label, and where to seek.

    They do what a click on a segment map would do, if a Figure could call Python::

        rows = charts.segment_rows(log)
        choice = ipywidgets.Dropdown(options=charts.segment_choices(rows))
        choice.observe(lambda change: seek(*change["new"]), "value")  # partition, offset

    Args:
        table: as `segment_rows` gives it.
        partition: its number; None for all.
        most: the largest number of choices; the oldest are left out.

    Returns:
        (label, (partition, offset)) for each; the offset is the segment's first that can be read.
        A segment in both tiers is one choice.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    boxes = Boxes.of(checked(table, SEGMENTS, "segment_rows"))
    rows = np.flatnonzero((boxes.place != 0) & (boxes.start < boxes.end))
    if partition is not None:
        rows = rows[boxes.partition[rows] == partition]
    newest = rows[np.lexsort((-boxes.end[rows], -boxes.max_us[rows]))][:most]
    several = partition is None and len(set(boxes.partition[rows].tolist())) > 1
    return [_choice(boxes, at, several) for at in newest.tolist()]


def _choice(boxes: Boxes, at: int, several: bool) -> tuple[str, tuple[int, int]]:
    partition, start = int(boxes.partition[at]), int(boxes.start[at])
    tier: Any = ("", "cold", "cold and hot", "hot")[int(boxes.place[at])]
    whose = f"partition {partition}: " if several else ""
    since = int(boxes.first_us[at])
    when = "" if since == NULL else f", from {words.moment(since // 1000)}"
    label = (
        f"{whose}[{start:,}, {int(boxes.end[at]):,}) {tier}, "
        f"{words.count(int(boxes.records[at]), 'record')}{when}"
    )
    return label, (partition, start)


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
    window = inner_window(timed.first_us, timed.max_us + 1_000, np.ones(len(timed)), _TAIL)
    if window is not None:
        outside = int(((timed.max_us > window[1]) | (timed.first_us < window[0])).sum())
        notes.append(
            f"{words.count(outside, 'segment')} reach{'es' if outside == 1 else ''} far outside "
            "the time shown: double-click to see all."
        )
    held, many = np.unique(timed.partition, return_counts=True)
    none = [number for number in partitions_of(table) if number not in set(held.tolist())]
    if none:
        notes.append(f"No segment of {words.names(none)} is drawn.")
    if len(held) > _MOST_PANELS:
        notes.append(
            f"The chart shows {_MOST_PANELS} of {len(held):,} partitions, those with most "
            "segments: pass the rows of others to see them."
        )
        held = np.sort(held[np.argsort(-many, kind="stable")[:_MOST_PANELS]])
        timed = timed.take(np.flatnonzero(np.isin(timed.partition, held)))
    drawn_boxes = timed.merged(_MOST_BOXES)
    if len(drawn_boxes) < len(timed):
        together = int(drawn_boxes.segments.max())
        notes.append(
            f"Up to {together:,} neighbouring segments are drawn as one: {len(timed):,} could not "
            "be told apart. The table has all."
        )
    span = window or (timed.first_us.min(), timed.max_us.max())
    traces, look = _panels(held.tolist(), drawn_boxes, message, notes, int(span[1] - span[0]))
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
    panel = _ONE_PANEL if many == 1 else _PANEL
    hollow = bool((1 - boxes.left > _COMPACTED).any())
    filled = ", filled as far as its offsets still hold records" if hollow else ""
    said = [f"A box is a segment{filled}; the area of its dot, where one fits, is its size."]
    look = layout(
        message,
        [*said, *notes],
        plot_height=panel * many,
        axis="timestamps of the records (UTC)",
    )
    look |= {"hovermode": "closest", "shapes": [], "annotations": []}
    gap = 0.04 if many > 1 else 0
    tall = (1 - gap * (many - 1)) / many
    traces: list[dict[str, Any]] = []
    named: set[int] = set()
    largest = max(1, int((boxes.cold_bytes + boxes.hot_bytes).max()))
    for nth, partition in enumerate(partitions):
        axis = "y" if nth == 0 else f"y{nth + 1}"
        top = 1 - nth * (tall + gap)
        here = boxes.take(np.flatnonzero(boxes.partition == partition))
        scale = OffsetScale.of(here.base, here.end)
        y_axis = look[f"yaxis{axis[1:]}"] = {
            **AXIS,
            "domain": [max(0, top - tall), top],
            "title": {"text": f"partition {partition}<br>offset"},
            "zeroline": False,
            "tickformat": ",d",
            "nticks": 6,
        }
        if len(scale.jumps):
            y_axis |= scale.ticks()
            lines, texts = scale.marks(axis)
            look["shapes"] += lines
            look["annotations"] += texts
        offsets = max(1, int(scale.drawn(np.array(scale.top)) - scale.bottom))
        for place in range(len(_NAMES)):
            some = here.take(np.flatnonzero(here.place == place))
            if len(some):
                traces += _traces(
                    some, place, axis, scale, hollow, span_us, offsets / panel, largest
                )
                traces[-2]["showlegend"] = place not in named
                named.add(place)
    look["xaxis"]["anchor"] = axis
    return traces, look


def _traces(
    boxes: Boxes,
    place: int,
    axis: str,
    scale: OffsetScale,
    hollow: bool,
    span_us: int,
    offsets_a_px: float,
    largest: int,
) -> list[dict[str, Any]]:
    """The boxes of one place in one panel: hollow, if some are; filled; their dots."""
    common = {"yaxis": axis, "legendgroup": _NAMES[place], "name": _NAMES[place]}
    low, high = scale.drawn(boxes.base), scale.drawn(boxes.end)
    height = high - low
    least = span_us * _NARROWEST
    wide = np.maximum(least, boxes.max_us - boxes.first_us)
    rectangle = {
        **common,
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "hoverinfo": "skip",
    }
    traces: list[dict[str, Any]] = []
    if hollow:
        traces.append(
            {
                **rectangle,
                **_corners(boxes, wide, low, high),
                "fillcolor": "rgba(128,128,128,0.12)",
                "line": {"color": _LINES[place], "width": 1},
                "showlegend": False,
            }
        )
    traces.append(
        {
            **rectangle,
            **_corners(boxes, wide, low, low + height * boxes.left),
            "fillcolor": _COLOURS[place],
            **({"fillpattern": BOTH_STRIPES} if place == _BOTH else {}),
            "line": {"color": _LINES[place], "width": 0 if hollow else 1},
        }
    )
    dots = _SMALLEST_DOT + _DOT * np.sqrt((boxes.cold_bytes + boxes.hot_bytes) / largest)
    # A dot that would hide its box is there for the pointer alone.
    fits = 2 * dots <= np.minimum(wide / max(1, span_us) * _WIDTH, height / offsets_a_px)
    traces.append(
        {
            **common,
            "type": "scatter",
            "mode": "markers",
            "x": ((boxes.first_us + boxes.max_us) // 2 // 1000).tolist(),
            "y": (low + height // 2).tolist(),
            "marker": {
                "size": [round(dot, 1) for dot in dots.tolist()],
                "color": "#ffffff",
                "line": {"color": "#3a3a3a", "width": 1},
                "opacity": np.where(fits, 0.8, 0).tolist(),
            },
            "customdata": _customdata(boxes),
            "hovertemplate": _FIELDS,
            "showlegend": False,
        }
    )
    return traces


def _corners(boxes: Boxes, wide: Any, low: Any, high: Any) -> dict[str, Any]:
    """One closed line for each box, all in one trace."""
    more = (wide - (boxes.max_us - boxes.first_us)) / 2
    left, right = boxes.first_us - more, boxes.max_us + more
    x = np.column_stack([left, right, right, left, left]) / 1000
    y = np.column_stack([low, low, high, high, low])
    return {
        name: [at for row in np.round(grid).astype(np.int64).tolist() for at in (*row, None)]
        for name, grid in (("x", x), ("y", y))
    }
