"""Reads partitions in turn, each from a position of its own, alone or as a member of a group."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import date
from math import inf
from types import TracebackType
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgumentError, LakelogError
from ..groups.coordinator import GroupCoordinator
from ..groups.membership import ConsumerGroupMetadata, Membership, Owner
from ..values.arguments import Partitions, check_timeout, checked_partition, checked_partitions
from ..values.offsets import AtTimestamp, Earliest, Latest, check_offset, timestamp_ms
from ..values.record import (
    RECORDS_AT_ONCE,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Record,
    RecordRows,
)
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .assigned_partitions import AssignedPartitions
from .consumer_config import ConsumerConfig, Deserializers, OffsetReset, check_count
from .cursor import Cursor
from .following import Following
from .group_offsets import GroupOffsets, OnCommit
from .lag import Lag
from .polling import Polling
from .subscription import FollowedTopics, SeenTopics, Subscription
from .topic_log import TopicLog

#: A wait without an end wakes up this often, to notice signals.
_WAIT_MS = 60_000


class Consumer(Polling[Cursor]):
    """Polls assigned partitions from their positions, across both tiers, as Kafka's does.

    A position is the offset of the next record. It moves only when records are handed out, so an
    error leaves it where it was and the next poll tries again. Archiving and trimming go unnoticed.
    On a server that may have lost its tail, a position past the log end waits; after recovery it
    goes on above the gap.

    With a ``group_id`` it also commits how far it has come, and goes on from there; what it
    subscribes to, it shares with the other members of the group. It has to be polled more often
    than every ``max_poll_interval_ms``, or the others take its partitions.

    Not thread-safe, like Kafka's: use one thread for each consumer. Only `close` may be called from
    another thread or from a signal handler.

    Args:
        logs: gives the log of a topic, all of one hot tier; `Lakelog.log`.
        config: what else it does.
        topics: tells which topics there are; None: it can only be assigned partitions.
        coordinator: of groups; None: there are none.

    Raises:
        InvalidArgumentError: a ``group_id``, and there are no groups.
    """

    def __init__(
        self,
        logs: Callable[[str], TopicLog],
        config: ConsumerConfig | None = None,
        topics: SeenTopics | None = None,
        coordinator: GroupCoordinator | None = None,
    ) -> None:
        super().__init__()
        self._logs = logs
        self.config = config or ConsumerConfig()
        self._deserializers = Deserializers(
            self.config.key_deserializer, self.config.value_deserializer
        )
        self._seen_topics = topics
        self._coordinator = coordinator
        self._offsets = self._group_offsets()
        find_starts = None if self._offsets is None else self._offsets.find_starts
        self._reading = AssignedPartitions(
            OffsetReset.parse(self.config.auto_offset_reset),
            self.config.fetch_max_bytes,
            find_starts,
        )
        self._following: Following | None = None  # None: partitions are assigned by hand
        self._records: Iterator[Record] | None = None  # of the iteration that goes on

    # -- which partitions, from where ------------------------------------------------------------

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, or this one; those assigned before keep their position.

        With a ``group_id`` they begin where the group has come, and `commit` commits; but the
        consumer is no member, and shares with nobody.

        Raises:
            UnknownTopicOrPartitionError: one does not exist; nothing was changed.
            InvalidArgumentError: there is a subscription.
        """
        if self._following is not None:
            raise InvalidArgumentError(
                f"this consumer is subscribed to {self._following.subscription}, which says what "
                "it reads; call unsubscribe() before assign()"
            )
        wanted = checked_partitions(partitions)
        logs = {topic: self._looked_up(topic) for topic in dict.fromkeys(tp.topic for tp in wanted)}
        for tp in wanted:
            logs[tp.topic].topic.partition(tp.partition)
        if self._offsets is not None:
            self._offsets.auto_commit()
        self._reading.replace({tp: logs[tp.topic] for tp in wanted})
        self._is_closed = False

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: Any = None,
    ) -> None:
        """Read these topics, as they come and go; takes the place of an earlier subscription.

        With a ``group_id``, the next polls join the group, which shares out the partitions among
        its members. Without one, the consumer reads all of them.

        The next `poll` (or iteration) finds the topics, and looks again every
        ``metadata_max_age_ms``: a topic that is made later and one that grows are read where
        ``auto_offset_reset`` says, one that is deleted leaves, and one that is made again begins
        anew. Partitions that stay keep their position.

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
        if self._following is None and len(self._reading):
            raise InvalidArgumentError(
                f"partitions are assigned ({', '.join(map(str, self._reading.partitions()))}); "
                "call unsubscribe() before subscribe()"
            )
        subscription = Subscription.of(topics, pattern, listener)
        if self._following is not None:
            self._following.subscribe(subscription)
        else:
            self._following = self._followed(subscription, self._seen_topics)
        self._is_closed = False

    def subscription(self) -> set[str] | None:
        """The names that are subscribed to, or that a pattern has found; None: no subscription."""
        if self._following is None:
            return None
        return set(self._following.subscription.names or self._reading.logs())

    def unsubscribe(self) -> None:
        """Give up the subscription, or what was assigned; leave the group.

        What was read is committed before, if ``enable_auto_commit``.
        """
        following, self._following = self._following, None
        try:
            if following is not None:
                following.end()
            elif self._offsets is not None:
                self._offsets.auto_commit()
        finally:
            if self._offsets is not None:
                self._offsets.membership = None
            self._reading.replace({})

    def topics(self) -> set[str]:
        """The names of all topics there are."""
        return {topic.name for topic in self._listed()}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The numbers of a topic's partitions; None: there is no such topic."""
        found = next((one for one in self._listed() if one.name == topic), None)
        return None if found is None else set(range(found.partitions))

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read; of a member, its share."""
        return self._reading.partitions()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset. Whether the log holds it shows at the next poll.

        Raises:
            InvalidArgumentError: not an offset, or the partition is not assigned.
        """
        self._reading.of(partition).move(check_offset(offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the log start, looked up at the next poll or `position`; default: all."""
        for cursor in self._reading.chosen(partitions):
            cursor.move(Earliest())

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on at the log end, looked up at the next poll or `position`; default: all."""
        for cursor in self._reading.chosen(partitions):
            cursor.move(Latest())

    def seek_to_timestamp(self, partition: TopicPartition, timestamp: int | str | date) -> int:
        """Go on at the earliest record whose timestamp is at or after that; returns its offset.

        If there is none, go on at the log end as it was before the search: with the next record,
        however old its timestamp.

        Args:
            timestamp: epoch milliseconds, a time (see `moment_ms`), or one in any way that
                `typed_time` reads.
        """
        cursor = self._reading.of(partition)
        target = AtTimestamp(timestamp_ms(timestamp))
        number = cursor.topic_partition.partition
        offset = cursor.log.seek(number, target)
        if offset is None:  # what is appended from here on is found, or follows the end
            end = cursor.log.offsets([number])[number].log_end
            found = cursor.log.seek(number, target)
            offset = end if found is None else found
        cursor.move(offset)
        return offset

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; None while ``by_duration`` waits for one young enough.

        Raises:
            NoOffsetForPartitionError: it has none and auto_offset_reset is ``none``.
        """
        cursor = self._reading.of(partition)
        self._reading.find_starts()
        cursor.resolve()
        return cursor.position

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until `resume`; default: all."""
        for cursor in self._reading.chosen(partitions):
            cursor.paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of these again; default: all."""
        for cursor in self._reading.chosen(partitions):
            cursor.paused = False

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {cursor.topic_partition for cursor in self._reading if cursor.paused}

    # -- records ---------------------------------------------------------------------------------

    def poll(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records, at once if there are any, else after waiting for the first.

        Partitions take turns, so that none starves. Records of ``fetch_max_bytes``
        together, or one larger record, are enough for one poll, whatever the limit.

        Args:
            timeout_ms: how long to wait for a record.
            max_records: of all partitions together; default ``max_poll_records``.

        Returns:
            Records by partition, in offset order; empty when the time is over.

        Raises:
            OffsetOutOfRangeError, NoOffsetForPartitionError: with auto_offset_reset ``none``.
            RecordDeserializationError: a deserializer failed. The position is that of the record,
                so that it comes again unless you seek past it; what lies before is returned first.
            LakelogError: a tier is damaged, or refuses this user. Positions stay; records of other
                partitions are returned first. One that does not answer is asked again until the
                time is over, and the log says so.
        """
        limit = self.config.max_poll_records if max_records is None else max_records
        with self._guard.call():
            polled = self._poll(timeout_ms, check_count("max_records", limit))
            found = {tp: self._deserialized(tp, _records(rows)) for tp, rows in polled.items()}
            given = {tp: records for tp, records in found.items() if records}
            if not given:
                self._reading.raise_failure()
            if self._guard.is_closing:
                self._take_back({tp: records[0].offset for tp, records in given.items()})
                given = {}
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
            max_records = check_count("max_records", max_records)
        with self._guard.call():
            given = {
                tp: rows[0].batch()
                if len(rows) == 1
                else pa.Table.from_batches(row.batch() for row in rows)
                .combine_chunks()
                .to_batches()[0]
                for tp, rows in self._poll(timeout_ms, max_records).items()
            }
            if self._guard.is_closing:
                self._take_back({tp: rows["offset"][0].as_py() for tp, rows in given.items()})
                given = {}
            return given

    def __iter__(self) -> Consumer:
        """Records one by one, waiting for more, until ``consumer_timeout_ms`` pass without one.

        `position` is the offset after the last record given; seek, pause and assign between
        two records take effect at once. Once it has ended, it can be gone on with.
        """
        return self

    def __next__(self) -> Record:
        """The next record of the iteration.

        Raises:
            StopIteration: none came within ``consumer_timeout_ms``; a later call waits again.
                Or the consumer was closed.
            LakelogError: nor is it known whether there are more, since a tier does not answer; see
                `poll` for others.
            InvalidArgumentError: there is neither a subscription nor an assignment.
        """
        self._guard.enter()
        try:
            if self._records is None:
                self._records = self._one_by_one()
            if self._tracer is None:
                record = next(self._records)
            else:
                record = self._tracer.poll_record(
                    self.config.group_id, self.config.client_id, self._records
                )
            if self._guard.is_closing:
                self._take_back({TopicPartition(record.topic, record.partition): record.offset})
                raise StopIteration
            return record
        except BaseException:  # that was its end, whatever it is
            self._records = None
            raise
        finally:
            self._guard.leave()

    def _one_by_one(self) -> Iterator[Record]:
        if self._is_closed:
            return
        self._check_assigned()
        while len(self._reading) or self._following is not None:
            timeout_ms = self.config.consumer_timeout_ms
            cursor = self._await(inf if timeout_ms is None else _deadline_s(timeout_ms))
            if cursor is None and self._outage.error is not None:
                raise self._outage.error  # there may be more
            if cursor is None:
                return
            for _ in range(RECORDS_AT_ONCE):
                # The caller may have done anything to the consumer since the last record.
                if not cursor.is_assigned or cursor.paused:
                    break
                is_alone = self._following is None and self._offsets is None
                if not is_alone and time.monotonic() >= self._due_s():
                    break
                record = cursor.next_record()
                if record is None:
                    break
                if self._deserializers.are_given and not self._deserialized(
                    cursor.topic_partition, [record]
                ):
                    cursor.raise_failure()
                yield record
            self._reading.last(cursor)

    # -- how far the group has come --------------------------------------------------------------

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Store how far the group has come: all of it, or nothing.

        Args:
            offsets: of each partition the offset of the next record to read; default: the
                positions of all partitions that are read.
            timeout_ms: how long to try again while Redis is away; default 10 s.

        Raises:
            CommitFailedError: the consumer is no member any more, or missed a rebalance: its
                partitions may be another's.
            RebalanceInProgressError: not now; poll, then commit again.
            OffsetMetadataTooLargeError: a text beside an offset is too long.
            UnknownTopicOrPartitionError: there is no such partition.
            InvalidArgumentError: there is no ``group_id``, or these are no offsets.
        """
        if timeout_ms is not None:
            timeout_ms = check_timeout("timeout_ms", timeout_ms)
        self._group().commit(offsets, timeout_ms)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: OnCommit | None = None,
    ) -> Future[None]:
        """As `commit`, from a thread of its own; commits keep their order.

        Args:
            callback: called with the offsets, and with the error or None, by a later `poll`,
                commit or `close` of this consumer.

        Returns:
            What has the error, or None, once it is done.
        """
        return self._group().commit_async(offsets, callback)

    def committed(
        self, partition: TopicPartition, metadata: bool = False
    ) -> int | OffsetAndMetadata | None:
        """What the group has committed of a partition; None: nothing.

        Args:
            metadata: give the text beside the offset too.

        Raises:
            InvalidArgumentError: there is no ``group_id``.
        """
        asked = checked_partition(partition)
        found = self._group().committed([asked]).get(asked)
        return found if found is None or metadata else found.offset

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group, and whether it has its partitions."""
        offsets = self._offsets
        if offsets is None or offsets.membership is None:
            return ConsumerGroupMetadata(
                self.config.group_id, group_instance_id=self.config.group_instance_id
            )
        return offsets.membership.metadata()

    def lag(self, partition: TopicPartition) -> Lag:
        """How far the position is behind the log end: in records, and in time.

        Raises:
            InvalidArgumentError: the partition is not assigned.
        """
        cursor = self._reading.of(partition)
        position = self.position(partition)
        if position is None:  # nothing is young enough for it yet
            position = self.end_offsets(partition)[cursor.topic_partition]
        return cursor.log.lag(cursor.topic_partition.partition, position)

    # -- where partitions begin and end ----------------------------------------------------------

    def beginning_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """The log start offset of each."""
        return self._offsets_of(partitions, Earliest())

    def end_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """The log end offset of each: that of the next record to be appended."""
        return self._offsets_of(partitions, Latest())

    def highwater(self, partition: TopicPartition) -> int | None:
        """The log end of an assigned partition; see `end_offsets`.

        Raises:
            InvalidArgumentError: it is not assigned.
        """
        assigned = self._reading.of(partition).topic_partition
        return self.end_offsets(assigned)[assigned]

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | str | date]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The earliest record of each with a timestamp at or after the target; None without one.

        Raises:
            InvalidArgumentError: a negative timestamp, or a time without a zone.
        """
        if not isinstance(timestamps, Mapping):
            raise InvalidArgumentError(
                f"{timestamps!r:.200} is no dict of times by partition: give "
                "{TopicPartition('orders', 0): time}"
            )
        targets = {
            checked_partition(tp): AtTimestamp(timestamp_ms(when)).timestamp_ms
            for tp, when in timestamps.items()
        }
        return {
            tp: self._log(tp.topic).offset_for_timestamp(tp.partition, target_ms)
            for tp, target_ms in targets.items()
        }

    # -- end -------------------------------------------------------------------------------------

    def close(self, autocommit: bool = True) -> None:
        """Give up the subscription or the assignment, and leave the group.

        Connections stay open: the logs have them. What is being read ahead is waited for.

        From another thread, or from a signal handler, it ends a `poll` (which gives nothing then)
        or an iteration, whose thread commits and closes; nothing is committed that it did not give.

        Args:
            autocommit: commit what was read, if ``enable_auto_commit``. Leaving a ``with`` by an
                exception does not: the last record may not be done.
        """
        self._guard.close(lambda: self._close(autocommit))

    def _close(self, autocommit: bool) -> None:
        self._is_closed = True
        if self._offsets is not None and not autocommit:
            self._offsets.stop_auto_commit()
        try:
            self.unsubscribe()
        finally:
            try:
                if self._offsets is not None:
                    self._offsets.close()
            finally:
                self._reading.read_ahead.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(autocommit=kind is None)

    # -- how -------------------------------------------------------------------------------------

    def _poll(
        self, timeout_ms: int, max_records: int | None
    ) -> dict[TopicPartition, list[RecordRows]]:
        until_s = _deadline_s(check_timeout("timeout_ms", timeout_ms))
        self._check_assigned()
        if self._tracer is None:
            return self._taken(until_s, max_records)
        return self._tracer.poll(
            self.config.group_id,
            self.config.client_id,
            lambda: self._taken(until_s, max_records),
        )

    def _taken(
        self, until_s: float, max_records: int | None
    ) -> dict[TopicPartition, list[RecordRows]]:
        if self._await(until_s) is None:
            return {}
        return self._reading.take(max_records)

    def _begin(self) -> None:
        if self._offsets is not None:
            self._offsets.tell()

    def _look(self, until_s: float) -> Cursor | None:
        """The first cursor in turn that has a record at hand.

        Raises:
            Exception: a cursor failed in an earlier call, or has failed now and no other is ready.
        """
        if self._outage.error is not None:
            self._reading.ask_again()
        self._reading.raise_failure()
        self._guard.waker.clear()  # what comes from here on is for the wait below
        if self._offsets is not None:
            self._offsets.auto_commit_if_due()
        if self._following is not None:
            self._following.follow(_left_ms(until_s))
        self._reading.find_starts()
        if self._guard.is_closing:  # the waker may have been cleared
            return None
        wait_ms = min(_left_ms(until_s), _left_ms(self._due_s()))
        self._reading.wait_for_news(wait_ms, self._guard.waker)
        cursor = self._reading.ready()
        if cursor is None and not (
            self._following is not None and self._following.are_gone(self._reading.active())
        ):
            self._reading.raise_failure()
        return cursor

    def _ready(self) -> Cursor | None:
        return self._reading.ready()

    def _away(self) -> LakelogError | None:
        return self._reading.away()

    def _is_own(self, error: LakelogError) -> bool:
        return self._following is not None and error in self._following.subscription.raised

    def _what(self) -> str:
        if self._following is not None:
            return f"reading {self._following.subscription}"
        return f"reading {', '.join(map(str, sorted(self._reading.partitions())[:5]))}"

    def _due_s(self) -> float:
        """When there is something to do beside reading; monotonic."""
        due_s = inf if self._following is None else self._following.due_s
        return due_s if self._offsets is None else min(due_s, self._offsets.due_s)

    def _followed(self, subscription: Subscription, seen: SeenTopics) -> Following:
        topics = FollowedTopics(seen, self._logs, self.config.metadata_max_age_ms)
        around = (subscription, topics, self._reading, self._guard.waker)
        offsets, coordinator = self._offsets, self._coordinator
        if offsets is None or coordinator is None:
            return Following(*around)

        def join(
            owner: Owner, counts: Callable[[], Mapping[str, int]], on_news: Callable[[], None]
        ) -> Membership:
            config = self.config.member_config(socket.gethostname())
            return Membership(coordinator, offsets.group_id, owner, counts, config, on_news)

        following = Following(*around, join, offsets)
        offsets.membership = following.membership
        return following

    def _group_offsets(self) -> GroupOffsets | None:
        if self.config.group_id is None:
            return None
        if self._coordinator is None:
            raise InvalidArgumentError(
                f"group_id={self.config.group_id!r}: groups lie in Redis, and this log has none. "
                "Read without a group, or connect with a redis_url"
            )
        interval_ms = (
            self.config.auto_commit_interval_ms if self.config.enable_auto_commit else None
        )
        return GroupOffsets(
            self._coordinator,
            self.config.group_id,
            self._log,
            lambda tp: self._logs(tp.topic).topic.partition(tp.partition),
            interval_ms,
            lambda: self._consumed(),
        )

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            cursor.topic_partition: OffsetAndMetadata(cursor.position)
            for cursor in self._reading
            if cursor.position is not None
        }

    def _group(self) -> GroupOffsets:
        if self._offsets is None:
            raise InvalidArgumentError(
                "this consumer has no group to commit for; make it with group_id='…'",
                name="group_id",
            )
        return self._offsets

    def _listed(self) -> Sequence[Topic]:
        if self._seen_topics is None:
            raise InvalidArgumentError(
                "this consumer cannot list topics; get it from Lakelog.consumer"
            )
        return self._seen_topics.now()

    def _deserialized(self, topic_partition: TopicPartition, records: list[Record]) -> list[Record]:
        """The records with their objects; those before the first that has none."""
        made, failure = self._deserializers.apply(records)
        if failure is not None:
            cursor = self._reading.of(topic_partition)
            cursor.move(failure.offset)
            cursor.failure = failure
        return made

    def _take_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """What was not given out comes again, to whoever reads next."""
        for tp, offset in offsets.items():
            if tp in self._reading.partitions():
                self._reading.of(tp).move(offset)

    def _looked_up(self, topic: str) -> TopicLog:
        """The log of the topic as it is now; the one at hand, if that is the same."""
        known, now = self._reading.logs().get(topic), self._logs(topic)
        is_same = known is not None and (
            known.topic.topic_id == now.topic.topic_id
            and known.topic.partitions >= now.topic.partitions
        )
        return known if known is not None and is_same else now

    def _check_assigned(self) -> None:
        if self._is_closed:
            raise InvalidArgumentError(
                "nothing is to be read, since this consumer is closed; make another one, or call "
                "subscribe() or assign() again"
            )
        if not len(self._reading) and self._following is None:
            raise InvalidArgumentError(
                "nothing is to be read; call subscribe() with topics, or assign() with partitions"
            )

    def _log(self, topic: str) -> TopicLog:
        return self._reading.logs().get(topic) or self._logs(topic)

    def _offsets_of(
        self, partitions: Partitions, where: Earliest | Latest
    ) -> dict[TopicPartition, int]:
        wanted = checked_partitions(partitions)
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


def _records(rows: Sequence[RecordRows]) -> list[Record]:
    found = rows[0].records()  # nearly always there are no others
    for one in rows[1:]:
        found += one.records()
    return found


def _deadline_s(timeout_ms: int) -> float:
    return time.monotonic() + timeout_ms / 1000


def _left_ms(until_s: float) -> int:
    return round(1000 * max(0.0, min(_WAIT_MS / 1000, until_s - time.monotonic())))
