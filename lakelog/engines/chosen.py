"""What was chosen while something ran, for the report about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .choice import Choice, Work

_WATCHERS: ContextVar[tuple[dict[Choice, None], ...]] = ContextVar("watchers", default=())
_WHOLE: ContextVar[Work | None] = ContextVar("whole", default=None)


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


@contextmanager
def part_of(whole: Work) -> Iterator[None]:
    """What this thread gives to engines in the block is a part of so much work: they choose as if
    they were asked for all of it.
    """
    token = _WHOLE.set(whole)
    try:
        yield
    finally:
        _WHOLE.reset(token)


def whole_work() -> Work | None:
    """What the work that is asked for now is a part of; None: it is all."""
    return _WHOLE.get()
