"""What is measured: lakelog's figures and those of its peers and limits, round by round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

OURS = "lakelog"


@dataclass(frozen=True)
class Unit:
    """Of a figure: its name, and whether more of it is better."""

    name: str
    more_is_better: bool = False

    def show(self, value: float) -> str:
        """In as few digits as say something."""
        if self.name == "s":
            scale, name = next(
                (found for found in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if value * found[0] >= 1),
                (1e6, "µs"),
            )
            return f"{_digits(value * scale)} {name}"
        if self.name == "B":
            for name in ("B", "KiB", "MiB"):
                if value < 1024:
                    return f"{_digits(value)} {name}"
                value /= 1024
            return f"{_digits(value)} GiB"
        if not self.more_is_better:
            return f"{_digits(value)}{self.name}"
        return (
            f"{_digits(value / 1e6)} M{self.name}" if value >= 1e6 else f"{value:,.0f}{self.name}"
        )


RECORDS_PER_S = Unit("/s", more_is_better=True)
BYTES_PER_S = Unit("B/s", more_is_better=True)
SECONDS = Unit("s")
BYTES = Unit("B")
COUNT = Unit("")
CORES = Unit(" of a core")
UNITS = {unit.name: unit for unit in (RECORDS_PER_S, BYTES_PER_S, SECONDS, BYTES, COUNT, CORES)}


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}" if value < 1 else f"{value:.2f}"


@dataclass(frozen=True)
class Goal:
    """So many times as good as another side at least; or, without one, a figure that is not worse.

    `times` of 2.0 against a side is twice its rate, or half its time or size.
    """

    at_least: float
    than: str | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `samples` has each side's figures in order of their rounds, one at least; `OURS` is a side.
    """

    what: str
    unit: Unit
    samples: Mapping[str, tuple[float, ...]]
    goals: tuple[Goal, ...] = ()

    def __post_init__(self) -> None:
        if OURS not in self.samples or not all(self.samples.values()):
            raise ValueError(f"{self.what!r} has nothing measured of {OURS} or of another side")

    @property
    def ours(self) -> float:
        return self.median(OURS)

    @property
    def others(self) -> list[str]:
        return [side for side in self.samples if side != OURS]

    def median(self, side: str) -> float:
        return statistics.median(self.samples[side])

    def spread(self, side: str) -> float:
        """Half the distance of the quartiles, as a share of the median; 0 for a single round."""
        return _spread(self.samples[side])

    def ratios(self, side: str) -> list[float]:
        """How many times as good as `side`, round by round; whatever slowed a round slowed both."""
        ours, theirs = self.samples[OURS], self.samples[side]
        if len(ours) != len(theirs):
            ours, theirs = (self.ours,), (self.median(side),)
        more = self.unit.more_is_better
        return [times_as_good(a, b, more=more) for a, b in zip(ours, theirs, strict=True)]

    def times(self, side: str) -> float:
        return statistics.median(self.ratios(side))

    def times_spread(self, side: str) -> float:
        return _spread(self.ratios(side))

    def missed(self) -> list[Goal]:
        """Goals that are not reached; one against a side that was not measured is none."""
        return [goal for goal in self.goals if not self._is_reached(goal)]

    def _is_reached(self, goal: Goal) -> bool:
        if goal.than is None:
            better = self.ours >= goal.at_least
            return better if self.unit.more_is_better else self.ours <= goal.at_least
        return goal.than not in self.samples or self.times(goal.than) >= goal.at_least


def times_as_good(ours: float, theirs: float, *, more: bool) -> float:
    """Of two figures of which the larger (`more`) or the smaller is better.

    Infinitely many times where only one is 0, as the time on a CPU is that was hardly used.
    """
    above, below = (ours, theirs) if more else (theirs, ours)
    if above == below:
        return 1.0
    return above / below if below else math.inf


def quantile(values: Iterable[float], share: float) -> float:
    """The value that such a share of all is not above."""
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]


def _spread(values: tuple[float, ...] | list[float]) -> float:
    median = statistics.median(values)
    if len(values) < 2 or not median or math.isinf(median):
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / median
