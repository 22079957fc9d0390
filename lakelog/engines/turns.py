"""Tasks that take turns in one process: while one only waits, the next one works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TypeVar

from .workers import Workers

T = TypeVar("T")

_next: ContextVar[Callable[[], None] | None] = ContextVar("lakelog-next-task", default=None)


def only_waits() -> None:
    """Say that the task which calls this has no more to do than to wait, as for a store's answers.

    Where tasks take turns, the next one begins meanwhile; elsewhere nothing happens.
    """
    begin_next = _next.get()
    if begin_next is not None:
        begin_next()


def in_turn(tasks: Sequence[Callable[[], T]]) -> Iterator[T]:
    """The result of each task, in their order.

    A task begins when the one before is done or says that it `only_waits`. No more than one waits
    meanwhile, so that two of them hold memory.

    Raises:
        BaseException: what a task raised; those after it that did not begin do not run.
    """
    if len(tasks) == 1:
        yield tasks[0]()
        return
    workers = Workers("lakelog-turn")
    waiting: Future[T] | None = None
    try:
        for task in tasks:
            over, answer = _begun(workers, task)
            over.wait()
            if waiting is not None:
                yield waiting.result()
            waiting = answer
        if waiting is not None:
            yield waiting.result()
    finally:
        workers.end()


def _begun(workers: Workers, task: Callable[[], T]) -> tuple[threading.Event, Future[T]]:
    """The task's answer, and what is set when it is done or only waits."""
    over = threading.Event()

    def run() -> T:
        _next.set(over.set)  # of this thread, which takes one task after the other
        return task()

    answer = workers.ask(run)
    answer.add_done_callback(lambda _: over.set())
    return over, answer
