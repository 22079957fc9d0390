"""Reads partitions in turn, each from a position of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..config import MIB
from ..errors import (
    InvalidArgumentError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..offsets import AtTimestamp, Earliest, Latest, check_offset, timestamp_ms
from ..record import OffsetAndTimestamp, Record, TopicPartition, to_records
from ..topic import Topic
from .consumer_config import ConsumerConfig, check_count, check_timeout
from .cursor import RECORDS_AT_ONCE, Cursor
from .deserializers import Deserializers
from .policy import OffsetReset
from .subscription import SeenTopics, Subscription
from .topic_log import TopicLog

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
        config: what else it does.
        topics: tells which topics there are; None: it can only be assigned partitions.
    """

    def __init__(
        self,
        logs: Callable[[str], TopicLog],
        config: ConsumerConfig | None = None,
        topics: SeenTopics | None = None,
    ) -> None:
        self._logs = logs
        self.config = config or ConsumerConfig()
        self._reset = OffsetReset.parse(self.config.auto_offset_reset)
        self._deserializers = Deserializers(
            self.config.key_deserializer, self.config.value_deserializer
        )
        self._seen_topics = topics
        self._subscription: Subscription | None = None
        self._look_s = 0.0  # when the subscription looks again for topics; monotonic
        self._topics: dict[str, TopicLog] = {}
        self._cursors: dict[TopicPartition, Cursor] = {}  # in the order of their turns

    # -- which partitions, from where ------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions; those assigned before keep their position.

        Raises:
            UnknownTopicOrPartitionError: one does not exist; nothing was changed.
            InvalidArgumentError: there is a subscription.
        """
        if self._subscription is not None:
            raise InvalidArgumentError(
                f"this consumer is subscribed to {self._subscription}, which says what it reads; "
                "call unsubscribe() before assign()"
            )
        wanted = [TopicPartition(*one) for one in partitions]
        topics = {tp.topic: self._topics.get(tp.topic) or self._logs(tp.topic) for tp in wanted}
        for tp in wanted:
            topics[tp.topic].topic.partition(tp.partition)
        self._topics = topics
        self._cursors = {
            tp: self._cursors.get(tp) or Cursor(tp, topics[tp.topic], self._reset) for tp in wanted
        }

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: Any = None,
    ) -> None:
        """Read all partitions of these topics, as they come and go; takes the place of an earlier
        subscription.

        The next `poll` (or iteration) finds them, and looks again every ``metadata_max_age_ms``: a
        topic that is made later and one that grows are read where ``auto_offset_reset`` says, one
        that is deleted leaves, and one that is made again begins anew. Partitions that stay keep
        their position.

        Args:
            topics: names.
            pattern: instead, a regular expression that names match from their beginning.
            listener: a `ConsumerRebalanceListener`.

        Raises:
            InvalidArgumentError: neither or both of names and pattern; partitions are assigned.
            InvalidTopicError: a name that no topic can have.
        """
        if self._seen_topics is None:
            raise InvalidArgumentError(
                "this consumer cannot list topics; get it from Lakelog.consumer, or call assign()"
            )
        if self._subscription is None and self._cursors:
            raise InvalidArgumentError(
                f"partitions are assigned ({', '.join(map(str, self._cursors))}); call "
                "unsubscribe() before subscribe()"
            )
        self._subscription = Subscription.of(topics, pattern, listener)
        self._look_s = 0.0

    def subscription(self) -> set[str] | None:
        """The names that are subscribed to, or that a pattern has found; None: no subscription."""
        if self._subscription is None:
            return None
        return set(self._subscription.names or self._topics)

    def unsubscribe(self) -> None:
        """Give up the subscription, or what was assigned."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None and subscription.listener is not None and self._cursors:
            subscription.listener.on_partitions_revoked(self.assignment())
        self._cursors = {}
        self._topics = {}

    def topics(self) -> set[str]:
        """The names of all topics there are."""
        return {topic.name for topic in self._listed()}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The numbers of a topic's partitions; None: there is no such topic."""
        found = next((one for one in self._listed() if one.name == topic), None)
        return None if found is None else set(range(found.partitions))

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
            RecordDeserializationError: a deserializer failed. The position is that of the record,
                so that it comes again unless you seek past it; what lies before is returned first.
            LakelogError: a tier does not answer or is damaged. Positions stay; records of other
                partitions are returned first.
        """
        limit = self.config.max_poll_records if max_records is None else max_records
        polled = self._poll(timeout_ms, check_count("max_records", limit))
        found = {
            tp: self._deserialized(tp, [r for batch in batches for r in to_records(tp, batch)])
            for tp, batches in polled.items()
        }
        given = {tp: records for tp, records in found.items() if records}
        if not given:
            _raise_failure(self._active())
        return given

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
            check_count("max_records", max_records)
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
        while self._cursors or self._subscription is not None:
            cursor = self._await(_deadline(self.config.consumer_timeout_ms))
            if cursor is None:
                return
            for _ in range(RECORDS_AT_ONCE):
                # The caller may have done anything to the consumer since the last record.
                if self._cursors.get(cursor.topic_partition) is not cursor or cursor.paused:
                    break
                record = cursor.next_record()
                if record is None:
                    break
                if not self._deserialized(cursor.topic_partition, [record]):
                    _raise_failure([cursor])
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
        """Give up the subscription or the assignment. Connections stay open: the logs have them."""
        self.unsubscribe()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- how -------------------------------------------------------------------------------------

    def _poll(
        self, timeout_ms: int, max_records: int | None
    ) -> dict[TopicPartition, list[pa.RecordBatch]]:
        deadline = _deadline(check_timeout("timeout_ms", timeout_ms))
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

    def _await(self, deadline: float | None) -> Cursor | None:
        """The first cursor in turn that has a record at hand; None when the time is over.

        Raises:
            Exception: a cursor failed in an earlier call, or has failed now and no other is ready.
        """
        _raise_failure(self._active())
        while True:
            self._follow()
            active = self._active()
            self._wait_for_news(active, self._wait_ms(deadline))
            for cursor in active:
                if cursor.try_fill():
                    return cursor
            if self._are_gone(active):
                continue
            _raise_failure(active)
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def _wait_for_news(self, active: list[Cursor], timeout_ms: int) -> None:
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

    def _wait_ms(self, deadline: float | None) -> int:
        """How long to wait for a record before there is something else to do."""
        left_ms = _left_ms(deadline)
        if self._subscription is None:
            return left_ms
        return min(left_ms, max(0, round((self._look_s - time.monotonic()) * 1000)))

    def _listed(self) -> Sequence[Topic]:
        if self._seen_topics is None:
            raise InvalidArgumentError(
                "this consumer cannot list topics; get it from Lakelog.consumer"
            )
        return self._seen_topics.now()

    def _follow(self) -> None:
        """Give and take partitions as the subscription's topics come and go."""
        if self._subscription is None or time.monotonic() < self._look_s:
            return
        logs = {}
        for topic in self._subscription.of_these(self._listed()):
            known = self._topics.get(topic.name)
            same = known is not None and known.topic.topic_id == topic.topic_id
            if known is not None and same and known.topic.partitions >= topic.partitions:
                logs[topic.name] = known
                continue
            try:
                logs[topic.name] = self._logs(topic.name)
            except UnknownTopicOrPartitionError:
                continue  # deleted since
        wanted = {
            TopicPartition(name, number): log
            for name, log in logs.items()
            for number in range(log.topic.partitions)
        }
        revoked = {
            tp
            for tp, cursor in self._cursors.items()
            if tp not in wanted or wanted[tp].topic.topic_id != cursor.log.topic.topic_id
        }
        assigned = wanted.keys() - (self._cursors.keys() - revoked)
        listener = self._subscription.listener
        if revoked and listener is not None:
            listener.on_partitions_revoked(revoked)
        self._topics = logs
        self._cursors = {
            **{tp: cursor for tp, cursor in self._cursors.items() if tp not in revoked},
            **{tp: Cursor(tp, wanted[tp], self._reset) for tp in wanted if tp in assigned},
        }
        self._look_s = time.monotonic() + self.config.metadata_max_age_ms / 1000
        if assigned and listener is not None:
            listener.on_partitions_assigned(assigned)

    def _are_gone(self, cursors: list[Cursor]) -> bool:
        """Whether those that failed did so since their topics were deleted; they are left then."""
        failed = [one for one in cursors if isinstance(one.failure, UnknownTopicIdError)]
        if self._subscription is None or not failed:
            return False
        self._look_s = 0.0
        self._follow()
        return not any(self._cursors.get(one.topic_partition) is one for one in failed)

    def _deserialized(self, topic_partition: TopicPartition, records: list[Record]) -> list[Record]:
        """The records with their objects; those before the first that has none."""
        made, failure = self._deserializers.apply(records)
        if failure is not None:
            cursor = self._cursors[topic_partition]
            cursor.move(failure.offset)
            cursor.failure = failure
        return made

    def _active(self) -> list[Cursor]:
        return [cursor for cursor in self._cursors.values() if not cursor.paused]

    def _check_assigned(self) -> None:
        if not self._cursors and self._subscription is None:
            raise InvalidArgumentError(
                "nothing is to be read; call subscribe() with topics, or assign() with partitions"
            )

    def _last(self, cursor: Cursor) -> None:
        """Let the others have their turn first."""
        if self._cursors.get(cursor.topic_partition) is cursor:
            self._cursors[cursor.topic_partition] = self._cursors.pop(cursor.topic_partition)

    def _cursor(self, partition: TopicPartition) -> Cursor:
        found = self._cursors.get(partition)
        if found is None:
            raise InvalidArgumentError(
                f"{partition} is not assigned to this consumer; assigned are "
                f"{', '.join(map(str, self._cursors)) or 'none'}"
            )
        return found

    def _chosen(self, partitions: tuple[TopicPartition, ...]) -> list[Cursor]:
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


def _raise_failure(cursors: list[Cursor]) -> None:
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
