"""One partition that a consumer reads: where it is, and what was read ahead of it."""

from __future__ import annotations

import logging
import time

from ..base import metrics as m
from ..errors import NoOffsetForPartitionError, OffsetOutOfRangeError, RecoveryNeededError
from ..values.offsets import Ago, Position
from ..values.record import RECORDS_AT_ONCE, Record, RecordRows
from ..values.topic_partition import TopicPartition
from .consumer_config import OffsetReset
from .read_ahead import ReadAhead, Steps
from .topic_log import TopicLog

logger = logging.getLogger(__name__)


class Cursor:
    """One partition's position, and what was read ahead of it.

    Args:
        reset: where to begin without a position.
        read_ahead: shared with the consumer's other partitions.
        asks_group: its group may have committed one; see `start_at`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        log: TopicLog,
        reset: OffsetReset,
        read_ahead: ReadAhead,
        asks_group: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.asks_group = asks_group
        self.is_assigned = True  # to its consumer, still
        self.position: int | None = None  # of the next record to hand out; None: to be looked up
        self.idle_at: int | None = None  # nothing to read until this offset is there
        self._reset = reset
        self._target: Position | None = reset.position  # what to look up
        self._read_ahead = read_ahead
        self._steps: Steps | None = None
        self._is_paused = False
        self._ahead: RecordRows | None = None  # read, not yet handed out but as records
        self._ahead_end = 0  # the position after it
        self._is_last = False  # whether there was nothing behind it when it was read
        self._objects: list[Record] = []  # of `_ahead`, the next one last
        self._given = 0  # so many of the first records of `_ahead` were handed out before
        self._counted = 0  # of `_ahead`, as handed out
        self.failure: Exception | None = None  # to be raised by the next poll

    @property
    def paused(self) -> bool:
        """Whether nothing of it is handed out."""
        return self._is_paused

    @paused.setter
    def paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if self._steps is not None:
            self._steps.pause(is_paused)

    def close(self) -> None:
        """Drop what was read ahead."""
        if self._steps is not None:
            self._steps.close()
        self._steps = self._ahead = None
        self._objects, self._given, self._counted = [], 0, 0
        self._is_last = False

    def move(self, where: int | Position) -> None:
        """Go on somewhere else; what was read ahead is dropped."""
        if isinstance(where, Position):
            self.position, self._target = None, where
        else:
            self.position = where
        self.asks_group = False
        self.idle_at = self.failure = None
        self.close()

    def start_at(self, committed: int | None) -> None:
        """Begin where the group has come; None: it has committed nothing."""
        self.asks_group = False
        self.position = committed

    def resolve(self) -> bool:
        """Whether there is a position now; its group is asked before, see `start_at`."""
        if self.position is not None or self.asks_group:
            return self.position is not None
        if self._target is None:
            raise NoOffsetForPartitionError(
                f"{self.topic_partition} has no position and auto_offset_reset='none'; seek, or "
                "set auto_offset_reset to 'earliest', 'latest' or 'by_duration:PT…'",
                topic_partition=self.topic_partition,
            )
        partition = self.topic_partition.partition
        end = 0
        if isinstance(self._target, Ago):
            # Before the search, so that records appended meanwhile end the wait.
            end = self.log.offsets([partition])[partition].log_end
        self.position = self.log.seek(partition, self._target)
        if self.position is None:
            self.idle_at = end  # Kafka, too, waits rather than take the log end
        return self.position is not None

    def fill(self) -> bool:
        """Read ahead if nothing is at hand; returns whether something is at hand then."""
        while self._ahead is None and self.idle_at is None and self.resolve():
            assert self.position is not None
            try:
                self._step(self.position)
            except RecoveryNeededError:
                self.idle_at = self.position  # waits; the gap that recovery leaves is news
            except OffsetOutOfRangeError as error:
                if self._reset.position is None:
                    message = f"{error}, or set auto_offset_reset to 'earliest' or 'latest'"
                    raise error.changed(message=message) from None
                logger.warning("%s; auto_offset_reset=%s", error, self._reset.text)
                self.move(self._reset.position)
        return self._ahead is not None

    def try_fill(self) -> bool:
        """As `fill`, but an error is kept as the cursor's failure, and until that is raised or
        dropped nothing is read.
        """
        if self.failure is not None:
            return False
        try:
            return self.fill()
        except Exception as error:
            self.failure = error
            return False

    def raise_failure(self) -> None:
        """Raises what stopped it, once.

        Raises:
            Exception: that.
        """
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def at_hand(self, max_records: int | None) -> RecordRows:
        """The next records to hand out, at most so many."""
        assert self._ahead is not None
        rows = self._ahead.after(self._given)
        return rows if max_records is None else rows.first(max_records)

    def hand_out(self, rows: RecordRows) -> None:
        """These were handed out, as `at_hand` gave them."""
        given = self._given + len(rows)
        self._count(given)
        self._objects = []
        self._handed_out(given)

    def next_record(self) -> Record | None:
        """Hand out the next record, None if nothing is at hand."""
        if not self._objects:
            if self._ahead is None:
                return None
            rows = self._ahead.first(RECORDS_AT_ONCE)
            self._count(len(rows))  # all at once: to count one costs as much as to hand it out
            self._objects = rows.records()[::-1]
        record = self._objects.pop()
        self._given += 1
        if self._objects:
            self.position = record.offset + 1
        else:
            self._handed_out(self._given)
        return record

    def _count(self, firsts: int) -> None:
        """So many of the first records at hand, as far as they are not counted yet."""
        assert self._ahead is not None
        if firsts > self._counted:
            topic = self.topic_partition.topic
            fresh = self._ahead.first(firsts).after(self._counted)
            m.COUNTS.add(m.CONSUMED_RECORDS, len(fresh), topic)
            m.COUNTS.add(m.CONSUMED_BYTES, fresh.nbytes, topic)
            self._counted = firsts

    def _handed_out(self, records: int) -> None:
        """So many of the first records at hand are not wanted any more."""
        assert self._ahead is not None
        self._given = 0
        self._counted -= records
        if records < len(self._ahead):
            self.position = self._ahead.first(records).last_offset + 1
            self._ahead = self._ahead.after(records)
        else:
            self.position = self._ahead_end
            self._ahead = None
            if self._is_last:  # a look for more would only delay what there is, and the next wait
                self.close()
                self.idle_at = self.position

    def _step(self, position: int) -> None:
        if self._steps is None:
            self._steps = self._read_ahead.steps(self.log, self.topic_partition, position)
        started_s = time.perf_counter()
        try:
            step = self._steps.next()
        except BaseException:
            self.close()
            raise
        if step is None:
            self.close()
            self.idle_at = position
        elif step.records.num_rows:
            m.COUNTS.observe(m.FETCH_SECONDS, time.perf_counter() - started_s)
            self._ahead = RecordRows.of(self.topic_partition, step.records)
            self._ahead_end = step.next_offset
            self._is_last = step.at_log_end
        else:
            self.position = step.next_offset
