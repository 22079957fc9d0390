"""Queues, event by event: time passes as events say, and stations serve who came first.

Nothing here is lakelog's. `tests/benchmarks/test_simulation.py` holds it against the closed forms
of M/M/1 and M/D/1.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Events:
    """What is to happen, in order of time; what is due at once happens in the order it was said."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._numbers = count()

    def after(self, seconds: float, action: Action) -> None:
        heapq.heappush(self._due, (self.now_s + seconds, next(self._numbers), action))

    def run(self, until_s: float) -> None:
        """What is due later than that stays."""
        while self._due and self._due[0][0] <= until_s:
            self.now_s, _, action = heapq.heappop(self._due)
            action()
        self.now_s = until_s


class Station:
    """So many servers with one queue, first come, first served."""

    def __init__(self, events: Events, servers: int = 1) -> None:
        self._events = events
        self._free = servers
        self._waiting: deque[Action] = deque()
        self.busy_s = 0.0  # of all servers, as far as it was served

    def enter(self, begin: Action) -> None:
        """Calls `begin` once a server is free; who was let in must `leave`."""
        if self._free:
            self._free -= 1
            begin()
        else:
            self._waiting.append(begin)

    def leave(self) -> None:
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1

    def serve(self, seconds: float, done: Action) -> None:
        """Takes a server for so long, as soon as one is free; then `done`."""

        def begin() -> None:
            self._events.after(seconds, end)

        def end() -> None:
            self.busy_s += seconds
            self.leave()
            done()

        self.enter(begin)
