"""Looks at one server again and again, and says what it saw."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from uuid import UUID

from ..base.back_off import BackOff, Tries
from ..hot.server_looks import ServerLook, ServerLooks
from ..values.topic_partition import TopicPartition
from .trouble import Trouble, why

#: How soon an append is noticed when there is little to look at. With more, the pause is a multiple
#: of the time that a look took this thread: watching idle topics never costs more than a fortieth
#: of a core, and 2,000 of them are still looked at every second.
SHORTEST_INTERVAL_S = 0.1
INTERVALS = 40
LONGEST_INTERVAL_S = 2.0

#: How soon a cluster's waiter takes up partitions that came to its server.
PLACE_INTERVAL_S = 5.0

#: How soon it is noticed that a server is back.
SERVER_BACK_OFF = BackOff(0.1, 2.0)


class Waiter:
    """Watches all partitions of one server in a thread of its own, until it is ended.

    Args:
        partitions: those of all servers; another object whenever they change.
        saw: called with each look.
        after: called after each look, even one that failed.
    """

    def __init__(
        self,
        server: ServerLooks,
        partitions: Callable[[], Mapping[TopicPartition, UUID]],
        saw: Callable[[ServerLook], None],
        after: Callable[[], None],
    ) -> None:
        self._server = server
        self._partitions = partitions
        self._saw = saw
        self._after = after
        self._all: Mapping[TopicPartition, UUID] | None = None  # as of which `_own` is
        self._own: list[TopicPartition] = []
        self._placed_s = 0.0
        self._wake = threading.Event()
        self._ended = False
        self._looks = 0  # finished ones
        self._asked: int | None = None  # the look that was asked for
        self._tries = Tries(f"archiving from {self.name}", SERVER_BACK_OFF)
        self._failing_since_ms = 0
        self._reason = ""
        self._retry_ms = 0

    @property
    def name(self) -> str:
        return self._server.name

    def start(self) -> None:
        name = f"lakelog-waiter-{self.name}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    def look_now(self) -> None:
        """Ask for a look that begins from now on; `has_looked` says when it is over."""
        self._asked = self._looks + 2  # the next to end may have begun before this
        self._wake.set()

    def has_looked(self) -> bool:
        """Whether the look that `look_now` asked for is over."""
        return self._asked is None or self._looks >= self._asked

    def trouble(self) -> Trouble | None:
        """The server's trouble, if it does not answer; it belongs to no topic."""
        if not self._tries.failures:
            return None
        return Trouble(
            "", self._failing_since_ms, self._reason, self._tries.failures, self._retry_ms or None
        )

    def _run(self) -> None:
        while not self._ended:
            self._wake.clear()
            began_s = time.thread_time()
            try:
                self._look()
                self._tries.succeeded()
                wait_s = 0.0
            except Exception as error:  # also a defect: nobody else would look at this server
                if self._ended:
                    return
                wait_s = self._failed(error)
            self._looks += 1
            self._after()
            if not wait_s:
                cost_s = time.thread_time() - began_s
                wait_s = min(LONGEST_INTERVAL_S, max(SHORTEST_INTERVAL_S, INTERVALS * cost_s))
            if self.has_looked():
                self._wake.wait(wait_s)

    def _look(self) -> None:
        partitions, now_s = self._partitions(), time.monotonic()
        if partitions is not self._all or now_s - self._placed_s >= PLACE_INTERVAL_S:
            self._own = [tp for tp in partitions if self._server.holds(tp)]
            self._all, self._placed_s = partitions, now_s
        seen = self._server.look(self._own)
        self._saw(seen)

    def _failed(self, error: Exception) -> float:
        """How long to wait before the next look."""
        self._all = None  # a cluster's slots may have moved
        if getattr(error, "moved", False):
            return SHORTEST_INTERVAL_S
        now_ms = time.time_ns() // 1_000_000
        if not self._tries.failures:
            self._failing_since_ms = now_ms
        self._reason = why(error)
        pause_s = self._tries.failed(error)
        assert pause_s is not None  # it never gives up
        self._retry_ms = now_ms + int(pause_s * 1000)
        return pause_s
