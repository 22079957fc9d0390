"""Runs a state machine of groups: always the same stories, unless ``--hypothesis-seed`` asks for
others; perhaps with other scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, Phase, core, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from lakelog.hot import scripts


def run(
    machine: type[RuleBasedStateMachine], examples: int, steps: int, *, shrink: bool = True
) -> None:
    """So many stories of at most so many steps; without `shrink`, a failing one as it is."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=core.global_force_seed is None,  # it would not heed the option
            database=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
            deadline=None,
        ),
    )


@contextmanager
def scripts_changed(is_of: Callable[[str], bool], changes: Mapping[str, str]) -> Iterator[None]:
    """The scripts whose names `is_of` takes have other text in the place of each that is named.

    Raises:
        LookupError: a script that is called has no such text any more.
    """
    original = scripts.script_text

    def changed(name: str, *of: Any) -> str:
        text = original(name, *of)
        if is_of(name):
            for old, new in changes.items():
                if old not in text:
                    raise LookupError(f"{name}.lua has no {old!r} any more")
                text = text.replace(old, new)
        return text

    scripts.script_sha.cache_clear()
    try:
        with mock.patch.object(scripts, "script_text", changed):
            yield
    finally:
        scripts.script_sha.cache_clear()
