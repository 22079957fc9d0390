"""Which function answers which request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from . import (
    cluster,
    configs,
    consumer_groups,
    fetch,
    groups,
    metadata,
    offsets,
    producers,
    rights,
    share_fetch,
    share_groups,
    topics,
)
from .protocol.wire import API, ApiMessage
from .session import Session

#: What answers a request of a version.
Handler = Callable[[Session, Any, int], Awaitable[ApiMessage]]

_BY_NAME: Mapping[str, Handler] = {
    "Fetch": fetch.fetch,
    "ListOffsets": offsets.list_offsets,
    "Metadata": metadata.metadata,
    "OffsetCommit": groups.offset_commit,
    "OffsetFetch": groups.offset_fetch,
    "FindCoordinator": metadata.find_coordinator,
    "JoinGroup": groups.join_group,
    "Heartbeat": groups.heartbeat,
    "LeaveGroup": groups.leave_group,
    "SyncGroup": groups.sync_group,
    "DescribeGroups": groups.describe_groups,
    "ListGroups": groups.list_groups,
    "CreateTopics": topics.create_topics,
    "DeleteTopics": topics.delete_topics,
    "DeleteRecords": topics.delete_records,
    "InitProducerId": producers.init_producer_id,
    "OffsetForLeaderEpoch": offsets.offset_for_leader_epoch,
    "DescribeConfigs": configs.describe_configs,
    "AlterConfigs": configs.alter_configs,
    "CreatePartitions": topics.create_partitions,
    "DeleteGroups": groups.delete_groups,
    "IncrementalAlterConfigs": configs.incremental_alter_configs,
    "OffsetDelete": groups.offset_delete,
    "DescribeLogDirs": cluster.describe_log_dirs,
    "ListPartitionReassignments": cluster.list_partition_reassignments,
    "AlterPartitionReassignments": cluster.alter_partition_reassignments,
    "ElectLeaders": cluster.elect_leaders,
    "DescribeClientQuotas": cluster.describe_client_quotas,
    "AlterClientQuotas": cluster.alter_client_quotas,
    "ListTransactions": cluster.list_transactions,
    "DescribeTransactions": cluster.describe_transactions,
    "ListConfigResources": cluster.list_config_resources,
    "DescribeCluster": metadata.describe_cluster,
    "DescribeProducers": producers.describe_producers,
    "ConsumerGroupHeartbeat": consumer_groups.heartbeat,
    "ConsumerGroupDescribe": consumer_groups.describe,
    "ShareGroupHeartbeat": share_groups.heartbeat,
    "ShareGroupDescribe": share_groups.describe,
    "ShareFetch": share_fetch.share_fetch,
    "ShareAcknowledge": share_fetch.share_acknowledge,
    "DescribeShareGroupOffsets": share_groups.describe_offsets,
    "AlterShareGroupOffsets": share_groups.alter_offsets,
    "DescribeTopicPartitions": metadata.describe_topic_partitions,
    "DescribeAcls": rights.describe_acls,
    "CreateAcls": rights.create_acls,
    "DeleteAcls": rights.delete_acls,
    "DescribeUserScramCredentials": rights.describe_user_scram_credentials,
    "AlterUserScramCredentials": rights.alter_user_scram_credentials,
}
_KEYS = {api.name: key for key, api in API.items()}

PRODUCE, API_VERSIONS = _KEYS["Produce"], _KEYS["ApiVersions"]
SASL_HANDSHAKE, SASL_AUTHENTICATE = _KEYS["SaslHandshake"], _KEYS["SaslAuthenticate"]

#: By API key. Those that are not here have ways of their own, see `ClientConnection`.
HANDLERS: Mapping[int, Handler] = {_KEYS[name]: one for name, one in _BY_NAME.items()}

#: The keys of all APIs that are served.
SERVED = frozenset({*HANDLERS, PRODUCE, API_VERSIONS})
SERVED_WITH_SASL = frozenset({*SERVED, SASL_HANDSHAKE, SASL_AUTHENTICATE})
