"""The machine can fail: each named defect is caught, and without one nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from mutants import CLEANUP_MUTANTS, ERASE_MUTANTS, KEY_MUTANTS, MUTANTS, QUOTA_MUTANTS, Mutant
from stories import run, written_by

from lakelog.testing.cleanup_rules import CleanupRules
from lakelog.testing.erase_rules import EraseRules
from lakelog.testing.key_rules import KeyRules
from lakelog.testing.log_rules import LogRules
from lakelog.testing.machine import log_machine
from lakelog.testing.quota_rules import QuotaRules

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


def each(mutants: Sequence[Mutant]) -> list[ParameterSet]:
    return [
        pytest.param(one, id=one.name, marks=[] if one.name in QUICK else [pytest.mark.slow])
        for one in mutants
    ]


def test_the_quick_ones_are_there() -> None:
    assert {mutant.name for mutant in (*MUTANTS, *CLEANUP_MUTANTS, *QUOTA_MUTANTS)} >= QUICK


@pytest.mark.parametrize("mutant", each(MUTANTS))
def test_the_rules_of_a_log_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, LogRules) as machine,
        pytest.raises(mutant.shows),
    ):
        run(written_by("calls", machine), *OF_A_LOG)


@pytest.mark.parametrize("mutant", each(CLEANUP_MUTANTS))
def test_the_rules_of_cleanup_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, CleanupRules) as machine,
        pytest.raises(mutant.shows),
    ):
        run(written_by("calls", machine), *OF_CLEANUP)


@pytest.mark.parametrize("mutant", each(ERASE_MUTANTS))
def test_the_rules_of_erasures_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, EraseRules) as machine,
        pytest.raises(mutant.shows),
    ):
        run(written_by("calls", machine), *OF_CLEANUP)


@pytest.mark.parametrize("mutant", each(QUOTA_MUTANTS))
def test_the_rules_of_quotas_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, QuotaRules) as machine,
        pytest.raises(mutant.shows),
    ):
        run(written_by("calls", machine), *OF_CLEANUP)


class Encrypted(LogRules, KeyRules):
    """A log whose values are encrypted, and how they are changes."""


@pytest.mark.parametrize("mutant", each(KEY_MUTANTS))
def test_the_rules_of_keys_catch_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    with (
        mutant.applied(),
        log_machine(tmp_path, Encrypted) as machine,
        pytest.raises(mutant.shows),
    ):
        run(written_by("calls", machine), *OF_CLEANUP)


@pytest.mark.slow
def test_without_a_mutant_the_same_stories_pass(tmp_path: Path) -> None:
    kinds = (
        (LogRules, OF_A_LOG),
        (CleanupRules, OF_CLEANUP),
        (EraseRules, OF_CLEANUP),
        (QuotaRules, OF_CLEANUP),
        (Encrypted, OF_CLEANUP),
    )
    for rules, (seeds, steps) in kinds:
        with log_machine(tmp_path / rules.__name__, rules) as machine:
            run(written_by("calls", machine), seeds, steps)
