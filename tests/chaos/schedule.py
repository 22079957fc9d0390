"""What happens when: pure, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

#: The longest round. A long run is many rounds, so that histories stay small and ends are frequent.
ROUND_S = 240.0

#: What a round needs besides its acts: servers and processes start, the end is read and judged.
ROUND_OVERHEAD_S = 14.0

#: What of it comes after the acts.
ROUND_END_S = 7.0

#: The longest pause between two acts of a lane, as a multiple of the average.
LONGEST_PAUSE = 1.6

#: No round is shorter: processes that have just started have nothing to lose.
LEAST_ROUND_S = 10.0


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done to a round."""

    at_s: float  # since the round's processes run
    nemesis: str  # what is done, a name of `nemesis`
    seconds: float  # for how long; meaningless for kills
    draw: int  # what the nemesis draws whom and how hard from

    def __str__(self) -> str:
        return f"{self.at_s:6.1f} s  {self.nemesis:<18} {self.seconds:5.1f} s  draw {self.draw}"


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One scenario for a while, under a seed of its own."""

    number: int
    scenario: str
    seconds: float  # in which acts happen, at most
    ends_s: float  # when they end at the latest, since the run began: a slow machine does fewer
    seed: int


@dataclass(frozen=True, slots=True)
class Lane:
    """Acts that happen one after the other, or begin so; those of two lanes overlap."""

    nemeses: Sequence[str]
    pause_s: float  # between two acts, on average, at most
    longest_s: float  # an act
    overlaps: bool = False  # whether one may begin before the last one is over


def rounds(seed: int, minutes: float, scenarios: Sequence[str]) -> list[RoundPlan]:
    """Rounds that fill the time, each scenario in turn."""
    total_s = minutes * 60
    count = max(len(scenarios), round(total_s / (ROUND_S + ROUND_OVERHEAD_S)))
    seconds = max(LEAST_ROUND_S, total_s / count - ROUND_OVERHEAD_S)
    draws = random.Random(seed)
    return [
        RoundPlan(
            number,
            scenarios[number % len(scenarios)],
            seconds,
            (number + 1) * total_s / count - ROUND_END_S,
            draws.getrandbits(32),
        )
        for number in range(count)
    ]


def acts(seed: int, seconds: float, lanes: Sequence[Lane]) -> list[Act]:
    """The acts of a round in order; each nemesis of a lane comes up before any comes again."""
    draws = random.Random(seed)
    found = []
    for lane in lanes:
        left: list[str] = []
        missing = len(lane.nemeses)  # that have not come up yet
        # So short that, in a short round too, each comes up.
        pause_s = min(lane.pause_s, seconds / (2 * len(lane.nemeses)))
        at_s = draws.uniform(0.5, 1.0) * pause_s
        while at_s < seconds:
            if not left:
                left = list(lane.nemeses)
                draws.shuffle(left)
            longest_s = min(lane.longest_s, seconds / 2)
            # Most outages are short, some are long.
            length_s = min(longest_s, 0.3 + draws.expovariate(4 / longest_s))
            missing = max(0, missing - 1)
            if missing and not lane.overlaps:  # however long it is, the others come up too
                length_s = min(length_s, seconds - at_s - missing * (LONGEST_PAUSE * pause_s + 0.4))
            length_s = min(max(0.3, length_s), seconds - at_s)
            found.append(Act(round(at_s, 2), left.pop(), round(length_s, 2), draws.getrandbits(32)))
            at_s += pause_s * draws.uniform(0.4, LONGEST_PAUSE)
            if not lane.overlaps:
                at_s += length_s
    return sorted(found, key=lambda act: act.at_s)
