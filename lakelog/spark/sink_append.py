"""Appending a task's calls so that whoever repeats the task appends none of them again.

A task's producer id says which task of which query it is, its epoch which micro-batch, and its
sequences count its rows. So a call that was made before, by this attempt of the task or another, is
known by its numbers:

| Redis answers                      | what holds                                                |
|------------------------------------|-----------------------------------------------------------|
| OK, perhaps as a duplicate         | it is there, and so is all before it                      |
| out of order, expected beyond it   | it was there before; Redis keeps the last five only       |
| out of order, expected before it   | the call before it did not make it yet: sent again        |
| the repeat differs                 | other rows were appended under its numbers, or how many   |
|                                    | were is not known (see `producer_calls`)                  |
| fenced                             | a later micro-batch has written                           |

Numbers alone would take other rows for the same ones, and lose them. So each call carries a
checksum over all of the task's rows for that partition up to and with it, which the append script
compares with the one that is there: rows that came in another order the first time are refused. It
is of the values in the clear, for each attempt encrypts them differently; where they are encrypted,
it is therefore itself hidden by a key of the topic's. Where a topic has values of both kinds, an
earlier attempt may have left its checksums in the other form: what is refused is asked for in that
one, too.

Runs on: executor.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from time import sleep, time

import google_crc32c
import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..base.back_off import ASK_AGAIN, BackOff, Tries
from ..codec import ProducedBatch, encode, resolve_compression
from ..codec.crc import crc32c_extended
from ..codec.encryption.of_topic import opening, sealing
from ..codec.encryption.sealed_values import SealedValues
from ..errors import (
    HotTierFullError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    NotEnoughReplicasAfterAppendError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    QuotaExceededError,
    RecoveryNeededError,
    RepeatDiffersError,
    UnknownProducerError,
    UnknownTopicOrPartitionError,
)
from ..hot import Acks, AppendCall, AppendResult, HotLog
from ..hot.throttle import throttle_time_ms
from ..ingest.answers import ExpiryWarning, age_limit_ms
from ..ingest.producer_config import ProducerConfig
from ..values.config import DATA_KEYS
from ..values.data_keys import DataKeys
from ..values.producer_calls import MAX_SEQUENCES
from ..values.record import NO_TIMESTAMP_MS, PRODUCED
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .sink_rows import Rows

logger = logging.getLogger(__name__)

#: How a call is tried again while Redis is full, away or paused: for Kafka's delivery.timeout.ms.
BACK_OFF = ASK_AGAIN.within(120.0)

#: What a call answers when the one before it, sent along with it, was not appended.
_NOT_YET = (OutOfOrderSequenceError, UnknownProducerError)

#: What passes with time, besides what says so of itself.
_MENDED = (NotEnoughReplicasAfterAppendError, UnknownTopicOrPartitionError)

_COMPRESSION = ProducerConfig().compression_type

#: Of all tasks of a process: one warning a topic, not one a task.
_EXPIRY = ExpiryWarning(lambda: int(time() * 1000))


class TaskIdentity(Struct, frozen=True):
    """What every attempt of a task has in common, and nothing else has."""

    work: str  # a query, or one batch write
    spark_partition: int
    epoch: int = 0  # the micro-batch

    @property
    def producer_id(self) -> int:
        """62 bits, as those of other producers, whose ids are random."""
        digest = hashlib.sha256(f"{self.work}/{self.spark_partition}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 2


class _Progress:
    """How far a task has come in one partition."""

    def __init__(self) -> None:
        self.sequence = 0  # of the next row
        self.crc = 0  # of all rows so far
        self.told_end = 0  # one past the highest offset that Redis told of
        self.is_confirmed = True  # that the rows which were there before are the task's


class TaskAppend:
    """Appends the rows of one attempt of a task.

    Args:
        recover: makes a partition writable whose server may have lost its tail.
        repair: completes a topic that was created only in part.
        back_off: how a call is tried again; its time begins anew when one was appended.
    """

    def __init__(
        self,
        hot: HotLog,
        identity: TaskIdentity,
        acks: Acks,
        *,
        recover: Callable[[Topic, TopicPartition, int], None],
        repair: Callable[[Topic], None],
        back_off: BackOff = BACK_OFF,
    ) -> None:
        self._hot = hot
        self._identity = identity
        self._producer_id = identity.producer_id
        self._acks = acks
        self._recover = recover
        self._repair = repair
        self._back_off = back_off
        self._topics: dict[str, Topic] = {}
        self._progress: dict[TopicPartition, _Progress] = {}
        #: Of topics with values of both kinds, what each call has its checksums of.
        self._crcs: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def number(self, calls: Iterable[Rows]) -> list[AppendCall]:
        """The calls, encoded, with the numbers that every attempt gives them.

        Raises:
            EncryptionKeyError: values are to be encrypted, and the key cannot be had here.
            LakelogError: a row that cannot be stored: too large, or with a timestamp beyond reason.
        """
        return [self._numbered(rows) for rows in calls]

    def send(self, calls: Sequence[AppendCall]) -> None:
        """Appends calls unless they were appended before; returns once all are in the log.

        Raises:
            LakelogError: why not; some of the calls may be in the log, which a repeat of the task
                finds out.
        """
        tries = Tries("appending the rows of a task", self._back_off)
        has_reserved = False  # more offsets, by the round before
        while calls:
            left, error = self._round(calls)
            if len(left) < len(calls):
                tries.renew()
                has_reserved = False
            reserves = isinstance(error, RecoveryNeededError) and error.reserved_end is not None
            if error is not None and (has_reserved or not reserves):
                tries.pause(error)
            has_reserved = reserves
            calls = left
        tries.succeeded()

    def finish(self) -> int:
        """How many rows were appended, by this attempt or an earlier one.

        Raises:
            RepeatDiffersError: an earlier attempt appended more than the rows of this one.
        """
        for topic_partition, progress in self._progress.items():
            if not progress.is_confirmed:
                raise self._differs(topic_partition, progress.sequence)
        return sum(progress.sequence for progress in self._progress.values())

    # -- how -----------------------------------------------------------------------------------

    def _numbered(self, rows: Rows) -> AppendCall:
        topic, config = rows.topic, rows.topic.config
        topic_partition = TopicPartition(topic.name, rows.partition)
        self._topics[topic.name] = topic
        progress = self._progress.setdefault(topic_partition, _Progress())
        first, end = progress.sequence, progress.sequence + rows.records.num_rows
        if end >= MAX_SEQUENCES:
            raise InvalidArgumentError(
                f"one task has more than {MAX_SEQUENCES - 1} rows for {topic_partition}; "
                "repartition the frame so that a task has fewer"
            )
        before, after = progress.crc, _extended(progress.crc, rows.records)
        values = sealing(topic)
        records = _stamped(rows.records)
        if values is not None:
            records = values.seal_records(records)
        entries = encode(
            records,
            config["lakelog.entry.format"],
            resolve_compression(config["compression.type"], _COMPRESSION),
            max_entry_bytes=config["max.message.bytes"],
            max_decoded_bytes=config["lakelog.max.decoded.bytes"],
            flatten=config["lakelog.fields.flatten"],
        )
        progress.sequence, progress.crc = end, after
        if _has_both_kinds(topic):
            self._crcs[topic_partition, first] = before, after
        batch = ProducedBatch(
            entries,
            self._producer_id,
            self._identity.epoch,
            first,
            end - 1,
            (_checksum(before, values), _checksum(after, values)),
        )
        return AppendCall(topic_partition, topic.topic_id, batch)

    def _round(self, calls: Sequence[AppendCall]) -> tuple[list[AppendCall], LakelogError | None]:
        """One round trip: the calls to send again, in order, and what to wait for before."""
        left: list[AppendCall] = []
        asked: set[TopicPartition] = set()  # once more, in another form
        held_ms = 0
        stopped: dict[TopicPartition, LakelogError] = {}
        for call, answer in zip(calls, self._hot.append_all(calls, self._acks), strict=True):
            tp = call.topic_partition
            progress = self._progress[tp]
            if isinstance(answer, AppendResult):
                end = answer.base_offset + call.batch.record_count
                progress.told_end = max(progress.told_end, end)
                progress.is_confirmed = True
                topic = self._topics[tp.topic]
                mark = topic.config.high_water_percent
                held_ms = max(held_ms, throttle_time_ms(answer.memory, mark, call.batch.size_bytes))
                _EXPIRY.look(topic, age_limit_ms(topic.config), call.batch.entries)
            elif isinstance(answer, OutOfOrderSequenceError) and self._was_appended(call, answer):
                progress.is_confirmed = False
            elif (tp in stopped or tp in asked) and isinstance(answer, _NOT_YET):
                left.append(call)
            elif (other := self._in_other_form(call, answer)) is not None:
                left.append(other)
                asked.add(tp)
            elif answer.retriable or isinstance(answer, _MENDED):
                left.append(_unanswered(call, answer))
                stopped.setdefault(tp, answer)
            else:
                raise self._explained(call, answer)
        if held_ms:  # Redis is nearly full
            sleep(held_ms / 1000)
        reasons = [self._mended(tp, error) for tp, error in stopped.items()]
        return left, reasons[0] if reasons else None

    def _in_other_form(self, call: AppendCall, answer: LakelogError) -> AppendCall | None:
        """A call that was refused, with checksums as an earlier attempt may have left them; None:
        it has come in all forms.
        """
        crcs = self._crcs.get((call.topic_partition, call.batch.first_sequence))
        if crcs is None or not isinstance(answer, RepeatDiffersError) or answer.is_cut:
            return None
        before, after = crcs
        topic = self._topics[call.topic_partition.topic]
        now = sealing(topic)
        then = opening(topic) if now is None else None
        # Behind a call of that attempt; and as one of its own. What is appended has the form that
        # the topic has now, since a checksum in the clear would tell of what is encrypted.
        forms = [(now, now), (then, now), (then, then)]
        sums = [(_checksum(before, one), _checksum(after, two)) for one, two in forms]
        asked = sums.index(call.batch.checksums or ("", ""))
        if asked + 1 == len(sums):
            return None
        return replace(call, batch=replace(call.batch, checksums=sums[asked + 1]))

    def _was_appended(self, call: AppendCall, answer: OutOfOrderSequenceError) -> bool:
        """Whether the partition is beyond a call that Redis remembers no more.

        Raises:
            RepeatDiffersError: it is at a place where this attempt makes no cut.
        """
        batch = call.batch
        if batch.first_sequence < answer.expected <= batch.last_sequence + 1:
            # Had it ended with a call like this one, Redis would have said so.
            raise self._differs(call.topic_partition, answer.expected) from answer
        return bool(answer.expected > batch.last_sequence)

    def _mended(self, tp: TopicPartition, error: LakelogError) -> LakelogError:
        """Does what a retriable error asks for, besides waiting; why to wait after that."""
        topic = self._topics[tp.topic]
        try:
            if isinstance(error, RecoveryNeededError):
                progress = self._progress[tp]
                level = logging.WARNING if error.reserved_end is None else logging.DEBUG
                logger.log(level, "%s: recovering from offset %d", tp, progress.told_end)
                self._recover(topic, tp, progress.told_end)
            elif isinstance(error, UnknownTopicOrPartitionError):
                self._repair(topic)
            elif (
                isinstance(error, HotTierFullError | QuotaExceededError) and not topic.config.tiered
            ):
                self._hot.retain(tp)
        except LakelogError as failure:
            if not failure.retriable:
                raise
            return failure
        return error

    def _explained(self, call: AppendCall, answer: LakelogError) -> LakelogError:
        tp = call.topic_partition
        match answer:
            case RepeatDiffersError(is_cut=True):
                return RepeatDiffersError(
                    f"of task {self._identity.spark_partition} of {self._identity.work} (micro-"
                    f"batch {self._identity.epoch}) an earlier attempt wrote to {tp}; then Redis "
                    "was lost, after an archive run that was told where to end, so how many of its "
                    "rows are archived is not known. Nothing was appended. Look at the end of the "
                    "topic: with the option idempotent=false this attempt appends all its rows, "
                    "also those that are there; with a new checkpoint the query goes on where you "
                    "say",
                    topic_partition=tp,
                    sequence=answer.sequence,
                    is_cut=True,
                )
            case RepeatDiffersError():
                return self._differs(tp, call.batch.first_sequence)
            case ProducerFencedError():
                return ProducerFencedError(
                    f"micro-batch {self._identity.epoch} of query {self._identity.work} writes to "
                    f"{tp} after micro-batch {answer.current_epoch} did: another run of the query "
                    "has gone on, or its checkpoint was put back. Stop this one, or begin with a "
                    "new checkpoint",
                    topic_partition=tp,
                    epoch=answer.epoch,
                    current_epoch=answer.current_epoch,
                )
            case UnknownProducerError() | OutOfOrderSequenceError():
                return UnknownProducerError(
                    f"the server of {tp} lost its tail, or may have, while task "
                    f"{self._identity.spark_partition} of {self._identity.work} was writing; the "
                    "next attempt of the task appends what was lost, and only that",
                    topic_partition=tp,
                    sequence=answer.sequence,
                )
        return answer

    def _differs(self, tp: TopicPartition, sequence: int) -> RepeatDiffersError:
        return RepeatDiffersError(
            f"task {self._identity.spark_partition} of {self._identity.work} (micro-batch "
            f"{self._identity.epoch}) appended other rows to {tp} in an earlier attempt than it "
            f"has now, before row {sequence}: their order or their values changed, or the topic "
            "got more partitions. Nothing that differs was appended. Rows that come out of a "
            "shuffle keep their order with sortWithinPartitions(…) before the write; the option "
            "idempotent=false appends all rows of this attempt, also those that are there",
            topic_partition=tp,
            sequence=sequence,
        )


def _unanswered(call: AppendCall, answer: LakelogError) -> AppendCall:
    """The call to send again; if it may be written, with the run id it was sent under."""
    if isinstance(answer, NotEnoughReplicasAfterAppendError):
        run_id: str | None = answer.result.run_id
    elif isinstance(answer, HotTierUnavailableError) and answer.sent:
        run_id = answer.run_id
    else:
        return call
    return replace(call, sent_under=call.sent_under or run_id)


def _stamped(records: pa.RecordBatch) -> pa.RecordBatch:
    """The records, those without a timestamp with the time of now."""
    times = records.column("timestamp_ms").to_numpy()
    is_missing = times == NO_TIMESTAMP_MS
    if not is_missing.any():
        return records
    now_ms = int(time() * 1000)
    stamped = pa.array(np.where(is_missing, now_ms, times))
    return pa.RecordBatch.from_arrays([stamped, *records.columns[1:]], schema=PRODUCED)


def _has_both_kinds(topic: Topic) -> bool:
    """Whether some of a topic's values may be encrypted, and others not."""
    data_keys: DataKeys | None = topic.config[DATA_KEYS]
    return data_keys is not None and (data_keys.clear or not topic.config.encrypts)


def _checksum(crc: int, values: SealedValues | None) -> str:
    """The checksum as Redis keeps it; of encrypted values it must not tell anything."""
    return f"{crc:08x}" if values is None else values.check_of(crc)


def _extended(crc: int, records: pa.RecordBatch) -> int:
    """The checksum of all rows so far, continued with these; missing timestamps do not count."""
    times, keys, values, headers = records.columns
    crc = int(google_crc32c.extend(crc, np.ascontiguousarray(times.to_numpy())))
    crc = crc32c_extended(crc32c_extended(crc, keys), values)
    items = headers.flatten()
    if len(items):
        crc = int(google_crc32c.extend(crc, headers.value_lengths().to_numpy()))
        crc = crc32c_extended(crc32c_extended(crc, items.field(0)), items.field(1))
    return crc
