"""The picture of a log's time as values: what `drawing` draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...read.tiers import Look
from ...read.topic_log import TopicLog
from .drawing import Mark
from .groups import counted, groups_of
from .histogram import Histogram, histogram, whole
from .marks import marks_of

STEPS = 120


@dataclass(frozen=True, slots=True)
class Picture:
    """How many records there are when, and moments of note."""

    found: Histogram | None  # None: of no record a time is known
    marks: tuple[Mark, ...]
    is_zoomed: bool  # whether it is of a part of the time


def pictures(
    log: TopicLog,
    look: Look,
    window: tuple[int, int] | None = None,
    *,
    steps: int = STEPS,
    fine: bool = True,
    on_coarse: Callable[[Picture], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Picture:
    """A picture of the partitions that were looked at, from their indexes.

    Args:
        window: [start, end) in ms to look at; None: all the time there is.
        fine: whether to count records where indexes are coarser than a step, if those are at most
            `groups.COUNTED_RECORDS`.
        on_coarse: gets the picture before any are counted.
    """
    groups = groups_of(look)
    time = whole(groups) if window is None else window
    if time is None:
        return Picture(None, (), False)
    marks = tuple(marks_of(groups, look.offsets))
    is_zoomed = window is not None
    coarse = histogram(groups, time, steps)
    if not fine or coarse.exact.all():
        return Picture(coarse, marks, is_zoomed)
    on_coarse(Picture(coarse, marks, is_zoomed))
    groups = counted(log, look, groups, time, coarse.step_ms, stopped)
    marks = tuple(marks_of(groups, look.offsets))  # by now it is known when records are
    return Picture(histogram(groups, time, steps), marks, is_zoomed)
