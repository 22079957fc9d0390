"""Appending produced batches: what a call carries, what it answers, what each refusal means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ..codec import ProducedBatch
from ..errors import (
    HotTierPausedError,
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordTooLargeError,
    RecoveryNeededError,
    UnknownProducerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..record import TopicPartition

#: A call is one Lua script; its argument count bounds what one entry may hold (`unpack` fails at
#: 8,000 values) and how large a call may be (Redis's query buffer is 1 GiB).
MAX_ENTRY_VALUES = 7_990


@dataclass(frozen=True, slots=True)
class Acks:
    """When an append counts as done.

    ``memory``: Redis has it. ``replicas=N``: N replicas confirmed it too. ``fsync``: it is on the
    server's disk, for which the server must run with ``appendfsync always``.
    """

    replicas: int = 0
    fsync: bool = False

    @classmethod
    def parse(cls, text: str | Acks) -> Acks:
        """From its text form.

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


@dataclass(frozen=True, slots=True)
class AppendCall:
    """One idempotent append; a resend is the same value with ``sent_under`` set."""

    topic_partition: TopicPartition
    topic_id: UUID
    batch: ProducedBatch
    sent_under: str | None = None  # run id it was first sent under without an answer


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Where a call's records went."""

    base_offset: int
    append_time_ms: int  # -1 under CreateTime
    log_start: int
    run_id: str  # of the server that answered
    duplicate: bool  # it had been appended before; this is the first answer


def append_arguments(call: AppendCall, now_ms: int | None) -> list[Any]:
    """ARGV of ``append.lua``."""
    batch = call.batch
    arguments: list[Any] = [
        str(call.topic_id),
        call.sent_under or "",
        "" if now_ms is None else now_ms,
        batch.producer_id,
        batch.epoch,
        batch.first_sequence,
        batch.last_sequence,
        len(batch.entries),
    ]
    for entry in batch.entries:
        arguments += (
            entry.record_count,
            entry.size_bytes,
            entry.min_timestamp_ms,
            entry.max_timestamp_ms,
            -1 if entry.first_keyless is None else entry.first_keyless,
            len(entry.fields),
        )
        arguments += entry.fields
    return arguments


def check_call(call: AppendCall) -> None:
    """Refuses what the script could not even be given.

    Raises:
        InvalidArgumentError: no entry, or one with too many values.
    """
    if not call.batch.entries:
        raise InvalidArgumentError("an append call needs at least one entry")
    for index, entry in enumerate(call.batch.entries):
        if len(entry.fields) > MAX_ENTRY_VALUES or len(entry.fields) % 2:
            raise InvalidArgumentError(
                f"entry {index} has {len(entry.fields)} names and values; an even number of at "
                f"most {MAX_ENTRY_VALUES} fits a call"
            )


def read_answer(call: AppendCall, answer: Sequence[Any], run_id: str) -> AppendResult:
    """The script's answer as a result.

    Raises:
        LakelogError: of the class that fits the refusal; nothing was written.
    """
    status = answer[0].decode() if isinstance(answer[0], bytes) else answer[0]
    if status == "OK":
        base_offset, append_time_ms, log_start, duplicate = answer[1:5]
        return AppendResult(base_offset, append_time_ms, log_start, run_id, bool(duplicate))
    raise _refusal(status, call, [_value(value) for value in answer[1:]])


def _refusal(status: str, call: AppendCall, details: list[Any]) -> LakelogError:
    tp, batch = call.topic_partition, call.batch
    match status:
        case "UNKNOWN_TOPIC_OR_PARTITION":
            return UnknownTopicOrPartitionError(
                f"{tp} is not in the hot tier; create the topic, or run `lakelog topics apply` "
                "if its creation was cut short",
                topic=tp.topic,
                partition=tp.partition,
            )
        case "UNKNOWN_TOPIC_ID":
            return UnknownTopicIdError(
                f"topic {tp.topic!r} was deleted and created again since it was looked up "
                f"(id {call.topic_id} then, {details[0]} now); look it up again",
                topic=tp.topic,
                topic_id=call.topic_id,
            )
        case "RECOVERY_NEEDED":
            return recovery_needed(tp)
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
        case "UNKNOWN_PRODUCER":
            return UnknownProducerError(
                f"{details[0]}, so on {tp} sequence {batch.first_sequence} of producer "
                f"{batch.producer_id} cannot be told from one that was appended before; start a "
                "new epoch for what was never sent, and look in the log for what was",
                topic_partition=tp,
                sequence=batch.first_sequence,
            )
        case "INVALID_TIMESTAMP":
            return _invalid_timestamp(call, *map(int, details))
        case "KEYLESS":
            index = _records_before(batch, details[0]) + details[1]
            return InvalidRecordError(
                f"record {index} of the call has no key, which topic {tp.topic!r} needs because "
                "it is compacted; nothing of the call was written",
                topic_partition=tp,
                index=index,
            )
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


def recovery_needed(tp: TopicPartition) -> RecoveryNeededError:
    return RecoveryNeededError(
        f"the Redis server restarted or failed over since {tp} was last written, so its newest "
        "records may be lost; producers and archivers settle this by recover()",
        topic_partition=tp,
    )


def _invalid_timestamp(
    call: AppendCall, entry: int, now_ms: int, before_max_ms: int, after_max_ms: int
) -> InvalidTimestampError:
    tp, stored = call.topic_partition, call.batch.entries[entry]
    index = _records_before(call.batch, entry)
    late = stored.max_timestamp_ms - now_ms > after_max_ms
    timestamp_ms = stored.max_timestamp_ms if late else stored.min_timestamp_ms
    setting = f"message.timestamp.{'after' if late else 'before'}.max.ms"
    return InvalidTimestampError(
        f"timestamp {timestamp_ms} among records {index}..{index + stored.record_count - 1} of "
        f"the call lies {abs(timestamp_ms - now_ms)} ms {'after' if late else 'before'} Redis's "
        f"clock, more than {setting}={after_max_ms if late else before_max_ms} of topic "
        f"{tp.topic!r} allows; nothing of the call was written",
        topic_partition=tp,
        entry=entry,
        now_ms=now_ms,
        before_max_ms=before_max_ms,
        after_max_ms=after_max_ms,
    )


def _records_before(batch: ProducedBatch, entry: int) -> int:
    return sum(earlier.record_count for earlier in batch.entries[:entry])


def _value(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
