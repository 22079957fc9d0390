"""Cold snapshots of many topics, of which one that hangs holds up no other, and their figures."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from math import inf
from uuid import UUID

import numpy as np
from msgspec import Struct

from ...cold.segment import SegmentIndex
from ...cold.table import ColdSnapshot, ColdTable
from ...engines.threads import Workers, watch
from ...errors import LakelogError
from ...values.topic import Topic

#: Tables looked at at a time, those that hang among them: what a store answers is waited for.
AT_ONCE = 16

#: Of a folder's tables one is looked at at a time: there is nothing to wait for, and threads that
#: share Python's lock take twice as long together. One that takes longer keeps no other waiting.
TURN_S = 0.05

#: A look that takes longer is told as a failure.
LONG_LOOK_S = 10.0

#: How often a look notices what is there by now.
_POLL_S = 0.1

#: What was found of a topic, or why nothing was.
Found = ColdSnapshot | LakelogError | TimeoutError


class _Call(Struct, eq=False):
    """A look at one table."""

    topic: Topic
    context: Context  # the caller's, whose spans it belongs to
    began_s: float | None = None  # None: it waits for its turn
    found: ColdSnapshot | LakelogError | None = None  # None: it has not returned


class ColdLooks:
    """Looks at the tables of topics, several at a time, in threads that may hang. Thread-safe.

    A table that hangs is not asked once more beside that.

    Args:
        table_of: gives a topic's cold tier; None if it has none. Its errors are that topic's.
    """

    def __init__(self, table_of: Callable[[Topic], ColdTable | None]) -> None:
        self._table_of = table_of
        self._changed = threading.Condition()
        self._turn = threading.Lock()
        self._calls: dict[UUID, _Call] = {}  # the newest of each topic
        self._due: deque[_Call] = deque()
        self._working = 0
        watch(self)

    def look(
        self, topics: Sequence[Topic], within_s: float = inf, *, idle_s: float = inf
    ) -> Mapping[UUID, Found]:
        """What the tables of the topics say, asked after this call began.

        What has not come in time is left out. A table that does not answer for `LONG_LOOK_S` is a
        TimeoutError then.

        Args:
            within_s: how long to wait. What comes later is given by a later call that has such a
                limit, too, which may so give what was asked for before it.
            idle_s: how long to wait for the next of them. A table that was asked so long ago by an
                earlier call is not waited for.
        """
        started_s = came_s = time.monotonic()
        found: dict[UUID, Found] = {}
        workers = Workers("lakelog-looks")
        try:
            with self._changed:
                self._calls = {key: one for key, one in self._calls.items() if one.found is None}
                awaited = set(self._calls) if within_s < inf else set()
                missing = {topic.topic_id: topic for topic in topics}
                while True:
                    now_s = time.monotonic()
                    for topic_id in list(missing):
                        call = self._asked(missing[topic_id], started_s, topic_id in awaited)
                        if call.found is not None:
                            found[topic_id], came_s = call.found, now_s
                            del missing[topic_id]
                    self._begin(workers)
                    left_s = min(started_s + within_s, came_s + idle_s) - now_s
                    begun_s = (self._calls[topic_id].began_s for topic_id in missing)
                    if left_s <= 0 or all(
                        at is not None and now_s - at >= idle_s for at in begun_s
                    ):
                        break
                    self._changed.wait(min(_POLL_S, left_s))
                for topic_id in missing:
                    began_s = self._calls[topic_id].began_s
                    if began_s is not None and now_s - began_s >= LONG_LOOK_S:
                        found[topic_id] = TimeoutError(f"no answer for {LONG_LOOK_S:.0f} s")
        finally:
            workers.end()  # each after what it does
        return found

    def end(self) -> None:
        """See `threads.Crew`."""
        with self._changed:
            self._due.clear()

    def is_in_call(self) -> bool:
        """See `threads.Crew`."""
        return self._working > 0

    # -- how; with the lock held -------------------------------------------------------------------

    def _asked(self, topic: Topic, since_s: float, takes_older: bool) -> _Call:
        """The call that answers, made if there is none that began since then."""
        call = self._calls.get(topic.topic_id)
        if call is not None:
            is_new = call.began_s is None or call.began_s >= since_s
            if call.found is None or is_new or takes_older:
                return call
        call = self._calls[topic.topic_id] = _Call(topic, copy_context())
        self._due.append(call)
        return call

    def _begin(self, workers: Workers) -> None:
        """A worker for each place that is free."""
        for _ in range(min(AT_ONCE - self._working, len(self._due))):
            self._working += 1
            workers.run(self._work)

    # -- in a worker -------------------------------------------------------------------------------

    def _work(self) -> None:
        while (call := self._next()) is not None:
            found = call.context.run(self._found, call.topic)
            with self._changed:
                call.found = found
                if not self._due:
                    self._changed.notify_all()

    def _next(self) -> _Call | None:
        with self._changed:
            if not self._due:
                self._working -= 1
                return None
            call = self._due.popleft()
            call.began_s = time.monotonic()
            return call

    def _found(self, topic: Topic) -> ColdSnapshot | LakelogError:
        try:
            table = self._table_of(topic)
            return ColdSnapshot() if table is None else self._snapshot(table)
        except LakelogError as error:
            return error
        except BaseException as error:  # a defect of a library's: this topic's alone
            return LakelogError(f"{type(error).__name__}: {error}")

    def _snapshot(self, table: ColdTable) -> ColdSnapshot:
        has_turn = table.is_local and self._turn.acquire(timeout=TURN_S)
        try:
            return table.snapshot()
        finally:
            if has_turn:
                self._turn.release()


class ColdFigures(Struct, frozen=True, gc=False):
    """One partition."""

    size_bytes: int = 0
    segments: int = 0
    files: int = 0
    most_files: int = 0  # of one segment


def figures_of(files: SegmentIndex) -> dict[int, ColdFigures]:
    """The figures of each partition that has files."""
    if not len(files):
        return {}
    partitions, segments = files.numbers("partition"), files.numbers("segment")
    sizes = files.numbers("size_bytes")
    is_new = np.ones(len(sizes), bool)  # a partition begins, in whose order the index is
    is_new[1:] = partitions[1:] != partitions[:-1]
    if (~is_new[1:] & (segments[1:] < segments[:-1])).any():
        order = np.lexsort((segments, partitions))
        segments, sizes = segments[order], sizes[order]
    is_next = is_new.copy()  # a segment does
    is_next[1:] |= segments[1:] != segments[:-1]
    (begins,), (firsts,) = is_next.nonzero(), is_new.nonzero()  # rows
    (first_segments,) = is_new[begins].nonzero()
    counts = _lengths(begins, len(sizes))  # files of each segment
    columns = (
        partitions[firsts],
        np.add.reduceat(sizes, firsts),
        _lengths(first_segments, len(begins)),
        _lengths(firsts, len(sizes)),
        np.maximum.reduceat(counts, first_segments),
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {number: ColdFigures(*row) for number, *row in rows}


def _lengths(begins: np.ndarray, end: int) -> np.ndarray:
    """Of stretches that follow each other."""
    lengths = np.empty_like(begins)
    lengths[:-1] = begins[1:] - begins[:-1]
    lengths[-1] = end - begins[-1]
    return lengths
