"""Work off the main thread, of which only the newest counts; and which thread shows answers."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Job:
    """One piece of work; it may be stopped, or be superseded by a newer one."""

    def __init__(self) -> None:
        self.stop = threading.Event()  # ends it with what it has
        self.superseded = threading.Event()  # nobody wants its answer any more
        self.done = threading.Event()
        self.error: BaseException | None = None

    def stopped(self) -> bool:
        return self.stop.is_set() or self.superseded.is_set()


class Background:
    """Seems to run one job at a time: a new job takes the place of the old.

    A superseded job goes on until it next looks at `Job.stopped`, but its answer is dropped. So a
    slow answer never covers a newer one.

    Args:
        beside: other work, whose answers are never shown at the same moment as these.
        shown_by: shows answers; that of the work beside, if there is some.
    """

    def __init__(self, beside: Background | None = None, shown_by: AnyThread | None = None) -> None:
        self._lock = threading.RLock() if beside is None else beside.lock
        self.shown_by: AnyThread = (shown_by or AnyThread()) if beside is None else beside.shown_by
        self._newest: Job | None = None

    def start(
        self,
        work: Callable[[Job], T],
        then: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> Job:
        """Runs ``then(work(job))`` in a thread, or `failed` with what `work` raised.

        `then` and `failed` are called for the newest job only, one at a time.
        """
        job = Job()
        with self._lock:
            if self._newest is not None:
                self._newest.superseded.set()
            self._newest = job
        # In the caller's context: what is shown belongs to the cell that asked for it.
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run,
            args=(self._run, job, work, then, failed),
            name="lakelog-explorer",
            daemon=True,  # a Redis that does not answer must not keep the kernel from ending
        )
        thread.start()
        return job

    @property
    def lock(self) -> threading.RLock:
        """Held while `then` or `failed` runs. Code that must not run beside them takes it."""
        return self._lock

    def only_if_newest(self, job: Job, do: Callable[[], None]) -> None:
        """Calls `do`, unless a newer job was started."""

        def unless_newer() -> None:
            if job is self._newest:
                do()

        self.alone(unless_newer)

    def alone(self, do: Callable[[], None]) -> None:
        """Calls `do` where answers are shown, while none is."""

        def locked() -> None:
            with self._lock:
                do()

        self.shown_by(locked)

    def stop(self) -> None:
        """Makes the work under way end with what it has."""
        with self._lock:
            if self._newest is not None:
                self._newest.stop.set()

    def drop(self) -> None:
        """Forgets the work under way; nothing will come of it."""
        with self._lock:
            if self._newest is not None:
                self._newest.superseded.set()
                self._newest.done.set()
            self._newest = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the newest job, even one that starts meanwhile; False if the time is over."""
        while True:
            with self._lock:
                job = self._newest
            if job is None:
                return True
            if not self.shown_by.wait(job.done, timeout_s):
                return False
            with self._lock:
                if self._newest is job or self._newest is None:
                    return True

    def _run(
        self,
        job: Job,
        work: Callable[[Job], T],
        then: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        try:
            found = work(job)
            self.only_if_newest(job, lambda: then(found))
        except Exception as error:  # shown to whoever looks at the widget
            job.error = error
            self.only_if_newest(job, partial(failed, error))
        finally:
            job.done.set()


# -- who shows ------------------------------------------------------------------------------------

#: How long the main thread waits for something to show before it looks whether it may go on.
_LOOK_S = 0.02


class AnyThread:
    """Runs what draws on widgets, so sends messages to the page: whoever has something to show."""

    def __call__(self, do: Callable[[], None]) -> None:
        """Calls `do`; returns when it has run, and raises what it raised."""
        do()

    def wait(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        """Waits for an event that may take others' calls; False if the time is over."""
        return event.wait(timeout_s)


class MainThread(AnyThread):
    """The thread that made this shows everything: between cells, and while it waits itself.

    For a frontend that takes messages of widgets from no other thread. Without an event loop in
    that thread, such as in a script, things are shown only while it waits.
    """

    def __init__(self) -> None:
        self._thread = threading.current_thread()
        self._calls: queue.SimpleQueue[tuple[Callable[[], None], Future[None]]] = (
            queue.SimpleQueue()
        )
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def __call__(self, do: Callable[[], None]) -> None:
        if threading.current_thread() is self._thread:
            do()
            return
        shown: Future[None] = Future()
        self._calls.put((do, shown))
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._show, 0.0)
            except RuntimeError:  # it is closed: nobody looks any more
                return
        shown.result()

    def wait(self, event: threading.Event, timeout_s: float | None = None) -> bool:
        if threading.current_thread() is not self._thread:
            return event.wait(timeout_s)
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not event.is_set():
            left_s = _LOOK_S if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                return False
            self._show(min(left_s, _LOOK_S))
        return True

    def _show(self, wait_s: float) -> None:
        """Runs one call, if one is there or comes in time."""
        try:
            do, shown = self._calls.get(timeout=wait_s) if wait_s else self._calls.get_nowait()
        except queue.Empty:  # it ran while this thread waited
            return
        try:
            do()
        except BaseException as error:
            shown.set_exception(error)
            if not isinstance(error, Exception):  # such as an interrupt, which is this thread's
                raise
        else:
            shown.set_result(None)
