"""Where functions run: "this picklable function over these values", and nothing about logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from .at_once import each_at_once
from .choice import INLINE, Choice, Work
from .chosen import chosen
from .places import Places

T = TypeVar("T")
R = TypeVar("R")

#: Tasks that run in this process at a time, whoever asks. Copying a hot range holds about 110 MiB
#: (two steps, a row group and what Parquet makes of it), one with a large record 220 MiB: together
#: with what the process and Arrow's allocator hold besides they stay below 512 MiB; three do not
#: always. On two cores, where it was tried, more were no faster.
TASKS_AT_ONCE = 2

#: Less work than this, in seconds of one thread, is not worth threads.
THREADS_S = 0.1

_PLACES = Places(TASKS_AT_ONCE)


class Engine(Protocol):
    """Runs one function over many values, perhaps in other processes."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """One result for each task, in any order.

        A task may run more than once (a retry, speculation), and its other results are dropped; the
        function must be safe for that. Its exception is raised here as it was, after the results
        of the tasks that were done.

        Args:
            function: picklable, with everything it needs bound to it.
            tasks: picklable values; none of them starts nothing. One that has `work` says by it
                how much it does.
        """
        ...


class InlineEngine:
    """Runs every task here: small ones one after the other, as their results are asked for, others
    at once, in threads.

    However many threads ask, `TASKS_AT_ONCE` tasks run at a time.
    """

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `Engine.map`."""
        if tasks:
            chosen(_ASKED)
        return self.run(function, tasks)

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """As `map`, for who has said already why it runs here."""
        if len(tasks) < 2 or Work.sum(Work.of(tasks)).seconds < THREADS_S:
            return map(partial(_run, function), tasks)
        return _run_at_once(function, tasks)


_ASKED = Choice(INLINE, "as asked")


def _run_at_once(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
    """The results, in no order. Arrow does most of the work, and does it without Python's lock."""
    found: list[R] = []
    failure: Exception | None = None
    try:
        each_at_once(tasks, lambda task: found.append(_run(function, task)), TASKS_AT_ONCE)
    except Exception as error:
        failure = error
    yield from found
    if failure is not None:
        raise failure


def _run(function: Callable[[T], R], task: T) -> R:
    with _PLACES.taken():
        return function(task)
