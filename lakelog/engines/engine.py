"""Where functions run: "this picklable function over these values", and nothing about logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Runs one function over many values, perhaps in other processes."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """One result for each task, in any order.

        A task may run more than once (a retry, speculation), and its other results are dropped; the
        function must be safe for that. Its exception is raised here as it was.

        Args:
            function: picklable, with everything it needs bound to it.
            tasks: picklable values; none of them starts nothing.
        """
        ...


class InlineEngine:
    """Runs every task here, one after the other, as its result is asked for."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        return map(function, tasks)
