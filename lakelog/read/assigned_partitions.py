"""The partitions that a consumer reads: whose turn it is, what is at hand, waiting for more."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping

from ..errors import InvalidArgumentError, LakelogError
from ..hot.waits import Waker
from ..values.arguments import checked_partition, checked_partitions
from ..values.record import RecordRows
from ..values.topic_partition import TopicPartition
from .consumer_config import OffsetReset
from .cursor import Cursor
from .polling import is_outage
from .read_ahead import ReadAhead
from .topic_log import TopicLog


class AssignedPartitions:
    """Cursors in the order of their turns.

    Args:
        reset: where a partition begins that has no position.
        fetch_max_bytes: what one poll hands out, if that is more than one record, and how much of
            the cold tier is read before it is asked for.
        find_starts: moves cursors to where their group has come; None: there is no group.
    """

    def __init__(
        self,
        reset: OffsetReset,
        fetch_max_bytes: int,
        find_starts: Callable[[Collection[Cursor]], None] | None = None,
    ) -> None:
        self._reset = reset
        self._find_starts = find_starts
        self._cursors: dict[TopicPartition, Cursor] = {}
        self._fetch_max_bytes = fetch_max_bytes
        self.read_ahead = ReadAhead(fetch_max_bytes)

    # -- which ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Cursor]:
        return iter(self._cursors.values())

    def __len__(self) -> int:
        return len(self._cursors)

    def partitions(self) -> set[TopicPartition]:
        return set(self._cursors)

    def logs(self) -> dict[str, TopicLog]:
        """By topic."""
        return {tp.topic: cursor.log for tp, cursor in self._cursors.items()}

    def gone(self, wanted: Mapping[TopicPartition, TopicLog]) -> set[TopicPartition]:
        """Those that `replace` would let go: not wanted, or of a topic that was made again."""
        return {
            tp
            for tp, cursor in self._cursors.items()
            if tp not in wanted or wanted[tp].topic.topic_id != cursor.log.topic.topic_id
        }

    def replace(self, wanted: Mapping[TopicPartition, TopicLog]) -> None:
        """Read these and no others; those that stay keep their position."""
        self.remove(self.gone(wanted))
        self.add({tp: log for tp, log in wanted.items() if tp not in self._cursors})
        for tp, log in wanted.items():
            self._cursors[tp].log = log

    def add(self, logs: Mapping[TopicPartition, TopicLog]) -> None:
        """Read these too, from their start."""
        for tp, log in logs.items():
            asks_group = self._find_starts is not None
            self._cursors[tp] = Cursor(tp, log, self._reset, self.read_ahead, asks_group)

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Read these no more."""
        for tp in partitions:
            if (cursor := self._cursors.pop(tp, None)) is not None:
                cursor.is_assigned = False
                cursor.close()

    def of(self, partition: TopicPartition) -> Cursor:
        """The cursor of a partition.

        Raises:
            InvalidArgumentError: it is not assigned, or no partition.
        """
        partition = checked_partition(partition)
        found = self._cursors.get(partition)
        if found is None:
            raise InvalidArgumentError(
                f"{partition} is not assigned to this consumer; assigned are "
                f"{', '.join(map(str, self._cursors)) or 'none'}"
            )
        return found

    def chosen(self, partitions: tuple[TopicPartition, ...]) -> list[Cursor]:
        """The cursors of these, or of those in one list, as Java's client has it; of all, if
        nothing is given.
        """
        if not partitions:
            return list(self)
        given = partitions[0] if len(partitions) == 1 else partitions
        return [self.of(tp) for tp in checked_partitions(given)]

    def active(self) -> list[Cursor]:
        """Those that are not paused."""
        return [cursor for cursor in self if not cursor.paused]

    def find_starts(self) -> None:
        """Moves those that have no position yet to where their group has come."""
        asking = [cursor for cursor in self if cursor.asks_group]
        if asking and self._find_starts is not None:
            self._find_starts(asking)

    # -- records -------------------------------------------------------------------------------

    def last(self, cursor: Cursor) -> None:
        """Let the others have their turn first."""
        if cursor.is_assigned:
            self._cursors[cursor.topic_partition] = self._cursors.pop(cursor.topic_partition)

    def take(self, max_records: int | None) -> dict[TopicPartition, list[RecordRows]]:
        """Hands out what is at hand, in turns; see `Consumer.poll`."""
        polled: dict[TopicPartition, list[RecordRows]] = {}
        left = max_records
        size_bytes = 0
        rows: RecordRows | None = None
        turns = [cursor for cursor in self.active() if cursor.idle_at is None]
        share = None if left is None else -(-left // len(turns))
        while turns and left != 0:
            cursor = turns.pop(0)
            if not cursor.try_fill():
                self.last(cursor)
                continue
            most = share if left is None or share is None else min(share, left)
            if rows is not None:  # not before: of one record it takes longer than to hand it out
                size_bytes += rows.nbytes
            before, rows = rows, cursor.at_hand(most)
            if before is not None and size_bytes + rows.nbytes > self._fetch_max_bytes:
                break  # it comes first in the next poll
            self.last(cursor)
            cursor.hand_out(rows)
            polled.setdefault(cursor.topic_partition, []).append(rows)
            if left is not None:
                left -= len(rows)
                if cursor.idle_at is None:
                    turns.append(cursor)
        return polled

    def ready(self) -> Cursor | None:
        """The first in turn that has a record at hand."""
        return next((cursor for cursor in self.active() if cursor.try_fill()), None)

    def wait_for_news(self, timeout_ms: int, waker: Waker | None = None) -> None:
        """Ask for news of those at the log end; wait only if there is nothing else to do.

        Args:
            waker: ends the wait.
        """
        active = self.active()
        waiting = {
            cursor.topic_partition: cursor.idle_at
            for cursor in active
            if cursor.idle_at is not None
        }
        if not active and waker is not None:
            waker.wait(timeout_ms / 1000)
        elif not active:
            time.sleep(timeout_ms / 1000)
        elif waiting:
            # Even while others have records, so that a busy partition does not hide the rest.
            all_idle = len(waiting) == len(active)
            news = active[0].log.hot.wait(waiting, timeout_ms if all_idle else 0, waker)
            for topic_partition in news:
                self._cursors[topic_partition].idle_at = None
            is_woken = waker is not None and waker.is_set
            if all_idle and not news and not is_woken:
                _look_where_nothing_came(active)

    def away(self) -> LakelogError | None:
        """Why one cannot go on for now: a tier that it reads does not answer."""
        failures = (cursor.failure for cursor in self.active() if cursor.failure is not None)
        return next(filter(is_outage, failures), None)

    def ask_again(self) -> None:
        """Those that stopped since a tier did not answer go on."""
        for cursor in self:
            if is_outage(cursor.failure):
                cursor.failure = None

    def raise_failure(self) -> None:
        """Raises what stopped a cursor, once; of an outage, see `away`.

        Raises:
            Exception: the failure of the first that has one.
        """
        for cursor in self.active():
            if not is_outage(cursor.failure):
                cursor.raise_failure()


def _look_where_nothing_came(cursors: list[Cursor]) -> None:
    """Makes dropped topics and deleted offsets raise errors, since nothing ever comes there."""
    by_topic: dict[str, list[Cursor]] = {}
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
