"""Threads that may be abandoned: a call that hangs delays no exit.

The interpreter does not end while one of them is in a call of Arrow or of a store: an orderly end
unloads those libraries while daemon threads are still in them, which is a crash instead of an exit
code. What was not committed by then is left to the next run.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Generic, Protocol, TypeVar

from ..base.back_off import POLL, wait_until

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


# -- the end of the process ----------------------------------------------------------------------

#: How long the end of a process waits for calls to return.
EXIT_TIMEOUT_S = 3.0


class Crew(Protocol):
    """The threads of a run."""

    def end(self) -> None:
        """Begin nothing more."""

    def is_in_call(self) -> bool:
        """Whether one of them has not returned from its call."""


_crews: weakref.WeakSet[Crew] = weakref.WeakSet()
_watching: set[int] = set()  # this process's id, once it does


def watch(crew: Crew) -> None:
    """Until the crew is gone, make the process end after its calls, or without them."""
    _crews.add(crew)
    if os.getpid() not in _watching:
        _watching.add(os.getpid())
        atexit.register(_end_all, os.getpid())


def _end_all(process_id: int) -> None:
    if process_id != os.getpid() or process_id not in _watching:
        return  # forked: the threads are the parent's; or all is over, see below
    crews = [crew for crew in _crews if crew.is_in_call()]
    for crew in crews:
        crew.end()
    if not wait_until(
        "calls to return",
        lambda: not any(crew.is_in_call() for crew in crews),
        POLL.within(EXIT_TIMEOUT_S),
    ):
        _exit_hard()


def _exit_hard() -> None:
    _watching.clear()
    atexit._run_exitfuncs()  # other exit handlers: producers send what they hold
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os.write(
        2,
        b"lakelog: a call did not return in time, so the process was ended without it; what was "
        b"not committed is left to the next run\n",
    )
    os._exit(1)


# -- a few values at once ------------------------------------------------------------------------

#: How long an interrupted caller waits for calls to return; then it leaves those that hang. A
#: process that is told to stop ends within three seconds.
STOP_TIMEOUT_S = 2.2

#: A signal that comes right before a wait does not end it: it is noticed once the wait is over.
INTERRUPT_S = 0.2


def each_at_once(
    values: Sequence[T],
    work: Callable[[T], None],
    count: int,
    cancel: Callable[[], None] | None = None,
) -> None:
    """Call `work` with each value, in their order, with up to `count` of them at a time.

    If a call raises, no more begin; those under way return first. One at a time is done in the
    caller's own thread. Else the caller's thread waits, and if it is interrupted, no more calls
    begin, and those under way have `STOP_TIMEOUT_S` to return.

    Args:
        cancel: ends what calls wait for elsewhere; called if the caller's thread is interrupted.

    Raises:
        BaseException: what a call raised: that of the first such value.
    """
    if count == 1 or len(values) <= 1:
        for value in values:
            work(value)
        return
    crew = _AtOnce(values, work)
    watch(crew)
    workers = Workers("lakelog-at-once")
    try:
        for _ in range(min(count, len(values))):
            workers.run(partial(copy_context().run, crew.run))  # spans stay within the caller's
        crew.wait()
    except BaseException:
        crew.end()
        if cancel is not None:
            cancel()
        wait_until("calls to return", lambda: not crew.is_in_call(), POLL.within(STOP_TIMEOUT_S))
        raise
    finally:
        workers.end()


class _AtOnce(Generic[T]):
    """The values that are left, and the threads that take them."""

    def __init__(self, values: Sequence[T], work: Callable[[T], None]) -> None:
        self._values = values
        self._work = work
        self._lock = threading.Lock()
        self._next = 0
        self._in_call = 0
        self._is_ended = False
        self._errors: dict[int, BaseException] = {}  # by the place of the value
        self._over = threading.Event()

    def run(self) -> None:
        """Take value after value; in a worker."""
        while (place := self._begin()) is not None:
            try:
                self._work(self._values[place])
            except BaseException as error:  # raised where the caller waits
                self._errors[place] = error
                self.end()
            finally:
                self._done()

    def wait(self) -> None:
        """Return when all is done.

        Raises:
            BaseException: see `each_at_once`.
        """
        while not self._over.wait(INTERRUPT_S):
            pass
        for _, error in sorted(self._errors.items(), key=lambda item: item[0]):
            raise error

    def end(self) -> None:
        """Begin nothing more."""
        self._is_ended = True

    def is_in_call(self) -> bool:
        """Whether a call has not returned yet."""
        return self._in_call > 0

    def _begin(self) -> int | None:
        with self._lock:
            if self._is_ended or self._next == len(self._values):
                return None
            self._next += 1
            self._in_call += 1
            return self._next - 1

    def _done(self) -> None:
        with self._lock:
            self._in_call -= 1
            nothing_left = self._is_ended or self._next == len(self._values)
            if nothing_left and not self._in_call:
                self._over.set()
