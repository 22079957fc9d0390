"""Appending produced batches: what a call carries, what it answers, what each refusal means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow as pa
from msgspec import Struct

from ..base.text_table import counted
from ..codec import EntryId, ProducedBatch, decode, in_steps
from ..errors import (
    HotTierPausedError,
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    NotEnoughReplicasError,
    OutOfOrderSequenceError,
    PolicyViolationError,
    ProducerFencedError,
    RecordTooLargeError,
    RecoveryNeededError,
    RepeatDiffersError,
    UnknownProducerError,
    UnknownTopicIdError,
)
from ..values.config import MIB
from ..values.record import NO_TIMESTAMP_MS
from ..values.topic_partition import TopicPartition
from .declared import unknown_partition
from .server_info import MemoryUse

#: A call is one Lua script; its argument count bounds what one entry may hold (`unpack` fails at
#: 8,000 values) and how large a call may be (Redis's query buffer is 1 GiB).
MAX_ENTRY_VALUES = 7_990

#: How much of a refused call is decoded at a time, to name the records that caused the refusal.
_DECODE_STEP_BYTES = 8 * MIB


class Acks(Struct, frozen=True):
    """When an append counts as done.

    ``memory``: Redis has it. ``replicas=N``: N replicas confirmed it too. ``fsync``: it is on the
    server's disk, for which the server must run with ``appendfsync always``.
    """

    replicas: int = 0
    fsync: bool = False

    @classmethod
    def parse(cls, text: str | Acks) -> Acks:
        """Parses the text form.

        Raises:
            InvalidArgumentError: none of ``memory``, ``replicas=N``, ``fsync``.
        """
        if isinstance(text, Acks):
            return text
        if text == "memory":
            return cls()
        if text == "fsync":
            return cls(fsync=True)
        name, _, count = str(text).partition("=")
        if name == "replicas" and count.isdecimal() and int(count) > 0:
            return cls(replicas=int(count))
        raise InvalidArgumentError(
            f"acks={text!r} is not legal: write 'memory', 'replicas=N' (N ≥ 1) or 'fsync'"
        )

    def __str__(self) -> str:
        return f"replicas={self.replicas}" if self.replicas else "fsync" if self.fsync else "memory"


MEMORY = Acks()


class AppendCall(Struct, frozen=True):
    """One idempotent append; a resend is the same value with ``sent_under`` set."""

    topic_partition: TopicPartition
    topic_id: UUID
    batch: ProducedBatch
    sent_under: str | None = None  # the run it was first sent under without an answer
    # As Kafka's brokers take a batch: an unknown producer may begin at any sequence, what survives
    # a lost tail of a producer counts, and an id below 0 is no producer, of whom nothing is kept.
    is_kafka: bool = False


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Where a call's records went."""

    base_offset: int
    append_time_ms: int  # -1 under CreateTime
    log_start: int
    run_id: str  # of the server that answered
    duplicate: bool  # it had been appended before; this is the first answer
    # How full it was of late, by which calls are held back (see `throttle`); None: not known.
    memory: MemoryUse | None = field(default=None, compare=False)


class AllowanceUsedUpError(LakelogError):
    """A partition may take no more of the quotas until more is asked for; see `quotas`."""

    retriable = True

    topic_partition: TopicPartition
    held_bytes: int
    version: int
    append_bytes: int


def append_arguments(call: AppendCall, now_ms: int | None, replicas: int = 0) -> list[Any]:
    """ARGV of ``append.lua``.

    Args:
        replicas: how many must be online, or the call is refused.
    """
    batch = call.batch
    arguments: list[Any] = [
        str(call.topic_id),
        "any" if call.is_kafka else call.sent_under or "",
        "" if now_ms is None else now_ms,
        "" if call.is_kafka and batch.producer_id < 0 else batch.producer_id,
        batch.epoch,
        batch.first_sequence,
        batch.last_sequence,
        *(batch.checksums or ("", "")),
        replicas,
        len(batch.entries),
    ]
    for entry in batch.entries:
        arguments += (
            entry.record_count,
            entry.size_bytes,
            entry.decoded_bytes,
            entry.min_timestamp_ms,
            entry.max_timestamp_ms,
            -1 if entry.first_keyless is None else entry.first_keyless,
            len(entry.fields),
        )
        arguments += entry.fields
    return arguments


