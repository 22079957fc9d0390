"""Where records wait to be sent: one queue for each topic-partition, in a bounded buffer.

Everything here happens under one lock, which many threads share with the sender's. So nothing here
does I/O or encodes.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from ..base.text_table import counted
from ..codec import Entry
from ..codec.encryption.sealed_values import SealedValues
from ..errors import (
    BufferExhaustedError,
    DeliveryError,
    LakelogError,
    LogClosedError,
)
from ..values.topic import Topic
from .delivery import Delivery
from .partition_queue import Call, InFlight, PartitionQueue
from .partitioner import StickyPartition
from .producer_config import ProducerConfig

if TYPE_CHECKING:
    from opentelemetry.trace import Link

#: What a record takes of the buffer besides key, value and headers: its timestamp and offsets.
RECORD_OVERHEAD_BYTES = 24
HEADER_OVERHEAD_BYTES = 8

_KEPT_FAILURES = 1024  # failed calls that nobody asked about, kept for `flush` to report


class TopicState:
    """A topic as it was looked up, and until when that is believed."""

    def __init__(
        self, topic: Topic, queues: list[PartitionQueue], sticky: StickyPartition, now_s: float
    ) -> None:
        self.topic = topic
        self.queues = queues
        self.count = len(queues)
        self.sticky = sticky
        self.looked_up_s = now_s


class Accumulator:
    """The producer's state: queues, buffer, what is unsettled; shared with the sender's thread."""

    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self.batch_size = config.batch_size
        self.buffer_memory = config.buffer_memory
        # Reentrant: the garbage collector may run Producer.__del__ in a thread that holds it.
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)  # the sender waits for it
        self.settled = threading.Condition(self.lock)  # callers wait for it
        self.active: dict[PartitionQueue, None] = {}  # queues that hold calls, in order
        self.is_stopping = False  # no more records come; the sender drains and ends
        self.is_abandoned = False  # nothing is sent any more
        self.is_forked = False
        self.refusal: str | None = None  # why no more records are taken
        self.buffered_bytes = 0  # of records without an answer
        self.sender_thread: threading.Thread | None = None
        self._unseen_failures: deque[Delivery] = deque(maxlen=_KEPT_FAILURES)
        self._unsettled: dict[Delivery, Call] = {}
        self.topics: dict[str, TopicState] = {}  # what is known; read it freely
        self._queues: dict[tuple[UUID, int], PartitionQueue] = {}
        # A counter would rewind with a lost tail of Redis; two equal random numbers do not happen.
        self._producer_id = random.SystemRandom().getrandbits(62)
        self._random = random.Random()
        _accumulators.add(self)

    # -- topics --------------------------------------------------------------------------------

    def learn(self, topic: Topic, sealing: SealedValues | None) -> TopicState:
        """Takes over a topic that was just looked up.

        Args:
            sealing: see `PartitionQueue.set_topic`.
        """
        with self.lock:
            self.check_open()
            now_s = time.monotonic()
            queues = [*map(partial(self._queue, topic, sealing), range(topic.partitions))]
            sticky = StickyPartition(topic.partitions, self._config.batch_size, self._random)
            state = self.topics[topic.name] = TopicState(topic, queues, sticky, now_s)
            return state

    def forget(self, topic: Topic) -> None:
        """Makes the next record look the topic up again."""
        with self.lock:
            known = self.topics.get(topic.name)
            if known is not None and known.topic.topic_id == topic.topic_id:
                del self.topics[topic.name]

    def forget_old_topics(self, now_s: float) -> None:
        max_age_s = self._config.metadata_max_age_ms / 1000
        with self.lock:
            for name, state in list(self.topics.items()):
                if now_s - state.looked_up_s >= max_age_s:
                    del self.topics[name]

    def _queue(self, topic: Topic, sealing: SealedValues | None, number: int) -> PartitionQueue:
        # Kept for as long as the topic's creation lives: Redis remembers the numbers.
        queue = self._queues.get((topic.topic_id, number))
        if queue is None:
            queue = self._queues[topic.topic_id, number] = PartitionQueue(
                topic,
                topic.partition(number),
                InFlight(self._producer_id, self._config.max_in_flight),
                self._config.compression_type,
                sealing,
            )
        else:
            queue.set_topic(topic, sealing)
        return queue

    # -- records come in -----------------------------------------------------------------------

    def put(
        self, queue: PartitionQueue, entries: tuple[Entry, ...], links: Sequence[Link] = ()
    ) -> Delivery:
        """Takes a call that is already encoded; records sent before it go first.

        Args:
            links: see `Call.links`.

        Raises:
            BufferExhaustedError, LogClosedError: as `append`.
        """
        size_bytes = sum(entry.size_bytes for entry in entries)
        with self.lock:
            self.check_open()
            self.await_room(size_bytes)
            queue.close_open()
            call = self.open(queue)
            call.entries = entries
            call.links = links
            call.record_count = sum(entry.record_count for entry in entries)
            call.size_bytes = size_bytes
            self.buffered_bytes += size_bytes
            queue.close_open()
            self.work.notify()
            return call.delivery

    def check_open(self) -> None:
        """Raises LogClosedError if no more records are taken."""
        if self.refusal is not None:
            raise LogClosedError(self.refusal)

    def check_not_forked(self) -> None:
        """Raises LogClosedError in a child process."""
        if self.is_forked:
            self.check_open()

    def refuse(self, why: str) -> bool:
        """Takes no more records. What is there is still sent; then the sender ends.

        Returns:
            False if no more records were taken before.
        """
        with self.lock:
            if self.is_stopping:
                return False
            self.refusal = why
            self.is_stopping = True
            for queue in self.active:
                queue.close_open()
            self.work.notify_all()
            self.settled.notify_all()
            return True

    def take_sticky(self, state: TopicState, size_bytes: int) -> int:
        """The partition for a run of records without a key."""
        with self.lock:
            return state.sticky.take(size_bytes)

    def open(self, queue: PartitionQueue) -> Call:
        delivery = Delivery(self, queue.topic_partition, [])
        call = queue.open = Call(queue, delivery, time.monotonic())
        self._unsettled[delivery] = call
        self.active[queue] = None
        self.work.notify()
        return call

    def await_room(self, size_bytes: int) -> None:
        """Waits until the buffer has room, or is empty for something larger than it."""
        max_block_ms, buffer_memory = self._config.max_block_ms, self.buffer_memory

        def is_over() -> bool:
            buffered = self.buffered_bytes
            if buffered == 0 or buffered + size_bytes <= buffer_memory or self.refusal is not None:
                return True
            if len(self._unsettled) <= sum(queue.open is not None for queue in self.active):
                for queue in self.active:
                    queue.close_open()  # nothing else makes room; a lingering call would keep its
                self.work.notify()
            return False

        if not self.settled.wait_for(is_over, max_block_ms / 1000):
            raise BufferExhaustedError(
                f"no room for {size_bytes} bytes within max_block_ms={max_block_ms}: "
                f"{self.buffered_bytes} of buffer_memory={buffer_memory} bytes wait for "
                f"Redis. The record was not taken; send it again later{self._last_error()}",
                size_bytes=size_bytes,
                buffered_bytes=self.buffered_bytes,
            )
        self.check_open()

    def _last_error(self) -> str:
        errors = [queue.last_error for queue in self.active if queue.last_error]
        return f". Last error: {errors[0]}" if errors else ""

    # -- records go ----------------------------------------------------------------------------

    def settle(
        self,
        call: Call,
        *,
        base_offset: int = -1,
        append_time_ms: int = -1,
        error: Exception | None = None,
        is_unknown: bool = False,
    ) -> None:
        """Records a call's fate, unless it has one already.

        The caller holds the lock, and runs the delivery's callbacks without it.
        """
        delivery = call.delivery
        if self._unsettled.pop(delivery, None) is None:
            return
        self.buffered_bytes -= call.size_bytes
        delivery.base_offset = base_offset
        delivery.append_time_ms = append_time_ms
        delivery.error = error
        delivery.is_unknown = is_unknown
        if error is not None or delivery.refused:
            self._unseen_failures.append(delivery)
        delivery.done = True
        self.settled.notify_all()

    @property
    def unsettled_records(self) -> int:
        """How many records have no answer yet."""
        return sum(call.record_count for call in tuple(self._unsettled.values()))

    def take_unseen(self) -> list[Delivery]:
        """The failed deliveries since the last call, which the caller reports."""
        with self.lock:
            failures = list(self._unseen_failures)
            self._unseen_failures.clear()
            return failures

    def unsettled_calls(self) -> list[Call]:
        return list(self._unsettled.values())

    # -- waiting -------------------------------------------------------------------------------

    def wait(self, delivery: Delivery, timeout_s: float | None) -> bool:
        """Waits for one delivery, which stops lingering; False when the time is over."""
        self._check_may_wait()
        with self.lock:
            call = self._unsettled.get(delivery)
            if call is not None and call.queue.open is call:
                call.queue.close_open()
                self.work.notify()
            self.settled.wait_for(lambda: delivery.done or self.is_forked, timeout_s)
            return delivery.done

    def wait_all(self, deliveries: Iterable[Delivery], timeout_s: float | None) -> bool:
        """Waits for all of them; False when the time is over."""
        left = list(deliveries)

        def all_done() -> bool:
            while left and left[-1].done:
                left.pop()
            return not left or self.is_forked

        self._check_may_wait()
        with self.lock:
            return self.settled.wait_for(all_done, timeout_s)

    def flush(self, timeout_s: float | None) -> bool:
        """Sends all that is there now and waits for the answers; False when the time is over."""
        with self.lock:
            for queue in self.active:
                queue.close_open()
            self.work.notify()
            return self.wait_all(self._unsettled, timeout_s)

    def _check_may_wait(self) -> None:
        if threading.current_thread() is self.sender_thread:
            raise LakelogError(
                "a callback of a record cannot wait for records: it runs in the thread that sends "
                "them. Wait in another thread"
            )

    # -- fork ----------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        # Neither the sender's thread nor the one that may hold the lock exists here.
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)
        self.settled = threading.Condition(self.lock)
        self.is_forked = True
        self.refusal = (
            "this producer belongs to the parent process, whose thread sends its records; make a "
            "new producer in the child process"
        )


def delivery_error(call: Call, why: str, cause: Exception | None) -> DeliveryError:
    """The error for the records of a call that was not delivered.

    Args:
        call: the call, which knows whether its outcome is unknown or surely not written.
        why: completes "they were sent, but …".
        cause: the last error, if there was one.
    """
    tp, count = call.delivery.topic_partition, call.record_count
    is_unknown = call.may_be_written or call.is_sending
    if is_unknown:
        message = (
            f"{counted(count, 'record')} for {tp} may or may not be in the log: sent, but {why}. "
            "Look at the end of the log before you send again"
        )
    else:
        message = (
            f"{counted(count, 'record')} for {tp} {'was' if count == 1 else 'were'} not delivered: "
            f"{why}. What was not is surely not in the log; send it again once the cause is mended"
        )
    if cause is not None:
        message += f". Last error: {cause}"
    return DeliveryError(
        message,
        topic_partition=tp,
        not_written=0 if is_unknown else count,
        unknown=count if is_unknown else 0,
        last_error=cause,
    )


def abandoned_error(why: str, not_written: int, unknown: int) -> DeliveryError | None:
    """The error for records that are not waited for any longer; None if there are none."""
    if not not_written and not unknown:
        return None
    return DeliveryError(
        f"{why}: {counted(not_written, 'record')} {'is' if not_written == 1 else 'are'} surely not "
        f"in the log, {unknown:,} may or may not be. Look at the end of the log "
        "before you send the latter again",
        not_written=not_written,
        unknown=unknown,
        last_error=None,
    )


def failures_error(failures: Sequence[Delivery]) -> DeliveryError | None:
    """One error for the failed deliveries that nobody has asked about; None if there are none."""
    not_written = unknown = 0
    first: Exception | None = None
    for delivery in failures:
        if delivery.is_seen:
            continue
        count = len(delivery.timestamps_ms)
        if delivery.error is None:
            not_written += len(delivery.refused)
        elif delivery.is_unknown:
            unknown += count - len(delivery.refused)
            not_written += len(delivery.refused)
        else:
            not_written += count
        first = first or delivery.error or delivery.refused[0][1]
    if first is None:
        return None
    error = DeliveryError(
        f"of the records sent, {not_written} are surely not in the log and {unknown} may or may "
        f"not be. The first error was: {first}",
        not_written=not_written,
        unknown=unknown,
        last_error=first,
    )
    error.__cause__ = first
    return error


_accumulators: weakref.WeakSet[Accumulator] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for accumulator in _accumulators:
        accumulator.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
