"""Threads that do one thing each and may be abandoned: a call that hangs delays no exit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """Runs each task at once; a thread that has finished is used again.

    How many run at a time is for the caller to bound. The threads are daemons: the process may end
    while one hangs. Where it is ending, Python starts no more threads (since 3.12), and whoever
    still asks, such as a producer that sends what is left, does the task itself.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0
        self._is_ended = False

    def run(self, task: Callable[[], None]) -> None:
        """Begin with it now. It must not raise."""
        is_ending = False
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                name = f"{self._name}-{self._count + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    if threading.main_thread().is_alive():
                        raise
                    is_ending = True
                self._count += 1
        if is_ending:
            task()
        else:
            self._tasks.put(task)

    def ask(self, function: Callable[[], T]) -> Future[T]:
        """Begin with it now; its answer, or what it raises, comes later."""
        answer: Future[T] = Future()
        self.run(partial(settle, answer, function))
        return answer

    def end(self) -> None:
        """End the threads; those that are in a task, after it."""
        with self._lock:
            self._is_ended = True
            for _ in range(self._idle):
                self._tasks.put(None)
            self._idle = 0

    def _work(self) -> None:
        while task := self._tasks.get():
            task()
            with self._lock:
                if self._is_ended:
                    return
                self._idle += 1


def settle(answer: Future[T], function: Callable[[], T]) -> None:
    """Gives the future what the function returns or raises."""
    try:
        answer.set_result(function())
    except BaseException as error:
        answer.set_exception(error)
