"""Time axes: which part of the time is worth showing."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]

#: The time is cut to a window if the rest would take all but this share of the width.
_WORTH = 1 / 20


def inner_window(starts: Numbers, ends: Numbers, weights: Numbers, tail: float) -> Any:
    """The window that holds nearly everything, if the rest would squeeze it flat.

    A producer with a wrong clock is enough: one record of the year 2099 among an hour's.

    Args:
        starts, ends: of each stretch, in one unit, the ends exclusive.
        weights: the weight of each.
        tail: the share of the weight, at either end, that may lie outside.

    Returns:
        (start, end), or None if all of the time can be drawn.
    """
    if not len(starts):
        return None
    order = np.argsort(starts + (ends - starts) / 2, kind="stable")
    share = weights[order] / weights.sum()
    up_to = np.cumsum(share)
    inside = order[(up_to > tail) & (up_to - share < 1 - tail)]
    if not len(inside):
        return None
    start, end = starts[inside].min(), ends[inside].max()
    if end - start >= (ends.max() - starts.min()) * _WORTH:
        return None
    near = (starts >= start - (end - start)) & (ends <= end + (end - start))
    return starts[near].min(), ends[near].max()
