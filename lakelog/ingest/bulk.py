"""Appending a table: cut in pieces, each partition's rows encoded while others are being sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from ..base.text_table import counted
from ..codec import Entry
from ..errors import (
    DeliveryError,
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    RecordTooLargeError,
)
from ..hot import TopicRegistry
from ..values.config import MIB
from ..values.record import NO_TIMESTAMP_MS
from .accumulator import Accumulator, TopicState
from .delivery import BatchMetadata, BatchOutcome, Delivery
from .encoding import allows_more, encode_for
from .partition_queue import MAX_CALL_ENTRIES, PartitionQueue
from .partitioner import partitions_of_keys

if TYPE_CHECKING:
    from opentelemetry.trace import Link

#: About how many bytes of a piece each partition gets. Two entries of the size the codec aims at:
#: enough to make a round trip worth it, and small compared with the buffer.
PIECE_PARTITION_BYTES = MIB // 2

#: A call has at most about this many bytes: Redis runs it as one script.
MAX_CALL_BYTES = MIB

_NOT_WRITTEN, _UNKNOWN, _WRITTEN = 0, 1, 2


class BulkAppend:
    """One `Producer.send_batch`.

    Args:
        table: `PRODUCED`.
        asked: the partition each row asks for, null for none.
        partition: for all rows, if given.
        topics: asked again before a row is refused by a limit of its topic.
        links: of the spans of its appends.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        state: TopicState,
        table: pa.Table,
        asked: pa.ChunkedArray | None,
        partition: int | None,
        topics: TopicRegistry,
        links: Sequence[Link] = (),
    ) -> None:
        self._accumulator = accumulator
        self._state = state
        self._table = table
        self._asked = asked
        self._partition = partition
        self._topics = topics
        self._links = links
        self._renewed: set[PartitionQueue] = set()  # whose topic was looked up again
        count = table.num_rows
        self._partitions = np.full(count, -1, np.int32)
        self._sent: list[tuple[np.ndarray, Delivery]] = []  # the rows of each call

    def run(self) -> BatchMetadata:
        """Appends all rows and waits.

        Raises:
            LakelogError: see `Producer.send_batch`.
        """
        failure: LakelogError | None = None
        try:
            for queue, rows, records in self._pieces():
                try:
                    entries = self._encode(queue, records)
                except LakelogError as error:
                    raise _of_row(error, rows) from error
                for part, call in _calls(rows, entries):
                    self._sent.append((part, self._accumulator.put(queue, call, self._links)))
        except LakelogError as error:
            failure = error
        deliveries = [delivery for _, delivery in self._sent]
        self._accumulator.wait_all(deliveries, None)
        for delivery in deliveries:
            delivery.is_seen = True
        return self._outcome(failure)

    def _encode(self, queue: PartitionQueue, records: pa.RecordBatch) -> tuple[Entry, ...]:
        try:
            return encode_for(queue, records)
        except RecordTooLargeError:
            # The limit may have been raised since it was looked up.
            if queue in self._renewed or not allows_more(queue, self._topics, self._accumulator):
                raise
            self._renewed.add(queue)
            return encode_for(queue, records)

    def _pieces(self) -> Iterator[tuple[PartitionQueue, np.ndarray, pa.RecordBatch]]:
        """Runs of rows of one partition, in order: row numbers and records."""
        start, step = 0, self._piece_rows()
        while start < self._table.num_rows:
            piece = self._table.slice(start, step).combine_chunks().to_batches()[0]
            numbers = self._assign(piece, start)
            self._partitions[start : start + len(numbers)] = numbers
            # NumPy sorts 16-bit numbers by radix, several times faster.
            small = numbers.astype(np.int16) if self._state.count < 2**15 else numbers
            order = np.argsort(small, kind="stable")
            cuts = np.flatnonzero(np.diff(numbers[order])) + 1
            for rows in np.split(order, cuts):
                queue = self._state.queues[numbers[rows[0]]]
                whole = len(rows) == piece.num_rows
                yield queue, rows + start, piece if whole else piece.take(pa.array(rows))
            start += piece.num_rows

    def _piece_rows(self) -> int:
        table = self._table
        is_spread = self._partition is None and (
            self._asked is not None or table["key"].null_count < table.num_rows
        )
        piece_bytes = PIECE_PARTITION_BYTES * (self._state.count if is_spread else 2)
        row_bytes = max(1, table.nbytes // max(1, table.num_rows))
        return max(1, int(min(piece_bytes, self._accumulator.buffer_memory // 4) // row_bytes))

    def _assign(self, piece: pa.RecordBatch, start: int) -> np.ndarray:
        """Each row's partition: the one asked for, else by key, else the sticky one."""
        count = piece.num_rows
        if self._partition is not None:
            return np.full(count, self._partition, np.int32)
        keys = piece.column("key")
        if keys.null_count == count:
            numbers = np.zeros(count, np.int32)
        else:
            numbers = partitions_of_keys(keys, self._state.count)
        keyless = keys.is_null().to_numpy(zero_copy_only=False)
        if self._asked is not None:
            asked = self._asked.slice(start, count).combine_chunks()
            if isinstance(asked, pa.ChunkedArray):
                asked = asked.chunk(0)
            is_asked = asked.is_valid().to_numpy(zero_copy_only=False)
            numbers = np.where(is_asked, asked.fill_null(0).to_numpy(), numbers).astype(np.int32)
            keyless &= ~is_asked
        if keyless.any():
            share_bytes = piece.nbytes * int(keyless.sum()) // count
            numbers[keyless] = self._accumulator.take_sticky(self._state, share_bytes)
        return numbers

    # -- the answer ----------------------------------------------------------------------------

    def _outcome(self, failure: LakelogError | None) -> BatchMetadata:
        table = self._table
        offsets = np.full(table.num_rows, -1, np.int64)
        timestamps_ms = np.array(table["timestamp_ms"].to_numpy())
        status = np.full(table.num_rows, _NOT_WRITTEN, np.int8)
        failed: list[tuple[int, Exception]] = []
        for rows, delivery in self._sent:
            if delivery.error is not None:
                status[rows] = _UNKNOWN if delivery.is_unknown else _NOT_WRITTEN
                failed.append((int(rows[0]), _of_row(delivery.error, rows)))
                continue
            status[rows] = _WRITTEN
            offsets[rows] = np.arange(
                delivery.base_offset, delivery.base_offset + len(rows), dtype=np.int64
            )
            if delivery.append_time_ms != NO_TIMESTAMP_MS:
                timestamps_ms[rows] = delivery.append_time_ms
        if failed:
            _, error = min(failed, key=lambda row_and_error: row_and_error[0])
            _raise(error, status)
        if failure is not None:
            _raise(failure, status)
        return BatchMetadata(self._state.topic.name, self._partitions, offsets, timestamps_ms)


def _calls(
    rows: np.ndarray, entries: Sequence[Entry]
) -> Iterator[tuple[np.ndarray, tuple[Entry, ...]]]:
    """Entries in groups that Redis takes in one command, each with its rows."""
    call: list[Entry] = []
    size_bytes = start = end = 0
    for entry in entries:
        if call and (
            len(call) == MAX_CALL_ENTRIES or size_bytes + entry.size_bytes > MAX_CALL_BYTES
        ):
            yield rows[start:end], tuple(call)
            call, size_bytes, start = [], 0, end
        call.append(entry)
        size_bytes += entry.size_bytes
        end += entry.record_count
    if call:
        yield rows[start:end], tuple(call)


def _of_row(error: Exception, rows: np.ndarray) -> Exception:
    """The error of a call, with row numbers of the table in place of record numbers."""
    if not isinstance(error, LakelogError):
        return error
    match error:
        case InvalidTimestampError(record_errors=[*found]) if found:
            moved = [(int(rows[index]), time_ms, why) for index, time_ms, why in found]
            message = f"{error.message} (row {moved[-1][0]} of the batch)"
            return error.changed(message=message, record_errors=moved)
        case InvalidRecordError() | RecordTooLargeError():
            index = int(rows[error.index])
            message = f"{error.message} (row {index} of the batch)"
            return error.changed(message=message, index=index)
    return error


def _raise(error: Exception, status: np.ndarray) -> NoReturn:
    """Raises the error, with what became of the batch."""
    batch = BatchOutcome(
        int((status == _WRITTEN).sum()),
        pa.array(np.flatnonzero(status == _NOT_WRITTEN)),
        pa.array(np.flatnonzero(status == _UNKNOWN)),
    )
    message = (
        f"{error}; of the batch's {counted(len(status), 'record')} {batch.written} are in the log, "
        f"{batch.not_written} are surely not and {batch.unknown} may or may not be (see "
        "error.batch)"
    )
    cause: BaseException | None = error.__cause__
    if not isinstance(error, LakelogError):
        error, cause = DeliveryError(message, last_error=error), error
    if isinstance(error, DeliveryError):
        error = error.changed(not_written=batch.not_written, unknown=batch.unknown)
    raise error.changed(message=message, batch=batch) from cause
