"""What tools ask of a cluster of brokers, and there is little to say of here."""

from __future__ import annotations

from ..errors import LakelogError
from .configs import BROKER, TOPIC
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from .session import Session

_NO_REPLICAS = "there are no replicas and no leaders in lakelog: nothing is to be moved"
_QUOTAS = (
    "quotas are those of a keyspace in lakelog: `lakelog topics defaults --config "
    "lakelog.quota.producer.byte.rate=…`, or of a tenant"
)
#: Where the hot records are, by the one name that a log dir has here.
_LOG_DIR = "redis"


async def describe_log_dirs(
    session: Session, request: DescribeLogDirsRequest, version: int
) -> DescribeLogDirsResponse:
    """The bytes of partitions in Redis, as those of one log dir."""
    topics = await session.log.topics(fresh=True)
    wanted = {name: list(range(topic.partitions)) for name, topic in topics.items()}
    if request.topics is not None:
        asked = {one.topic: one.partitions for one in request.topics}
        wanted = {
            name: [one for one in asked[name] if one in own]
            for name, own in wanted.items()
            if name in asked
        }
    told = DescribeLogDirsResponse
    tps = [topics[name].partition(one) for name, own in wanted.items() for one in own]
    result = told.DescribeLogDirsResult(log_dir=_LOG_DIR, topics=[])
    try:
        seen = await session.log.run(session.log.lake.hot.offsets, tps) if tps else {}
    except LakelogError as error:
        result.error_code = code_of(error, Asked.ADMIN)
        return told(results=[result])
    result.topics = [
        told.DescribeLogDirsTopic(
            name,
            [
                told.DescribeLogDirsPartition(one, seen[topics[name].partition(one)].size_bytes)
                for one in own
            ],
        )
        for name, own in wanted.items()
    ]
    return told(results=[result])


async def list_partition_reassignments(
    session: Session, request: ListPartitionReassignmentsRequest, version: int
) -> ListPartitionReassignmentsResponse:
    """None."""
    return ListPartitionReassignmentsResponse()


async def alter_partition_reassignments(
    session: Session, request: AlterPartitionReassignmentsRequest, version: int
) -> AlterPartitionReassignmentsResponse:
    """Refused."""
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.INVALID_REQUEST, error_message=_NO_REPLICAS
    )


async def elect_leaders(
    session: Session, request: ElectLeadersRequest, version: int
) -> ElectLeadersResponse:
    """Refused: nobody is elected."""
    told = ElectLeadersResponse
    return told(
        replica_election_results=[
            told.ReplicaElectionResult(
                asked.topic,
                [
                    told.PartitionResult(one, ErrorCode.ELECTION_NOT_NEEDED, _NO_REPLICAS)
                    for one in asked.partitions
                ],
            )
            for asked in request.topic_partitions or ()
        ]
    )


async def describe_client_quotas(
    session: Session, request: DescribeClientQuotasRequest, version: int
) -> DescribeClientQuotasResponse:
    """None of clients."""
    return DescribeClientQuotasResponse(entries=[])


async def alter_client_quotas(
    session: Session, request: AlterClientQuotasRequest, version: int
) -> AlterClientQuotasResponse:
    """Refused, with where quotas are."""
    told = AlterClientQuotasResponse
    return told(
        entries=[
            told.EntryData(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=_QUOTAS,
                entity=[told.EntityData(one.entity_type, one.entity_name) for one in entry.entity],
            )
            for entry in request.entries
        ]
    )


async def list_transactions(
    session: Session, request: ListTransactionsRequest, version: int
) -> ListTransactionsResponse:
    """None."""
    return ListTransactionsResponse()


async def describe_transactions(
    session: Session, request: DescribeTransactionsRequest, version: int
) -> DescribeTransactionsResponse:
    """None of those."""
    told = DescribeTransactionsResponse
    return told(
        transaction_states=[
            told.TransactionState(
                error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=one
            )
            for one in request.transactional_ids
        ]
    )


async def list_config_resources(
    session: Session, request: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    """Topics and nodes, which have settings."""
    wanted = set(request.resource_types) if version >= 1 else set()
    told = ListConfigResourcesResponse.ConfigResource
    found = []
    if version >= 1 and (not wanted or TOPIC in wanted):
        found += [told(name, TOPIC) for name in await session.log.topics(fresh=True)]
    if version >= 1 and (not wanted or BROKER in wanted):
        found += [told(str(node.node_id), BROKER) for node in session.nodes.all]
    return ListConfigResourcesResponse(config_resources=found)
