"""The thread that encodes waiting records, appends them and settles what became of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..base import metrics as m
from ..base.back_off import Telling
from ..base.text_table import counted
from ..codec import Entry
from ..errors import (
    DeliveryError,
    HotTierFullError,
    HotTierUnavailableError,
    InvalidRecordError,
    LakelogError,
    NotEnoughReplicasAfterAppendError,
    QuotaExceededError,
    RecordTooLargeError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
)
from ..hot import Acks, AppendCall, AppendResult, HotLog, TopicRegistry
from ..hot.server_info import MemoryUse
from ..hot.throttle import throttle_time_ms
from ..values.topic_partition import TopicPartition
from .accumulator import Accumulator, delivery_error
from .answers import ExpiryWarning, Verdict, verdict
from .delivery import Delivery
from .encoding import (
    allows_more,
    encode_checked,
    encode_for,
    records_of,
    refused_by_columns,
    without,
)
from .partition_queue import Call, PartitionQueue
from .producer_config import ProducerConfig

if TYPE_CHECKING:
    from opentelemetry.trace import Link

    from ..tracing.tracer import Tracer
    from .recoveries import Recoveries

_log = logging.getLogger(__name__)

#: How long a producer that is closed in a hurry still waits for the answer that is under way, so as
#: to tell written from unknown.
ANSWER_GRACE_S = 1.0

#: How long nothing more is said of being held back once it was said.
THROTTLE_QUIET_S = 60.0

Recover = Callable[[TopicPartition, int], object]
Answer = AppendResult | Exception


class Sender:
    """Runs rounds: take what is due, encode it, append it in one round trip, settle the answers.

    It holds no reference to the producer, so that a forgotten one can be collected.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        hot: HotLog,
        topics: TopicRegistry,
        recover: Recover,
        config: ProducerConfig,
        expiry: ExpiryWarning,
        tracer: Tracer | None = None,
    ) -> None:
        self._accumulator = accumulator
        self.hot = hot
        self._topics = topics
        self._recover = recover
        self._recoveries: Recoveries | None = None  # there was none so far
        self._config = config
        self._expiry = expiry
        self._tracer = tracer
        self._acks = Acks.parse(config.acks)
        self._back_off = config.back_off
        self._telling = Telling()  # for all partitions: a server that is away is one trouble
        self._throttle_told_s = float("-inf")
        self._done: list[Delivery] = []  # settled in this round; their callbacks come at its end

    def start(self) -> None:
        """Starts the thread, if it does not run."""
        with self._accumulator.lock:
            if self._accumulator.sender_thread is None:
                thread = threading.Thread(target=self._run, name="lakelog-producer", daemon=True)
                thread.start()
                self._accumulator.sender_thread = thread

    def refuse(self, why: str) -> bool:
        """Takes no more records; whether there are any without an answer.

        False, too, if they are the parent process's.
        """
        accumulator = self._accumulator
        if accumulator.is_forked:
            return False
        if not accumulator.unsettled_records:
            accumulator.refusal = accumulator.refusal or why  # its lock may be nobody's any more
            return False
        accumulator.refuse(why)
        return True

    def flush(self, timeout_s: float) -> None:
        """Sends what is there, and waits for the answers until the time is over."""
        self._accumulator.flush(timeout_s)

    def join(self) -> None:
        """Waits for the thread to end, except in one of its own callbacks."""
        thread = self._accumulator.sender_thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def abandon(self, why: str) -> tuple[int, int]:
        """Fails all that is unsettled; counts the records surely not written, and the unknown ones.

        An answer that is under way has `ANSWER_GRACE_S` to come.
        """
        accumulator = self._accumulator
        not_written = unknown = 0
        with accumulator.lock:
            accumulator.is_abandoned = True
            accumulator.work.notify_all()
            accumulator.settled.wait_for(
                lambda: not any(call.is_sending for call in accumulator.unsettled_calls()),
                ANSWER_GRACE_S,
            )
            calls = accumulator.unsettled_calls()
            for call in calls:
                error = delivery_error(call, why, call.queue.last_error)
                not_written += error.not_written
                unknown += error.unknown
                m.COUNTS.add(m.PRODUCER_ERRORS, call.record_count, call.queue.topic_partition.topic)
                accumulator.settle(call, error=error, is_unknown=error.unknown > 0)
                call.delivery.is_seen = True  # the caller reports the counts
        for call in calls:
            call.delivery.call_back()
        return not_written, unknown

    # -- rounds --------------------------------------------------------------------------------

    def _run(self) -> None:
        while (queues := self._await_work()) is not None:
            try:
                self._round(queues)
            except Exception as error:  # a defect: fail what it touched rather than hang
                _log.exception("a round of the producer failed")
                for queue in queues:
                    self._fail_topic(queue, error)
            self._call_back()
            self._accumulator.forget_old_topics(time.monotonic())
        if self._recoveries is not None:
            self._recoveries.end()

    def _await_work(self) -> list[PartitionQueue] | None:
        """The queues that are due, their calls moved in flight; None: all is done for good."""
        accumulator, linger_s = self._accumulator, self._config.linger_ms / 1000
        with accumulator.lock:
            while not accumulator.is_abandoned:
                now_s = time.monotonic()
                due, next_s = [], float("inf")
                for queue in list(accumulator.active):
                    due_s = min(queue.due_s(linger_s), self._expiry_s(queue))
                    if due_s == float("inf"):
                        del accumulator.active[queue]
                    elif due_s <= now_s:
                        due.append(queue)
                    else:
                        next_s = min(next_s, due_s)
                if due:
                    return due
                if not accumulator.active and accumulator.is_stopping:
                    return None
                wait_s = min(next_s - now_s, threading.TIMEOUT_MAX)
                accumulator.work.wait(None if next_s == float("inf") else wait_s)
        return None

    def _expiry_s(self, queue: PartitionQueue) -> float:
        calls = queue.unsettled()
        if not calls:
            return float("inf")
        return calls[0].created_s + self._config.delivery_timeout_ms / 1000

    def _round(self, queues: Sequence[PartitionQueue]) -> None:
        for queue in queues:
            self._end_recovery(queue)
            self._expire(queue)
            if self._may_send(queue):
                self._fill(queue)
        calls: list[Call] = []
        with self._accumulator.lock:  # so that `abandon` knows what is being sent
            for queue in queues:
                if self._may_send(queue) and not self._accumulator.is_abandoned:
                    calls += queue.in_flight.next_round()
            for call in calls:
                call.is_sending = True
        if not calls:
            return
        by_queue: dict[PartitionQueue, list[tuple[Call, Answer]]] = {}
        for call, answer in zip(calls, self._append(calls), strict=True):
            by_queue.setdefault(call.queue, []).append((call, answer))
        for queue, answers in by_queue.items():
            self._settle(queue, answers)
        with self._accumulator.lock:
            self._accumulator.settled.notify_all()  # for `abandon`: nothing is being sent now

    def _may_send(self, queue: PartitionQueue) -> bool:
        return queue.recovery is None and time.monotonic() >= queue.retry_at_s

    def _fill(self, queue: PartitionQueue) -> None:
        """Moves what is due in flight, encoded."""
        linger_s = self._config.linger_ms / 1000
        while queue.in_flight.has_room():
            with self._accumulator.lock:
                call = queue.take_due(time.monotonic(), linger_s)
            if call is None:
                return
            if not call.entries:
                try:
                    self._encode(call)
                except Exception as error:  # the call is in no queue, so it must be failed here
                    self._end(call, error)
            if call.entries:
                queue.in_flight.calls.append(call)

    def encode_ahead(self, call: Call) -> None:
        """Encodes a call in the thread that filled it, while the sender waits for Redis.

        What goes wrong, an interrupt too, leaves it to the sender, which knows what to do of it.

        Args:
            call: closed, and marked as being encoded.
        """
        entries: tuple[Entry, ...] = ()
        accumulator = self._accumulator
        try:
            links = self._links(call)
            entries = encode_for(call.queue, records_of(call))
        except Exception as error:
            _log.debug("%s: not encoded ahead: %r", call.queue.topic_partition, error)
        finally:
            with accumulator.lock:
                if entries and not call.is_taken:
                    call.encoded(entries, links)
                call.encoding_until_s = 0.0
                accumulator.work.notify()

    def _links(self, call: Call) -> Sequence[Link]:
        return () if self._tracer is None else self._tracer.links_of(call.headers.values())

    def _encode(self, call: Call) -> None:
        """Gives a call its entries. A record that is too large or cannot be encoded fails alone."""
        records = records_of(call)
        call.encoded((), self._links(call))  # not yet, but its records are in columns now
        refused: list[tuple[int, LakelogError]] = [
            (error.index or 0, error) for error in refused_by_columns(call.queue, records)
        ]
        gone = {row for row, _ in refused}
        rows = [row for row in range(call.record_count) if row not in gone]
        if gone:
            records = without(records, gone)
        is_renewed = False
        while rows and not call.entries:
            try:
                call.entries = encode_checked(call.queue, records)
            except (RecordTooLargeError, InvalidRecordError) as error:
                if isinstance(error, RecordTooLargeError) and not is_renewed:
                    is_renewed = True  # the limit may have been raised since it was looked up
                    if allows_more(call.queue, self._topics, self._accumulator):
                        continue
                refused.append((rows.pop(error.index), error))
                records = without(records, {error.index})
        call.delivery.refused = sorted(refused, key=lambda row_and_error: row_and_error[0])
        if not rows:
            self._end(call, refused[0][1])
            return
        call.record_count = len(rows)
        call.queue.has_encoded |= not isinstance(records, list)

    def _append(self, calls: Sequence[Call]) -> Sequence[Answer]:
        appends = []
        for call in calls:
            assert call.batch is not None
            queue = call.queue
            appends.append(
                AppendCall(queue.topic_partition, queue.topic.topic_id, call.batch, call.sent_under)
            )
            if call.was_sent:
                m.COUNTS.add(m.PRODUCER_RETRIES, call.record_count, queue.topic_partition.topic)
            call.was_sent = True
        started_s = time.perf_counter()
        try:
            answers = (
                self.hot.append_all(appends, self._acks)
                if self._tracer is None
                else self._append_traced(self._tracer, calls, appends)
            )
            m.COUNTS.observe(m.REQUEST_SECONDS, time.perf_counter() - started_s)
            return answers
        except Exception as error:  # it promises not to raise; what was written is not known
            _log.exception("an append failed in an unforeseen way")
            failure = LakelogError(f"the append failed in an unforeseen way: {error!r}")
            failure.__cause__ = error
            for call in calls:
                call.may_be_written = True
            return [failure] * len(calls)

    def _append_traced(
        self, tracer: Tracer, calls: Sequence[Call], appends: Sequence[AppendCall]
    ) -> Sequence[Answer]:
        topic_partitions = {call.queue.topic_partition for call in calls}
        count = sum(call.record_count for call in calls)
        links = [link for call in calls for link in call.links]
        with tracer.append(topic_partitions, count, links) as appending:
            answers = self.hot.append_all(appends, self._acks)
            appending.answered(one for one in answers if isinstance(one, Exception))
        return answers

    # -- answers -------------------------------------------------------------------------------

    def _settle(self, queue: PartitionQueue, answers: Sequence[tuple[Call, Answer]]) -> None:
        """Handles the answers to a round's calls, in order."""
        in_flight = queue.in_flight
        must_wait = is_full = False
        memory: MemoryUse | None = None
        written_bytes = 0
        mend: Verdict | None = None
        cause: Exception | None = None
        for call, answer in answers:
            call.is_sending = False
            decision = verdict(
                answer, may_be_written=call.may_be_written, is_first=in_flight.is_first(call)
            )
            if isinstance(answer, AppendResult):
                written_bytes += self._written(call, answer)
                memory = answer.memory
                continue
            if decision is not Verdict.RESEND or queue.last_error is None:
                queue.last_error = answer  # otherwise the error of the call before it is the cause
            _log.debug("%s: %s after %r", queue.topic_partition, decision.name, answer)
            match decision:
                case Verdict.WAIT:
                    _note_unanswered(call, answer)
                    must_wait = True
                    is_full |= isinstance(answer, HotTierFullError | QuotaExceededError)
                case Verdict.RENUMBER:
                    in_flight.start_epoch()
                    # A new epoch that is refused at once will not fare better at once.
                    must_wait |= call.batch is not None and call.batch.first_sequence == 0
                case Verdict.TOPIC_GONE:
                    self._fail_topic(queue, answer)
                    return
                case Verdict.RECOVER | Verdict.REPAIR:
                    mend, cause = decision, answer
                case Verdict.REFUSED:
                    if isinstance(answer, RecordTooLargeError):
                        # Encoded by a larger limit than the present one: later ones are not.
                        self._accumulator.forget(queue.topic)
                    self._end(call, answer)
                case Verdict.UNKNOWN:
                    self._end(call, delivery_error(call, "their outcome stayed unknown", answer))
        if mend is Verdict.RECOVER:
            self._begin_recovery(queue, cause)
            return
        if mend is Verdict.REPAIR:
            must_wait |= self._mend(queue, self._repair_topic)
        elif is_full and not queue.topic.config.tiered:
            self._mend(queue, self._make_room)
        if must_wait:
            self._pause(queue)
        elif held_ms := throttle_time_ms(memory, queue.high_water_percent, written_bytes):
            self._throttle(queue, held_ms)

    def _pause(self, queue: PartitionQueue) -> None:
        queue.failures += 1
        pause_s = self._back_off.pause_s(queue.failures)
        if isinstance(queue.last_error, ThrottlingQuotaExceededError):
            pause_s = queue.last_error.throttle_time_ms / 1000  # as long as it takes, and no longer
            m.COUNTS.observe(m.THROTTLE_SECONDS, pause_s)
        now_s = time.monotonic()
        queue.retry_at_s = now_s + pause_s
        with self._accumulator.lock:
            left_s = self._expiry_s(queue) - now_s
        self._telling.failed(
            f"appending to {queue.topic_partition}",
            queue.last_error or "no answer",
            now_s,
            failures=queue.failures,
            pause_s=pause_s,
            left_s=left_s,
        )

    def _throttle(self, queue: PartitionQueue, throttle_ms: int) -> None:
        """Holds back a partition's next calls, since Redis is nearly full."""
        now_s = time.monotonic()
        queue.retry_at_s = now_s + throttle_ms / 1000
        m.COUNTS.observe(m.THROTTLE_SECONDS, throttle_ms / 1000)
        # What waits here in vain was refused by nobody, so this is its cause.
        queue.last_error = HotTierFullError(
            f"Redis is nearly full, so calls are held back for {throttle_ms} ms after each answer, "
            "longer the fuller it gets, until archivers make room there "
            f"(lakelog.high.water.percent={queue.high_water_percent:g}). Is one running? "
            "`lakelog status` says how full Redis is"
        )
        if now_s >= self._throttle_told_s + THROTTLE_QUIET_S:
            self._throttle_told_s = now_s
            _log.warning("%s: %s", queue.topic_partition, queue.last_error)

    def _written(self, call: Call, result: AppendResult) -> int:
        """Settles a call that is in the log; its bytes there."""
        queue, stored_bytes = call.queue, sum(entry.size_bytes for entry in call.entries)
        if queue.failures:
            self._telling.succeeded(f"appending to {queue.topic_partition}", queue.failures)
        queue.written(result.base_offset, call.record_count)
        queue.failures = 0
        queue.last_error = None
        queue.is_repaired = False
        self._expiry.look(queue.topic, queue.age_limit_ms, call.entries)
        topic = queue.topic_partition.topic
        m.COUNTS.add(m.PRODUCED_RECORDS, call.record_count, topic)
        m.COUNTS.add(m.PRODUCED_BYTES, stored_bytes, topic)
        if call.delivery.refused:
            m.COUNTS.add(m.PRODUCER_ERRORS, len(call.delivery.refused), topic)
            _tell_failed(len(call.delivery.refused), queue, call.delivery.refused[0][1])
        with self._accumulator.lock:
            self._accumulator.settle(
                call, base_offset=result.base_offset, append_time_ms=result.append_time_ms
            )
            queue.in_flight.written(call)
        self._done.append(call.delivery)
        return stored_bytes

    def _mend(self, queue: PartitionQueue, action: Callable[[PartitionQueue], object]) -> bool:
        """Mends what stops a partition's appends. Says whether to pause before the next round."""
        is_first_time = queue.failures == 0 or queue.is_mend_due
        try:
            action(queue)
        except Exception as error:
            if not getattr(error, "retriable", False):
                self._fail_topic(queue, error)
                return False
            queue.last_error = error
            queue.is_mend_due = True
            return True
        queue.is_mend_due = False
        if is_first_time:
            queue.failures = max(queue.failures, 1)  # if it did not help, the next round pauses
        return not is_first_time

    def _begin_recovery(self, queue: PartitionQueue, cause: Exception | None) -> None:
        """Recovers a partition while others go on: it may wait for a store that does not answer."""
        from .recoveries import Recoveries

        is_used_up = getattr(cause, "reserved_end", None) is not None
        level = logging.DEBUG if is_used_up else logging.WARNING
        _log.log(level, "%s: recovering from offset %d", queue.topic_partition, queue.told_end)
        accumulator = self._accumulator
        self._recoveries = self._recoveries or Recoveries(self._recover)

        def ended(_: object) -> None:
            with accumulator.lock:
                accumulator.work.notify_all()

        queue.recovery = self._recoveries.ask(queue.topic_partition, queue.told_end)
        queue.recovery.add_done_callback(ended)

    def _end_recovery(self, queue: PartitionQueue) -> None:
        recovery = queue.recovery
        if recovery is None or not recovery.done():
            return
        queue.recovery = None
        if self._mend(queue, lambda _: recovery.result()):
            self._pause(queue)

    def _make_room(self, queue: PartitionQueue) -> None:
        """Applies an untiered partition's retention, which an append to a full Redis cannot."""
        self.hot.retain(queue.topic_partition)

    def _repair_topic(self, queue: PartitionQueue) -> None:
        if queue.is_repaired and queue.last_error is not None:
            raise queue.last_error
        self._topics.repair(queue.topic)
        queue.is_repaired = True

    def _expire(self, queue: PartitionQueue) -> None:
        timeout_ms = self._config.delivery_timeout_ms
        with self._accumulator.lock:
            calls = queue.unsettled()
        for call in calls:
            if call.created_s + timeout_ms / 1000 > time.monotonic():
                break
            why = f"no good answer came within delivery_timeout_ms={timeout_ms}"
            self._end(call, delivery_error(call, why, queue.last_error))

    def _fail_topic(self, queue: PartitionQueue, error: Exception) -> None:
        """Fails all that waits for a partition that cannot be written, and forgets the topic."""
        self._accumulator.forget(queue.topic)
        with self._accumulator.lock:
            calls = queue.unsettled()
        for call in calls:
            call.may_be_written |= call.is_sending  # its answer will not be looked at
            call.is_sending = False
            if call.may_be_written and not isinstance(error, UnknownTopicIdError):
                self._end(call, delivery_error(call, "their outcome stayed unknown", error))
            else:
                self._end(call, error)

    def _end(self, call: Call, error: Exception) -> None:
        """Records that a call failed, and takes it out wherever it is."""
        count = call.record_count
        m.COUNTS.add(m.PRODUCER_ERRORS, count, call.queue.topic_partition.topic)
        _tell_failed(count, call.queue, error)
        with self._accumulator.lock:
            is_unknown = isinstance(error, DeliveryError) and error.unknown > 0
            self._accumulator.settle(call, error=error, is_unknown=is_unknown)
            call.queue.remove(call)
        self._done.append(call.delivery)

    def _call_back(self) -> None:
        done, self._done = self._done, []
        for delivery in done:
            delivery.call_back()


def _tell_failed(count: int, queue: PartitionQueue, error: Exception) -> None:
    """Also for those who never ask: of a producer that is gone, nobody can."""
    _log.warning("%s for %s failed: %s", counted(count, "record"), queue.topic_partition, error)


def _note_unanswered(call: Call, answer: Exception) -> None:
    """Remembers that a call may be written, and under which run of the server."""
    if isinstance(answer, NotEnoughReplicasAfterAppendError):
        result = answer.result
        call.queue.written(result.base_offset, call.record_count)
        run_id: str | None = result.run_id
    elif isinstance(answer, HotTierUnavailableError) and answer.sent:
        run_id = answer.run_id
    else:
        return
    call.may_be_written = True
    call.sent_under = call.sent_under or run_id
