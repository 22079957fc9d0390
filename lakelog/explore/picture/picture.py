"""The picture of a log's time as values: what `drawing` draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ...read.tiers import SegmentedLook
from ...read.topic_log import TopicLog
from .drawing import Mark
from .groups import counted, groups_of, may_be_counted, to_be_counted
from .histogram import Histogram, histogram, whole
from .marks import marks_of
from .row_groups import by_row_groups

STEPS = 120


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
        fine: whether to look into what is coarser than a step: into files, which say when the
            records of each of their row groups are, if that is more than `groups.COUNTED_RECORDS`;
            and to count records one by one, if what is left is not.
        on_coarse: gets the picture before that, and before any are counted.
    """
    groups = groups_of(look)
    time = whole(groups) if window is None else window
    if time is None:
        return Picture(None, (), False)
    marks = tuple(marks_of(groups, look.offsets, positions))
    is_zoomed = window is not None
    coarse = histogram(groups, time, steps)
    long = to_be_counted(groups, time, coarse.step_ms)
    if not fine or not long.any():
        return Picture(coarse, marks, is_zoomed)
    on_coarse(Picture(coarse, marks, is_zoomed))
    if not may_be_counted(groups, long):
        groups = by_row_groups(log, look, groups, long, stopped)
        if may_be_counted(groups, to_be_counted(groups, time, coarse.step_ms)):
            on_coarse(Picture(histogram(groups, time, steps), marks, is_zoomed))
    groups = counted(log, look, groups, time, coarse.step_ms, stopped)
    marks = tuple(marks_of(groups, look.offsets, positions))  # by now it is known when records are
    return Picture(histogram(groups, time, steps), marks, is_zoomed)
