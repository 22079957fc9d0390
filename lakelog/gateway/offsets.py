"""Where partitions begin and end, and which offset a time is: ListOffsets and its kin."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..errors import LakelogError
from ..hot.asynchronous import LogEnds
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

_Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


async def list_offsets(
    session: Session, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    """The offsets of times. Last offsets take one round trip for all partitions, and so do first
    ones of topics without a cold tier: in it, retention moves them.
    """
    quick: list[tuple[TopicPartition, int, _Answer]] = []
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
            elif one.timestamp == LATEST or (
                one.timestamp in (EARLIEST, EARLIEST_LOCAL) and not topic.config.tiered
            ):
                quick.append((topic.partition(one.partition_index), one.timestamp, answer))
            else:
                slow.append((topic, one.partition_index, one.timestamp, answer))
        topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(asked.name, answers))
    await asyncio.gather(_ends(session, quick), *(_of_time(session, *one) for one in slow))
    return ListOffsetsResponse(topics=topics)


async def _ends(session: Session, asked: Sequence[tuple[TopicPartition, int, _Answer]]) -> None:
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


async def _of_time(
    session: Session, topic: Topic, partition: int, timestamp_ms: int, answer: _Answer
) -> None:
    def found() -> tuple[int, int]:
        """Offset and timestamp; -1 for none."""
        log = session.log.log(topic)
        if timestamp_ms in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED):
            offsets = log.offsets([partition])[partition]
            if timestamp_ms == LATEST_TIERED:
                return (offsets.archived_end - 1 if offsets.archived_end else -1), -1
            is_first = timestamp_ms == EARLIEST
            return (offsets.log_start if is_first else offsets.local_log_start), -1
        if timestamp_ms == MAX_TIMESTAMP:
            one = log.max_timestamp(partition)
        else:
            one = log.offset_for_timestamp(partition, timestamp_ms)
        return (-1, -1) if one is None else (one.offset, one.timestamp_ms)

    if timestamp_ms < LATEST_TIERED:
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return
    try:
        answer.offset, answer.timestamp = await session.log.run(found)
    except LakelogError as error:
        answer.error_code = code_of(error, Asked.FETCH)
        session.note(f"offset of {timestamp_ms} in {topic.partition(partition)}", error)
    else:
        answer.leader_epoch = 0 if answer.offset >= 0 else -1


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
