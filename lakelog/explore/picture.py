"""The picture of a log's time as values: how many records it has when, and moments of note."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ..read.tiers import SegmentedLook
from ..read.topic_log import TopicLog
from ..values.offsets import LogOffsets
from . import record_times
from .histogram import HOT, Groups, Histogram, edges, histogram, whole

STEPS = 120

#: So many readers have a mark.
MOST_READERS = 3


class Mark(Struct, frozen=True):
    """A moment, or a stretch, with its name; drawn above the bars."""

    kind: str  # archived, start, page, chosen, or group
    start_ms: float
    end_ms: float | None = None
    text: str = ""
    label: str = ""  # written beside it
    row: int = 0  # so that labels of neighbours do not lie on each other


class Picture(Struct, frozen=True):
    """How many records there are when, and moments of note."""

    found: Histogram | None  # None: of no record a time is known
    marks: tuple[Mark, ...]
    is_zoomed: bool  # whether it is of a part of the time


def pictures(
    log: TopicLog,
    look: SegmentedLook,
    window: tuple[int, int] | None = None,
    *,
    positions: Mapping[str, Mapping[int, int]] | None = None,
    steps: int = STEPS,
    fine: bool = True,
    on_coarse: Callable[[Picture], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Picture:
    """A picture of the partitions that were looked at, from their indexes.

    Args:
        window: [start, end) in ms to look at; None: all the time there is.
        positions: see `marks_of`.
        fine: whether to look into what is coarser than a step, within `record_times.PICTURE`.
        on_coarse: gets the picture before that.
    """
    groups = record_times.begun(log, record_times.groups_of(look))
    time = whole(groups) if window is None else window
    if time is None:
        return Picture(None, (), False)
    edges_ms = edges(time, steps)

    def drawn(groups: Groups) -> Picture:
        marks = tuple(marks_of(groups, look.offsets, positions))
        return Picture(histogram(groups, edges_ms), marks, window is not None)

    budget = record_times.PICTURE
    if not fine or not record_times.to_be_counted(groups, edges_ms, budget).any():
        return drawn(groups)
    on_coarse(drawn(groups))
    return drawn(record_times.refined(log, look, groups, edges_ms, budget, stopped))


def marks_of(
    groups: Groups,
    offsets: Mapping[int, LogOffsets],
    positions: Mapping[str, Mapping[int, int]] | None = None,
) -> list[Mark]:
    """Where records were deleted before, and from where on some are in Redis alone.

    Of several partitions, the least archived counts: before its mark, all is archived.

    Args:
        positions: the next offset of each reader, by its name and partition: where it is furthest
            behind is marked, of the `MOST_READERS` that are that most. One that has read all has
            no mark.
    """
    found = []
    timed = groups.where(groups.is_timed)
    if len(timed) and any(log.log_start > 0 for log in offsets.values()):
        first = int(timed.min_ms.min())
        found.append(Mark("start", first, text="the log starts here: before, it is deleted"))
    waiting = timed.where(timed.tier == HOT)
    if (timed.tier != HOT).any() and len(waiting):
        found.append(Mark("archived", int(waiting.min_ms.min()), text="archived up to here"))
    readers = []
    for name, by_partition in (positions or {}).items():
        times = [_time_of(timed, partition, offset) for partition, offset in by_partition.items()]
        known = [time for time in times if time is not None]
        if known:
            readers.append((min(known), name))
    for row, (at, name) in enumerate(sorted(readers)[:MOST_READERS]):
        text = f"{name} has read up to here"
        if len(readers) > MOST_READERS and row == MOST_READERS - 1:
            text += f"; {len(readers) - MOST_READERS:,} more are further"
        found.append(Mark("group", at, text=text, label=name, row=row))
    return found


def _time_of(timed: Groups, partition: int, offset: int) -> int | None:
    """About when the next record of a reader is; None: it has read all."""
    left = timed.where((timed.partition == partition) & (timed.end > offset))
    if not len(left):
        return None
    first = left.where(left.start == left.start.min())
    start, end = int(first.start[0]), int(first.end[0])
    low, high = int(first.min_ms.min()), int(first.max_ms.max())
    share = (max(start, offset) - start) / max(1, end - start)
    return low + round(share * (high - low))
