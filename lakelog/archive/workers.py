"""Threads that do one thing each and may be abandoned: a call that hangs delays no exit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Workers:
    """Runs each task at once; a thread that has finished is used again.

    How many run at a time is for the caller to bound. The threads are daemons: the process may end
    while one hangs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    def run(self, task: Callable[[], None]) -> None:
        """Begin with it now. It must not raise."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._count += 1
                name = f"{self._name}-{self._count}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
        self._tasks.put(task)

    def _work(self) -> None:
        while True:
            self._tasks.get()()
            with self._lock:
                self._idle += 1
