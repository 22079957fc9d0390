"""Figures that grow with a count, as curves: read out of rows, and how steep they are. Pure.

A row of `growth` is one point of a curve, and says so in its words: ``partitions 1,000: create``.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

from .measures import OURS, Row, Unit

#: A curve with this suffix says how much of another one's time a process was on a CPU.
CPU_HERE, CPU_OF_REDIS = ", CPU here", ", CPU of Redis"

#: Between two neighbours; what is linear comes out a little above 1 now and then.
SUPERLINEAR = 1.2

_POINT = re.compile(r"(?P<axis>\D+) (?P<at>[\d,]+): (?P<measure>.+)")


@dataclass(frozen=True)
class Point:
    """What was measured with so many of what the axis names."""

    axis: str
    at: int
    measure: str

    def __str__(self) -> str:
        return f"{self.axis} {self.at:,}: {self.measure}"

    @classmethod
    def of(cls, text: str) -> Point:
        """Reads `str` of one.

        Raises:
            ValueError: it is none.
        """
        found = _POINT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no point of a curve, as 'partitions 10: create' is")
        return cls(found["axis"], int(found["at"].replace(",", "")), found["measure"])


@dataclass(frozen=True)
class Curve:
    """A figure by the count it was measured at, from the smallest count on."""

    axis: str
    measure: str
    unit: Unit
    points: tuple[tuple[int, float], ...]

    @property
    def last(self) -> float:
        return self.points[-1][1]

    def slopes(self) -> list[tuple[int, int, float]]:
        """From which count to which with which power it grows, neighbour by neighbour.

        A slope is that of a straight line where both scales are logarithmic: 0 is what does not
        grow, 1 what is linear, 2 what is quadratic.
        """
        return [
            (before, at, math.log(value / old) / math.log(at / before))
            for (before, old), (at, value) in pairwise(self.points)
            if old > 0 and value > 0
        ]

    def steepest(self) -> tuple[int, int, float] | None:
        """None: there are no two points."""
        return max(self.slopes(), key=lambda one: one[2], default=None)

    @property
    def is_superlinear(self) -> bool:
        steepest = self.steepest()
        return steepest is not None and steepest[2] > SUPERLINEAR

    def __add__(self, other: Curve) -> Curve:
        """The sum at each count that both have, under the name of the first."""
        more = dict(other.points)
        points = tuple((at, value + more[at]) for at, value in self.points if at in more)
        return Curve(self.axis, self.measure, self.unit, points)


def curves(rows: Iterable[Row]) -> list[Curve]:
    """In the order in which the rows name them first."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    units: dict[tuple[str, str], Unit] = {}
    for row in rows:
        point = Point.of(row.what)
        found.setdefault((point.axis, point.measure), []).append((point.at, row.median(OURS)))
        units[point.axis, point.measure] = row.unit
    return [Curve(*of, units[of], tuple(sorted(points))) for of, points in found.items()]


def without_parts(found: Iterable[Curve]) -> Iterator[Curve]:
    """Those that are not the CPU time of another one."""
    return (one for one in found if not one.measure.endswith((CPU_HERE, CPU_OF_REDIS)))


def work(found: Sequence[Curve], of: Curve) -> Curve:
    """A curve's CPU time, if it was measured, which others on the machine disturb less; else it."""
    parts = [one for suffix in (CPU_HERE, CPU_OF_REDIS) if (one := part(found, of, suffix))]
    return replace(reduce(operator.add, parts), measure=of.measure) if parts else of


def part(found: Iterable[Curve], of: Curve, suffix: str) -> Curve | None:
    """The CPU time of a curve, if it was measured."""
    return next((c for c in found if (c.axis, c.measure) == (of.axis, of.measure + suffix)), None)
