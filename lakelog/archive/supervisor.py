"""Which topics a continuous run works on next, and which wait after a failure. No I/O, no threads.

A topic is worked on when something may be due for it: it is new, its settings changed, a look at
Redis shows enough unarchived records or old enough ones, a time that its last run named has come,
or a pause after a failure is over. Any exception counts as a failure of that topic alone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ..base import metrics as m
from ..base.back_off import BackOff, Tries
from ..errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from ..hot.looks import PartitionLook, ServerLook
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .archiver import Flushed
from .plan import FlushLimit
from .report import Trouble, why

logger = logging.getLogger(__name__)

#: For a topic that failed. It is never given up.
TOPIC_BACK_OFF = BackOff(0.5, 30.0)

#: Topics worked on at once. Copying is Arrow's and the store's work, so more than cores; few enough
#: that they share Redis's connections without waiting.
WORKERS = 8

#: How many of these may be retries after failures: topics that go well do not wait for others.
RETRIES_AT_ONCE = WORKERS // 2

#: A call that takes longer is told as trouble, and another topic gets its place: it may hang.
LONG_CALL_S = 60.0

#: But never more calls at once than this, however many hang.
MOST_WORKERS = 4 * WORKERS

#: Each topic is looked at this often even if nothing shows that it is needed.
SWEEP_S = 300.0

#: From a server that is nearly full each topic is archived this often, however little there is.
FULL_INTERVAL_S = 1.0

#: A run that named a time already past is repeated after this long, not at once.
SETTLE_S = 0.05


#: Of a server that is nearly full, whatever a topic's flush policy.
_ANYTHING = FlushLimit()

_NO_TOPIC = UUID(int=0)
_NOTHING_SEEN = PartitionLook("", False, -1, None)


@dataclass(slots=True)
class _Watched:
    """One topic."""

    topic: Topic
    tries: Tries
    limit: FlushLimit = field(init=False)
    high_water_percent: float = field(init=False)
    looks: dict[int, PartitionLook | None] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)  # partitions, since a run last looked
    settled_ends: Mapping[int, int] | None = None  # see `Flushed`; None: no run went well yet
    next_ms: int | None = None  # on Redis's clock
    is_stirred: bool = True  # must be worked on whatever the looks say
    worked_s: float = 0.0  # when a run last ended well
    running_since_s: float | None = None
    failing_since_ms: int = 0
    reason: str = ""
    full: set[int] = field(default_factory=set)  # partitions whose server is nearly full
    is_drained: bool = False

    def __post_init__(self) -> None:
        self.is_defined(self.topic)

    def is_defined(self, topic: Topic) -> None:
        """As it is now; what is asked of its settings at each look is read here, once."""
        self.topic, self.limit = topic, FlushLimit.of(topic.config)
        self.high_water_percent = topic.config.high_water_percent

    def is_late(self, now_s: float) -> bool:
        return self.running_since_s is not None and now_s - self.running_since_s >= LONG_CALL_S

    def memory_is(self, number: int, percent: float) -> None:
        """How full the server of a partition is."""
        if percent < self.high_water_percent:
            self.full.discard(number)
        elif number not in self.full:
            self.full.add(number)
            self.is_stirred = True  # what is archived goes from there, too

    def may_be_due(self, now_ms: int, now_s: float) -> bool:
        if now_s - self.worked_s >= FULL_INTERVAL_S and any(
            self._partition_may_be_due(number, now_ms, _ANYTHING) for number in self.full
        ):
            return True
        if self.settled_ends is None or self.is_stirred or now_s - self.worked_s >= SWEEP_S:
            return True
        if self.next_ms is not None and now_ms >= self.next_ms:
            return now_s - self.worked_s >= SETTLE_S
        return any(
            self._partition_may_be_due(number, now_ms, self.limit) for number in self.changed
        )

    def _partition_may_be_due(self, number: int, now_ms: int, limit: FlushLimit) -> bool:
        look = self.looks.get(number)
        start = (self.settled_ends or {}).get(number)
        if look is None or start is None or not look.recovered or look.log_end < start:
            return True
        # An upper bound, since there may be gaps. A closer look counts them. What an older
        # version puts back from quarantine changes no log end.
        records = look.log_end - start or int(look.unarchived_since_ms is not None)
        return limit.reached(records, look.unarchived_since_ms, now_ms)

    def is_archived(self) -> bool:
        """Whether all that the last looks showed is archived, and nothing else is known."""
        ends = self.settled_ends
        return (
            ends is not None
            and not self.tries.failures
            and len(self.looks) == self.topic.partitions
            and all(
                look is not None
                and look.recovered
                and look.log_end == ends.get(number)
                and look.unarchived_since_ms is None
                for number, look in self.looks.items()
            )
        )


class Supervisor:
    """What is known of each topic, and what follows from it. Thread-safe.

    Args:
        clock_s: for pauses; never goes back.
        now_ms: for what people read.
    """

    def __init__(
        self,
        clock_s: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._clock_s = clock_s
        self._now_ms = now_ms
        self._lock = threading.RLock()
        self._topics: dict[UUID, _Watched] = {}
        self._partitions: Mapping[TopicPartition, UUID] = {}
        self._running: dict[UUID, _Watched] = {}
        self._due: deque[_Watched] = deque()  # of the last scan, first those to begin with
        self._hot_now_ms = 0
        self._is_draining = False

    # -- what others tell ------------------------------------------------------------------------

    def topics_are(self, topics: Iterable[Topic]) -> None:
        """The topics to be archived, as they are defined now; others are forgotten."""
        with self._lock:
            now = {topic.topic_id: topic for topic in topics}
            for topic_id in self._topics.keys() - now.keys():
                del self._topics[topic_id]  # the end of its run does not matter any more
            for topic_id, topic in now.items():
                known = self._topics.get(topic_id)
                if known is None:
                    self._topics[topic_id] = self._watched(topic)
                elif known.topic != topic:
                    known.is_defined(topic)
                    known.is_stirred = True
            self._partitions = {
                tp: topic_id
                for topic_id, one in self._topics.items()
                for tp in one.topic.topic_partitions()
            }

    def partitions(self) -> Mapping[TopicPartition, UUID]:
        """All partitions to be looked at; another object whenever they change."""
        return self._partitions

    def saw(self, seen: ServerLook) -> None:
        """What a look at a server showed; the time is that server's."""
        percent = 0.0 if seen.memory is None else seen.memory.percent
        with self._lock:
            self._hot_now_ms = max(self._hot_now_ms, seen.now_ms)
            for tp, look in seen.partitions.items():
                known = self._topics.get(self._partitions.get(tp, _NO_TOPIC))
                if known is not None:
                    known.memory_is(tp.partition, percent)
                if known is None or known.looks.get(tp.partition, _NOTHING_SEEN) == look:
                    continue
                known.looks[tp.partition] = look
                known.changed.add(tp.partition)

    def ended(self, topic_id: UUID, outcome: Flushed | BaseException) -> None:
        """How a run of a topic ended."""
        with self._lock:
            self._running.pop(topic_id, None)
            known = self._topics.get(topic_id)
            if known is None:
                return
            started_s, known.running_since_s = known.running_since_s, None
            if isinstance(outcome, Flushed):
                self._went_well(known, outcome)
            else:
                self._failed(known, outcome, started_s)

    def gone(self, topic_id: UUID) -> None:
        """The topic was deleted."""
        with self._lock:
            self._running.pop(topic_id, None)
            known = self._topics.get(topic_id)
            if known is not None:
                logger.info("topic %s was deleted; its archiving ends", known.topic.name)
                self.topics_are(
                    one.topic for key, one in list(self._topics.items()) if key != topic_id
                )

    # -- what follows ----------------------------------------------------------------------------

    def start(self, *, scan: bool = True) -> list[Topic]:
        """Topics whose run is to begin now; they count as running from here on.

        Args:
            scan: ask of each topic whether it is due; else go on with what the last scan found.
        """
        with self._lock:
            now_s = self._clock_s()
            if scan or self._is_draining:
                self._scan(now_s)
            timely = [one for one in self._running.values() if not one.is_late(now_s)]
            free = min(WORKERS - len(timely), MOST_WORKERS - len(self._running))
            retries = RETRIES_AT_ONCE - sum(one.tries.failures > 0 for one in timely)
            started: list[Topic] = []
            while self._due and len(started) < free:
                one = self._due.popleft()
                if one.topic.topic_id not in self._topics or not self._is_due(one, now_s):
                    continue
                if one.tries.failures:
                    if retries <= 0:  # the others that are due failed as well
                        break
                    retries -= 1
                one.running_since_s = now_s
                one.is_stirred = False
                one.changed.clear()
                self._running[one.topic.topic_id] = one
                started.append(one.topic)
            return started

    def _scan(self, now_s: float) -> None:
        due = [one for one in self._topics.values() if self._is_due(one, now_s)]
        # Topics that go well come first, and of them those that waited longest.
        due.sort(key=lambda one: (one.tries.failures > 0, one.tries.next_s, one.worked_s))
        self._due = deque(due)

    def troubles(self) -> tuple[Trouble, ...]:
        """Topics that fail, and those with a call that has not returned for long, by name."""
        with self._lock:
            found = [self._trouble(one) for one in self._topics.values()]
        return tuple(sorted((one for one in found if one is not None), key=lambda one: one.topic))

    # -- the end ---------------------------------------------------------------------------------

    def drain(self) -> None:
        """From now on each topic is run once more, whatever its flush policy, and then no more."""
        with self._lock:
            self._is_draining = True
            for one in self._topics.values():
                one.tries.next_s = 0.0  # there is no later

    def is_drained(self) -> bool:
        """Whether nothing is left to do."""
        with self._lock:
            return not any(
                one.running_since_s is not None or not self._rests(one)
                for one in self._topics.values()
            )

    def is_running(self) -> bool:
        """Whether a call is under way."""
        with self._lock:
            return bool(self._running)

    def unfinished(self) -> tuple[Trouble, ...]:
        """Topics that may have something left after a drain, by name."""
        with self._lock:
            left = [
                one
                for one in self._topics.values()
                if one.running_since_s is not None or not self._rests(one)
            ]
            found = [
                self._trouble(one)
                or Trouble(one.topic.name, self._now_ms(), "the time was over", 0, None)
                for one in left
            ]
        return tuple(sorted(found, key=lambda one: one.topic))

    # -- how -------------------------------------------------------------------------------------

    def _watched(self, topic: Topic) -> _Watched:
        tries = Tries(f"archiving {topic.name}", TOPIC_BACK_OFF, clock_s=self._clock_s)
        return _Watched(topic, tries)

    def _is_due(self, one: _Watched, now_s: float) -> bool:
        if one.running_since_s is not None:
            return False
        if one.tries.failures and now_s < one.tries.next_s:
            return False
        if self._is_draining:
            return not self._rests(one)
        return bool(one.tries.failures) or one.may_be_due(self._hot_now_ms, now_s)

    def _rests(self, one: _Watched) -> bool:
        return one.is_drained or one.is_archived()

    def _went_well(self, known: _Watched, outcome: Flushed) -> None:
        now_s = self._clock_s()
        known.tries.succeeded()
        known.reason = ""
        known.settled_ends, known.next_ms = outcome.settled_ends, outcome.next_ms
        known.worked_s = now_s
        if self._is_draining and outcome.is_final:
            known.is_drained = True

    def _failed(self, known: _Watched, error: BaseException, started_s: float | None) -> None:
        m.COUNTS.add(m.ARCHIVE_RETRIES, 1, known.topic.name)
        if not known.tries.failures:
            m.COUNTS.add(m.ARCHIVE_OUTAGES, 1, known.topic.name)
            took_s = 0.0 if started_s is None else self._clock_s() - started_s
            known.failing_since_ms = self._now_ms() - int(took_s * 1000)
        known.reason = why(error)
        known.tries.failed(error)

    def _trouble(self, one: _Watched) -> Trouble | None:
        now_s = self._clock_s()
        if one.running_since_s is not None:
            runs_s = now_s - one.running_since_s
            if not one.tries.failures and runs_s < LONG_CALL_S:
                return None
            since_ms = (
                one.failing_since_ms if one.tries.failures else self._now_ms() - int(runs_s * 1000)
            )
            reason = one.reason
            if runs_s >= LONG_CALL_S:
                hangs = f"a call has not returned for {runs_s:.0f} s"
                reason = f"{hangs}; before: {reason}" if reason else hangs
            return Trouble(one.topic.name, since_ms, reason, one.tries.failures, None)
        if not one.tries.failures:
            return None
        next_ms = self._now_ms() + max(0, int((one.tries.next_s - now_s) * 1000))
        return Trouble(
            one.topic.name, one.failing_since_ms, one.reason, one.tries.failures, next_ms
        )


def is_of_deleted_topic(error: BaseException) -> bool:
    """Whether an error may mean that the topic was deleted; its definition tells."""
    return isinstance(error, UnknownTopicIdError | UnknownTopicOrPartitionError)
