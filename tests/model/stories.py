"""Stories of the state machine that are the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis import Phase, seed, settings
from hypothesis.internal.conjecture import providers
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from support.harness import LogHarness


def written_by(writer: str, machine: type[LogHarness]) -> type[LogHarness]:
    """The machine with that writer alone in its stories: the others have other defects."""
    return type(machine.__name__, (machine,), {"WRITERS": (writer,)})


def run(machine: type[RuleBasedStateMachine], seeds: int, steps: int) -> None:
    """The same stories each time, to the first that fails.

    Some few of each seed: Hypothesis varies what it began with, so many of one are much alike.
    """
    with _whatever_is_imported():
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


@contextmanager
def _whatever_is_imported() -> Iterator[None]:
    """Draw no constants out of the project's modules.

    Hypothesis takes some from the source of each module that was imported by then, so that a seed
    alone tells another story beside other tests.
    """
    with (
        patch.object(providers, "_get_local_constants", providers.Constants),
        patch.object(providers, "CONSTANTS_CACHE", type(providers.CONSTANTS_CACHE)(1024)),
    ):
        yield
