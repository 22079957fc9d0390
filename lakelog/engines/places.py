"""Places for work that takes memory: whoever finds none free waits for one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: After so long a place counts as free: whoever holds it may hang, and must stop nobody else.
LONG_S = 60.0


class Places:
    """So many are held at a time, by whichever threads of this process. Thread-safe.

    Args:
        count: how many there are.
        clock_s: for tests; never goes back.
    """

    def __init__(self, count: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._clock_s = clock_s
        self._changed = threading.Condition()
        self._held_until_s: dict[object, float] = {}

    def take(self) -> object:
        """Wait until a place is free, and hold it.

        Returns:
            What `give_back` takes, from any thread.
        """
        with self._changed:
            while wait_s := self._wait_s():
                self._changed.wait(wait_s)
            place = object()
            self._held_until_s[place] = self._clock_s() + LONG_S
            return place

    def give_back(self, place: object) -> None:
        """Let somebody else have it."""
        with self._changed:
            self._held_until_s.pop(place, None)
            self._changed.notify()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a place within the block."""
        place = self.take()
        try:
            yield
        finally:
            self.give_back(place)

    def _wait_s(self) -> float:
        """Until when no place is free unless one is given back; 0: one is free."""
        now_s = self._clock_s()
        held_s = [until_s for until_s in self._held_until_s.values() if until_s > now_s]
        return 0.0 if len(held_s) < self._count else min(held_s) - now_s
