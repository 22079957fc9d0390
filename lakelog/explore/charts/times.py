"""Time axes: which part of the time is worth the width."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]

#: A window is cut when what lies outside it would take all but this share of the width.
_WORTH = 1 / 20


def inner_window(starts: Numbers, ends: Numbers, weights: Numbers, tail: float) -> Any:
    """The part of the time that nearly all lies in, when the rest would squeeze it flat.

    A producer with a wrong clock is enough: one record of the year 2099 among an hour's.

    Args:
        starts, ends: of each stretch, in one unit, the ends exclusive.
        weights: what each is worth.
        tail: the share of the weight, at either end, that may lie outside.

    Returns:
        (start, end), or None where all of the time can be drawn.
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
