"""The real log and the model, side by side, whatever happens in whatever order.

A longer run, 200 stories of 50 steps in some four minutes: ``pytest -m slow tests/model``; a whole
night: with ``HYPOTHESIS_PROFILE=nightly`` before it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from lakelog.testing.machine import log_machine


def test_log_and_model_never_differ(tmp_path: Path) -> None:
    with log_machine(tmp_path) as machine:
        run_state_machine_as_test(
            machine, settings=settings(max_examples=12, stateful_step_count=30)
        )


@pytest.mark.slow
def test_log_and_model_never_differ_in_a_long_run(tmp_path: Path) -> None:
    with log_machine(tmp_path) as machine:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=max(200, settings().max_examples), stateful_step_count=50
            ),
        )
