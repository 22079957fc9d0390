"""Where records went, or why not: what a sender holds until they are in the log."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, overload

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base.text_table import counted
from ..errors import DeliveryPendingError, LogClosedError
from ..values.arguments import optional_seconds
from ..values.record import RecordMetadata
from ..values.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class Deliverer(Protocol):
    """Settles deliveries, and lets callers wait for them; see `Accumulator`."""

    lock: Any  # under which a delivery is written
    is_forked: bool  # this is a child process, in which nothing is delivered

    def wait(self, delivery: Delivery, timeout_s: float | None) -> bool: ...


class Delivery:
    """The fate that the records of one call share: where they went, or why not.

    One object for all of them, so that a record needs no lock and no future of its own. Written
    once, under the deliverer's lock; ``done`` last, so that it can be read without the lock.
    """

    __slots__ = (
        "_callbacks",
        "append_time_ms",
        "base_offset",
        "deliverer",
        "done",
        "error",
        "is_seen",
        "is_unknown",
        "refused",
        "timestamps_ms",
        "topic_partition",
    )

    def __init__(
        self, deliverer: Deliverer, topic_partition: TopicPartition, timestamps_ms: list[int]
    ) -> None:
        self.deliverer = deliverer
        self.topic_partition = topic_partition
        self.timestamps_ms = timestamps_ms  # grows while the call is open; empty for bulk calls
        self.done = False
        self.base_offset = -1
        self.append_time_ms = -1  # -1: the records keep their own
        self.error: Exception | None = None
        self.is_unknown = False  # whether the records may be in the log in spite of the error
        self.is_seen = False  # whether somebody asked for the error
        self.refused: list[tuple[int, Exception]] = []  # single records that could not be encoded
        self._callbacks: list[tuple[Callable[[SendResult], object], SendResult]] = []

    def error_of(self, index: int) -> Exception | None:
        self.is_seen = True
        for refused, error in self.refused:
            if refused == index:
                return error
        return self.error

    def metadata_of(self, index: int) -> RecordMetadata:
        topic, partition = self.topic_partition
        before = bisect_left(self.refused, index, key=lambda refused: refused[0])
        time_ms = self.append_time_ms
        return RecordMetadata(
            topic,
            partition,
            self.base_offset + index - before,
            self.timestamps_ms[index] if time_ms < 0 else time_ms,
        )

    def when_done(self, callback: Callable[[SendResult], object], result: SendResult) -> None:
        with self.deliverer.lock:
            if not self.done:
                self._callbacks.append((callback, result))
                return
        _call(callback, result)

    def call_back(self) -> None:
        """Runs the callbacks; once, after ``done``, without the lock."""
        callbacks, self._callbacks = self._callbacks, []
        for callback, result in callbacks:
            _call(callback, result)


class SendResult(Struct, eq=False, gc=False):  # one a record, so the collector looks at none
    """The future answer to `Producer.send`; used like a ``concurrent.futures.Future``."""

    _delivery: Delivery
    _index: int

    def done(self) -> bool:
        """Whether the record is in the log, or has failed."""
        return self._delivery.done

    def result(self, timeout: float | timedelta | None = None) -> RecordMetadata:
        """Where the record went; waits for it, and has it sent without lingering.

        Args:
            timeout: seconds, or a timedelta; None waits until the delivery timeout decides.

        Raises:
            DeliveryPendingError: no answer yet; the record is still being delivered.
            DeliveryError: it was not delivered in time; ``not_written`` or ``unknown`` says more.
            LakelogError: why the log refuses the record.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)  # otherwise records that share it pile up tracebacks
        return self._delivery.metadata_of(self._index)

    def exception(self, timeout: float | timedelta | None = None) -> Exception | None:
        """Why the record failed, or None if it is in the log; waits like `result`.

        Raises:
            DeliveryPendingError: no answer yet.
        """
        delivery = self._delivery
        if delivery.done:
            return delivery.error_of(self._index)
        if not delivery.deliverer.wait(delivery, optional_seconds("timeout", timeout)):
            if delivery.deliverer.is_forked:
                raise LogClosedError(
                    f"the record for {delivery.topic_partition} was sent by the parent process, "
                    "and only there its answer arrives"
                )
            raise DeliveryPendingError(
                f"no answer for {delivery.topic_partition} within {timeout} s; the record is still "
                "being delivered. Ask again, with more time",
                topic_partition=delivery.topic_partition,
                unsettled=1,
            )
        return delivery.error_of(self._index)

    def add_done_callback(self, callback: Callable[[SendResult], object]) -> None:
        """Calls ``callback(self)`` once there is an answer: now, or soon in the sender's thread."""
        self._delivery.when_done(callback, self)

    def __repr__(self) -> str:
        delivery = self._delivery
        state = "pending"
        if delivery.done:
            failed = delivery.error or any(index == self._index for index, _ in delivery.refused)
            state = "failed" if failed else str(delivery.metadata_of(self._index))
        return f"<SendResult {delivery.topic_partition}: {state}>"


def _call(callback: Callable[[SendResult], object], result: SendResult) -> None:
    try:
        callback(result)
    except (Exception, SystemExit):  # the latter would end the thread that sends
        _log.exception("a callback of %r failed", result)


class BatchMetadata(Sequence[RecordMetadata]):
    """The `RecordMetadata` of each record of a batch, in input order, made on access."""

    def __init__(
        self, topic: str, partitions: np.ndarray, offsets: np.ndarray, timestamps_ms: np.ndarray
    ) -> None:
        self.topic = topic
        self._partitions = partitions
        self._offsets = offsets
        self._timestamps_ms = timestamps_ms

    def to_arrow(self) -> pa.Table:
        """A row for each record: ``partition`` int32, ``offset`` int64, ``timestamp_ms`` int64."""
        return pa.table(
            {
                "partition": pa.array(self._partitions, pa.int32()),
                "offset": pa.array(self._offsets, pa.int64()),
                "timestamp_ms": pa.array(self._timestamps_ms, pa.int64()),
            }
        )

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> RecordMetadata: ...
    @overload
    def __getitem__(self, index: slice) -> BatchMetadata: ...
    def __getitem__(self, index: int | slice) -> RecordMetadata | BatchMetadata:
        columns = (self._partitions, self._offsets, self._timestamps_ms)
        if isinstance(index, slice):
            return BatchMetadata(self.topic, *(column[index] for column in columns))
        return RecordMetadata(self.topic, *(int(column[index]) for column in columns))

    def __repr__(self) -> str:
        ends = f"{self[0]} … {self[-1]}" if len(self) else ""
        return f"<BatchMetadata of {counted(len(self), 'record')}: {ends}>"


class BatchOutcome(Struct, frozen=True):
    """The rows of a batch by their fate; ``error.batch`` of what `Producer.send_batch` raises."""

    written: int  # records that are in the log
    not_written_rows: pa.Array  # row numbers that are surely not in the log, ascending
    unknown_rows: pa.Array  # row numbers that may or may not be in the log, ascending

    @property
    def not_written(self) -> int:
        return len(self.not_written_rows)

    @property
    def unknown(self) -> int:
        return len(self.unknown_rows)
