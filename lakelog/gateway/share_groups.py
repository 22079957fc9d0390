"""Members of share groups, and what Kafka's tools ask about these (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias
from uuid import UUID

from ..errors import LakelogError, NonEmptyGroupError
from ..groups.admin import ShareGroupDescription
from ..groups.consumer_values import ConsumerHeartbeat, TopicIdPartition
from ..groups.group_values import GroupState
from ..groups.protocol import SHARE_PROTOCOL_TYPE
from ..groups.target_assignment import SIMPLE
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .consumer_groups import answered, by_topic
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from .protocol.primitives import ZERO_UUID
from .session import Session

_Told = ShareGroupDescribeResponse
_Offsets = DescribeShareGroupOffsetsResponse
_OffsetsOf: TypeAlias = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup


async def heartbeat(
    session: Session, request: ShareGroupHeartbeatRequest, version: int
) -> ShareGroupHeartbeatResponse:
    """A member joins, goes on or leaves, and hears which partitions it may take from: all."""
    names = request.subscribed_topic_names
    said = ConsumerHeartbeat(
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        topics=None if names is None else tuple(sorted(set(names))),
        client_id=session.client_id,
        client_host=session.client_host,
        protocol_type=SHARE_PROTOCOL_TYPE,
    )
    return await answered(session, ShareGroupHeartbeatResponse, request.group_id, said)


# -- looks -----------------------------------------------------------------------------------------


async def describe(
    session: Session, request: ShareGroupDescribeRequest, version: int
) -> ShareGroupDescribeResponse:
    """Share groups, with lakelog's own consumers as far as they hold records."""
    groups = []
    for group_id in request.group_ids:
        try:
            topics = await session.log.topics()
            found = await session.log.run(session.log.lake.share_groups.describe, group_id)
        except LakelogError as error:
            code = code_of(error, Asked.GROUP)
            groups.append(
                _Told.DescribedGroup(
                    error_code=code, error_message=error.message, group_id=group_id
                )
            )
            continue
        groups.append(_described(found, topics))
    return _Told(groups=groups)


def _described(
    group: ShareGroupDescription, topics: Mapping[str, Topic]
) -> ShareGroupDescribeResponse.DescribedGroup:
    told = _Told.DescribedGroup(group_id=group.group_id, group_state=group.state.value)
    if group.state is GroupState.DEAD:
        told.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        told.error_message = f"there is no share group {group.group_id!r}"
        return told
    told.assignor_name = SIMPLE
    members = []
    if group.joined is not None:
        told.group_epoch = group.joined.generation_id
        told.assignment_epoch = group.joined.assigned_generation_id
        members = [one.consumer for one in group.joined.members if one.consumer is not None]
    told.members = [
        _Told.Member(
            member_id=one.member_id,
            rack_id=one.rack_id,
            member_epoch=one.member_epoch,
            client_id=one.client_id,
            client_host=one.client_host,
            subscribed_topic_names=one.topics,
            assignment=_assignment(one.assigned),
        )
        for one in members
    ]
    for member_id in sorted(group.member_ids.difference(one.member_id for one in members)):
        held = [one.topic_partition for one in group.partitions if member_id in one.member_ids]
        told.members.append(
            _Told.Member(
                member_id=member_id,
                subscribed_topic_names=sorted({tp.topic for tp in held}),
                assignment=_assignment(
                    TopicIdPartition(topics[tp.topic].topic_id, tp)
                    for tp in held
                    if tp.topic in topics
                ),
            )
        )
    return told


def _assignment(partitions: Iterable[TopicIdPartition]) -> ShareGroupDescribeResponse.Assignment:
    return _Told.Assignment(
        [
            _Told.TopicPartitions(topic_id, topic, numbers)
            for (topic_id, topic), numbers in by_topic(partitions).items()
        ]
    )


async def describe_offsets(
    session: Session, request: DescribeShareGroupOffsetsRequest, version: int
) -> DescribeShareGroupOffsetsResponse:
    """Where share groups begin: below that all is done with. -1 where they never were."""
    groups = []
    for asked in request.groups:
        told = _Offsets.DescribeShareGroupOffsetsResponseGroup(asked.group_id)
        groups.append(told)
        try:
            topics = await session.log.topics()
            found = await session.log.run(session.log.lake.share_groups.describe, asked.group_id)
        except LakelogError as error:
            told.error_code = code_of(error, Asked.GROUP)
            told.error_message = error.message
            continue
        if found.state is GroupState.DEAD:
            told.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            told.error_message = f"there is no share group {asked.group_id!r}"
            continue
        told.topics = _starts(asked, found, topics)
    return _Offsets(groups=groups)


def _starts(
    asked: _OffsetsOf, group: ShareGroupDescription, topics: Mapping[str, Topic]
) -> list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]:
    starts = {
        one.topic_partition: one.start_offset for one in group.partitions if one.log_end is not None
    }
    wanted: dict[str, list[int]] = {}
    if asked.topics is None:
        for topic, number in starts:
            wanted.setdefault(topic, []).append(number)
    else:
        wanted = {one.topic_name: list(one.partitions) for one in asked.topics}
    return [
        _Offsets.DescribeShareGroupOffsetsResponseTopic(
            topic,
            _id(topics, topic),
            [
                _Offsets.DescribeShareGroupOffsetsResponsePartition(
                    number, starts.get(TopicPartition(topic, number), -1)
                )
                for number in numbers
            ],
        )
        for topic, numbers in wanted.items()
    ]


# -- changes ---------------------------------------------------------------------------------------


async def alter_offsets(
    session: Session, request: AlterShareGroupOffsetsRequest, version: int
) -> AlterShareGroupOffsetsResponse:
    """Has a share group without members begin elsewhere."""
    response = AlterShareGroupOffsetsResponse
    topics = await session.log.topics(fresh=True)
    starts: dict[TopicPartition, int] = {}
    answers = []
    for asked in request.topics:
        topic, told = topics.get(asked.topic_name), []
        for one in asked.partitions:
            answer = response.AlterShareGroupOffsetsResponsePartition(one.partition_index)
            told.append(answer)
            if topic is None or not topic.has(one.partition_index):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                starts[topic.partition(one.partition_index)] = max(0, one.start_offset)
        answers.append(
            response.AlterShareGroupOffsetsResponseTopic(
                asked.topic_name, _id(topics, asked.topic_name), told
            )
        )

    def move() -> None:
        shares = session.log.shares(request.group_id)
        is_held = bool(session.log.lake.share_groups.describe(request.group_id).member_ids)
        for tp, start in starts.items():
            if is_held or shares.move(tp, topics[tp.topic].topic_id, start) is None:
                raise NonEmptyGroupError(
                    f"share group {request.group_id!r} has members, which go by where it is now; "
                    "stop them first",
                    group_id=request.group_id,
                )

    try:
        await session.log.run(move)
    except LakelogError as error:
        session.note(f"moving share group {request.group_id!r}", error)
        return response(error_code=code_of(error, Asked.GROUP), error_message=error.message)
    return response(responses=answers)


def _id(topics: Mapping[str, Topic], name: str) -> UUID:
    return topics[name].topic_id if name in topics else ZERO_UUID
