"""Groups by Kafka's consumer protocol: ``group.protocol=consumer`` (KIP-848)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from ..errors import LakelogError
from ..groups.consumer_values import ConsumerHeartbeat, TopicIdPartition, spelled_owned
from ..groups.group_values import GroupDescription, MemberDescription
from ..groups.recorded_offset import GroupType
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ShareGroupHeartbeatResponse,
)
from .session import Session

_Response = TypeVar("_Response", ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse)

#: `ConsumerGroupDescribeResponse.Member.member_type`: it speaks the consumer protocol.
_CONSUMER = 1


async def heartbeat(
    session: Session, request: ConsumerGroupHeartbeatRequest, version: int
) -> ConsumerGroupHeartbeatResponse:
    """A member joins, goes on or leaves, and hears which partitions it may read."""
    member_id = request.member_id
    if version == 0 and not member_id and request.member_epoch == 0:
        member_id = str(uuid.uuid4())  # members make theirs from version 1 on (KIP-1082)
    names, owned = request.subscribed_topic_names, request.topic_partitions
    said = ConsumerHeartbeat(
        member_id=member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        topics=None if names is None else tuple(sorted(set(names))),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None
        if owned is None
        else spelled_owned({one.topic_id: one.partitions for one in owned}),
        client_id=session.client_id,
        client_host=session.client_host,
    )
    return await answered(session, ConsumerGroupHeartbeatResponse, request.group_id, said)


async def answered(
    session: Session, response: type[_Response], group_id: str, said: ConsumerHeartbeat
) -> _Response:
    """What a member of either kind of group hears after what it said."""
    try:
        await session.log.topics()
        told = await session.log.run(
            session.log.consumer_groups.heartbeat,
            group_id,
            said,
            session.log.topics_version,
        )
    except LakelogError as error:
        session.note(f"heartbeat for {said.protocol_type} group {group_id!r}", error)
        return response(error_code=code_of(error, Asked.GROUP), error_message=error.message)
    return response(
        member_id=said.member_id,
        member_epoch=told.member_epoch,
        heartbeat_interval_ms=told.heartbeat_interval_ms,
        assignment=None
        if told.partitions is None
        else response.Assignment(
            [
                response.TopicPartitions(topic_id, numbers)
                for (topic_id, _), numbers in by_topic(told.partitions).items()
            ]
        ),
    )


async def describe(
    session: Session, request: ConsumerGroupDescribeRequest, version: int
) -> ConsumerGroupDescribeResponse:
    """Groups of this kind; clients ask of others by DescribeGroups once they hear it is none."""
    told = ConsumerGroupDescribeResponse.DescribedGroup
    groups = []
    for group_id in request.group_ids:
        try:
            found = await session.log.run(session.log.lake.groups.describe, group_id)
        except LakelogError as error:
            code = code_of(error, Asked.GROUP)
            groups.append(told(error_code=code, error_message=error.message, group_id=group_id))
            continue
        if found.group_type is not GroupType.CONSUMER:
            groups.append(
                told(
                    error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                    error_message=f"group {group_id} is not a consumer group",
                    group_id=group_id,
                    group_state="Dead",
                )
            )
            continue
        groups.append(_described(found))
    return ConsumerGroupDescribeResponse(groups=groups)


def _described(group: GroupDescription) -> ConsumerGroupDescribeResponse.DescribedGroup:
    return ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.generation_id,
        assignment_epoch=group.assigned_generation_id,
        assignor_name=group.protocol_name,
        members=[_member(one) for one in group.members],
    )


def _member(described: MemberDescription) -> ConsumerGroupDescribeResponse.Member:
    one = described.consumer
    assert one is not None, "a member of a group of type consumer"
    return ConsumerGroupDescribeResponse.Member(
        member_id=one.member_id,
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        member_epoch=one.member_epoch,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=one.topics,
        subscribed_topic_regex=one.regex,
        assignment=_assignment(one.assigned),
        target_assignment=_assignment(one.target),
        member_type=_CONSUMER,
    )


def _assignment(
    partitions: Iterable[TopicIdPartition],
) -> ConsumerGroupDescribeResponse.Assignment:
    response = ConsumerGroupDescribeResponse
    return response.Assignment(
        [
            response.TopicPartitions(topic_id, topic, numbers)
            for (topic_id, topic), numbers in by_topic(partitions).items()
        ]
    )


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[tuple[UUID, str], list[int]]:
    """The numbers of partitions by id and name of their topic."""
    found: dict[tuple[UUID, str], list[int]] = {}
    for topic_id, (topic, partition) in sorted(partitions):
        found.setdefault((topic_id, topic), []).append(partition)
    return found
