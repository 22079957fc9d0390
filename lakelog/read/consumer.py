"""Reads partitions in turn, each from a position of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from ..config import MIB
from ..errors import (
    InvalidArgumentError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecoveryNeededError,
)
from ..offsets import Ago, AtTimestamp, Earliest, Latest, Position, check_offset, timestamp_ms
from ..record import Fetched, OffsetAndTimestamp, Record, TopicPartition, to_records
from .policy import OffsetReset
from .topic_log import TopicLog

DEFAULT_MAX_POLL_RECORDS = 500  # Kafka's max.poll.records

#: Iterating turns this many records of a partition into objects at a time.
_ITERATION_RECORDS = 500

#: A wait without an end wakes up this often, to notice signals.
_WAIT_MS = 60_000

#: What one poll hands out, if that is more than one record: Kafka's default of fetch.max.bytes.
_POLL_BYTES = 50 * MIB

logger = logging.getLogger(__name__)


class Consumer:
    """Polls assigned partitions from their positions, across both tiers, as Kafka's does.

    A position is the offset of the next record. It moves only when records are handed out, so an
    error leaves it where it was and the next poll tries again. Archiving and trimming go unnoticed.
    On a server that may have lost its tail, a position past the log end waits; after recovery it
    goes on above the gap.

    Not thread-safe, like Kafka's: use one thread for each consumer.

    Args:
        logs: gives the log of a topic, all of one hot tier; `Lakelog.log`.
        auto_offset_reset: where to begin without a position, or when the log does not hold it (any
            more): ``earliest``, ``latest``, ``none`` (an error), or ``by_duration:PT10M`` (that
            long before now). If no record is that young, by_duration waits for one and does not
            take the log end; if the log begins later, it takes its start.
        max_poll_records: the most that one `poll` returns.
        consumer_timeout_ms: iterating ends after this long without a record; None: never.

    Raises:
        InvalidConfigError: `auto_offset_reset` is none of these.
    """

    def __init__(
        self,
        logs: Callable[[str], TopicLog],
        *,
        auto_offset_reset: str = "latest",
        max_poll_records: int = DEFAULT_MAX_POLL_RECORDS,
        consumer_timeout_ms: int | None = None,
    ) -> None:
        self._logs = logs
        self._reset = OffsetReset.parse(auto_offset_reset)
        self._max_poll_records = _check_count("max_poll_records", max_poll_records)
        self._consumer_timeout_ms = (
            None
            if consumer_timeout_ms is None
            else _check_timeout("consumer_timeout_ms", consumer_timeout_ms)
        )
        self._topics: dict[str, TopicLog] = {}
        self._cursors: dict[TopicPartition, _Cursor] = {}  # in the order of their turns

    # -- which partitions, from where ------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions; those assigned before keep their position.

        Raises:
            UnknownTopicOrPartitionError: one does not exist; nothing was changed.
        """
        wanted = [TopicPartition(*one) for one in partitions]
        topics = {tp.topic: self._topics.get(tp.topic) or self._logs(tp.topic) for tp in wanted}
        for tp in wanted:
            topics[tp.topic].topic.partition(tp.partition)
        self._topics = topics
        self._cursors = {
            tp: self._cursors.get(tp) or _Cursor(tp, topics[tp.topic], self._reset) for tp in wanted
        }

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return set(self._cursors)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset. Whether the log holds it shows at the next poll.

        Raises:
            InvalidArgumentError: not an offset, or the partition is not assigned.
        """
        self._cursor(partition).move(check_offset(offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the log start, looked up at the next poll or `position`; default: all."""
        for cursor in self._chosen(partitions):
            cursor.move(Earliest())

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on at the log end, looked up at the next poll or `position`; default: all."""
        for cursor in self._chosen(partitions):
            cursor.move(Latest())

    def seek_to_timestamp(self, partition: TopicPartition, timestamp: int | str | datetime) -> int:
        """Go on at the earliest record whose timestamp is at or after that; returns its offset.

        If there is none, go on at the log end as it was before the search: with the next record,
        however old its timestamp.

        Args:
            timestamp: epoch milliseconds, an aware datetime, or a time in any way that
                `typed_time` reads.
        """
        cursor = self._cursor(partition)
        target = AtTimestamp(timestamp_ms(timestamp))
        end = cursor.log.offsets([partition.partition])[partition.partition].log_end
        found = cursor.log.seek(partition.partition, target)
        offset = end if found is None else found
        cursor.move(offset)
        return offset

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; None while ``by_duration`` waits for one young enough.

        Raises:
            NoOffsetForPartitionError: it has none and auto_offset_reset is ``none``.
        """
        cursor = self._cursor(partition)
        cursor.resolve()
        return cursor.position

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until `resume`; default: all."""
        for cursor in self._chosen(partitions):
            cursor.paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of these again; default: all."""
        for cursor in self._chosen(partitions):
            cursor.paused = False

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {tp for tp, cursor in self._cursors.items() if cursor.paused}

    # -- records ---------------------------------------------------------------------------------

    def poll(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records, at once if there are any, else after waiting for the first.

        Partitions take turns, so that none starves. Records of 50 MiB together (Kafka's
        fetch.max.bytes), or one larger record, are enough for one poll, whatever the limit.

        Args:
            timeout_ms: how long to wait for a record.
            max_records: of all partitions together; default ``max_poll_records``.

        Returns:
            Records by partition, in offset order; empty when the time is over.

        Raises:
            OffsetOutOfRangeError, NoOffsetForPartitionError: with auto_offset_reset ``none``.
            LakelogError: a tier does not answer or is damaged. Positions stay; records of other
                partitions are returned first.
        """
        limit = self._max_poll_records if max_records is None else max_records
        polled = self._poll(timeout_ms, _check_count("max_records", limit))
        return {
            tp: [record for batch in batches for record in to_records(tp, batch)]
            for tp, batches in polled.items()
        }

    def poll_arrow(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, pa.RecordBatch]:
        """As `poll`, with one `RECORDS` batch for each partition.

        Args:
            timeout_ms: how long to wait for a record.
            max_records: of all partitions together; default one read step of each partition, some
                MiB.
        """
        if max_records is not None:
            _check_count("max_records", max_records)
        return {
            tp: batches[0]
            if len(batches) == 1
            else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
            for tp, batches in self._poll(timeout_ms, max_records).items()
        }

    def __iter__(self) -> Iterator[Record]:
        """Records one by one, waiting for more, until ``consumer_timeout_ms`` pass without one.

        `position` is the offset after the last record given; seek, pause and assign between
        two records take effect at once.
        """
        self._check_assigned()
        while self._cursors:
            cursor = self._await(_deadline(self._consumer_timeout_ms))
            if cursor is None:
                return
            for _ in range(_ITERATION_RECORDS):
                # The caller may have done anything to the consumer since the last record.
                if self._cursors.get(cursor.topic_partition) is not cursor or cursor.paused:
                    break
                record = cursor.next_record()
                if record is None:
                    break
                yield record
            self._last(cursor)

    # -- where partitions begin and end ----------------------------------------------------------

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The log start offset of each."""
        return self._offsets(partitions, Earliest())

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The log end offset of each: that of the next record to be appended."""
        return self._offsets(partitions, Latest())

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | str | datetime]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The earliest record of each with a timestamp at or after the target; None without one.

        Raises:
            InvalidArgumentError: a negative timestamp, or a time without a zone.
        """
        targets = {
            TopicPartition(*tp): AtTimestamp(timestamp_ms(when)).timestamp_ms
            for tp, when in timestamps.items()
        }
        return {
            tp: self._log(tp.topic).offset_for_timestamp(tp.partition, target_ms)
            for tp, target_ms in targets.items()
        }

    # -- end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give up the assignment. Connections belong to the logs and stay open."""
        self._cursors = {}
        self._topics = {}

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- how -------------------------------------------------------------------------------------

    def _poll(
        self, timeout_ms: int, max_records: int | None
    ) -> dict[TopicPartition, list[pa.RecordBatch]]:
        deadline = _deadline(_check_timeout("timeout_ms", timeout_ms))
        self._check_assigned()
        if self._await(deadline) is None:
            return {}
        polled: dict[TopicPartition, list[pa.RecordBatch]] = {}
        left = max_records
        size_bytes = 0
        turns = [cursor for cursor in self._active() if cursor.idle_at is None]
        share = None if left is None else -(-left // len(turns))
        while turns and left != 0:
            cursor = turns.pop(0)
            if not cursor.try_fill():
                self._last(cursor)
                continue
            if polled and size_bytes + cursor.ahead_bytes > _POLL_BYTES:
                break  # it comes first in the next poll
            self._last(cursor)
            batch = cursor.take(share if left is None or share is None else min(share, left))
            polled.setdefault(cursor.topic_partition, []).append(batch)
            size_bytes += batch.nbytes
            if left is not None:
                left -= batch.num_rows
                turns.append(cursor)
        return polled

    def _await(self, deadline: float | None) -> _Cursor | None:
        """The first cursor in turn that has a record at hand; None when the time is over.

        Raises:
            Exception: a cursor failed in an earlier call, or has failed now and no other is ready.
        """
        _raise_failure(self._active())
        while True:
            active = self._active()
            self._wait_for_news(active, _left_ms(deadline))
            for cursor in active:
                if cursor.try_fill():
                    return cursor
            _raise_failure(active)
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def _wait_for_news(self, active: list[_Cursor], timeout_ms: int) -> None:
        """Ask for news of the cursors at the log end; wait only if there is nothing else to do."""
        waiting = {
            cursor.topic_partition: cursor.idle_at
            for cursor in active
            if cursor.idle_at is not None
        }
        if not active:
            time.sleep(timeout_ms / 1000)
        elif waiting:
            # Even while others have records, so that a busy partition does not hide the rest.
            all_idle = len(waiting) == len(active)
            news = active[0].log.hot.wait(waiting, timeout_ms if all_idle else 0)
            for topic_partition in news:
                self._cursors[topic_partition].idle_at = None
            if all_idle and not news:
                _look_where_nothing_came(active)

    def _active(self) -> list[_Cursor]:
        return [cursor for cursor in self._cursors.values() if not cursor.paused]

    def _check_assigned(self) -> None:
        if not self._cursors:
            raise InvalidArgumentError("no partitions are assigned; call assign() first")

    def _last(self, cursor: _Cursor) -> None:
        """Let the others have their turn first."""
        if self._cursors.get(cursor.topic_partition) is cursor:
            self._cursors[cursor.topic_partition] = self._cursors.pop(cursor.topic_partition)

    def _cursor(self, partition: TopicPartition) -> _Cursor:
        found = self._cursors.get(partition)
        if found is None:
            raise InvalidArgumentError(
                f"{partition} is not assigned to this consumer; assigned are "
                f"{', '.join(map(str, self._cursors)) or 'none'}"
            )
        return found

    def _chosen(self, partitions: tuple[TopicPartition, ...]) -> list[_Cursor]:
        return [self._cursor(tp) for tp in partitions] or list(self._cursors.values())

    def _log(self, topic: str) -> TopicLog:
        return self._topics.get(topic) or self._logs(topic)

    def _offsets(
        self, partitions: Iterable[TopicPartition], where: Earliest | Latest
    ) -> dict[TopicPartition, int]:
        wanted = [TopicPartition(*one) for one in partitions]
        by_topic: dict[str, list[int]] = {}
        for topic, partition in wanted:
            by_topic.setdefault(topic, []).append(partition)
        offsets = {
            TopicPartition(topic, partition): log_offsets
            for topic, numbers in by_topic.items()
            for partition, log_offsets in self._log(topic).offsets(numbers).items()
        }
        if isinstance(where, Earliest):
            return {tp: offsets[tp].log_start for tp in wanted}
        return {tp: offsets[tp].log_end for tp in wanted}


def _look_where_nothing_came(cursors: list[_Cursor]) -> None:
    """Makes dropped topics and deleted offsets raise errors, since nothing ever comes there."""
    by_topic: dict[str, list[_Cursor]] = {}
    for cursor in cursors:
        by_topic.setdefault(cursor.topic_partition.topic, []).append(cursor)
    for waiting in by_topic.values():
        log = waiting[0].log
        seen = log.hot.offsets(
            [cursor.topic_partition for cursor in waiting], topic_id=log.topic.topic_id
        )
        for cursor in waiting:
            idle_at = cursor.idle_at
            if idle_at is not None and seen[cursor.topic_partition].local_log_start > idle_at:
                cursor.idle_at = None


class _Cursor:
    """One partition's position, and what was read ahead of it."""

    def __init__(self, topic_partition: TopicPartition, log: TopicLog, reset: OffsetReset) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.paused = False
        self.position: int | None = None  # of the next record to hand out; None: to be looked up
        self.idle_at: int | None = None  # nothing to read until this offset is there
        self._reset = reset
        self._target: Position | None = reset.position  # what to look up
        self._steps: Iterator[Fetched] | None = None
        self._ahead: pa.RecordBatch | None = None  # read, not yet handed out
        self._ahead_end = 0  # the position after it
        self._objects: list[Record] = []  # the first records of `_ahead`, the next one last
        self.failure: Exception | None = None  # to be raised by the next poll

    def move(self, where: int | Position) -> None:
        """Go on somewhere else; what was read ahead is dropped."""
        if isinstance(where, Position):
            self.position, self._target = None, where
        else:
            self.position = where
        self.idle_at = self.failure = None
        self._steps = self._ahead = None
        self._objects = []

    def resolve(self) -> bool:
        """Whether there is a position now."""
        if self.position is not None:
            return True
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
                self._steps = None
                if self._reset.position is None:
                    message = f"{error}, or set auto_offset_reset to 'earliest' or 'latest'"
                    raise replace(error, message=message) from None
                logger.warning("%s; auto_offset_reset=%s", error, self._reset.text)
                self.move(self._reset.position)
        return self._ahead is not None

    def try_fill(self) -> bool:
        """As `fill`, but an error is kept as the cursor's failure."""
        try:
            return self.fill()
        except Exception as error:
            self.failure = error
            return False

    @property
    def ahead_bytes(self) -> int:
        """The bytes at hand."""
        return 0 if self._ahead is None else int(self._ahead.nbytes)

    def take(self, max_records: int | None) -> pa.RecordBatch:
        """Hand out what is at hand, as a batch."""
        assert self._ahead is not None
        batch = self._ahead if max_records is None else self._ahead.slice(0, max_records)
        self._objects = []
        self._handed_out(batch.num_rows)
        return batch

    def next_record(self) -> Record | None:
        """Hand out the next record, None if nothing is at hand."""
        if self._ahead is None:
            return None
        if not self._objects:
            chunk = self._ahead.slice(0, _ITERATION_RECORDS)
            self._objects = to_records(self.topic_partition, chunk)[::-1]
        record = self._objects.pop()
        self._handed_out(1)
        return record

    def _handed_out(self, records: int) -> None:
        assert self._ahead is not None
        if records < self._ahead.num_rows:
            self.position = self._ahead.column("offset")[records - 1].as_py() + 1
            self._ahead = self._ahead.slice(records)
        else:
            self.position = self._ahead_end
            self._ahead = None

    def _step(self, position: int) -> None:
        if self._steps is None:
            self._steps = self.log.fetches(self.topic_partition.partition, position)
        try:
            step = next(self._steps, None)
        except BaseException:
            self._steps = None  # a generator that raised is over
            raise
        if step is None:
            self._steps = None
            self.idle_at = position
        elif step.records.num_rows:
            self._ahead, self._ahead_end = step.records, step.next_offset
        else:
            self.position = step.next_offset


def _raise_failure(cursors: list[_Cursor]) -> None:
    for cursor in cursors:
        if cursor.failure is not None:
            failure, cursor.failure = cursor.failure, None
            raise failure


def _deadline(timeout_ms: int | None) -> float | None:
    return None if timeout_ms is None else time.monotonic() + timeout_ms / 1000


def _left_ms(deadline: float | None) -> int:
    if deadline is None:
        return _WAIT_MS
    return max(0, min(_WAIT_MS, round((deadline - time.monotonic()) * 1000)))


def _check_count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgumentError(f"{name}={value!r} is not a number of records ≥ 1")
    return value


def _check_timeout(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgumentError(f"{name}={value!r} is not a number of milliseconds ≥ 0")
    return value
