"""The consumer of a share group, by the names of Kafka's ``KafkaShareConsumer``."""

from __future__ import annotations

import contextlib
import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..base import metrics as m
from ..errors import (
    InvalidArgumentError,
    InvalidRecordStateError,
    LakelogError,
    RecordDeserializationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..groups.share.share_partitions import SharePartitions
from ..groups.share.share_values import (
    Acknowledgement,
    AcknowledgeType,
    AcquiredRange,
    Acquisition,
    Outcome,
)
from ..values.arguments import check_callback, check_timeout, checked_partition
from ..values.offsets import check_offset
from ..values.record import Record, to_records
from ..values.topic import check_topic_name
from ..values.topic_partition import OffsetRange, TopicPartition
from .consumer_config import Deserializers, ShareConsumerConfig, check_count
from .dead_letters import DeadLetters
from .polling import Polling
from .subscription import FollowedTopics, SeenTopics, topic_names
from .taken_partition import Coming, Left, TakenPartition, acknowledgement
from .topic_log import TopicLog

if TYPE_CHECKING:
    from ..hot import HotLog

#: Called with the offsets of a partition that were acknowledged, and why they could not be; None:
#: they were.
OnAcknowledged = Callable[[dict[TopicPartition, set[int]], LakelogError | None], object]

#: What others release is news that nobody sends: a member that waits looks this often.
_LOOK_MS = 500

#: What one poll hands out, if that is more than one record: Kafka's default of fetch.max.bytes.
_POLL_BYTES = 50 << 20

logger = logging.getLogger(__name__)


class ShareConsumer(Polling[dict[TopicPartition, list[Record]]]):
    """Takes records of its topics from one queue, together with the others of its group.

    Any number of consumers takes from any number of partitions. A record is held by the one that
    got it until it is acknowledged or the time of its lock is over; then another one gets it. All
    records that are released, and those of a consumer that died, come before new ones.

    Not thread-safe, like Kafka's: use one thread for each consumer. Only `close` may be called from
    another thread or from a signal handler. Nothing runs in the background.

    Args:
        logs: gives the log of a topic, all of `hot`; `Lakelog.log`.
        config: what else it does.
        shares: its group.
        topics: tells which topics there are.
        hot: what it waits at.
        dead_letters: where the group's dead letters go, if anywhere.
    """

    def __init__(
        self,
        logs: Callable[[str], TopicLog],
        config: ShareConsumerConfig,
        shares: SharePartitions,
        topics: SeenTopics,
        hot: HotLog,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        #: Tells it from the others of the group; made up anew for each consumer.
        self.member_id = str(uuid.uuid4())
        self._shares = shares
        self._topics = FollowedTopics(topics, logs, config.metadata_max_age_ms)
        self._hot = hot
        self._dead_letters = dead_letters
        self._deserializers = Deserializers(config.key_deserializer, config.value_deserializer)
        self._names: frozenset[str] = frozenset()
        self._partitions: dict[TopicPartition, TakenPartition] = {}  # in the order of their turns
        self._limit = 0  # of the poll under way
        self._failure: LakelogError | None = None  # to be raised by the next poll
        self._callback: OnAcknowledged | None = None
        self._untold: list[tuple[dict[TopicPartition, set[int]], LakelogError | None]] = []

    # -- which topics ----------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Take from all partitions of these topics, as they come and go; takes the place of an
        earlier subscription, of which what is held is released.

        Raises:
            InvalidArgumentError: a text in the place of a list, or no name.
            InvalidTopicError: a name that no topic can have.
        """
        if isinstance(topics, str):
            raise InvalidArgumentError(
                f"topics={topics!r} is one text; subscribe to a list of names, such as [{topics!r}]"
            )
        names = topic_names(topics)
        if not names:
            raise InvalidArgumentError("subscribe to one topic at least; unsubscribe() ends it")
        for name in names:
            check_topic_name(name)
        self._names = names
        self._topics.look_again()
        self._let_go([tp for tp in self._partitions if tp.topic not in names])

    def subscription(self) -> set[str]:
        """The names of the topics."""
        return set(self._names)

    def unsubscribe(self) -> None:
        """Take no more; what is held is released."""
        self._names = frozenset()
        self._let_go([*self._partitions])

    # -- records ---------------------------------------------------------------------------------

    def poll(
        self, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """The next records, at once if there are any, else after waiting for the first.

        Implicit acknowledgement: all records of the last poll are accepted first. Why some could
        not be is told to the callback, or logged.

        Args:
            timeout_ms: how long to wait for a record.
            max_records: of all partitions together; default ``max_poll_records``. Records of 50 MiB
                together are enough, whatever the limit.

        Returns:
            Records by partition, in offset order; empty when the time is over.

        Raises:
            InvalidArgumentError: explicit acknowledgement, and not all records of the last poll
                were acknowledged; or nothing is subscribed to.
            RecordDeserializationError: a deserializer failed. The record was released; what lies
                before it was returned first.
            LakelogError: a tier is damaged or refuses this user, or the dead-letter topic takes
                nothing. What was acquired is given back; records of other partitions are returned
                first. A tier that does not answer is asked again until the time is over, and the
                log says so.
        """
        with self._guard.call():
            found = self._poll(timeout_ms, max_records)
            return {} if self._guard.is_closing else found  # closing releases what it holds

    def _poll(self, timeout_ms: int, max_records: int | None) -> dict[TopicPartition, list[Record]]:
        limit = self.config.max_poll_records if max_records is None else max_records
        limit = check_count("max_records", limit)
        deadline = time.monotonic() + check_timeout("timeout_ms", timeout_ms) / 1000
        if self._is_closed:
            raise InvalidArgumentError("this share consumer was closed; make another one")
        if not self._names:
            raise InvalidArgumentError("nothing is to be taken from; call subscribe() with topics")
        if self.config.is_explicit:
            self._check_all_said()
        for partition in self._partitions.values():
            self._settle(partition, partition.give_back())  # of a poll that was interrupted
        for topic_partition, error in self._commit().items():
            if error is not None and self._callback is None:
                self._log(topic_partition, error)
        self._tell()
        self._limit = limit
        if self._tracer is None:
            return self._await(deadline) or {}
        return self._tracer.poll_records(
            self.config.group_id, self.member_id, lambda: self._await(deadline) or {}
        )

    def _what(self) -> str:
        return f"taking from topics {', '.join(sorted(self._names))}"

    def _look(self, until_s: float) -> dict[TopicPartition, list[Record]] | None:
        while not self._guard.is_closing:
            self._raise_failure()
            self._follow()
            due_in_ms, waiting = self._take(self._limit)
            found = {tp: one.hand_out() for tp, one in self._partitions.items() if one.coming}
            if found:
                for topic_partition, records in found.items():
                    m.COUNTS.add(m.CONSUMED_RECORDS, len(records), topic_partition.topic)
                return found
            self._raise_failure()
            left_ms = round((until_s - time.monotonic()) * 1000)
            if waiting is not None:
                if left_ms > 0:
                    self._wait(waiting, min(left_ms, due_in_ms, _LOOK_MS))
                return None
        return None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def acknowledge(self, record: Record, type_: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Says what becomes of a record of an earlier poll; the next commit or poll sends it.

        Raises:
            InvalidArgumentError: acknowledgement is implicit, or the consumer does not hold the
                record: it was acknowledged already, or never given out.
        """
        if not isinstance(record, Record):
            raise InvalidArgumentError(
                f"{record!r:.200} is no record of a poll; acknowledge_offset(topic, partition, "
                "offset) takes its place"
            )
        self.acknowledge_offset(record.topic, record.partition, record.offset, type_)

    def acknowledge_offset(
        self,
        topic: str,
        partition: int,
        offset: int,
        type_: AcknowledgeType = AcknowledgeType.ACCEPT,
    ) -> None:
        """As `acknowledge`, of a record by its place."""
        if not self.config.is_explicit:
            raise InvalidArgumentError(
                "this consumer accepts what it polled by itself; make it with "
                "share_acknowledgement_mode='explicit' to acknowledge records one by one"
            )
        asked, kind = checked_partition((topic, partition)), _kind(type_)
        offset = check_offset(offset)
        found = self._partitions.get(asked)
        if found is None or not found.held.say(offset, kind):
            raise InvalidArgumentError(
                f"offset {offset} of {asked} is not held by this consumer: it was "
                "acknowledged already, or was not among the records of a poll",
                offset=offset,
            )

    # -- sending what was said -------------------------------------------------------------------

    def commit_sync(self) -> dict[TopicPartition, LakelogError | None]:
        """Sends what was acknowledged; where that is implicit, all records of the last poll are.

        Returns:
            Of each partition of which something was sent, why some of it could not be done, or
            None. `InvalidRecordStateError`: the lock was over, so that another consumer may have
            the records by now. What could not be sent is sent again by the next poll or commit.
        """
        results = self._commit()
        self._tell()
        return results

    def commit_async(self) -> None:
        """As `commit_sync`; what came of it is told to the callback, by a later call."""
        self._commit()

    def set_acknowledgement_commit_callback(self, callback: OnAcknowledged | None) -> None:
        """Have it called with what was sent, from within `poll`, `commit_sync` and `close`.

        Raises:
            InvalidArgumentError: it cannot be called.
        """
        check_callback(callback)
        self._callback = callback

    @property
    def acquisition_lock_timeout_ms(self) -> int:
        """How long records are held that nothing is said of."""
        return self.config.share_record_lock_duration_ms

    # -- end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Sends what was acknowledged and releases the rest, which others get at once.

        Dead letters that this makes are written. If Redis does not answer, the others get it when
        the locks are over. Closing twice does nothing.

        From another thread, or from a signal handler, it ends a `poll`, which gives nothing then
        and whose thread closes.
        """
        self._guard.close(self._close)

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._let_go([*self._partitions])
        self._tell()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def __enter__(self) -> ShareConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- how -------------------------------------------------------------------------------------

    def _take(self, limit: int) -> tuple[int, dict[TopicPartition, int] | None]:
        """Reads what it gets, to be handed out; returns until when to wait for more, and where.

        Where: None says that there may be more at once.
        """
        waiting: dict[TopicPartition, int] = {}
        due_in_ms = _LOOK_MS
        has_moved = False
        room = _Room(limit)
        for partition in [*self._partitions.values()]:
            if room.is_full:
                break
            topic_partition = partition.topic_partition
            try:
                acquired = self._acquire(partition, room.records)
                self._last(partition)
                if acquired is None:
                    continue  # where it begins is not known yet
                due_in_ms = min(due_in_ms, acquired.due_in_ms or due_in_ms)
                if not acquired.is_full:
                    waiting[topic_partition] = acquired.end_offset
                has_moved |= bool(acquired.delivered or acquired.dead)
                self._bury(partition, acquired.dead)
                self._read(partition, acquired.delivered, room)
            except (UnknownTopicIdError, UnknownTopicOrPartitionError) as error:
                self._partitions.pop(topic_partition, None)  # deleted, or made again
                self._topics.look_again()
                logger.info("%s", error)
                has_moved = True
            except LakelogError as error:
                self._failure = self._failure or error
        return due_in_ms, None if has_moved else waiting

    def _acquire(self, partition: TakenPartition, most: int) -> Acquisition | None:
        topic_partition, topic_id = partition.topic_partition, partition.log.topic.topic_id
        asked = (topic_partition, topic_id, self.member_id, most)
        acquired = self._shares.acquire(*asked)
        if acquired is not None:
            return acquired
        position = self.config.reset.position
        assert position is not None
        begin = partition.log.seek(topic_partition.partition, position)
        return None if begin is None else self._shares.acquire(*asked, begin=begin)

    def _read(
        self, partition: TakenPartition, ranges: Sequence[AcquiredRange], room: _Room
    ) -> None:
        """Reads these ranges; what cannot be read, or is too much, is given back."""
        left = Left(ranges)
        said: list[Acknowledgement] = []
        try:
            for acquired, stretch in partition.stretches(left):
                if room.is_full:
                    break
                records = to_records(partition.topic_partition, stretch.records)
                made, failure = self._deserializers.apply(records)
                left.passed(stretch.end)
                room.take(len(records), stretch.records.nbytes)
                if not records:
                    gap = (stretch.start, stretch.next_offset, Outcome.GAP)
                    said.append(acknowledgement(acquired, *gap))
                    continue
                end = stretch.end if failure is None else failure.offset
                if made:
                    partition.coming.append(Coming(acquired, stretch.start, end, made))
                if failure is not None:
                    self._failure = self._failure or _unreadable(failure)
                    start = end if made else stretch.start
                    said.append(acknowledgement(acquired, start, end + 1, Outcome.RELEASE))
                    if end + 1 < stretch.end:
                        rest = (end + 1, stretch.end, Outcome.UNREAD)
                        said.append(acknowledgement(acquired, *rest))
                    break
        finally:
            self._settle(partition, [*said, *left.unread()])

    def _bury(self, partition: TakenPartition, ranges: Sequence[AcquiredRange]) -> None:
        """Writes ranges to the dead-letter topic; what cannot be written waits for the next."""
        left = Left(ranges)
        said: list[Acknowledgement] = []
        try:
            for acquired, stretch in partition.stretches(left):
                records = to_records(partition.topic_partition, stretch.records)
                if self._dead_letters is not None:
                    self._dead_letters.write(records, acquired.delivery_count)
                left.passed(stretch.end)
                said.append(acknowledgement(acquired, stretch.start, stretch.end, Outcome.DEAD))
        except UnknownTopicIdError:
            raise
        except LakelogError as error:
            self._failure = self._failure or error
        finally:
            self._settle(partition, [*said, *left.unread()])

    def _settle(self, partition: TakenPartition, said: Sequence[Acknowledgement]) -> None:
        """Says what needs nobody's word; if that fails, locks end by themselves."""
        topic_partition, topic_id = partition.topic_partition, partition.log.topic.topic_id
        try:
            self._shares.acknowledge(topic_partition, topic_id, self.member_id, said)
        except LakelogError as error:
            self._log(topic_partition, error)

    def _log(self, topic_partition: TopicPartition, error: LakelogError) -> None:
        """Says why nothing was acknowledged; of an outage that goes on, the polls tell."""
        level = logging.WARNING if self._outage.error is None else logging.DEBUG
        logger.log(level, "%s: %s", topic_partition, error)

    def _wait(self, waiting: dict[TopicPartition, int], timeout_ms: int) -> None:
        if waiting:
            self._hot.wait(waiting, max(1, timeout_ms), self._guard.waker)
        else:
            self._guard.waker.wait(max(1, timeout_ms) / 1000)

    def _check_all_said(self) -> None:
        for topic_partition, partition in self._partitions.items():
            offset = next(partition.held.unsaid(), None)
            if offset is not None:
                raise InvalidArgumentError(
                    f"offset {offset} of {topic_partition} was not acknowledged; with "
                    "share_acknowledgement_mode='explicit' every record of a poll has to be "
                    "before the next",
                    offset=offset,
                )

    def _commit(self) -> dict[TopicPartition, LakelogError | None]:
        """Sends what was said; notes what the callback is to be told."""
        results: dict[TopicPartition, LakelogError | None] = {}
        for topic_partition, partition in self._partitions.items():
            if not self.config.is_explicit:
                partition.held.say_the_rest(AcknowledgeType.ACCEPT)
            partition.unsent += partition.held.take()
            if partition.unsent:
                results[topic_partition] = self._send(partition)
        return results

    def _send(self, partition: TakenPartition) -> LakelogError | None:
        topic_partition = partition.topic_partition
        said, partition.unsent = sorted(partition.unsent, key=lambda one: one.start), []
        topic_id = partition.log.topic.topic_id
        error: LakelogError | None = None
        try:
            with self._acknowledging(topic_partition):
                taken = self._shares.acknowledge(topic_partition, topic_id, self.member_id, said)
        except LakelogError as failure:
            error = failure
            if failure.retriable:
                # Whoever renews asks again by himself, and may have said something else by then.
                partition.unsent = [one for one in said if one.outcome is not Outcome.RENEW]
        else:
            refused = [one for one, is_taken in zip(said, taken, strict=True) if not is_taken]
            if refused:
                error = self._not_held(topic_partition, refused)
        offsets = {offset for one in said for offset in range(one.start, one.end)}
        self._untold.append(({topic_partition: offsets}, error))
        return error

    def _acknowledging(
        self, topic_partition: TopicPartition
    ) -> contextlib.AbstractContextManager[object]:
        if self._tracer is None:
            return contextlib.nullcontext()
        return self._tracer.settle("acknowledge", self.config.group_id, [topic_partition])

    def _not_held(
        self, topic_partition: TopicPartition, refused: Sequence[Acknowledgement]
    ) -> InvalidRecordStateError:
        ranges = [OffsetRange(one.start, one.end) for one in refused]
        shown = ", ".join(f"[{one.start}, {one.end})" for one in ranges[:5])
        return InvalidRecordStateError(
            f"offsets {shown}{' …' if len(ranges) > 5 else ''} of {topic_partition} are not held "
            "by this consumer any more: their lock ended after "
            f"{self.config.share_record_lock_duration_ms} ms, and another consumer of group "
            f"{self.config.group_id!r} may have got them; or an earlier call whose answer was lost "
            "has settled them. Poll fewer records, renew their locks, or raise "
            "share_record_lock_duration_ms",
            group_id=self.config.group_id,
            topic_partition=topic_partition,
            offsets=ranges,
        )

    def _tell(self) -> None:
        untold, self._untold = self._untold, []
        for offsets, error in untold:
            if self._callback is not None:
                self._callback(offsets, error)

    def _let_go(self, partitions: Iterable[TopicPartition]) -> None:
        """Sends what was said, and releases the rest of these."""
        for topic_partition in partitions:
            partition = self._partitions.pop(topic_partition)
            partition.unsent += partition.held.take()
            partition.held.say_the_rest(AcknowledgeType.RELEASE)
            partition.unsent += [*partition.held.take(), *partition.give_back()]
            error = self._send(partition) if partition.unsent else None
            if error is not None:
                logger.warning("%s: %s", topic_partition, error)
            elif self._dead_letters is not None:
                self._bury_the_last(partition)

    def _bury_the_last(self, partition: TakenPartition) -> None:
        """Writes the dead letters that a poll would write next: none of this member follows.

        What cannot be written waits for the group's next member.
        """
        topic_partition, topic_id = partition.topic_partition, partition.log.topic.topic_id
        most = self.config.max_poll_records
        failure, self._failure = self._failure, None
        try:
            while self._failure is None:
                asked = (topic_partition, topic_id, self.member_id, most)
                acquired = self._shares.acquire(*asked)
                if acquired is None:
                    break
                self._settle(partition, Left(acquired.delivered).unread())
                if not acquired.dead:
                    break
                self._bury(partition, acquired.dead)
        except LakelogError as error:
            self._failure = error
        if self._failure is not None:
            logger.warning(
                "%s: dead letters wait for another member: %s", topic_partition, self._failure
            )
        self._failure = failure

    def _follow(self) -> None:
        """Give and take partitions as the topics come and go."""
        if not self._topics.look():
            return
        self._topics.tell_missing(self._names)
        known = {tp.topic: one.log for tp, one in sorted(self._partitions.items())}  # the newest
        names = sorted(self._names & self._topics.now.keys())
        wanted: dict[TopicPartition, TakenPartition] = {}
        for name, log in self._topics.logs(names, known).items():
            for number in range(log.topic.partitions):
                topic_partition = TopicPartition(name, number)
                one = self._partitions.get(topic_partition)
                if one is None or one.log.topic.topic_id != log.topic.topic_id:
                    one = TakenPartition(topic_partition, log)
                wanted[topic_partition] = one
        turns = [tp for tp in wanted if tp not in self._partitions]
        # Consumers begin at different partitions, so that they do not all ask the same one.
        random.shuffle(turns)
        stay = [tp for tp in self._partitions if tp in wanted]
        self._partitions = {tp: wanted[tp] for tp in [*stay, *turns]}

    def _last(self, partition: TakenPartition) -> None:
        """Let the others have their turn first."""
        topic_partition = partition.topic_partition
        self._partitions[topic_partition] = self._partitions.pop(topic_partition)


class _Room:
    """What one poll may still bring."""

    def __init__(self, records: int) -> None:
        self.records = records
        self._bytes = _POLL_BYTES

    @property
    def is_full(self) -> bool:
        return self.records <= 0 or self._bytes <= 0

    def take(self, records: int, size_bytes: int) -> None:
        self.records -= records
        self._bytes -= size_bytes


def _unreadable(error: RecordDeserializationError) -> RecordDeserializationError:
    what = error.message.rpartition(". It comes again")[0]
    return error.changed(
        message=f"{what}. It was released, and comes again until its deliveries are used up",
    )


def _kind(given: AcknowledgeType) -> AcknowledgeType:
    try:
        return AcknowledgeType(given)
    except ValueError:
        raise InvalidArgumentError(
            f"{given!r:.200} says nothing of a record: give AcknowledgeType.ACCEPT, RELEASE, "
            "REJECT or RENEW",
            value=given,
        ) from None
