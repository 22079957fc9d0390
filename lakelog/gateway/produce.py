"""Produce: record batches into the log, as they are where the topic's entries are Kafka's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from ..codec import Entry, EntryId, ProducedBatch, encode, resolve_compression
from ..codec.encryption.of_topic import sealed
from ..codec.enforced_columns import check_values
from ..codec.kafka_batch import BatchHeader
from ..codec.kafka_entry import decode_batches, kafka_entry, open_batch
from ..errors import (
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    RecordTooLargeError,
    RecoveryNeededError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
)
from ..hot import AppendCall, AppendResult
from ..hot.throttle import throttle_time_ms
from ..values.config import KIB, EntryFormat
from ..values.producer_calls import MAX_SEQUENCES
from ..values.topic import Topic
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import ProduceRequest, ProduceResponse
from .session import Session

Partition = ProduceResponse.PartitionProduceResponse

#: A batch that must be taken apart is, by a thread, if it is larger.
_LARGE_BYTES = 64 * KIB
_LEAST_TIMEOUT_S = 1.0


@dataclass(slots=True)
class _Append:
    """A batch on its way."""

    answer: Partition
    topic: Topic
    call: AppendCall
    throttle_ms: int = 0  # for which its producer is to send nothing more


async def produce(
    session: Session, requests: Sequence[tuple[ProduceRequest, int]]
) -> list[ProduceResponse]:
    """Answers requests of one connection that follow each other, in one round trip.

    Args:
        requests: each with its version.

    Returns:
        The responses. The last one says for how long the client is to be held back.
    """
    responses: list[ProduceResponse] = []
    appends: list[_Append] = []
    for request, _ in requests:
        topics = []
        for topic_data in request.topic_data:
            answers = []
            for data in topic_data.partition_data:
                answer = Partition(index=data.index, base_offset=-1)
                answers.append(answer)
                try:
                    topic = await _topic(session, topic_data.name, data.index)
                    if topic is None or request.transactional_id is not None:
                        _refuse_transaction(request, answer)
                        continue
                    batch = b"" if data.records is None else bytes(data.records)
                    call = await _call(session, topic, data.index, batch)
                    appends.append(_Append(answer, topic, call))
                except LakelogError as error:
                    _refuse(session, answer, error, f"{topic_data.name}-{data.index}")
            topics.append(
                ProduceResponse.TopicProduceResponse(
                    name=topic_data.name, partition_responses=answers
                )
            )
        responses.append(ProduceResponse(responses=topics))
    if appends:
        timeout_s = max(request.timeout_ms for request, _ in requests) / 1000
        await _append(session, appends, max(_LEAST_TIMEOUT_S, timeout_s))
        responses[-1].throttle_time_ms = max(one.throttle_ms for one in appends)
    return responses


async def _topic(session: Session, name: str, partition: int) -> Topic | None:
    topic = (await session.log.topics()).get(name)
    if topic is None or not topic.has(partition):
        topic = (await session.log.topics(fresh=True)).get(name)
    return topic if topic is not None and topic.has(partition) else None


def _refuse_transaction(request: ProduceRequest, answer: Partition) -> None:
    if request.transactional_id is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return
    answer.error_code = ErrorCode.INVALID_REQUEST
    answer.error_message = "there are no transactions in lakelog; produce without transactional.id"


async def _call(session: Session, topic: Topic, partition: int, batch: bytes) -> AppendCall:
    """The append of a batch, after it was checked.

    Raises:
        LakelogError: it cannot be stored.
    """
    config = topic.config
    is_kept = config["lakelog.entry.format"] is EntryFormat.KAFKA and not config.encrypts
    if is_kept and not config.enforces_columns:
        entries: tuple[Entry, ...] = (kafka_entry(batch, config["lakelog.max.decoded.bytes"]),)
    elif len(batch) > _LARGE_BYTES:
        entries = await session.log.run(_transcoded, topic, batch)
    else:
        entries = _transcoded(topic, batch)
    header = BatchHeader.parse(batch)
    first = max(0, header.base_sequence)
    produced = ProducedBatch(
        entries,
        header.producer_id,
        max(0, header.producer_epoch),
        first,
        (first + header.record_count - 1) % MAX_SEQUENCES,
    )
    tp = topic.partition(partition)
    return AppendCall(tp, topic.topic_id, produced, is_kafka=True)


def _transcoded(topic: Topic, batch: bytes) -> tuple[Entry, ...]:
    """The records of a batch, once they were checked, as entries of the topic's own format."""
    config = topic.config
    entry = kafka_entry(batch, config["lakelog.max.decoded.bytes"])
    entry_id = EntryId(entry.record_count - 1, entry.record_count)
    opened = decode_batches([open_batch(entry_id, entry.fields)[0]])
    if config.enforces_columns:
        check_values(pa.chunked_array([one["value"] for one in opened]), config)
        if config["lakelog.entry.format"] is EntryFormat.KAFKA:
            return (entry,)
    compression = resolve_compression(config["compression.type"], "none")
    return tuple(
        one
        for records in opened
        for one in encode(
            sealed(topic, records),
            config["lakelog.entry.format"],
            compression,
            max_entry_bytes=config["max.message.bytes"],
            max_decoded_bytes=config["lakelog.max.decoded.bytes"],
            flatten=config["lakelog.fields.flatten"],
        )
    )


