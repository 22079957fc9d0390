"""The machine can fail: each named defect is caught, and without one nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mutants import CLEANUP_MUTANTS, ERASE_MUTANTS, KEY_MUTANTS, MUTANTS, QUOTA_MUTANTS, Mutant
from stories import run, written_by
from support.cleanup_rules import CleanupRules
from support.erase_rules import EraseRules
from support.key_rules import KeyRules
from support.log_rules import LogRules
from support.machine import log_machine
from support.quota_rules import QuotaRules

#: How many seeds and steps a mutant has to be caught in.
OF_A_LOG = (80, 30)
OF_CLEANUP = (40, 12)

#: Caught within seconds; the others, when asked for.
QUICK = {
    "base id off by one",
    "offsets given out before they are reserved",
    "gap not noted",
    "trim ignores what is archived",
    "an allowance that nobody looks at",
}


class Encrypted(LogRules, KeyRules):
    """A log whose values are encrypted, and how they are changes."""


#: Rules that are run, the mutants they have to catch, and in how many seeds and steps.
KINDS = [
    (LogRules, MUTANTS, OF_A_LOG),
    (CleanupRules, CLEANUP_MUTANTS, OF_CLEANUP),
    (EraseRules, ERASE_MUTANTS, OF_CLEANUP),
    (QuotaRules, QUOTA_MUTANTS, OF_CLEANUP),
    (Encrypted, KEY_MUTANTS, OF_CLEANUP),
]


def test_the_quick_ones_are_there() -> None:
    assert {mutant.name for _, mutants, _ in KINDS for mutant in mutants} >= QUICK


@pytest.mark.parametrize(
    ("rules", "mutant", "stories"),
    [
        pytest.param(
            *(rules, one, stories),
            id=f"{rules.__name__}: {one.name}",
            marks=[] if one.name in QUICK else [pytest.mark.slow],
        )
        for rules, mutants, stories in KINDS
        for one in mutants
    ],
)
def test_the_rules_catch_the_mutant(
    rules: type[Any], mutant: Mutant, stories: tuple[int, int], tmp_path: Path
) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, rules) as machine,
        pytest.raises(mutant.shows),
    ):
        run(written_by("calls", machine), *stories)


@pytest.mark.slow
def test_without_a_mutant_the_same_stories_pass(tmp_path: Path) -> None:
    for rules, _, stories in KINDS:
        with log_machine(tmp_path / rules.__name__, rules) as machine:
            run(written_by("calls", machine), *stories)
