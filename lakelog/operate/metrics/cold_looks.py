"""Cold snapshots of many topics, of which one that hangs holds up no other, and their figures."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from uuid import UUID

import numpy as np
from msgspec import Struct, field

from ...cleanup.plan import cleanables
from ...cold.segment import SegmentIndex
from ...cold.table import ColdSnapshot, ColdTable
from ...engines.threads import Workers, watch
from ...errors import ColdTierUnavailableError, LakelogError
from ...values.topic import Topic

#: Tables looked at at a time: what an object store answers is waited for.
AT_ONCE = 8

#: Of a folder's tables one is looked at at a time: there is nothing to wait for, and threads that
#: share Python's lock take twice as long together. One that takes longer keeps no other waiting.
TURN_S = 0.05

#: A look that takes longer is told as a failure, and gives its place to another table's.
LONG_LOOK_S = 10.0

#: Calls under way at most, with those that gave their place away: each has a thread.
MOST_CALLS = 4 * AT_ONCE

#: How often a look notices what is there by now, while tables wait for their turn.
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
        self._under_way: set[_Call] = set()
        self._working = 0
        watch(self)

    def look(
        self,
        topics: Sequence[Topic],
        within_s: float | None = None,
        *,
        each_s: float | None = None,
    ) -> Mapping[UUID, Found]:
        """What the tables of the topics say, asked after this call began.

        Args:
            within_s: how long to wait; what comes later is left out, and given by a later call,
                which may so give what was asked for before it. A table that does not answer for
                `LONG_LOOK_S` is a TimeoutError. None: as long as it takes.
            each_s: how long to wait for each table. One that takes longer is a
                ColdTierUnavailableError, and so are all that had no turn because such tables take
                all of them.
        """
        started_s = time.monotonic()
        end_s = None if within_s is None else started_s + within_s
        found: dict[UUID, Found] = {}
        workers = Workers("lakelog-looks")
        try:
            with self._changed:
                self._calls = {key: one for key, one in self._calls.items() if one.found is None}
                awaited = set(self._calls) if within_s is not None else set()
                missing = {topic.topic_id: topic for topic in topics}
                while True:
                    for topic_id in list(missing):
                        call = self._asked(missing[topic_id], started_s, topic_id in awaited)
                        if call.found is not None:
                            found[topic_id] = call.found
                            del missing[topic_id]
                    self._begin(workers)
                    now_s = time.monotonic()
                    if each_s is not None:
                        for topic_id, late in self._late([*missing], each_s, now_s).items():
                            found[topic_id] = late
                            del missing[topic_id]
                    if not missing or (end_s is not None and now_s >= end_s):
                        break
                    left_s = _POLL_S if end_s is None else min(_POLL_S, end_s - now_s)
                    self._changed.wait(left_s)
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
        return bool(self._under_way)

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
        slow = len(self._longer_than(LONG_LOOK_S, time.monotonic()))
        free = min(AT_ONCE + slow, MOST_CALLS) - self._working
        for _ in range(min(free, len(self._due))):
            self._working += 1
            workers.run(self._work)

    def _longer_than(self, limit_s: float, now_s: float) -> list[_Call]:
        return [
            call
            for call in self._under_way
            if call.began_s is not None and now_s - call.began_s >= limit_s
        ]

    def _late(
        self, missing: Sequence[UUID], limit_s: float, now_s: float
    ) -> Mapping[UUID, ColdTierUnavailableError]:
        """The topics that are waited for no longer, and why."""
        slow = self._longer_than(limit_s, now_s)
        late = {
            call.topic.topic_id: ColdTierUnavailableError(
                f"the table of topic {call.topic.name!r} did not answer within {limit_s:g} s. It "
                "is waited for no longer and asked again later; look at the store that holds it"
            )
            for call in slow
            if call.topic.topic_id in missing
        }
        if len(slow) >= MOST_CALLS:
            late |= {
                topic_id: ColdTierUnavailableError(
                    f"topic {self._calls[topic_id].topic.name!r} was not looked at: "
                    f"{len(slow)} other tables did not answer within {limit_s:g} s. Look at the "
                    "store that holds them"
                )
                for topic_id in missing
                if self._calls[topic_id].began_s is None
            }
        return late

    # -- in a worker -------------------------------------------------------------------------------

    def _work(self) -> None:
        while (call := self._next()) is not None:
            found = call.context.run(self._found, call.topic)
            with self._changed:
                call.found = found
                self._under_way.discard(call)
                if not self._due:
                    self._changed.notify_all()

    def _next(self) -> _Call | None:
        with self._changed:
            if not self._due:
                self._working -= 1
                return None
            call = self._due.popleft()
            call.began_s = time.monotonic()
            self._under_way.add(call)
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


#: What compaction may clean grows with time too: of a snapshot it is asked this often.
DIRTY_LASTS_MS = 60_000


class ColdFigures(Struct, frozen=True, gc=False):
    """One partition."""

    size_bytes: int = 0
    segments: int = 0
    files: int = 0
    most_files: int = 0  # of one segment


class TopicFigures(Struct, frozen=True):
    """One topic, as of a snapshot."""

    partitions: Mapping[int, ColdFigures] = field(default_factory=dict)  # those with files
    dirty_ratios: Mapping[int, float] = field(default_factory=dict)  # of a compacted topic


class KnownFigures:
    """The figures of topics; what did not change is not counted again."""

    def __init__(self) -> None:
        self._known: dict[UUID, tuple[ColdSnapshot, int, TopicFigures]] = {}

    def of(self, topic: Topic, cold: ColdSnapshot, now_ms: int) -> TopicFigures:
        """A topic's figures as of that snapshot."""
        known = self._known.get(topic.topic_id)
        compacted = topic.config.compacted
        if known is not None and known[0] is cold and not (compacted and _is_old(known[1], now_ms)):
            return known[2]
        ratios = {}
        if compacted:
            found = cleanables(topic, cold, now_ms)
            ratios = {one.topic_partition.partition: one.dirty_ratio for one in found}
        figures = TopicFigures(figures_of(cold.files), ratios)
        self._known[topic.topic_id] = cold, now_ms, figures
        return figures

    def keep_only(self, topic_ids: set[UUID]) -> None:
        """Forget all other topics."""
        for gone in self._known.keys() - topic_ids:
            del self._known[gone]


def _is_old(at_ms: int, now_ms: int) -> bool:
    return not 0 <= now_ms - at_ms < DIRTY_LASTS_MS


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
