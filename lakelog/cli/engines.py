"""What did the work of a command, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .output import Table

if TYPE_CHECKING:
    from ..engines.engine import Choice

#: Reasons that are printed; of more topics, how many there are.
_REASONS = 3


def engine_names(choices: Sequence[Choice]) -> str | None:
    """The engines, as one column has them; None: nothing was to be done."""
    return " and ".join(dict.fromkeys(choice.engine for choice in choices)) or None


def say_engines(choices: Mapping[str, Sequence[Choice]]) -> None:
    """Say on standard error what did the work of each topic, and why."""
    lines = [f"  {topic}: engine {one}" for topic, made in choices.items() for one in made]
    for line in lines[:_REASONS]:
        print(line, file=sys.stderr)
    if len(lines) > _REASONS:
        names = engine_names([one for made in choices.values() for one in made])
        print(f"  and {len(lines) - _REASONS:,} more topics: {names}", file=sys.stderr)


def engines_table(choices: Mapping[str, Sequence[Choice]]) -> Table:
    """The same, for JSON."""
    return Table(
        [
            {"topic": topic, "engine": one.engine, "why": one.why}
            for topic, made in choices.items()
            for one in made
        ]
    )
