"""Runs a state machine of groups: always the same stories."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run(
    machine: type[RuleBasedStateMachine], examples: int, steps: int, *, shrink: bool = True
) -> None:
    """So many stories of at most so many steps; without `shrink`, a failing one as it is."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
            deadline=None,
        ),
    )
