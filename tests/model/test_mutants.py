"""The machine can fail: each named defect is caught, and without one nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from lakelog.errors import LakelogError
from lakelog.testing.machine import log_machine
from lakelog.testing.model import Difference
from lakelog.testing.mutants import MUTANTS, Mutant


def run(machine: type[RuleBasedStateMachine], max_examples: int) -> None:
    """The same stories each time, to the first that fails."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max_examples,
            stateful_step_count=30,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
        ),
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_machine_catches_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path) as machine,
        pytest.raises((Difference, LakelogError)),
    ):
        run(machine, max_examples=400)


def test_without_a_mutant_the_same_stories_pass(tmp_path: Path) -> None:
    with log_machine(tmp_path) as machine:
        run(machine, max_examples=40)
