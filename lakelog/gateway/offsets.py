"""Where partitions begin and end, and which offset a time is: ListOffsets and its kin."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from ..errors import LakelogError
from ..hot.asynchronous import LogEnds
from ..values.record import OffsetAndTimestamp
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from .session import Session

#: Kafka's special times.
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5

_FIRST = (EARLIEST, EARLIEST_LOCAL)

_Answer: TypeAlias = ListOffsetsResponse.ListOffsetsPartitionResponse
_Asked: TypeAlias = tuple[TopicPartition, int, _Answer]  # with the special time


async def list_offsets(
    session: Session, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """The offsets of times. Last offsets take one round trip for all partitions, and so do first
    ones of topics without a cold tier. In it retention moves them: it is asked once for a topic.
    """
    quick: list[_Asked] = []
    tiered: dict[str, tuple[Topic, list[_Asked]]] = {}
    slow: list[tuple[Topic, int, int, _Answer]] = []
    topics = []
    for asked in request.topics:
        topic = await session.log.topic(asked.name)
        answers = []
        for one in asked.partitions:
            answer = _Answer(partition_index=one.partition_index)
            answers.append(answer)
            if topic is None or not topic.has(one.partition_index):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            tp, special = topic.partition(one.partition_index), one.timestamp
            if special == LATEST or (special in _FIRST and not topic.config.tiered):
                quick.append((tp, special, answer))
            elif special in _FIRST or special == LATEST_TIERED:
                tiered.setdefault(asked.name, (topic, []))[1].append((tp, special, answer))
            else:
                slow.append((topic, one.partition_index, special, answer))
        topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(asked.name, answers))
    await asyncio.gather(
        _ends(session, quick),
        *(_of_tiers(session, *one) for one in tiered.values()),
        *(_of_time(session, *one) for one in slow),
    )
    return ListOffsetsResponse(topics=topics)


async def _ends(session: Session, asked: Sequence[_Asked]) -> None:
    found = await session.log.hot.ends([tp for tp, _, _ in asked])
    for (tp, special, answer), ends in zip(asked, found, strict=True):
        if isinstance(ends, LogEnds):
            # A log that lost its tail goes on above all that clients were told.
            log_end = max(ends.log_end, session.log.told_end(tp))
            answer.offset = {
                LATEST: log_end,
                EARLIEST: ends.log_start,
                EARLIEST_LOCAL: ends.local_log_start,
            }[special]
            answer.leader_epoch = 0
        else:
            answer.error_code = code_of(ends, Asked.FETCH)
            session.note(f"offsets of {tp}", ends)


async def _of_tiers(session: Session, topic: Topic, asked: Sequence[_Asked]) -> None:
    wanted = {tp.partition for tp, _, _ in asked}
    try:
        found = await session.log.run(lambda: session.log.log(topic).offsets(wanted))
    except LakelogError as error:
        session.note(f"offsets of {topic.name!r}", error)
        for _, _, answer in asked:
            answer.error_code = code_of(error, Asked.FETCH)
        return
    for tp, special, answer in asked:
        offsets = found[tp.partition]
        answer.offset = {
            EARLIEST: offsets.log_start,
            EARLIEST_LOCAL: offsets.local_log_start,
            LATEST_TIERED: offsets.archived_end - 1 if offsets.archived_end else -1,
        }[special]
        answer.leader_epoch = 0 if answer.offset >= 0 else -1


async def _of_time(
    session: Session, topic: Topic, partition: int, timestamp_ms: int, answer: _Answer
) -> None:
    def found() -> OffsetAndTimestamp | None:
        log = session.log.log(topic)
        if timestamp_ms == MAX_TIMESTAMP:
            return log.max_timestamp(partition)
        return log.offset_for_timestamp(partition, timestamp_ms)

    if timestamp_ms < LATEST_TIERED:
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return
    try:
        one = await session.log.run(found)
    except LakelogError as error:
        answer.error_code = code_of(error, Asked.FETCH)
        session.note(f"offset of {timestamp_ms} in {topic.partition(partition)}", error)
        return
    if one is not None:
        answer.offset, answer.timestamp, answer.leader_epoch = one.offset, one.timestamp_ms, 0


async def offset_for_leader_epoch(
    session: Session, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    """The end of the one epoch that there is: the log end."""
    topics = []
    for asked in request.topics:
        topic = await session.log.topic(asked.topic)
        ends: list[OffsetForLeaderEpochResponse.EpochEndOffset] = []
        for one in asked.partitions:
            end = OffsetForLeaderEpochResponse.EpochEndOffset(
                partition=one.partition, leader_epoch=0
            )
            ends.append(end)
            if topic is None or not topic.has(one.partition):
                end.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            tp = topic.partition(one.partition)
            (found,) = await session.log.hot.ends([tp])
            if isinstance(found, LogEnds):
                end.end_offset = max(found.log_end, session.log.told_end(tp))
            else:
                end.error_code = code_of(found, Asked.FETCH)
        topics.append(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(asked.topic, ends))
    return OffsetForLeaderEpochResponse(topics=topics)
