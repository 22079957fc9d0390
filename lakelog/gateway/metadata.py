"""Who answers for what: the versions, nodes, topics and coordinators that clients are told of."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import LakelogError
from ..values.topic import Topic
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from .protocol.wire import API
from .session import Session
from .topics import OWN_SETTINGS

_PRODUCE = 0
#: The kind of coordinator that there is none of (`FindCoordinator`).
_TRANSACTION = 1
_NO_TRANSACTIONS = "there are no transactions in lakelog; leave transactional.id out"
_MAX_PARTITIONS_TOLD = 2_000  # in one DescribeTopicPartitions


def versions(served: Iterable[int], error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    """The APIs that are served.

    Args:
        served: their keys.
        error: UNSUPPORTED_VERSION, to whoever asked in a version that is not known.
    """
    keys = [
        ApiVersionsResponse.ApiVersion(key, API[key].min_version, API[key].max_version)
        for key in sorted(served)
    ]
    for one in keys:
        if one.api_key == _PRODUCE:
            # Not true, but some versions of librdkafka compress nothing otherwise (KAFKA-18659).
            one.min_version = 0
    return ApiVersionsResponse(error_code=error, api_keys=keys)


def note_software(session: Session, request: ApiVersionsRequest, version: int) -> None:
    """Takes note of what the client says of itself."""
    if version >= 3:
        session.software = f"{request.client_software_name} {request.client_software_version}"


async def metadata(session: Session, request: MetadataRequest, version: int) -> MetadataResponse:
    """The nodes, and the topics that are asked for; all of them for null."""
    nodes = session.nodes
    topics = []
    if request.topics is None or (version == 0 and not request.topics):
        found = await session.log.topics(fresh=True)
        topics = [_topic(session, topic) for topic in found.values()]
    else:
        for asked in request.topics:
            if asked.name is None:
                topic = await session.log.topic_of_id(asked.topic_id)
                error = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                topic = await session.log.topic(asked.name)
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if topic is None and request.allow_auto_topic_creation:
                    topic, error = await _made(session, asked.name)
            no_name = None if version >= 12 else ""
            topics.append(
                MetadataResponse.MetadataResponseTopic(
                    error_code=error, name=asked.name or no_name, topic_id=asked.topic_id
                )
                if topic is None
                else _topic(session, topic)
            )
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node.node_id, node.host, node.port)
            for node in nodes.all
        ],
        cluster_id=nodes.cluster_id,
        controller_id=nodes.controller.node_id,
        topics=topics,
    )


async def _made(session: Session, name: str) -> tuple[Topic | None, ErrorCode]:
    """A topic of that name, made if the gateway makes topics that are asked for."""
    if not session.settings.creates_topics:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    registry = session.log.lake.topics
    try:
        partitions = session.settings.partitions
        made = await session.log.run(registry.create, name, partitions, OWN_SETTINGS)
        return made, ErrorCode.NONE
    except LakelogError as error:
        session.note(f"making topic {name!r}", error)
        return await session.log.topic(name), code_of(error, Asked.ADMIN)


def _topic(session: Session, topic: Topic) -> MetadataResponse.MetadataResponseTopic:
    partitions = []
    for partition in range(topic.partitions):
        leader = session.nodes.leader(topic, partition).node_id
        partitions.append(
            MetadataResponse.MetadataResponsePartition(
                partition_index=partition,
                leader_id=leader,
                leader_epoch=0,
                replica_nodes=[leader],
                isr_nodes=[leader],
                offline_replicas=[],
            )
        )
    return MetadataResponse.MetadataResponseTopic(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


async def describe_cluster(
    session: Session, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    """The nodes."""
    nodes = session.nodes
    return DescribeClusterResponse(
        cluster_id=nodes.cluster_id,
        controller_id=nodes.controller.node_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node.node_id, host=node.host, port=node.port
            )
            for node in nodes.all
        ],
    )


async def describe_topic_partitions(
    session: Session, request: DescribeTopicPartitionsRequest, version: int
) -> DescribeTopicPartitionsResponse:
    """Topics in the order of their names, page by page."""
    found = await session.log.topics(fresh=True)
    names = sorted({asked.name for asked in request.topics}) or sorted(found)
    cursor = request.cursor
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    left = min(request.response_partition_limit, _MAX_PARTITIONS_TOLD)
    response = DescribeTopicPartitionsResponse(topics=[])
    told: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        topic = found.get(name)
        if topic is None:
            told.append(
                DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name
                )
            )
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        end = min(topic.partitions, first + left)
        partitions = []
        for partition in range(first, end):
            leader = session.nodes.leader(topic, partition).node_id
            partitions.append(
                DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
                    partition_index=partition,
                    leader_id=leader,
                    leader_epoch=0,
                    replica_nodes=[leader],
                    isr_nodes=[leader],
                    eligible_leader_replicas=[],
                    last_known_elr=[],
                    offline_replicas=[],
                )
            )
        told.append(
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
                name=name, topic_id=topic.topic_id, partitions=partitions
            )
        )
        left -= end - first
        if left <= 0:
            following = [other for other in names if other > name]
            if end < topic.partitions:
                response.next_cursor = DescribeTopicPartitionsResponse.Cursor(name, end)
            elif following:
                response.next_cursor = DescribeTopicPartitionsResponse.Cursor(following[0], 0)
            break
    response.topics = told
    return response


async def find_coordinator(
    session: Session, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    """The node for a group; there is none for transactions."""
    keys = request.coordinator_keys if version >= 4 else [request.key]
    found = []
    for key in keys:
        if request.key_type == _TRANSACTION:
            found.append(
                FindCoordinatorResponse.Coordinator(
                    key=key,
                    node_id=-1,
                    port=-1,
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=_NO_TRANSACTIONS,
                )
            )
            continue
        node = session.nodes.coordinator(key)
        found.append(FindCoordinatorResponse.Coordinator(key, node.node_id, node.host, node.port))
    if version >= 4:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
