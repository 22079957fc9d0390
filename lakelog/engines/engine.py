"""Where functions run: "this picklable function over these values", and nothing about logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from .choice import INLINE, Choice
from .chosen import chosen
from .places import Places

T = TypeVar("T")
R = TypeVar("R")

#: Tasks that run in this process at a time, whoever asks. Copying a hot range holds about 110 MiB
#: (two steps, a row group and what Parquet makes of it), one with a large record 220 MiB: together
#: with what the process and Arrow's allocator hold besides they stay below 512 MiB; three do not
#: always. On two cores, where it was tried, more were no faster.
TASKS_AT_ONCE = 2

_PLACES = Places(TASKS_AT_ONCE)


class Engine(Protocol):
    """Runs one function over many values, perhaps in other processes."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """One result for each task, in any order.

        A task may run more than once (a retry, speculation), and its other results are dropped; the
        function must be safe for that. Its exception is raised here as it was.

        Args:
            function: picklable, with everything it needs bound to it.
            tasks: picklable values; none of them starts nothing. One that has `work` says by it
                how much it does.
        """
        ...


class InlineEngine:
    """Runs every task here, one after the other, as its result is asked for.

    Several threads may ask; then `TASKS_AT_ONCE` tasks run at a time.
    """

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `Engine.map`."""
        if tasks:
            chosen(_ASKED)
        return self.run(function, tasks)

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """As `map`, for who has said already why it runs here."""
        return map(partial(_run, function), tasks)


_ASKED = Choice(INLINE, "as asked")


def _run(function: Callable[[T], R], task: T) -> R:
    with _PLACES.taken():
        return function(task)
