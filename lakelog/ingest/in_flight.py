"""The calls of one topic-partition that are under way, and the numbers they carry.

| what happened to a call                        | its number                                      |
|------------------------------------------------|-------------------------------------------------|
| it may have been written (no answer came)      | stays, until an answer comes or it ends unknown |
| it was surely not written, and is sent again   | given anew each round: the same, as long as     |
|                                                | nothing before it left                          |
| it left without being written, or unknown      | nobody's: the calls behind get a new epoch      |

The last line is what keeps a late copy of the lost call (in a socket's buffer, say) from being
taken for another: once the new epoch has written, the old one is fenced. So that the order holds,
calls of a new epoch wait until those that keep an old number are settled.

Source: Kafka ``ProducerAppendInfo`` and KIP-98 for numbers, epochs and the window of five.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from ..codec import Entry, ProducedBatch
from ..codec.entry import MAX_SEQUENCES
from ..errors import (
    HotTierUnavailableError,
    NotEnoughReplicasError,
    OutOfOrderSequenceError,
    RecoveryNeededError,
    UnknownProducerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..hot import AppendResult
from .delivery import Delivery

if TYPE_CHECKING:
    from .accumulator import PartitionQueue


class Call:
    """Records that are appended together: open for more, then encoded, numbered and sent."""

    __slots__ = (
        "batch",
        "created_s",
        "delivery",
        "entries",
        "headers",
        "is_sending",
        "is_written",
        "keys",
        "may_be_written",
        "queue",
        "record_count",
        "sent_under",
        "size_bytes",
        "timestamps_ms",
        "values",
    )

    def __init__(self, queue: PartitionQueue, delivery: Delivery, created_s: float) -> None:
        self.queue = queue
        self.delivery = delivery
        self.created_s = created_s  # monotonic; its delivery timeout counts from here
        self.timestamps_ms = delivery.timestamps_ms
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: dict[
            int, list[tuple[str, bytes | None]]
        ] = {}  # of the records that have some
        self.size_bytes = 0  # what it takes of the buffer
        self.record_count = 0
        self.entries: tuple[Entry, ...] = ()  # once encoded
        self.batch: ProducedBatch | None = None  # once numbered
        self.is_sending = False  # an answer is being waited for
        self.may_be_written = False  # an earlier round brought no answer; the number stays
        self.sent_under: str | None = None  # run id of the server that did not answer first
        self.is_written = False


class InFlight:
    """Numbers the calls of one producer on one topic-partition, in order."""

    def __init__(self, producer_id: int, max_calls: int) -> None:
        self.calls: deque[Call] = deque()  # a written one stays while an earlier one is not settled
        self._producer_id = producer_id
        self._max_calls = max_calls
        self._epoch = 0
        self._sequence = 0  # follows the last call that was written and went
        self._needs_epoch = False

    def has_room(self) -> bool:
        # Written calls count too: Redis remembers five, and the oldest may still be asked about.
        return len(self.calls) < self._max_calls

    def next_round(self) -> list[Call]:
        """The calls to send now, numbered, all of one epoch."""
        if self._needs_epoch and not any(call.may_be_written for call in self._unwritten()):
            self._epoch += 1
            self._sequence = 0
            self._needs_epoch = False
        sequence = self._sequence
        chosen = []
        for call in self.calls:
            if not (call.is_written or call.may_be_written):
                if self._needs_epoch:
                    break
                call.batch = self._number(call, sequence)
            assert call.batch is not None
            sequence = _after(call.batch)
            if not call.is_written:
                chosen.append(call)
        return chosen

    def written(self, call: Call) -> None:
        call.is_written = True
        while self.calls and self.calls[0].is_written:
            batch = self.calls.popleft().batch
            assert batch is not None
            if batch.epoch == self._epoch:
                self._sequence = _after(batch)

    def leave(self, call: Call) -> None:
        """Takes out a call that failed."""
        self.calls.remove(call)
        if call.batch is not None:
            self.start_epoch()
        while self.calls and self.calls[0].is_written:
            self.written(self.calls[0])

    def start_epoch(self) -> None:
        """The calls that are not numbered for good get a new epoch, as soon as no other is left."""
        self._needs_epoch = True

    def is_first(self, call: Call) -> bool:
        """Whether no call before it is still to be written."""
        return next(self._unwritten()) is call

    def _unwritten(self) -> Iterator[Call]:
        return (call for call in self.calls if not call.is_written)

    def _number(self, call: Call, sequence: int) -> ProducedBatch:
        last = (sequence + call.record_count - 1) % MAX_SEQUENCES
        return ProducedBatch(call.entries, self._producer_id, self._epoch, sequence, last)


def _after(batch: ProducedBatch) -> int:
    return (batch.last_sequence + 1) % MAX_SEQUENCES


class Verdict(Enum):
    """What to do with a call after an answer."""

    WRITTEN = auto()
    WAIT = auto()  # send it again after a pause
    RESEND = auto()  # send it again in order, when the call before it is
    RENUMBER = auto()  # it was not written, and is sent again in a new epoch
    RECOVER = auto()  # recover the partition, then send it again
    REPAIR = auto()  # mend a half-made topic, then send it again
    TOPIC_GONE = auto()
    REFUSED = auto()  # it fails with this error, surely not written
    UNKNOWN = auto()  # it fails, and may be written


def verdict(answer: AppendResult | Exception, *, may_be_written: bool, is_first: bool) -> Verdict:
    """What an answer means for a call.

    A call that may be written is never given another number: it is sent again as it was, or fails
    as unknown.

    Args:
        answer: of this round.
        may_be_written: whether an earlier round ended without an answer.
        is_first: whether no earlier call of the partition is still to be written.
    """
    match answer:
        case AppendResult():
            return Verdict.WRITTEN
        case UnknownTopicIdError():
            return Verdict.TOPIC_GONE
        case UnknownTopicOrPartitionError():
            return Verdict.REPAIR
        case RecoveryNeededError():
            return Verdict.RECOVER
        case OutOfOrderSequenceError() if not is_first:
            return Verdict.RESEND
        case OutOfOrderSequenceError() | UnknownProducerError() if not may_be_written:
            return Verdict.RENUMBER
        case NotEnoughReplicasError() | HotTierUnavailableError():
            return Verdict.WAIT
        case _ if getattr(answer, "retriable", False):
            return Verdict.WAIT
        case _:
            return Verdict.UNKNOWN if may_be_written else Verdict.REFUSED