async def _append(session: Session, appends: Sequence[_Append], timeout_s: float) -> None:
    """Appends batches, and settles partitions whose server may have lost its tail."""
    deadline_s = time.monotonic() + timeout_s
    left = list(appends)
    while left:
        answers = await session.log.hot.append_all([one.call for one in left])
        again: list[_Append] = []
        throttled: list[tuple[_Append, float]] = []
        for one, answer in zip(left, answers, strict=True):
            if isinstance(answer, AppendResult):
                _accept(session, one, answer)
            elif isinstance(answer, RecoveryNeededError):
                again.append(one)
            elif isinstance(answer, ThrottlingQuotaExceededError) and time.monotonic() < deadline_s:
                throttled.append((one, answer.throttle_time_ms / 1000))
            else:
                _refuse(session, one.answer, answer, str(one.call.topic_partition))
            if isinstance(answer, UnknownTopicIdError):
                await session.log.topics(fresh=True)
        left = await _recovered(session, again, deadline_s) if again else []
        if throttled:  # no client sends again what a broker refuses for this
            pause_s = min(pause_s for _, pause_s in throttled)
            await asyncio.sleep(max(0.0, min(pause_s, deadline_s - time.monotonic())))
            left += [one for one, _ in throttled]


async def _recovered(
    session: Session, appends: Sequence[_Append], deadline_s: float
) -> list[_Append]:
    """Those of the appends whose partitions were recovered in time; the others are answered."""
    found: dict[str, list[_Append]] = {}
    for one in appends:
        found.setdefault(str(one.call.topic_partition), []).append(one)

    async def recover(own: list[_Append]) -> list[_Append]:
        topic, tp = own[0].topic, own[0].call.topic_partition
        try:
            left_s = max(0.0, deadline_s - time.monotonic())
            await session.log.recover(topic, tp.partition, left_s)
        except asyncio.TimeoutError:
            for one in own:
                one.answer.error_code = ErrorCode.REQUEST_TIMED_OUT
                one.answer.error_message = f"{tp} is being recovered; send it again"
            return []
        except LakelogError as error:
            for one in own:
                _refuse(session, one.answer, error, str(tp))
            return []
        return own

    done = await asyncio.gather(*(recover(own) for own in found.values()))
    settled = {id(one) for one in chain.from_iterable(done)}
    return [one for one in appends if id(one) in settled]


def _accept(session: Session, one: _Append, result: AppendResult) -> None:
    answer = one.answer
    answer.base_offset = result.base_offset
    answer.log_append_time_ms = result.append_time_ms
    answer.log_start_offset = result.log_start
    mark, size_bytes = one.topic.config.high_water_percent, one.call.batch.size_bytes
    one.throttle_ms = throttle_time_ms(result.memory, mark, size_bytes)
    end = result.base_offset + one.call.batch.record_count
    session.log.told(one.call.topic_partition, end)


def _refuse(session: Session, answer: Partition, error: LakelogError, where: str) -> None:
    answer.error_code = code_of(error, Asked.PRODUCE)
    answer.error_message = error.message
    if isinstance(error, InvalidTimestampError):
        answer.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(index, why)
            for index, _, why in error.record_errors
        ]
    elif isinstance(error, (InvalidRecordError, RecordTooLargeError)) and error.index is not None:
        answer.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(error.index, error.message)
        ]
    session.note(f"produce to {where}", error)
