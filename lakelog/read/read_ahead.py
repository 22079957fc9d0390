"""Reading ahead of a consumer, while it is busy with what it was handed."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Iterator

from ..values.record import Fetched
from ..values.topic_partition import TopicPartition
from .fetch import DEFAULT_MAX_BYTES
from .topic_log import TopicLog

#: Of the first steps at a new place: it may have been sought for a single record.
LEAD_BYTES = 64 * 1024

#: How many partitions are read at once. To fetch and decode takes one processor, and what the
#: consumer does with it another.
_THREADS = 2

logger = logging.getLogger(__name__)


class ReadAhead:
    """What a consumer's partitions have read ahead, together no more than a limit.

    Threads read the next steps, each of another partition, and end when there is nothing to read or
    no room. So there are two at most, and none for long after the consumer has stopped. At the log
    end nothing is read ahead: what a read says of it is old soon.

    Args:
        limit_bytes: of the records that wait; 0: nothing is read ahead. What comes after a record
            that is larger is not, as one more would be held beside it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.step_bytes = min(DEFAULT_MAX_BYTES, limit_bytes // 2) or DEFAULT_MAX_BYTES
        self._limit_bytes = limit_bytes
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._all: list[Steps] = []
        self._threads: list[threading.Thread] = []  # that may still be there
        self._reading = 0  # how many of them read

    def steps(self, log: TopicLog, topic_partition: TopicPartition, offset: int) -> Steps:
        """The steps of a partition from an offset on."""
        self._check_pid()
        found = Steps(self, log, topic_partition, offset)
        with self._changed:
            self._all.append(found)
        return found

    @property
    def waiting_bytes(self) -> int:
        """The records that were read and nobody has asked for yet."""
        return sum(one.waiting_bytes for one in self._all)

    def close(self) -> None:
        """Drops everything, and waits until nothing is read any more; it can be used again."""
        self._check_pid()
        with self._changed:
            for one in self._all:
                one.is_closed = True
                one.drop()
            self._all = []
            threads = self._threads
        for thread in threads:
            thread.join()

    # -- called by `Steps` ---------------------------------------------------------------------

    def first(self, steps: Steps) -> Fetched | None:
        """Takes what waits first; waits for what is being read. None: read it yourself."""
        self._check_pid()
        with self._changed:
            while steps.is_read_ahead and not steps.waiting:
                self._changed.wait()
            if steps.waiting:
                found = steps.waiting.popleft()
                steps.waiting_bytes -= found.records.nbytes
                self._go_on()
                return found
            steps.may_go_on = False  # the caller reads it
            return None

    def go_on(self, steps: Steps) -> None:
        """The next of these may be read ahead."""
        with self._changed:
            steps.may_go_on = True
            self._go_on()

    def pause(self, steps: Steps, is_paused: bool) -> None:
        """Reads nothing of these ahead; what waits is kept until others need the room."""
        self._check_pid()
        with self._changed:
            steps.is_paused = is_paused
            self._go_on()

    def end(self, steps: Steps) -> None:
        """Drops these."""
        self._check_pid()
        with self._changed:
            steps.is_closed = True
            steps.drop()
            if steps in self._all:
                self._all.remove(steps)
            self._go_on()

    # -- how -----------------------------------------------------------------------------------

    def _check_pid(self) -> None:
        if os.getpid() != self._pid:  # a fork: it has no thread, and a lock that may be held
            for one in self._all:
                one.forget()
            mine = self._all
            self._reset()
            self._all = mine

    def _go_on(self) -> None:
        """Starts threads, as long as there is something for one more to do."""
        while self._reading < _THREADS and (steps := self._begun()) is not None:
            # It is no daemon: one that is in the middle of a read must not meet the interpreter's
            # end. `_begun` sees that the end has come.
            thread = threading.Thread(
                target=self._run, args=(steps,), name="lakelog-read-ahead", daemon=False
            )
            try:
                thread.start()
            except RuntimeError as error:  # no more threads, or the interpreter is at its end
                logger.debug("nothing is read ahead: %s", error)
                steps.is_read_ahead = False
                return
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            self._reading += 1

    def _next(self) -> Steps | None:
        """Those that have the least waiting; None: there is nothing to read, or no room."""
        wanting = [
            one
            for one in self._all
            if one.may_go_on and not one.is_paused and one.last_bytes <= self._limit_bytes
        ]
        if not wanting or self._limit_bytes == 0:
            return None
        read_now = sum(one.is_read_ahead for one in self._all)
        room = self._limit_bytes - self.waiting_bytes - (read_now + 1) * self.step_bytes
        for one in self._all:
            if room < 0 and one.is_paused and one.waiting:
                room += one.waiting_bytes
                one.drop()
        return min(wanting, key=lambda one: one.waiting_bytes) if room >= 0 else None

    def _begun(self) -> Steps | None:
        """What is to be read now, marked as such; None: nothing."""
        found = self._next() if threading.main_thread().is_alive() else None
        if found is not None:
            found.may_go_on, found.is_read_ahead = False, True
        return found

    def _run(self, first: Steps) -> None:
        steps: Steps | None = first
        while steps is not None:
            step = None
            try:
                step = steps.read()
            except BaseException as error:  # a panic of delta-rs is no Exception
                # Whoever needs it reads it again, and then it is raised if it still fails.
                logger.debug("reading ahead of %s failed: %s", steps.topic_partition, error)
            with self._changed:
                steps.is_read_ahead = False
                if steps.is_closed or step is None:
                    steps.stop()
                else:
                    steps.waiting.append(step)
                    steps.waiting_bytes += step.records.nbytes
                    steps.may_go_on = not step.at_log_end
                self._changed.notify_all()
                steps = self._begun()
                if steps is None:
                    self._reading -= 1


class Steps:
    """The steps of one partition, as `TopicLog.fetches` gives them; see `ReadAhead.steps`.

    The fields are `ReadAhead`'s, which guards them.
    """

    def __init__(
        self, ahead: ReadAhead, log: TopicLog, topic_partition: TopicPartition, offset: int
    ) -> None:
        self.topic_partition = topic_partition
        self.waiting: deque[Fetched] = deque()
        self.waiting_bytes = 0
        self.last_bytes = 0  # of the step that was read last
        self.may_go_on = False  # the next may be read ahead
        self.is_read_ahead = False  # it is, now
        self.is_paused = False
        self.is_closed = False
        self._ahead = ahead
        self._log = log
        self._at = offset  # where the next one begins that is handed out
        self._is_first = True  # nothing was read yet
        self._fetches: Iterator[Fetched] | None = None

    def next(self) -> Fetched | None:
        """The next step; None at the log end. After an error it can be called again.

        Raises:
            Exception: as `TopicLog.fetches`.
        """
        step = self._ahead.first(self)
        if step is None:
            try:
                step = self.read()
            except BaseException:
                self.stop()  # a generator that raised is over
                raise
            if step is None:
                self.stop()
                return None
            if self._is_worth_it(step):
                self._ahead.go_on(self)
        self._at = step.next_offset
        return step

    def pause(self, is_paused: bool) -> None:
        """Whether to read nothing ahead."""
        self._ahead.pause(self, is_paused)

    def close(self) -> None:
        """What waits is not wanted any more."""
        self._ahead.end(self)

    # -- called by `ReadAhead` -----------------------------------------------------------------

    def read(self) -> Fetched | None:
        """Reads the step after those that wait; in one thread at a time."""
        if self._fetches is None:
            self._fetches = self._log.fetches(
                self.topic_partition.partition,
                self._at,
                max_bytes=self._ahead.step_bytes,
                lead_bytes=LEAD_BYTES,
            )
        step = next(self._fetches, None)
        # Behind the log end nothing is read ahead; to ask Arrow takes as long as to read a record.
        self.last_bytes = 0 if step is None or step.at_log_end else step.records.nbytes
        return step

    def _is_worth_it(self, step: Fetched) -> bool:
        """Whether to read ahead of what comes after a step that was asked for."""
        is_first, self._is_first = self._is_first, False
        # In Redis, a single record is sought more often than not, and the second is there soon.
        is_cold = self._log.is_below_hot(self.topic_partition.partition, step.next_offset)
        return not step.at_log_end and (is_cold or not is_first)

    def drop(self) -> None:
        """What waits is read again, should anybody ask."""
        if not self.is_read_ahead:  # otherwise whoever reads does that
            self.stop()
        self.waiting.clear()
        self.waiting_bytes = 0

    def stop(self) -> None:
        """The next to be read is the one after those that wait."""
        self._fetches, self.may_go_on = None, False

    def forget(self) -> None:
        """As `drop`, in a process that does not have the thread that reads."""
        self.is_read_ahead = False
        self.drop()
