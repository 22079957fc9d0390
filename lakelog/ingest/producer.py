"""The producer: takes records from any thread, and has them appended in order, exactly once."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from ..base.back_off import Tries
from ..base.clock import Clock, SystemClock
from ..base.text_table import counted
from ..codec.encryption.of_topic import sealing
from ..errors import DeliveryPendingError, LakelogError, UnknownTopicOrPartitionError
from ..hot import HotLog, TopicRegistry
from ..values.arguments import check_timeout
from ..values.topic import topic_name
from .accumulator import (
    HEADER_OVERHEAD_BYTES,
    RECORD_OVERHEAD_BYTES,
    Accumulator,
    TopicState,
    abandoned_error,
    failures_error,
)
from .answers import ExpiryWarning
from .delivery import SendResult
from .given_values import BytesLike, HeadersLike, as_bytes, as_headers, as_timestamp_ms
from .open_producers import watch
from .partitioner import hashes, positive_hash
from .producer_config import ProducerConfig
from .sender import Recover, Sender

if TYPE_CHECKING:
    from opentelemetry.trace import Link

    from ..tracing.tracer import Tracer
    from .delivery import BatchMetadata

__all__ = ["Producer", "ProducerConfig"]

logger = logging.getLogger(__name__)

#: How long the sender leaves a call to the thread that filled it. One that was interrupted before
#: it could say so encodes it no more.
ENCODING_S = 1.0


class Producer:
    """Appends records to topics of the hot tier.

    Thread-safe. Records of a partition are written in the order of the calls that sent them, each
    once, even if Redis fails in between. If the outcome cannot be told, it is reported as unknown,
    and the record is never sent as new. A background thread, started by the first record, does the
    sending. Close the producer, or use it as a context manager. What one that is left open had not
    sent yet is sent nevertheless: when nothing refers to it any more, and when its log is closed or
    the process ends, which wait for that for at most `open_producers.EXIT_TIMEOUT_MS` and say what
    was not sent. A process that is killed, or leaves by ``os._exit``, loses it.

    Args:
        hot: where records go; the caller closes it, after the producer.
        topics: of the same keyspace.
        recover: called with a topic-partition and the offset that the next record must at least
            get, when the server may have lost its tail.
        config: see `ProducerConfig`.
        clock: stamps records that come without a timestamp.
        tracer: makes spans of the appends; see `TracedProducer`.
    """

    def __init__(
        self,
        hot: HotLog,
        topics: TopicRegistry,
        recover: Recover,
        config: ProducerConfig | None = None,
        *,
        clock: Clock | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._config = config or ProducerConfig()
        self._topics = topics
        self._now_ms = (clock or SystemClock()).now_ms
        self._accumulator = Accumulator(self._config)
        expiry = ExpiryWarning(self._now_ms)
        self._sender = Sender(self._accumulator, hot, topics, recover, self._config, expiry, tracer)
        watch(self._sender)

    def send(
        self,
        topic: str,
        value: BytesLike,
        *,
        key: BytesLike = None,
        headers: HeadersLike = (),
        timestamp_ms: object = None,
        partition: int | None = None,
    ) -> SendResult:
        """Takes a record, which is appended soon.

        Args:
            topic: its name.
            value: bytes, or text that is stored as UTF-8; None is a tombstone.
            key: likewise; decides the partition, as Kafka's producers do it.
            headers: a mapping or pairs of text and bytes, in order; keys may repeat.
            timestamp_ms: UTC epoch milliseconds or an aware datetime; default: now; -1: none.
            partition: default: by the key; records without a key share one for a while.

        Returns:
            The answer to come; its ``result()`` waits for it.

        Raises:
            InvalidArgumentError: something is of another type, or out of bounds.
            UnknownTopicOrPartitionError: no such topic or partition.
            BufferExhaustedError: the buffer stayed full for ``max_block_ms``.
            HotTierUnavailableError: Redis did not describe the topic within ``max_block_ms``, or
                ``delivery_timeout_ms`` where that is less.
            EncryptionKeyError: its values are to be encrypted, and the key cannot be had here.
            LogClosedError: it is closed, or belongs to the parent process.
        """
        # One function, since it runs once a record and each call of another takes a tenth of it.
        if type(topic) is not str:
            topic = topic_name(topic)
        if type(value) is not bytes:
            value = as_bytes("value", value)
        if type(key) is not bytes and key is not None:
            key = as_bytes("key", key)
        time_ms = self._now_ms() if timestamp_ms is None else as_timestamp_ms(timestamp_ms)
        size_bytes = RECORD_OVERHEAD_BYTES
        if value is not None:
            size_bytes += len(value)
        items = None
        if headers:
            items = as_headers(headers)
            for name, data in items:
                size_bytes += HEADER_OVERHEAD_BYTES + len(name) + len(data or b"")
        accumulator = self._accumulator
        state = accumulator.topics.get(topic) or self._look_up(topic)
        if partition is not None:
            state, partition = self._with_partition(state, partition)
        if key is not None:
            size_bytes += len(key)
            if partition is None:
                positive = hashes.get(key)
                if positive is None:
                    positive = positive_hash(key)
                partition = positive % state.count
        # Not `acquire` and `finally`, which are faster: an interrupt (Ctrl-C, a notebook's stop)
        # may come between the two, and the lock would stay held.
        with accumulator.lock:
            if accumulator.refusal is not None:
                accumulator.check_open()
            if accumulator.buffered_bytes + size_bytes > accumulator.buffer_memory:
                accumulator.await_room(size_bytes)
            if partition is None:
                partition = state.sticky.take(size_bytes)
            queue = state.queues[partition]
            call = queue.open or accumulator.open(queue)
            index = call.record_count
            try:
                call.timestamps_ms.append(time_ms)
                call.keys.append(key)
                call.values.append(value)
                if items is not None:
                    call.headers[index] = items
                call.record_count = count = index + 1
            except BaseException:  # an interrupt
                call.cut(index)
                raise
            accumulator.buffered_bytes += size_bytes
            call.size_bytes = call_bytes = call.size_bytes + size_bytes
            result = SendResult(call.delivery, index)
            if call_bytes < accumulator.batch_size and count < queue.max_records:
                return result
            queue.close_open()
            if not queue.has_encoded:
                accumulator.work.notify()
                return result
            call.encoding_until_s = time.monotonic() + ENCODING_S
        self._sender.encode_ahead(call)
        return result

    def send_batch(
        self, topic: str, records: object, *, partition: int | None = None
    ) -> BatchMetadata:
        """Appends many records and waits until all have their answer; much faster than `send`.

        Records of a partition keep their order, and follow what was sent to it before.

        Args:
            topic: its name.
            records: a table with a column value (binary or text) and perhaps key, headers (list
                of struct of key and value), timestamp (with a zone, or integers: epoch
                milliseconds; also as timestamp_ms) and partition; or a column of values; or a
                sequence of values, (key, value) pairs, mappings with those names, or `Record`.
                Tables and columns are Arrow's (readers too, which are read to their end) or what
                exports itself as such: of pandas (what it calls missing is null), polars, DuckDB.
            partition: for all records; default: each one's own, else as `send` chooses.

        Returns:
            Where each record went, in input order.

        Raises:
            LakelogError: the error of the first record that failed; its ``batch``, a
                `BatchOutcome`, says what became of each. What was written stays written.
        """
        from .given_records import as_columns

        table, asked = as_columns(records, self._now_ms())
        return self._append_table(topic, table, asked, partition)

    def send_rows(
        self,
        topic: str,
        rows: object,
        *,
        key: str | None = None,
        timestamp: str | None = None,
        partition: str | int | None = None,
        value: str | None = None,
        zone: str | None = None,
    ) -> BatchMetadata:
        """Appends rows of a frame, or objects, each as a JSON object; see `Lakelog.append`.

        Raises:
            InvalidArgumentError: they are no rows, a field is not there, a value is of a kind that
                JSON has nothing for, or a time has no zone. Nothing is appended.
            LakelogError: as `send_batch`.
        """
        from .rows import given_rows

        given = given_rows(
            rows, key=key, timestamp=timestamp, partition=partition, value=value, zone=zone
        )
        return self.send_batch(topic, given.records, partition=given.partition)

    def _append_table(
        self,
        topic: str,
        table: pa.Table,
        asked: pa.ChunkedArray | None,
        partition: int | None,
        links: Sequence[Link] = (),
    ) -> BatchMetadata:
        from .bulk import BulkAppend

        topic = topic_name(topic)
        state = self._accumulator.topics.get(topic) or self._look_up(topic)
        if partition is not None:
            state, partition = self._with_partition(state, partition)
        elif asked is not None:
            for number in asked.drop_null().unique().to_pylist():
                state, _ = self._with_partition(state, number)
        bulk = BulkAppend(self._accumulator, state, table, asked, partition, self._topics, links)
        return bulk.run()

    def flush(self, timeout_ms: int | None = None) -> None:
        """Sends what was taken so far, without lingering, and waits for all answers.

        Raises:
            DeliveryPendingError: some have no answer yet; they are still being delivered.
            DeliveryError: records failed since the last flush, and nobody asked for them. Kafka
                leaves them to the results; here none is lost in silence.
        """
        self._accumulator.check_not_forked()
        if not self._accumulator.flush(_within_s(timeout_ms)):
            unsettled = self._accumulator.unsettled_records
            raise DeliveryPendingError(
                f"{counted(unsettled, 'record')} {'has' if unsettled == 1 else 'have'} no answer "
                f"after {timeout_ms} ms; delivery goes on. Flush again, with more time",
                unsettled=unsettled,
            )
        self._raise_unseen()

    def close(self, timeout_ms: int | None = None) -> None:
        """Takes no more records, sends what is there, and ends the thread. May be called again.

        Args:
            timeout_ms: what has no answer by then fails; None: until the delivery timeout decides.

        Raises:
            DeliveryError: the time was over; its counts are those of all records without an
                answer. Or, as `flush`, for failures that nobody asked for.
        """
        if self._end(timeout_ms):
            self._raise_unseen()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._end(None)  # nothing must hide the error under way; failures were logged

    def __del__(self) -> None:
        accumulator = self.__dict__.get("_accumulator")
        if accumulator is None or accumulator.is_stopping or accumulator.is_forked:
            return
        count = accumulator.unsettled_records
        # When the interpreter ends, its daemon threads stop, perhaps while they hold the lock.
        if not sys.is_finalizing():
            accumulator.refuse("this producer is gone")
        if count:
            warnings.warn(
                f"a producer was forgotten with {counted(count, 'record')} under way. Sending goes "
                "on; call close() or use it as a context manager, to know how it ended",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    def _end(self, timeout_ms: int | None) -> bool:
        """Closes; False if it was closed before, or belongs to the parent process."""
        accumulator, within_s = self._accumulator, _within_s(timeout_ms)
        if accumulator.is_forked or not accumulator.refuse("this producer is closed"):
            return False
        if not accumulator.flush(within_s):
            self._abandon(timeout_ms)
        self._sender.join()
        return True

    def _abandon(self, timeout_ms: int | None) -> None:
        why = f"the producer was closed after waiting {timeout_ms} ms"
        error = abandoned_error(why, *self._sender.abandon(why))
        if error is not None:
            raise error

    def _raise_unseen(self) -> None:
        error = failures_error(self._accumulator.take_unseen())
        if error is not None:
            raise error

    # -- topics --------------------------------------------------------------------------------

    def _look_up(self, name: str) -> TopicState:
        """Asks the registry, as long as ``max_block_ms`` and the delivery timeout allow."""
        self._accumulator.check_open()
        most_ms = min(self._config.max_block_ms, self._config.delivery_timeout_ms)
        deadline_s = time.monotonic() + most_ms / 1000
        tries = Tries(f"looking up topic {name!r}", self._config.back_off, until_s=deadline_s)
        while True:
            try:
                topic = self._topics.get(name)
                break
            except LakelogError as error:
                tries.wait(error)
        tries.succeeded()
        # Before anything is taken: what cannot be encrypted is not sent, and without its thread
        # nothing is (the end of a process starts none).
        sealed = sealing(topic)
        self._sender.start()
        return self._accumulator.learn(topic, sealed)

    def _with_partition(self, state: TopicState, partition: int) -> tuple[TopicState, int]:
        """The topic and the partition. Without that, the topic is looked up again: it may have
        grown.
        """
        try:
            return state, state.topic.partition(partition).partition
        except UnknownTopicOrPartitionError:
            state = self._look_up(state.topic.name)
            return state, state.topic.partition(partition).partition


def _within_s(timeout_ms: float | None) -> float | None:
    if timeout_ms is None:
        return None
    is_exact = isinstance(timeout_ms, float) and timeout_ms >= 0
    return (timeout_ms if is_exact else check_timeout("timeout_ms", timeout_ms)) / 1000
