"""Groups by Kafka's classic protocol, which lakelog's own consumers speak, and offsets of any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec.structs import replace

from ..errors import LakelogError, MemberIdRequiredError
from ..groups.group_values import (
    GroupDescription,
    GroupState,
    Joined,
    JoinRequest,
    Leaving,
    Pending,
    Synced,
)
from ..groups.recorded_offset import GroupType
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from .session import Session

T = TypeVar("T")

#: What is told where nothing was committed.
_NONE = OffsetAndMetadata(-1)

#: A member that waits for others looks again at least so often.
_WAIT_MS = 3_000


async def join_group(
    session: Session, request: JoinGroupRequest, version: int
) -> JoinGroupResponse:
    """Answers once the round of joining is over."""
    groups = session.log.groups
    asked = JoinRequest(
        tuple((one.name, bytes(one.metadata)) for one in request.protocols),
        request.session_timeout_ms,
        request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
        request.member_id,
        request.group_instance_id,
        session.client_id,
        session.client_host,
        request.protocol_type,
        requires_known_member_id=version >= 4,
    )

    def refused(error: LakelogError, member_id: str) -> JoinGroupResponse:
        return JoinGroupResponse(
            error_code=code_of(error, Asked.GROUP),
            generation_id=-1,
            protocol_name=None if version >= 7 else "",
            member_id=member_id,
        )

    try:
        answer = await session.log.run(groups.try_join, request.group_id, asked)
        joined = await _settled(
            session,
            request.group_id,
            answer,
            lambda pending: groups.await_join(
                request.group_id, replace(asked, member_id=pending.member_id)
            ),
            request.session_timeout_ms // 3,
        )
    except MemberIdRequiredError as error:
        return refused(error, error.member_id)
    except LakelogError as error:
        session.note(f"join of group {request.group_id!r}", error)
        return refused(error, request.member_id)
    return JoinGroupResponse(
        generation_id=joined.generation_id,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        leader=joined.leader_id,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(one.member_id, one.instance_id, one.metadata)
            for one in joined.members
        ],
    )


async def _settled(
    session: Session,
    group_id: str,
    answer: T | Pending,
    ask: Callable[[Pending], T | Pending],
    most_ms: int,
) -> T:
    """The answer once others have come, asked for again when the group has news."""
    most_ms = max(1, min(most_ms, _WAIT_MS))
    while isinstance(answer, Pending):
        pending = answer
        due_s = min(pending.due_in_ms, most_ms) / 1000
        await session.log.hot.wait_for_group(group_id, pending.version, max(0.001, due_s))
        answer = await session.log.run(ask, pending)
    return answer


async def sync_group(
    session: Session, request: SyncGroupRequest, version: int
) -> SyncGroupResponse:
    """Answers once the leader has assigned."""
    groups = session.log.groups
    joined = Joined(
        request.generation_id,
        (request.protocol_type or "") if version >= 5 else "",
        (request.protocol_name or "") if version >= 5 else "",
        "",
        request.member_id,
    )
    assignments = {one.member_id: bytes(one.assignment) for one in request.assignments}

    def ask(_: Pending | None = None) -> Synced | Pending:
        return groups.try_sync(
            request.group_id, joined, assignments, instance_id=request.group_instance_id
        )

    try:
        answer = await session.log.run(ask)
        synced = await _settled(session, request.group_id, answer, ask, _WAIT_MS)
    except LakelogError as error:
        return SyncGroupResponse(error_code=code_of(error, Asked.GROUP))
    return SyncGroupResponse(
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )


async def heartbeat(session: Session, request: HeartbeatRequest, version: int) -> HeartbeatResponse:
    """The member is alive."""
    try:
        await session.log.run(
            session.log.groups.heartbeat,
            request.group_id,
            request.member_id,
            request.generation_id,
            request.group_instance_id,
        )
    except LakelogError as error:
        return HeartbeatResponse(error_code=code_of(error, Asked.GROUP))
    return HeartbeatResponse()


async def leave_group(
    session: Session, request: LeaveGroupRequest, version: int
) -> LeaveGroupResponse:
    """Ends memberships."""
    leaving = (
        [Leaving(one.member_id, one.group_instance_id) for one in request.members]
        if version >= 3
        else [Leaving(request.member_id)]
    )
    try:
        found = await session.log.run(session.log.groups.leave, request.group_id, leaving)
    except LakelogError as error:
        return LeaveGroupResponse(error_code=code_of(error, Asked.GROUP))
    refusals = [found[one] for one in leaving]
    codes = [ErrorCode.NONE if one is None else code_of(one, Asked.GROUP) for one in refusals]
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE if version >= 3 else codes[0],
        members=[
            LeaveGroupResponse.MemberResponse(one.member_id, one.instance_id, code)
            for one, code in zip(leaving, codes, strict=True)
        ],
    )


# -- offsets ---------------------------------------------------------------------------------------


async def offset_commit(
    session: Session, request: OffsetCommitRequest, version: int
) -> OffsetCommitResponse:
    """Stores how far the group has come: of all partitions that there are, or of none.

    An offset below 0 says that nothing is committed: brokers keep it, and all clients read it so.
    """
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    answers: list[OffsetCommitResponse.OffsetCommitResponsePartition] = []
    topic_ids = {}
    topics = []
    for asked in request.topics:
        topic = await session.log.topic(asked.name)
        told = []
        for one in asked.partitions:
            answer = OffsetCommitResponse.OffsetCommitResponsePartition(one.partition_index)
            told.append(answer)
            if topic is None or not topic.has(one.partition_index):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            topic_ids[topic.name] = topic.topic_id
            committed = None
            if one.committed_offset >= 0:
                committed = OffsetAndMetadata(
                    one.committed_offset, one.committed_metadata or "", one.committed_leader_epoch
                )
            offsets[topic.partition(one.partition_index)] = committed
            answers.append(answer)
        topics.append(OffsetCommitResponse.OffsetCommitResponseTopic(asked.name, told))
    if offsets:
        try:
            await session.log.run(
                session.log.groups.commit,
                request.group_id,
                offsets,
                member_id=request.member_id,
                generation_id=request.generation_id_or_member_epoch,
                instance_id=request.group_instance_id,
                topic_ids=topic_ids,
            )
        except LakelogError as error:
            session.note(f"commit of group {request.group_id!r}", error)
            for answer in answers:
                answer.error_code = code_of(error, Asked.GROUP)
    return OffsetCommitResponse(topics=topics)


async def offset_fetch(
    session: Session, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    """What groups have committed; -1 where that is nothing."""
    told = OffsetFetchResponse
    if version >= 8:
        groups = []
        for asked in request.groups:
            group = told.OffsetFetchResponseGroup(group_id=asked.group_id)
            groups.append(group)
            try:
                found = await _committed(
                    session, asked.group_id, asked.topics, asked.member_id, asked.member_epoch
                )
            except LakelogError as error:
                group.error_code = code_of(error, Asked.GROUP)
                continue
            group.topics = [
                told.OffsetFetchResponseTopics(
                    name, [told.OffsetFetchResponsePartitions(*_of(one)) for one in own.items()]
                )
                for name, own in found.items()
            ]
        return told(groups=groups)
    try:
        found = await _committed(session, request.group_id, request.topics)
    except LakelogError as error:
        return told(error_code=code_of(error, Asked.GROUP))
    return told(
        topics=[
            told.OffsetFetchResponseTopic(
                name, [told.OffsetFetchResponsePartition(*_of(one)) for one in own.items()]
            )
            for name, own in found.items()
        ]
    )


def _of(one: tuple[int, OffsetAndMetadata]) -> tuple[int, int, int, str]:
    partition, committed = one
    return partition, committed.offset, committed.leader_epoch, committed.metadata


class _Asked(Protocol):
    """A topic of which offsets are asked for."""

    name: str
    partition_indexes: Sequence[int]


async def _committed(
    session: Session,
    group_id: str,
    wanted: Sequence[_Asked] | None,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> dict[str, dict[int, OffsetAndMetadata]]:
    """What a group has committed by topic and partition, of all or of some partitions.

    What was committed of an earlier topic of that name is nothing.
    """
    asked = None
    if wanted is not None:
        asked = [TopicPartition(one.name, p) for one in wanted for p in one.partition_indexes]
    found = await session.log.run(
        session.log.groups.committed,
        group_id,
        asked,
        member_id=member_id or "",
        member_epoch=member_epoch,
    )
    topics = await session.log.topics()
    told: dict[str, dict[int, OffsetAndMetadata]] = {}
    for tp in found if asked is None else asked:
        one, topic = found.get(tp), topics.get(tp.topic)
        is_of_now = one is not None and topic is not None and one.topic_id in (None, topic.topic_id)
        if one is not None and is_of_now:
            told.setdefault(tp.topic, {})[tp.partition] = one.committed
        elif asked is not None:
            told.setdefault(tp.topic, {})[tp.partition] = _NONE
    return told


async def offset_delete(
    session: Session, request: OffsetDeleteRequest, version: int
) -> OffsetDeleteResponse:
    """Forgets what a group has committed of topics that nobody in it reads."""
    asked = [
        TopicPartition(topic.name, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
    ]
    try:
        deleted = await session.log.run(
            session.log.lake.groups.delete_offsets, request.group_id, asked
        )
    except LakelogError as error:
        return OffsetDeleteResponse(error_code=code_of(error, Asked.GROUP))
    response = OffsetDeleteResponse
    return OffsetDeleteResponse(
        topics=[
            response.OffsetDeleteResponseTopic(
                topic.name,
                [
                    response.OffsetDeleteResponsePartition(
                        one.partition_index,
                        ErrorCode.NONE
                        if deleted.get(TopicPartition(topic.name, one.partition_index))
                        else ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# -- looks -----------------------------------------------------------------------------------------


async def list_groups(
    session: Session, request: ListGroupsRequest, version: int
) -> ListGroupsResponse:
    """All groups, or those of some states and kinds."""
    try:
        found = await session.log.run(session.log.lake.groups.list, None)
    except LakelogError as error:
        return ListGroupsResponse(error_code=code_of(error, Asked.GROUP))
    states = {state.lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=one.group_id,
                protocol_type=one.protocol_type,
                group_state=one.state.value,
                group_type=one.group_type.value,
            )
            for one in found
            if (not states or one.state.value.lower() in states)
            and (not kinds or one.group_type.value.lower() in kinds)
        ]
    )


async def describe_groups(
    session: Session, request: DescribeGroupsRequest, version: int
) -> DescribeGroupsResponse:
    """Groups and their members."""
    groups = []
    for group_id in request.groups:
        try:
            found = await session.log.run(session.log.lake.groups.describe, group_id)
        except LakelogError as error:
            groups.append(
                DescribeGroupsResponse.DescribedGroup(
                    error_code=code_of(error, Asked.GROUP),
                    error_message=error.message,
                    group_id=group_id,
                )
            )
            continue
        if found.group_type is not GroupType.CLASSIC:  # as Kafka
            found = GroupDescription(group_id, GroupState.DEAD)
        groups.append(
            DescribeGroupsResponse.DescribedGroup(
                group_id=group_id,
                group_state=found.state.value,
                protocol_type=found.protocol_type,
                protocol_data=found.protocol_name,
                members=[
                    DescribeGroupsResponse.DescribedGroupMember(
                        member_id=one.member_id,
                        group_instance_id=one.instance_id,
                        client_id=one.client_id,
                        client_host=one.client_host,
                        member_metadata=one.metadata,
                        member_assignment=one.assignment,
                    )
                    for one in found.members
                ],
            )
        )
    return DescribeGroupsResponse(groups=groups)


def _delete(session: Session, group_id: str) -> None:
    lake = session.log.lake
    found = lake.groups.describe(group_id)
    is_share_group = found.state is GroupState.DEAD or found.group_type is GroupType.SHARE
    (lake.share_groups if is_share_group else lake.groups).delete(group_id)


async def delete_groups(
    session: Session, request: DeleteGroupsRequest, version: int
) -> DeleteGroupsResponse:
    """Deletes groups that have no members, share groups too."""
    results = []
    for group_id in request.groups_names:
        code = ErrorCode.NONE
        try:
            await session.log.run(_delete, session, group_id)
        except LakelogError as error:
            code = code_of(error, Asked.GROUP)
        results.append(DeleteGroupsResponse.DeletableGroupResult(group_id, code))
    return DeleteGroupsResponse(results=results)
