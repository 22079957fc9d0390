"""The calls of one topic-partition (open, closed, under way) and the numbers they carry.

| what happened to a call                        | its number                                      |
|------------------------------------------------|-------------------------------------------------|
| it may have been written (no answer came)      | stays, until an answer comes or it ends unknown |
| it was surely not written, and is sent again   | given anew each round: the same, as long as     |
|                                                | nothing before it left                          |
| it left without being written, or unknown      | nobody's: the calls behind get a new epoch      |

Because of the last line, a late copy of the lost call (in a socket's buffer, say) cannot be taken
for another call: once the new epoch has written, the old one is fenced. To keep the order, calls of
a new epoch wait until those that keep an old number are settled.

Source: Kafka ``ProducerAppendInfo`` and KIP-98 for numbers, epochs and the window of five.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..codec import AdaptiveCompression, Entry, ProducedBatch, resolve_compression
from ..codec.encryption.sealed_values import SealedValues
from ..values.config import Compression, EntryFormat
from ..values.producer_calls import MAX_SEQUENCES
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .answers import age_limit_ms
from .delivery import Delivery

if TYPE_CHECKING:
    from concurrent.futures import Future

    from opentelemetry.trace import Link

#: Fields entries hold one record each; Redis runs a call as one script, so a call has at most this
#: many entries, a few milliseconds of a server that does nothing else meanwhile.
MAX_CALL_ENTRIES = 128


class Call:
    """Records that are appended together: open for more, then encoded, numbered and sent."""

    __slots__ = (
        "batch",
        "created_s",
        "delivery",
        "encoding_until_s",
        "entries",
        "headers",
        "is_sending",
        "is_taken",
        "is_written",
        "keys",
        "links",
        "may_be_written",
        "queue",
        "record_count",
        "sent_under",
        "size_bytes",
        "timestamps_ms",
        "values",
        "was_sent",
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
        ] = {}  # for the records that have some
        self.size_bytes = 0  # what it takes of the buffer
        self.record_count = 0
        self.encoding_until_s = 0.0  # monotonic; whoever filled it encodes it until then
        self.is_taken = False  # by the sender, which encodes it if nobody did
        self.entries: tuple[Entry, ...] = ()  # once encoded
        self.batch: ProducedBatch | None = None  # once numbered
        self.is_sending = False  # an answer is being waited for
        self.was_sent = False  # in an earlier round, whatever came of it
        self.may_be_written = False  # an earlier round got no answer; the number stays
        self.sent_under: str | None = None  # run id of the server that did not answer first
        self.is_written = False
        self.links: Sequence[Link] = ()  # of the span that appends it

    @property
    def left_until_s(self) -> float:
        """Until when the sender leaves it to whoever filled it (monotonic)."""
        return 0.0 if self.entries else self.encoding_until_s

    def encoded(self, entries: tuple[Entry, ...], links: Sequence[Link]) -> None:
        """Takes its entries in place of its records."""
        self.links = links
        self.entries = entries
        self.keys, self.values, self.headers = [], [], {}

    def cut(self, record_count: int) -> None:
        """Takes out the records from that one on, of which some columns may have been added."""
        for column in (self.timestamps_ms, self.keys, self.values):
            del column[record_count:]
        self.headers.pop(record_count, None)
        self.record_count = record_count


class InFlight:
    """Numbers the calls of one producer on one topic-partition, in order."""

    def __init__(self, producer_id: int, max_calls: int) -> None:
        self.calls: deque[Call] = deque()  # a written one stays while an earlier one is not settled
        self._producer_id = producer_id
        self._max_calls = max_calls
        self._epoch = 0
        self._sequence = 0  # the one after the last call that was written and left
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
        """Gives a new epoch to the calls that are not numbered for good, once no other is left."""
        self._needs_epoch = True

    def is_first(self, call: Call) -> bool:
        """Whether all calls before it are written."""
        return next(self._unwritten()) is call

    def _unwritten(self) -> Iterator[Call]:
        return (call for call in self.calls if not call.is_written)

    def _number(self, call: Call, sequence: int) -> ProducedBatch:
        last = (sequence + call.record_count - 1) % MAX_SEQUENCES
        return ProducedBatch(call.entries, self._producer_id, self._epoch, sequence, last)


def _after(batch: ProducedBatch) -> int:
    return (batch.last_sequence + 1) % MAX_SEQUENCES


class PartitionQueue:
    """One topic-partition's records, in the order they were sent: open, closed, in flight."""

    def __init__(
        self,
        topic: Topic,
        topic_partition: TopicPartition,
        in_flight: InFlight,
        compression: str,
        sealing: SealedValues | None,
    ) -> None:
        self.topic_partition = topic_partition
        self.open: Call | None = None  # takes records
        self.closed: deque[Call] = deque()  # no longer does
        self.in_flight = in_flight  # encoded; the sender thread alone looks inside
        self.retry_at_s = 0.0
        self.failures = 0  # rounds without progress
        self.last_error: Exception | None = None  # since the last progress
        self.is_repaired = False
        self.is_mend_due = False  # what stops its appends could not be mended so far
        self.recovery: Future[object] | None = (
            None  # under way, or its outcome is not looked at yet
        )
        self.told_end = 0  # one past the highest offset this producer was told
        self._compression_type = compression
        self.compression = AdaptiveCompression(Compression.NONE)
        self.set_topic(topic, sealing)

    def set_topic(self, topic: Topic, sealing: SealedValues | None) -> None:
        """Goes by the topic as it is now.

        Args:
            sealing: what encrypts its values; None: they stay as they are.
        """
        config = topic.config
        # That the sender has encoded columns, and imported all that it takes: an import that is
        # interrupted, as it may be in a caller's thread, keeps its lock for ever.
        self.has_encoded = False
        self.topic = topic
        self.sealing = sealing
        self.entry_format: EntryFormat = config["lakelog.entry.format"]
        self.age_limit_ms = age_limit_ms(config)
        self.high_water_percent = config.high_water_percent
        self.enforces_columns = config.enforces_columns
        self.flatten: bool = config["lakelog.fields.flatten"]
        self.max_entry_bytes: int = config["max.message.bytes"]
        self.max_decoded_bytes: int = config["lakelog.max.decoded.bytes"]
        wanted = resolve_compression(config["compression.type"], self._compression_type)
        if wanted is not self.compression.wanted:
            self.compression = AdaptiveCompression(wanted)
        self.max_records = (
            MAX_CALL_ENTRIES if self.entry_format is EntryFormat.FIELDS else 2**31 - 1
        )

    def written(self, base_offset: int, record_count: int) -> None:
        """Takes note of where a call is in the log."""
        self.told_end = max(self.told_end, base_offset + record_count)

    def close_open(self) -> None:
        """The open call takes no more records.

        An interrupt may come between the two lines. The call is both then, takes records on, and
        is closed by the next that closes it, or that takes it out.
        """
        call = self.open
        if call is not None:
            if not self.closed or self.closed[-1] is not call:
                self.closed.append(call)
            self.open = None

    def take_due(self, now_s: float, linger_s: float) -> Call | None:
        """Takes out the oldest call if it is closed, or was open for long enough; None without one.

        One that is being encoded is not taken: those behind it have to wait, too.
        """
        if self.closed:
            if self.closed[0].left_until_s > now_s:
                return None
        elif self.open is not None and self.open.created_s + linger_s <= now_s:
            self.close_open()
        else:
            return None
        call = self.closed.popleft()
        if call is self.open:
            self.open = None
        call.is_taken = True
        return call

    def remove(self, call: Call) -> None:
        """Takes out a call that failed, wherever it is."""
        if call is self.open:
            self.open = None
        if call in self.closed:
            self.closed.remove(call)
        elif call in self.in_flight.calls:
            self.in_flight.leave(call)

    def unsettled(self) -> list[Call]:
        """The calls without an answer, oldest first."""
        calls = [call for call in self.in_flight.calls if not call.is_written]
        calls += self.closed
        if self.open is not None and self.open not in self.closed:
            calls.append(self.open)
        return calls

    def due_s(self, linger_s: float) -> float:
        """When there is something to do (monotonic; infinity: nothing)."""
        if self.recovery is not None:
            return 0.0 if self.recovery.done() else float("inf")
        if self.in_flight.calls:
            return self.retry_at_s
        if self.closed:
            return max(self.closed[0].left_until_s, self.retry_at_s)
        if self.open is not None:
            return max(self.open.created_s + linger_s, self.retry_at_s)
        return float("inf")
