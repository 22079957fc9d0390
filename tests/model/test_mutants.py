"""The machine can fail: each named defect is caught, and without one nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from hypothesis import Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from lakelog.errors import LakelogError
from lakelog.testing.cleanup_rules import CleanupRules
from lakelog.testing.log_rules import LogRules
from lakelog.testing.machine import log_machine
from lakelog.testing.model import Difference
from lakelog.testing.mutants import CLEANUP_MUTANTS, MUTANTS, Mutant


def run(machine: type[RuleBasedStateMachine], seeds: int, steps: int) -> None:
    """The same stories each time, to the first that fails.

    Some few of each seed: Hypothesis varies what it began with, so many of one are much alike.
    """
    for number in range(seeds):
        run_state_machine_as_test(
            seed(number)(machine),
            settings=settings(
                max_examples=5,
                stateful_step_count=steps,
                database=None,
                phases=[Phase.generate],
                report_multiple_bugs=False,
            ),
        )


#: Caught within seconds; the others, when asked for.
QUICK = {
    "no sequence check",
    "no register check",
    "base id off by one",
    "a gap of a fixed width",
    "a gap as wide as the clock says",
    "offsets given out before they are reserved",
    "gap not noted",
    "clean mark not removed",
    "trim ignores what is archived",
    "open segment expires unasked",
    "age by the oldest record",
    "a stranger's file taken as sorted",
    "young records compacted",
}


def each(mutants: Sequence[Mutant]) -> list[ParameterSet]:
    return [
        pytest.param(one, id=one.name, marks=[] if one.name in QUICK else [pytest.mark.slow])
        for one in mutants
    ]


def test_the_quick_ones_are_there() -> None:
    assert {mutant.name for mutant in (*MUTANTS, *CLEANUP_MUTANTS)} >= QUICK


@pytest.mark.parametrize("mutant", each(MUTANTS))
def test_the_rules_of_a_log_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, LogRules) as machine,
        pytest.raises((Difference, LakelogError)),
    ):
        run(machine, seeds=80, steps=30)


@pytest.mark.parametrize("mutant", each(CLEANUP_MUTANTS))
def test_the_rules_of_cleanup_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, CleanupRules) as machine,
        pytest.raises((Difference, LakelogError)),
    ):
        run(machine, seeds=40, steps=12)


def test_without_a_mutant_the_same_stories_pass(tmp_path: Path) -> None:
    with log_machine(tmp_path / "log", LogRules) as machine:
        run(machine, seeds=2, steps=30)
    with log_machine(tmp_path / "cleanup", CleanupRules) as machine:
        run(machine, seeds=2, steps=12)
