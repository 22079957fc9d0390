"""The segment map: segments by time and offset, their sizes, and what compaction left of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
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
    about,
    checked,
    described,
    drawn,
    int64,
    notes_of,
    partitions_asked,
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
        InvalidArgumentError: `log` is not the log of a topic.
        LakelogError: a tier cannot be read.
    """
    asked = partitions_asked("segment_rows", log, partitions)
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


class Box(Struct, frozen=True):
    """A segment to draw, or neighbours as one."""

    partition: int
    place: int  # number of `_NAMES`
    base: int
    start: int  # the first offset that can be read
    end: int
    records: int
    cold_bytes: int
    hot_bytes: int
    first_us: int | None
    max_us: int | None  # None: neither has a place in time
    left: float  # share of the offsets that still hold a record
    segments: int = 1  # how many it stands for

    @classmethod
    def together(cls, several: Sequence[Box]) -> Box:
        """One for neighbours of a partition in the same place, all of which have times."""
        offsets = max(1, sum(one.end - one.base for one in several))
        return cls(
            several[0].partition,
            several[0].place,
            several[0].base,
            several[0].start,
            several[-1].end,
            sum(one.records for one in several),
            sum(one.cold_bytes for one in several),
            sum(one.hot_bytes for one in several),
            min(one.first_us or 0 for one in several),
            max(one.max_us or 0 for one in several),
            sum(one.left * (one.end - one.base) for one in several) / offsets,
            sum(one.segments for one in several),
        )


def boxes_of(table: pa.Table) -> list[Box]:
    """Each segment once: one that lies in both tiers is one box, up to where cold ends."""
    for name in ("first_timestamp", "max_timestamp"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(pa.int64()))
    order = [(name, "ascending") for name in ("partition", "base_offset", "tier")]
    rows = table.sort_by(order).to_pylist()  # cold first
    found = []
    for row, before, after in zip(rows, [None, *rows], [*rows[1:], None], strict=False):
        base, end, is_hot = row["base_offset"], row["end_offset"], row["tier"] == HOT
        first, last = row["first_timestamp"], row["max_timestamp"]
        first = last if first is None else first
        records, hot_bytes, place = row["records"] or 0, 0, _HOT if is_hot else _COLD
        start = row.get("start_offset", base)
        if is_hot:
            hot_bytes = row["size_bytes"]
            if _are_one(before, row):  # partly archived: only the rest is drawn as hot
                base = before["end_offset"]
                records = max(0, end - base)
                first = before["max_timestamp"] or first
        elif _are_one(row, after) and after.get("start_offset", base) < end:
            # Both tiers have a part of the segment, but only what Redis has not trimmed is in both.
            place, hot_bytes = _BOTH, after["size_bytes"]
        if row["state"] == BELOW_LOG_START:
            place = _BELOW
        if first is not None and last is not None:
            first = min(first, last)
        # The open segment of an empty partition has no offsets yet, and is not drawn.
        if end > base:
            cold_bytes, left = 0 if is_hot else row["size_bytes"], 1 - (row["compacted"] or 0)
            found.append(
                Box(
                    *(row["partition"], place, base, max(start, base), end, records),
                    *(cold_bytes, hot_bytes, first, last, left),
                )
            )
    return found


def _are_one(cold: Any, hot: Any) -> bool:
    """Whether two rows are of one segment in either tier."""
    return (
        cold is not None
        and hot is not None
        and (cold["tier"], hot["tier"]) == (COLD, HOT)
        and all(cold[name] == hot[name] for name in ("partition", "base_offset"))
    )


