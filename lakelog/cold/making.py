"""Who may make the table of a topic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .table import ColdTable

#: Held while a table is made. On entry it refuses if the topic has another one, which may be away;
#: on leaving, if somebody made another one meanwhile.
Making = Callable[["ColdTable"], AbstractContextManager[None]]


def unguarded(table: ColdTable) -> AbstractContextManager[None]:
    """Where no Redis can be asked."""
    return nullcontext()
