"""The machine can fail: each named defect is caught, and without one nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest
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


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_rules_of_a_log_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, LogRules) as machine,
        pytest.raises((Difference, LakelogError)),
    ):
        run(machine, seeds=80, steps=30)


@pytest.mark.parametrize("mutant", CLEANUP_MUTANTS, ids=lambda mutant: mutant.name)
def test_the_rules_of_cleanup_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, CleanupRules) as machine,
        pytest.raises((Difference, LakelogError)),
    ):
        run(machine, seeds=40, steps=12)


def test_without_a_mutant_the_same_stories_pass(tmp_path: Path) -> None:
    with log_machine(tmp_path / "log", LogRules) as machine:
        run(machine, seeds=4, steps=30)
    with log_machine(tmp_path / "cleanup", CleanupRules) as machine:
        run(machine, seeds=4, steps=12)
