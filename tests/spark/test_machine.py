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

from lakelog.testing.spark_machine import named_table_machine, spark_engine_machine

#: A step takes seconds: what fails is shown as it was found, not made smaller.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=steps, phases=PHASES),
    )


@pytest.mark.parametrize(
    "examples", [3, pytest.param(20, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_what_sparks_tasks_archive_is_what_the_model_has(
    tmp_path: Path, spark: Any, examples: int
) -> None:
    with spark_engine_machine(tmp_path, spark) as machine:
        run(machine, examples, steps=20)


@pytest.mark.slow
def test_a_log_whose_table_has_a_name_is_what_the_model_has(
    tmp_path: Path, spark: Any, schema: str
) -> None:
    with named_table_machine(tmp_path, spark, schema) as machine:
        run(machine, examples=10, steps=20)