def _merged(boxes: Sequence[Box], most: int) -> list[Box]:
    """About `most` boxes at most: neighbours of a partition in the same place become one."""
    together = -(-len(boxes) // most)
    found = []
    for _, group in groupby(boxes, lambda one: (one.partition, one.place)):
        several = list(group)
        found += [
            Box.together(several[at : at + together]) for at in range(0, len(several), together)
        ]
    return found


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
    boxes = boxes_of(table)
    message = about(table, _message(table, boxes, len(partitions_of(table))))
    return drawn(table, message, lambda: _draw(table, boxes, message))


def _message(table: pa.Table, boxes: Sequence[Box], partitions: int) -> str:
    if not boxes:
        return f"no segments in {words.count(partitions, 'partition')}: nothing was appended yet"
    parts = []
    for tier, places in ((COLD, (_BELOW, _COLD, _BOTH)), (HOT, (_BOTH, _HOT))):
        many = sum(box.place in places for box in boxes)
        size = pc.sum(table.filter(pc.equal(table["tier"], tier))["size_bytes"]).as_py()
        if many:
            parts.append(f"{words.count(many, f'{tier} segment')} ({words.size(size or 0)})")
    when = ""
    timed = _timed(boxes)
    if timed:
        first, last = min(one.first_us or 0 for one in timed), max(one.max_us or 0 for one in timed)
        when = f", {words.period(first / 1000, last / 1000)}"
    held = [box for box in boxes if box.place in (_COLD, _BOTH)]
    compacted = ""
    if any(1 - box.left > _COMPACTED for box in held):
        whole = sum(box.end - box.base for box in held)
        left = sum((box.end - box.base) * box.left for box in held)
        compacted = f"; compaction left {words.percent(left, whole)} of cold"
    return f"{' and '.join(parts)}{when}{compacted}"


def _timed(boxes: Sequence[Box]) -> list[Box]:
    return [one for one in boxes if one.first_us is not None and one.max_us is not None]


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
    boxes = [
        box
        for box in boxes_of(checked(table, SEGMENTS, "segment_rows"))
        if box.place != _BELOW and box.start < box.end and partition in (None, box.partition)
    ]
    boxes.sort(key=lambda box: (box.max_us or 0, box.end), reverse=True)
    boxes = boxes[:most]
    several = partition is None and len({box.partition for box in boxes}) > 1
    return [_choice(box, several) for box in boxes]


def _choice(box: Box, several: bool) -> tuple[str, tuple[int, int]]:
    tier = ("", "cold", "cold and hot", "hot")[box.place]
    whose = f"partition {box.partition}: " if several else ""
    when = "" if box.first_us is None else f", from {words.moment(box.first_us // 1000)}"
    label = (
        f"{whose}[{box.start:,}, {box.end:,}) {tier}, {words.count(box.records, 'record')}{when}"
    )
    return label, (box.partition, box.start)


# -- how it looks ------------------------------------------------------------------------------

_FIELDS = (
    "partition %{customdata[0]}<br><b>[%{customdata[1]:,}, %{customdata[2]:,})</b> %{customdata[3]}"
    "<br>%{customdata[4]:,} records, %{customdata[5]}<br>%{customdata[6]} –<br>%{customdata[7]} UTC"
    "%{customdata[8]}<extra></extra>"
)


def _customdata(box: Box) -> list[Any]:
    """Partition and base offset come first: a click seeks to them."""
    sizes = [
        f"{words.size(size)} {tier}"
        for tier, size in ((COLD, box.cold_bytes), (HOT, box.hot_bytes))
        if size
    ]
    more = f"<br>{words.percent(box.left, 1)} of its offsets hold a record"
    return [
        box.partition,
        box.base,
        box.end,
        _NAMES[box.place].split(" (")[0] + (f", {box.segments} segments" * (box.segments > 1)),
        box.records,
        " and ".join(sizes) or "no bytes",
        words.moment((box.first_us or 0) // 1000),
        words.moment((box.max_us or 0) // 1000),
        more if 1 - box.left > _COMPACTED else "",
    ]


def _draw(
    table: pa.Table, boxes: Sequence[Box], message: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    notes = notes_of(table)
    timed = _timed(boxes)
    if len(timed) < len(boxes):
        notes.append(
            f"{words.count(len(boxes) - len(timed), 'segment')} without timestamps "
            "cannot be placed in time: see the table."
        )
    if not timed:
        return [], says(message, notes)
    first, last = _times(timed)
    window = inner_window(first, last + 1_000, np.ones(len(timed)), _TAIL)
    if window is not None:
        outside = int(((last > window[1]) | (first < window[0])).sum())
        notes.append(
            f"{words.count(outside, 'segment')} reach{'es' if outside == 1 else ''} far outside "
            "the time shown: double-click to see all."
        )
    many = Counter(box.partition for box in timed)
    none = [number for number in partitions_of(table) if number not in many]
    if none:
        notes.append(f"No segment of {words.names(none)} is drawn.")
    shown = sorted(number for number, _ in many.most_common(_MOST_PANELS))
    if len(shown) < len(many):
        notes.append(
            f"The chart shows {len(shown)} of {len(many):,} partitions, those with most segments: "
            "pass the rows of others to see them."
        )
        timed = [box for box in timed if box.partition in shown]
    drawn_boxes = _merged(timed, _MOST_BOXES)
    if len(drawn_boxes) < len(timed):
        together = max(box.segments for box in drawn_boxes)
        notes.append(
            f"Up to {together:,} neighbouring segments are drawn as one: {len(timed):,} could not "
            "be told apart. The table has all."
        )
    span = window or (first.min(), last.max())
    traces, look = _panels(shown, drawn_boxes, message, notes, int(span[1] - span[0]))
    margin = max(1_000, (span[1] - span[0]) * 0.015)  # µs
    look["xaxis"] |= {"type": "date"}
    if window is not None or span[0] == span[1]:
        look["xaxis"]["range"] = [(span[0] - margin) / 1000, (span[1] + margin) / 1000]
    return traces, look


def _times(boxes: Sequence[Box]) -> tuple[Numbers, Numbers]:
    """First and largest timestamps."""
    first, last = zip(*((box.first_us, box.max_us) for box in boxes), strict=True)
    return np.array(first, np.int64), np.array(last, np.int64)


def _panels(
    partitions: Sequence[int],
    boxes: Sequence[Box],
    message: str,
    notes: Sequence[str],
    span_us: int,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A plane of time and offset for each partition, one below the other."""
    many = len(partitions)
    panel = _ONE_PANEL if many == 1 else _PANEL
    hollow = any(1 - box.left > _COMPACTED for box in boxes)
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
    largest = max(1, *(box.cold_bytes + box.hot_bytes for box in boxes))
    for nth, partition in enumerate(partitions):
        axis = "y" if nth == 0 else f"y{nth + 1}"
        top = 1 - nth * (tall + gap)
        here = [box for box in boxes if box.partition == partition]
        scale = OffsetScale.of(
            np.array([box.base for box in here]), np.array([box.end for box in here])
        )
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
            some = [box for box in here if box.place == place]
            if some:
                traces += _traces(
                    some, place, axis, scale, hollow, span_us, offsets / panel, largest
                )
                traces[-2]["showlegend"] = place not in named
                named.add(place)
    look["xaxis"]["anchor"] = axis
    return traces, look


def _traces(
    boxes: Sequence[Box],
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
    low = scale.drawn(np.array([box.base for box in boxes]))
    high = scale.drawn(np.array([box.end for box in boxes]))
    height, full = high - low, low + (high - low) * np.array([box.left for box in boxes])
    first, last = _times(boxes)
    least = span_us * _NARROWEST
    wide = np.maximum(least, last - first)
    left, right = (first + last - wide) / 2000, (first + last + wide) / 2000  # ms
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
                **_corners(left, right, low, high),
                "fillcolor": "rgba(128,128,128,0.12)",
                "line": {"color": _LINES[place], "width": 1},
                "showlegend": False,
            }
        )
    traces.append(
        {
            **rectangle,
            **_corners(left, right, low, full),
            "fillcolor": _COLOURS[place],
            **({"fillpattern": BOTH_STRIPES} if place == _BOTH else {}),
            "line": {"color": _LINES[place], "width": 0 if hollow else 1},
        }
    )
    sizes = np.array([box.cold_bytes + box.hot_bytes for box in boxes])
    dots = _SMALLEST_DOT + _DOT * np.sqrt(sizes / largest)
    # A dot that would hide its box is there for the pointer alone.
    fits = 2 * dots <= np.minimum(wide / max(1, span_us) * _WIDTH, height / offsets_a_px)
    traces.append(
        {
            **common,
            "type": "scatter",
            "mode": "markers",
            "x": ((first + last) // 2000).tolist(),
            "y": (low + height // 2).tolist(),
            "marker": {
                "size": [round(dot, 1) for dot in dots.tolist()],
                "color": "#ffffff",
                "line": {"color": "#3a3a3a", "width": 1},
                "opacity": np.where(fits, 0.8, 0).tolist(),
            },
            "customdata": [_customdata(box) for box in boxes],
            "hovertemplate": _FIELDS,
            "showlegend": False,
        }
    )
    return traces


def _corners(left: Numbers, right: Numbers, low: Numbers, high: Numbers) -> dict[str, Any]:
    """One closed line for each box, all in one trace."""
    x = np.column_stack([left, right, right, left, left])
    y = np.column_stack([low, low, high, high, low])
    return {
        name: [at for row in np.round(grid).astype(np.int64).tolist() for at in (*row, None)]
        for name, grid in (("x", x), ("y", y))
    }
