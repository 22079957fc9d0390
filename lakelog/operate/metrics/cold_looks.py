"""Cold snapshots of many topics, of which one that hangs holds up no other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from ...cold.opening import AT_ONCE
from ...cold.table import ColdSnapshot, ColdTable
from ...engines.at_exit import watch
from ...engines.workers import Workers
from ...errors import LakelogError
from ...topic import Topic

#: Of a folder's tables one is looked at at a time: there is nothing to wait for, and threads that
#: share Python's lock take twice as long together. One that takes longer keeps no other waiting.
TURN_S = 0.05

#: A look that takes longer is told as a failure.
LONG_LOOK_S = 10.0

#: What was found of a topic, or why nothing was.
Found = ColdSnapshot | LakelogError | TimeoutError


class ColdLooks:
    """Looks at the tables of topics in threads of its own, which may hang. Thread-safe.

    Args:
        table_of: gives a topic's cold tier; None if it has none. Its errors are that topic's.
    """

    def __init__(self, table_of: Callable[[Topic], ColdTable | None]) -> None:
        self._table_of = table_of
        self._changed = threading.Condition()
        self._turn = threading.Lock()
        self._workers = Workers("lakelog-metrics")
        self._due: deque[Topic] = deque()
        self._asked: set[UUID] = set()  # due, or under way
        self._began_s: dict[UUID, float] = {}  # of those under way
        self._found: dict[UUID, ColdSnapshot | LakelogError] = {}
        self._running = 0
        watch(self)

    def look(self, topics: Sequence[Topic], within_s: float | None = None) -> Mapping[UUID, Found]:
        """What the tables of the topics say now.

        Args:
            within_s: how long to wait; what comes later is left out, and given by a later call. A
                table that does not answer for `LONG_LOOK_S` is a TimeoutError. None: as long as it
                takes.
        """
        wanted = {topic.topic_id for topic in topics}
        with self._changed:
            for gone in self._found.keys() - wanted - self._asked:
                del self._found[gone]
            for topic in topics:
                if topic.topic_id not in self._asked:
                    self._asked.add(topic.topic_id)
                    self._found.pop(topic.topic_id, None)
                    self._due.append(topic)
            for _ in range(min(AT_ONCE, len(self._due)) - self._running):
                self._running += 1
                self._workers.run(self._work)
            self._changed.wait_for(lambda: not self._asked & wanted, within_s)
            late = {
                topic_id: TimeoutError(f"no answer for {LONG_LOOK_S:.0f} s")
                for topic_id, began_s in self._began_s.items()
                if time.monotonic() - began_s >= LONG_LOOK_S
            }
            known: dict[UUID, Found] = {**self._found, **late}
        return {topic_id: known[topic_id] for topic_id in wanted & known.keys()}

    def end(self) -> None:
        """See `at_exit.Crew`."""
        with self._changed:
            self._due.clear()
        self._workers.end()

    def is_in_call(self) -> bool:
        """See `at_exit.Crew`."""
        return bool(self._began_s)

    def _work(self) -> None:
        while (topic := self._begin()) is not None:
            found: ColdSnapshot | LakelogError
            try:
                table = self._table_of(topic)
                found = ColdSnapshot() if table is None else self._snapshot(table)
            except LakelogError as error:
                found = error
            except BaseException as error:  # a defect of a library's: this topic's alone
                found = LakelogError(f"{type(error).__name__}: {error}")
            with self._changed:
                self._found[topic.topic_id] = found
                self._asked.discard(topic.topic_id)
                self._began_s.pop(topic.topic_id, None)
                self._changed.notify_all()

    def _snapshot(self, table: ColdTable) -> ColdSnapshot:
        has_turn = table.is_local and self._turn.acquire(timeout=TURN_S)
        try:
            return table.snapshot()
        finally:
            if has_turn:
                self._turn.release()

    def _begin(self) -> Topic | None:
        with self._changed:
            if not self._due:
                self._running -= 1
                return None
            topic = self._due.popleft()
            self._began_s[topic.topic_id] = time.monotonic()
            return topic
