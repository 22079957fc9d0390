"""Records over time by tier, out of groups of records of which only the ends are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

Numbers = np.ndarray[Any, Any]

#: The tiers of a group, and the rows of `Histogram.counts`.
COLD, BOTH, HOT = 0, 1, 2
TIERS = ("cold", "both", "hot")

#: The time is cut to a window if the rest would take all but this share of the width.
_WORTH = 1 / 20
#: The share of records, at either end of the time, that may lie outside the whole.
_TAIL = 0.001


class Groups(Struct, frozen=True, eq=False):
    """Neighbouring records, group by group, as columns of the same length.

    What lies within a group is taken to be spread evenly, over its offsets and over its time.
    """

    partition: Numbers
    start: Numbers  # offset
    end: Numbers  # exclusive
    records: Numbers  # float
    min_ms: Numbers  # -1: without a timestamp, or it is not known
    max_ms: Numbers  # inclusive
    tier: Numbers
    certain: Numbers  # 1: the times are those of the least and the largest record

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> Groups:
        """From rows in the order of the columns."""
        columns = [*zip(*rows, strict=True)] if rows else [()] * 8
        return cls(
            *(
                np.asarray(column, float if name == "records" else np.int64)
                for name, column in zip(cls.__struct_fields__, columns, strict=True)
            )
        )

    @classmethod
    def joined(cls, parts: Iterable[Groups]) -> Groups:
        """All of them."""
        several = [cls.of([]), *parts]
        return cls(
            *(np.concatenate([getattr(one, n) for one in several]) for n in cls.__struct_fields__)
        )

    def where(self, rows: Numbers) -> Groups:
        """Those of a mask, or of row numbers."""
        return Groups(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    def __len__(self) -> int:
        return len(self.records)

    @property
    def is_timed(self) -> Numbers:
        return self.min_ms >= 0


def whole(groups: Groups) -> tuple[int, int] | None:
    """The time [start, end) that nearly all records lie in; None if no time is known of any."""
    timed = groups.where(groups.is_timed & (groups.records > 0))
    if not len(timed):
        return None
    starts, ends = timed.min_ms, timed.max_ms + 1
    inner = inner_window(starts, ends, timed.records, _TAIL)
    low, high = (starts.min(), ends.max()) if inner is None else inner
    return int(low), int(high)


def inner_window(
    starts: Numbers, ends: Numbers, weights: Numbers, tail: float
) -> tuple[Any, Any] | None:
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


class Histogram(Struct, frozen=True, eq=False):
    """How many records there are in each step of a time.

    Args:
        edges_ms: ascending; a step is [edge, next edge).
        counts: a row for each of `TIERS`, a column for each step.
        exact: of each step, whether its records were counted, not estimated.
        spread_ms: over which time the records of a step were spread, on average; NaN without any.
        untimed: records without a timestamp, or of which none is known.
        outside: records before or after the time.
    """

    edges_ms: Numbers
    counts: Numbers
    exact: Numbers
    spread_ms: Numbers
    untimed: float
    outside: float

    @property
    def step_ms(self) -> float:
        return float(self.edges_ms[1] - self.edges_ms[0])

    @property
    def totals(self) -> Numbers:
        """Of all tiers, by step."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def records(self) -> float:
        return float(self.counts.sum())


def edges(window: tuple[int, int], steps: int) -> Numbers:
    """The edges of equal steps of a time.

    Args:
        window: [start, end) in ms; the last step may reach further.
        steps: at most; none is shorter than a millisecond, so that a record is in one step.
    """
    start, end = window
    step = -(-max(1, end - start) // steps)
    steps = -(-max(1, end - start) // step)
    return np.asarray(start + step * np.arange(steps + 1, dtype=np.int64))


def histogram(groups: Groups, edges_ms: Numbers) -> Histogram:
    """The records of the groups in the equal steps between edges."""
    steps = len(edges_ms) - 1
    timed = groups.where(groups.is_timed)
    untimed = float(groups.records.sum() - timed.records.sum())
    first, last = _reach(timed, edges_ms)
    counts, weighted = np.zeros((len(TIERS), steps)), np.zeros(steps)
    exact = np.ones(steps, bool)
    within = (first == last) & (first >= 0) & (first < steps)
    exact[first[within & (timed.certain == 0)]] = False
    np.add.at(counts, (timed.tier[within], first[within]), timed.records[within])
    lasting = timed.max_ms - timed.min_ms + 1
    np.add.at(weighted, first[within], (timed.records * lasting)[within])
    wide = timed.where((first != last) & (last >= 0) & (first < steps))
    low, high = (np.clip(one, 0, steps - 1) for one in _reach(wide, edges_ms))
    times = high - low + 1  # a row for each step that a group reaches into
    group = np.repeat(np.arange(len(wide)), times)
    if len(group):
        at = np.arange(len(group)) - np.repeat(np.cumsum(times) - times, times) + low[group]
        begin, stop = wide.min_ms[group], wide.max_ms[group] + 1
        over = np.minimum(stop, edges_ms[at + 1]) - np.maximum(begin, edges_ms[at])
        share = wide.records[group] * over / (stop - begin)
        np.add.at(counts, (wide.tier[group], at), share)
        np.add.at(weighted, at, share * (stop - begin))
        exact[at] = False
    outside = max(0.0, float(timed.records.sum() - counts.sum()))
    total = counts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread_ms = np.where(total > 0, weighted / total, np.nan)
    return Histogram(edges_ms, counts, exact, spread_ms, untimed, outside)


def _reach(groups: Groups, edges_ms: Numbers) -> tuple[Numbers, Numbers]:
    """The first and the last step that each group reaches into."""
    start, step = int(edges_ms[0]), int(edges_ms[1] - edges_ms[0])
    return np.floor_divide(groups.min_ms - start, step), np.floor_divide(
        groups.max_ms - start, step
    )
