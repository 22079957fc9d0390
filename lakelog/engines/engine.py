"""Where functions run: "this picklable function over these values", and nothing about logs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct

from .threads import each_at_once

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


T = TypeVar("T")
R = TypeVar("R")

#: Tasks that run in this process at a time, whoever asks. Copying a hot range holds about 110 MiB
#: (two steps, a row group and what Parquet makes of it), one with a large record 220 MiB: together
#: with what the process and Arrow's allocator hold besides they stay below 512 MiB; three do not
#: always. On two cores, where it was tried, more were no faster.
TASKS_AT_ONCE = 2

#: Less work than this, some 0.1 s of one thread, is not worth threads.
THREADS_BYTES = 16 * 2**20

#: Whoever waited for so long goes on: those at work may hang, and must stop nobody else.
LONG_S = 60.0

_AT_WORK = threading.Semaphore(TASKS_AT_ONCE)


class Engine(Protocol):
    """Runs one function over many values, perhaps in other processes."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """One result for each task, in any order.

        A task may run more than once (a retry, speculation), and its other results are dropped; the
        function must be safe for that. Its exception is raised here as it was, after the results
        of the tasks that were done.

        Args:
            function: picklable, with everything it needs bound to it.
            tasks: picklable values; none of them starts nothing. One that has `size_bytes` says by
                it how much it reads.
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
        if len(tasks) < 2 or size_of(tasks) < THREADS_BYTES:
            return map(partial(_run, function), tasks)
        return _run_at_once(function, tasks)


def size_of(tasks: Iterable[object]) -> int:
    """How many stored bytes the tasks read, as far as they say."""
    return sum(getattr(task, "size_bytes", 0) for task in tasks)


@contextmanager
def held(one_of: threading.Semaphore) -> Iterator[None]:
    """Hold one of so many within the block; without any once `LONG_S` are over."""
    is_held = one_of.acquire(timeout=LONG_S)
    try:
        yield
    finally:
        if is_held:
            one_of.release()


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
    with held(_AT_WORK):
        return function(task)