def check_call(call: AppendCall) -> None:
    """Refuses a call that cannot be given to the script at all.

    Raises:
        InvalidArgumentError: an entry without records, or with too many values.
    """
    for index, entry in enumerate(call.batch.entries):
        if entry.record_count < 1:
            raise InvalidArgumentError(f"entry {index} of the call has no records")
        if len(entry.fields) > MAX_ENTRY_VALUES or len(entry.fields) % 2:
            raise InvalidArgumentError(
                f"entry {index} has {len(entry.fields)} names and values; an even number of at "
                f"most {MAX_ENTRY_VALUES} fits a call"
            )


def read_answer(
    call: AppendCall, answer: Sequence[Any], run_id: str, memory: MemoryUse | None = None
) -> AppendResult:
    """The script's answer as a result.

    Args:
        memory: see `AppendResult`.

    Raises:
        LakelogError: the call was refused, and nothing was written; the class says why.
    """
    status = answer[0].decode("latin-1") if isinstance(answer[0], bytes) else answer[0]
    if status == "OK":
        base_offset, append_time_ms, log_start, duplicate = answer[1:5]
        return AppendResult(base_offset, append_time_ms, log_start, run_id, bool(duplicate), memory)
    raise _refusal(status, call, [_value(value) for value in answer[1:]])


def _refusal(status: str, call: AppendCall, details: list[Any]) -> LakelogError:
    tp, batch = call.topic_partition, call.batch
    match status:
        case "UNKNOWN_TOPIC_OR_PARTITION":
            return unknown_partition(tp)
        case "UNKNOWN_TOPIC_ID":
            return UnknownTopicIdError(
                f"topic {tp.topic!r} was deleted and created again since it was looked up "
                f"(id {call.topic_id} then, {details[0]} now); look it up again",
                topic=tp.topic,
                topic_id=call.topic_id,
            )
        case "RECOVERY_NEEDED":
            return recovery_needed(tp)
        case "RESERVED_USED_UP":
            return RecoveryNeededError(
                f"{tp} ends at {details[0]}, and its offsets are reserved up to {details[1]}: too "
                "few for the call. Whoever reaches the cold tier reserves more, such as a producer "
                "that does or `lakelog archive`; nothing of the call was written",
                topic_partition=tp,
                log_end=details[0],
                reserved_end=details[1],
            )
        case "ALLOWANCE_USED_UP":
            return AllowanceUsedUpError(
                f"what {tp} may take of the keyspace's quotas is used up; nothing was written",
                topic_partition=tp,
                held_bytes=details[0],
                version=details[1],
                append_bytes=details[2],
            )
        case "FULL_OF_OFFSETS":
            return PolicyViolationError(
                f"{counted(batch.record_count, 'record')} cannot be appended to {tp}: it ends at "
                f"offset {details[0]}, and offsets end below 2^53. Nothing of the call was "
                f"written. Write to another topic, or delete this one and create it again",
                topic_partition=tp,
                log_end=details[0],
            )
        case "NOT_ENOUGH_REPLICAS":
            return NotEnoughReplicasError(
                f"{details[1]} replicas were asked to confirm an append to {tp}, and the server "
                f"has {details[0]} online; nothing was written. Bring the replicas back, or ask "
                "for fewer (acks='memory' asks for none)",
                topic_partition=tp,
                replicas=details[0],
            )
        case "PAUSED":
            return HotTierPausedError(
                f"{tp} is paused for a planned stop of Redis; appends go on after "
                "`lakelog hot resume`",
                topic_partition=tp,
            )
        case "FENCED":
            return ProducerFencedError(
                f"producer {batch.producer_id} epoch {batch.epoch} on {tp} was fenced: epoch "
                f"{details[0]} has written since; make a new producer",
                topic_partition=tp,
                epoch=batch.epoch,
                current_epoch=details[0],
            )
        case "OUT_OF_ORDER":
            return OutOfOrderSequenceError(
                f"sequence {batch.first_sequence} of producer {batch.producer_id} on {tp} is not "
                f"the next one, {details[0]}; an earlier call is missing",
                topic_partition=tp,
                sequence=batch.first_sequence,
                expected=details[0],
            )
        case "OTHER_RECORDS":
            return RepeatDiffersError(
                f"up to sequence {batch.last_sequence} of producer {batch.producer_id} epoch "
                f"{batch.epoch}, {tp} holds other records than the ones sent now; nothing of the "
                "call was written",
                topic_partition=tp,
                sequence=batch.first_sequence,
            )
        case "CUT":
            return RepeatDiffersError(
                f"producer {batch.producer_id} epoch {batch.epoch} was cut on {tp}: Redis was lost "
                "after an archive run that was told where to end, and how much of its work is "
                "archived is not known. Nothing of the call was written",
                topic_partition=tp,
                sequence=batch.first_sequence,
                is_cut=True,
            )
        case "UNKNOWN_PRODUCER":
            return UnknownProducerError(
                f"{details[0]}, so on {tp} sequence {batch.first_sequence} of producer "
                f"{batch.producer_id} cannot be told from one that was appended before; start a "
                "new epoch for what was never sent, and look in the log for what was",
                topic_partition=tp,
                sequence=batch.first_sequence,
            )
        case "INVALID_TIMESTAMP":
            entry, record = details[4:]
            error = _invalid_timestamp(call, *map(int, details[1:4]))
            if entry >= 0:  # of one record its key counts, of several their timestamps
                has_key = [one for part in _columns(batch, "key") for one in part.is_valid()]
                if not any(has_key[index].as_py() for index, *_ in error.record_errors):
                    return _keyless(call, entry, record)
            return error
        case "KEYLESS":
            return _keyless(call, *details)
        case "TOO_LARGE":
            entry, size_bytes, setting, limit_bytes = details
            index = _records_before(batch, entry)
            return RecordTooLargeError(
                f"an entry of {size_bytes} bytes (records {index} and on) exceeds "
                f"{setting}={limit_bytes} of topic {tp.topic!r}; send smaller records or batches, "
                "or raise the setting",
                topic_partition=tp,
                index=index,
                size_bytes=size_bytes,
                limit_bytes=limit_bytes,
            )
        case _:
            return LakelogError(f"the append to {tp} was refused: {status} {details}")


