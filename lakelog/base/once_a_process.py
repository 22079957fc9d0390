"""What each process opens once and keeps: connections and tables that tasks of Spark share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class OnceAProcess(Generic[K, V]):
    """Values by key. A process that was forked makes its own: none stands a second owner."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, K], V] = {}
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made now if this process has not asked for it before."""
        mine = os.getpid(), key
        with self._lock:
            if mine not in self._made:
                self._made[mine] = make()
            return self._made[mine]
