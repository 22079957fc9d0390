"""The state machine over what Spark archives, at a path and by name.

A few short stories with Spark's tasks; more, and those of a table by name, with
``pytest -m slow tests/spark/test_machine.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from msgspec.structs import replace
from mutants import Mutant, patched
from stories import run as run_stories
from support.spark_machine import named_table_machine, spark_engine_machine

from lakelog.cold.by_name import commit
from lakelog.cold.by_name.notes import Note
from lakelog.cold.by_name.runs import Run
from lakelog.errors import ContradictionError
from lakelog.testing.model import Difference
from tests.support.unity_catalog import SPARKS_OWN

#: A step takes seconds: what fails is shown as it was found, not made smaller.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=steps, phases=PHASES),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "examples", [2, pytest.param(20, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_what_sparks_tasks_archive_is_what_the_model_has(
    tmp_path: Path, spark: Any, examples: int
) -> None:
    with spark_engine_machine(tmp_path, spark) as machine:
        run(machine, examples, steps=20)


@pytest.mark.slow
def test_a_log_whose_table_has_a_name_is_what_the_model_has(
    tmp_path: Path, spark: Any, schema: str, catalog: str, tables_at: str
) -> None:
    with named_table_machine(tmp_path, spark, schema, tables_at) as machine:
        # A server is asked dozens of times for each step.
        run(machine, examples=10 if catalog == SPARKS_OWN else 3, steps=20)


def _where_without_bounds(self: Run, start: int, end: int) -> str:
    return (
        f"partition = {self.partition} AND segment BETWEEN {self.first_segment} AND "
        f"{self.last_segment}"
    )


_note = commit._note


def _note_without_registers(*planned: Any) -> Note:
    note = _note(*planned)
    return replace(note, registers=dict.fromkeys(note.registers, 0))


MUTANTS = (
    Mutant(
        "a range by name without its bounds",
        "a read has the records of its range and no other",
        patched(Run, "where", _where_without_bounds),
    ),
    Mutant(
        "registers that a note forgets",
        "a register moves in the commit of the files that it speaks of",
        patched(commit, "_note", _note_without_registers),
        shows=(Difference, ContradictionError),
    ),
)


@pytest.mark.slow
@pytest.mark.usefixtures("through_spark")  # whose queries one of them changes
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_rules_of_a_log_catch_the_mutant_of_a_table_by_name(
    mutant: Mutant, tmp_path: Path, spark: Any, schema: str, tables_at: str
) -> None:
    with (
        mutant.applied(),
        named_table_machine(tmp_path, spark, schema, tables_at) as machine,
        pytest.raises(mutant.shows),
    ):
        run_stories(machine, seeds=6, steps=20)