def _keyless(call: AppendCall, entry: int, record: int) -> InvalidRecordError:
    tp = call.topic_partition
    index = _records_before(call.batch, entry) + record
    return InvalidRecordError(
        f"record {index} of the call has no key, which topic {tp.topic!r} needs because it is "
        "compacted; nothing of the call was written",
        topic_partition=tp,
        index=index,
    )


def recovery_needed(tp: TopicPartition) -> RecoveryNeededError:
    return RecoveryNeededError(
        f"the Redis server restarted or failed over since {tp} was last written, so its newest "
        "records may be lost; producers and archivers settle this by recover()",
        topic_partition=tp,
    )


def _invalid_timestamp(
    call: AppendCall, now_ms: int, before_max_ms: int, after_max_ms: int
) -> InvalidTimestampError:
    tp = call.topic_partition
    errors = []
    times_us = (one for part in _columns(call.batch, "timestamp") for one in part.cast("int64"))
    for index, timestamp_ms in enumerate(one.as_py() // 1000 for one in times_us):
        for late_ms, limit_ms, word in (
            (timestamp_ms - now_ms, after_max_ms, "after"),
            (now_ms - timestamp_ms, before_max_ms, "before"),
        ):
            if timestamp_ms != NO_TIMESTAMP_MS and late_ms > limit_ms:
                reason = f"{late_ms} ms {word} Redis's clock"
                errors.append((index, timestamp_ms, reason))
                setting = f"message.timestamp.{word}.max.ms={limit_ms}"
    index, timestamp_ms, reason = errors[-1]
    return InvalidTimestampError(
        f"{len(errors)} of {counted(call.batch.record_count, 'record')} of the call "
        f"{'has' if len(errors) == 1 else 'have'} a timestamp out of bounds, such as record "
        f"{index} with {timestamp_ms}: {reason}, more than {setting} of "
        f"topic {tp.topic!r} allows. Nothing of the call was written",
        topic_partition=tp,
        record_errors=errors,
        now_ms=now_ms,
        before_max_ms=before_max_ms,
        after_max_ms=after_max_ms,
    )


def _columns(batch: ProducedBatch, name: str) -> Iterator[pa.Array]:
    """A column of the records, from the entries that were about to be appended."""
    ids, end = [], 0
    for entry in batch.entries:
        end += entry.record_count
        ids.append(EntryId(end - 1, entry.record_count))
    entries = ((i, entry.fields) for i, entry in zip(ids, batch.entries, strict=True))
    return (decode(step).column(name) for step in in_steps(entries, _DECODE_STEP_BYTES))


def _records_before(batch: ProducedBatch, entry: int) -> int:
    return sum(earlier.record_count for earlier in batch.entries[:entry])


def _value(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
