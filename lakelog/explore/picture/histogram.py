"""Records over time by tier, out of groups of records of which only the ends are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from ..charts.times import inner_window

Numbers = np.ndarray[Any, Any]

#: The tiers of a group, and the rows of `Histogram.counts`.
COLD, BOTH, HOT = 0, 1, 2
TIERS = ("cold", "both", "hot")

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
    def of(cls, rows: list[tuple[Any, ...]]) -> Groups:
        """From rows in the order of the columns."""
        columns = [*zip(*rows, strict=True)] if rows else [()] * 8
        return cls(
            *(
                np.asarray(column, float if name == "records" else np.int64)
                for name, column in zip(cls.__struct_fields__, columns, strict=True)
            )
        )

    @classmethod
    def joined(cls, parts: list[Groups]) -> Groups:
        """All of them."""
        if not parts:
            return cls.of([])
        return cls(
            *(np.concatenate([getattr(one, n) for one in parts]) for n in cls.__struct_fields__)
        )

    def where(self, mask: Numbers) -> Groups:
        """Those for which it is true."""
        return Groups(*(getattr(self, name)[mask] for name in self.__struct_fields__))

    def __len__(self) -> int:
        return len(self.records)

    @property
    def is_timed(self) -> Numbers:
        return self.min_ms >= 0


class Histogram(Struct, frozen=True, eq=False):
    """How many records there are in each step of a time.

    Args:
        edges_ms: ascending; a step is [edge, next edge).
        counts: a row for each of `TIERS`, a column for each step.
        exact: of each step, whether its records were counted, not estimated.
        untimed: records without a timestamp, or of which none is known.
        outside: records before or after the time.
    """

    edges_ms: Numbers
    counts: Numbers
    exact: Numbers
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


def whole(groups: Groups) -> tuple[int, int] | None:
    """The time [start, end) that nearly all records lie in; None if no time is known of any."""
    timed = groups.where(groups.is_timed & (groups.records > 0))
    if not len(timed):
        return None
    starts, ends = timed.min_ms, timed.max_ms + 1
    inner = inner_window(starts, ends, timed.records, _TAIL)
    low, high = (starts.min(), ends.max()) if inner is None else inner
    return int(low), int(high)


def histogram(groups: Groups, window: tuple[int, int], steps: int) -> Histogram:
    """The records of the groups in equal steps of a time.

    Args:
        window: [start, end) in ms; the last step may reach further.
        steps: at most; none is shorter than a millisecond.
    """
    start, end = window
    step = -(-max(1, end - start) // steps)  # whole milliseconds: a record is in one step
    steps = -(-max(1, end - start) // step)
    edges = start + step * np.arange(steps + 1, dtype=np.int64)
    timed = groups.where(groups.is_timed)
    untimed = float(groups.records.sum() - timed.records.sum())
    first = np.floor_divide(timed.min_ms - start, step)
    last = np.floor_divide(timed.max_ms - start, step)
    counts = np.zeros((len(TIERS), steps))
    exact = np.ones(steps, bool)
    within = (first == last) & (first >= 0) & (first < steps)
    exact[first[within & (timed.certain == 0)]] = False
    np.add.at(counts, (timed.tier[within], first[within]), timed.records[within])
    wide = timed.where((first != last) & (last >= 0) & (first < steps))
    low = np.clip(np.floor_divide(wide.min_ms - start, step), 0, steps - 1)
    high = np.clip(np.floor_divide(wide.max_ms - start, step), 0, steps - 1)
    times = high - low + 1  # a row for each step that a group reaches into
    group = np.repeat(np.arange(len(wide)), times)
    if len(group):
        at = np.arange(len(group)) - np.repeat(np.cumsum(times) - times, times) + low[group]
        begin, stop = wide.min_ms[group], wide.max_ms[group] + 1
        over = np.minimum(stop, edges[at + 1]) - np.maximum(begin, edges[at])
        np.add.at(counts, (wide.tier[group], at), wide.records[group] * over / (stop - begin))
        exact[at] = False
    outside = max(0.0, float(timed.records.sum() - counts.sum()))
    return Histogram(edges, counts, exact, untimed, outside)
