"""What did some work, and why: said in reports and by commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

INLINE, SPARK = "inline", "spark"


class Choice(Struct, frozen=True):
    """What does some work, and why."""

    engine: str  # inline or spark
    why: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.why}"


#: Whatever engine was asked for.
BY_NAME = Choice(SPARK, "tables by name are written by Spark alone")

_WATCHERS: ContextVar[tuple[dict[Choice, None], ...]] = ContextVar("watchers", default=())


class Choices:
    """The choices that were made within a block, each once."""

    def __init__(self) -> None:
        self._made: dict[Choice, None] = {}

    @property
    def made(self) -> tuple[Choice, ...]:
        return tuple(self._made)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Collect what this thread chooses in the block, also in blocks within it."""
        token = _WATCHERS.set((*_WATCHERS.get(), self._made))
        try:
            yield
        finally:
            _WATCHERS.reset(token)


def chosen(choice: Choice) -> None:
    """Tell whoever watches."""
    for made in _WATCHERS.get():
        made[choice] = None
