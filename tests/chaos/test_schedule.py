from __future__ import annotations

from itertools import pairwise

import pytest

from .scenario import SCENARIOS
from .schedule import acts, rounds

NAMES = list(SCENARIOS)


def test_the_same_seed_gives_the_same_rounds_and_acts() -> None:
    for plan, again in zip(rounds(7, 60, NAMES), rounds(7, 60, NAMES), strict=True):
        lanes = SCENARIOS[plan.scenario].lanes
        assert plan == again
        assert acts(plan.seed, plan.seconds, lanes) == acts(again.seed, again.seconds, lanes)


def test_rounds_of_one_run_differ() -> None:
    seeds = [plan.seed for plan in rounds(7, 60, NAMES)]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize("minutes", [2, 10, 60])
def test_every_scenario_comes_up_within_the_time(minutes: int) -> None:
    plans = rounds(1, minutes, NAMES)
    assert {plan.scenario for plan in plans} == set(NAMES)
    assert sum(plan.seconds for plan in plans) <= 60 * minutes


@pytest.mark.parametrize("name", NAMES)
def test_acts_are_in_order_within_their_round_and_leave_none_out(name: str) -> None:
    lanes = SCENARIOS[name].lanes
    found = acts(3, 240, lanes)
    assert [act.at_s for act in found] == sorted(act.at_s for act in found)
    assert all(act.at_s >= 0 and act.at_s + act.seconds <= 240.01 for act in found)
    assert {act.nemesis for act in found} == {name for lane in lanes for name in lane.nemeses}


@pytest.mark.parametrize("name", NAMES)
def test_acts_of_a_lane_that_do_not_overlap_follow_one_another(name: str) -> None:
    for lane in SCENARIOS[name].lanes:
        found = acts(5, 120, [lane])
        if not lane.overlaps:
            for before, after in pairwise(found):
                assert before.at_s + before.seconds <= after.at_s + 0.02
