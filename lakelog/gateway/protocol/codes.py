"""Kafka's error codes, and which of them tells an error of lakelog.

A code is an instruction to clients, more than a name: what `code_of` chooses is what makes them do
the right thing.

| asked | what clients try again, and with fresh metadata (*) |
|---|---|
| produce | ``NOT_LEADER_OR_FOLLOWER`` *, ``KAFKA_STORAGE_ERROR`` *, ``REQUEST_TIMED_OUT`` |
| fetch | the first two, ``UNKNOWN_SERVER_ERROR``; Java ends with others: `_TOLD_TO_FETCHES` |
| group | ``NOT_COORDINATOR``, in every call; Java ends with any that a call has no plan for |
| admin, cluster | ``NOT_CONTROLLER``, ``THROTTLING_QUOTA_EXCEEDED`` |

``OFFSET_OUT_OF_RANGE`` makes a consumer go where ``auto.offset.reset`` says, past records that it
has not read: only an offset that no tier holds may be told so.

Source: ``Errors`` of Kafka 4.1; of its Java client ``TransactionManager.canRetry``,
``FetchCollector`` and the response handlers of ``AbstractCoordinator`` and ``ConsumerCoordinator``;
of librdkafka ``rd_kafka_err_action`` and ``rd_kafka_handle_Produce_error``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from ... import errors as e
from ...errors import LakelogError
from .primitives import MalformedRequestError


class ErrorCode(IntEnum):
    """Kafka's, by their names in the protocol."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


class Asked(Enum):
    """What a request is about: the same error has clients of each do different things."""

    PRODUCE = "produce"
    FETCH = "fetch"  # and ListOffsets, OffsetForLeaderEpoch
    GROUP = "group"  # what a coordinator answers
    ADMIN = "admin"  # topics and their settings
    CLUSTER = "cluster"  # settings of all, users


_C = ErrorCode

#: Every class of `lakelog.errors`, and its code unless `_OTHERWISE` has one for what was asked.
CODES: Mapping[type[LakelogError], ErrorCode] = {
    LakelogError: _C.UNKNOWN_SERVER_ERROR,
    MalformedRequestError: _C.INVALID_REQUEST,
    # What was asked for is not legal.
    e.InvalidArgumentError: _C.INVALID_REQUEST,
    e.InvalidTopicError: _C.INVALID_TOPIC_EXCEPTION,
    e.InvalidConfigError: _C.INVALID_CONFIG,
    e.MissingExtraError: _C.UNKNOWN_SERVER_ERROR,  # of the gateway's own installation
    e.NewerVersionError: _C.UNKNOWN_SERVER_ERROR,  # until the gateway is upgraded
    # Topics.
    e.UnknownTopicOrPartitionError: _C.UNKNOWN_TOPIC_OR_PARTITION,
    e.AmbiguousTopicError: _C.UNKNOWN_SERVER_ERROR,  # a gateway has one keyspace
    e.TopicExistsError: _C.TOPIC_ALREADY_EXISTS,
    e.TenantError: _C.UNKNOWN_SERVER_ERROR,  # no request is about tenants
    # Not UNKNOWN_TOPIC_ID, which clients that name topics do not know. All ask for metadata again.
    e.UnknownTopicIdError: _C.UNKNOWN_TOPIC_OR_PARTITION,
    e.ConcurrentChangeError: _C.REQUEST_TIMED_OUT,  # it was tried again for a while
    e.PolicyViolationError: _C.POLICY_VIOLATION,
    e.PartlyFailedError: _C.UNKNOWN_SERVER_ERROR,  # whoever asked takes it apart
    # Append.
    e.RecordTooLargeError: _C.MESSAGE_TOO_LARGE,  # Java splits a batch of several records
    e.InvalidTimestampError: _C.INVALID_TIMESTAMP,
    e.InvalidRecordError: _C.INVALID_RECORD,
    e.OutOfOrderSequenceError: _C.OUT_OF_ORDER_SEQUENCE_NUMBER,
    # UNKNOWN_PRODUCER_ID has Java send the batch again under a new epoch, which writes it twice if
    # an attempt before was written but not answered. That is not known here, so the batch fails.
    e.UnknownProducerError: _C.UNKNOWN_SERVER_ERROR,
    # Java takes DUPLICATE_SEQUENCE_NUMBER for success, and these records are not in the log.
    e.RepeatDiffersError: _C.INVALID_REQUEST,
    e.ProducerFencedError: _C.INVALID_PRODUCER_EPOCH,
    e.HotTierFullError: _C.KAFKA_STORAGE_ERROR,
    # Kafka has none for appends: it delays them, and so does a gateway. What is told after all has
    # to be retried by all clients, and librdkafka fails records of THROTTLING_QUOTA_EXCEEDED.
    e.QuotaExceededError: _C.KAFKA_STORAGE_ERROR,
    e.ThrottlingQuotaExceededError: _C.KAFKA_STORAGE_ERROR,
    e.HotTierUnavailableError: _C.NOT_LEADER_OR_FOLLOWER,
    e.LogClosedError: _C.NOT_LEADER_OR_FOLLOWER,  # the gateway stops; another may serve
    e.HotTierPausedError: _C.NOT_LEADER_OR_FOLLOWER,
    e.HotTierAccessError: _C.TOPIC_AUTHORIZATION_FAILED,  # rights are those of Redis
    e.RecoveryNeededError: _C.NOT_LEADER_OR_FOLLOWER,  # the gateway recovers by itself
    e.NotEnoughReplicasError: _C.NOT_ENOUGH_REPLICAS,
    e.NotEnoughReplicasAfterAppendError: _C.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    e.DeliveryError: _C.REQUEST_TIMED_OUT,
    e.DeliveryPendingError: _C.REQUEST_TIMED_OUT,
    e.BufferExhaustedError: _C.REQUEST_TIMED_OUT,
    # Read.
    e.OffsetOutOfRangeError: _C.OFFSET_OUT_OF_RANGE,
    e.TrimmedError: _C.NOT_LEADER_OR_FOLLOWER,  # the cold tier holds it: see OFFSET_OUT_OF_RANGE
    e.CorruptRecordError: _C.CORRUPT_MESSAGE,
    e.EncryptionKeyError: _C.UNKNOWN_SERVER_ERROR,  # of the gateway's settings
    e.DecryptionError: _C.CORRUPT_MESSAGE,
    e.ForeignEntryError: _C.CORRUPT_MESSAGE,
    e.NoOffsetForPartitionError: _C.UNKNOWN_SERVER_ERROR,  # a consumer's, of lakelog's own
    e.RecordDeserializationError: _C.UNKNOWN_SERVER_ERROR,  # the same
    # Groups.
    e.GroupError: _C.UNKNOWN_SERVER_ERROR,  # what is raised says more
    e.GroupIdNotFoundError: _C.GROUP_ID_NOT_FOUND,
    e.NonEmptyGroupError: _C.NON_EMPTY_GROUP,
    e.GroupSubscribedToTopicError: _C.GROUP_SUBSCRIBED_TO_TOPIC,
    e.UnknownMemberIdError: _C.UNKNOWN_MEMBER_ID,
    e.MemberIdRequiredError: _C.MEMBER_ID_REQUIRED,
    e.IllegalGenerationError: _C.ILLEGAL_GENERATION,
    e.CommitFailedError: _C.UNKNOWN_MEMBER_ID,  # the member joins again, and is told so
    e.RebalanceInProgressError: _C.REBALANCE_IN_PROGRESS,
    e.FencedInstanceIdError: _C.FENCED_INSTANCE_ID,
    e.FencedMemberEpochError: _C.FENCED_MEMBER_EPOCH,
    e.StaleMemberEpochError: _C.STALE_MEMBER_EPOCH,
    e.UnreleasedInstanceIdError: _C.UNRELEASED_INSTANCE_ID,
    e.UnsupportedAssignorError: _C.UNSUPPORTED_ASSIGNOR,
    e.InvalidRegularExpressionError: _C.INVALID_REGULAR_EXPRESSION,
    e.InconsistentGroupProtocolError: _C.INCONSISTENT_GROUP_PROTOCOL,
    e.InvalidSessionTimeoutError: _C.INVALID_SESSION_TIMEOUT,
    e.GroupMaxSizeReachedError: _C.GROUP_MAX_SIZE_REACHED,
    e.OffsetMetadataTooLargeError: _C.OFFSET_METADATA_TOO_LARGE,
    e.InvalidRecordStateError: _C.INVALID_RECORD_STATE,
    e.SchemaError: _C.INCONSISTENT_GROUP_PROTOCOL,
    # The cold tier: what waiting may end is retried.
    e.ColdTierError: _C.UNKNOWN_SERVER_ERROR,  # what is raised says more
    e.ColdTierUnavailableError: _C.KAFKA_STORAGE_ERROR,
    e.ColdTierFullError: _C.KAFKA_STORAGE_ERROR,
    e.ColdTierRefusedError: _C.UNKNOWN_SERVER_ERROR,
    e.ColdTierAccessError: _C.UNKNOWN_SERVER_ERROR,  # the gateway's rights, not the client's
    e.ForeignTableError: _C.UNKNOWN_SERVER_ERROR,
    e.ArchivedElsewhereError: _C.UNKNOWN_SERVER_ERROR,
    e.ContradictionError: _C.UNKNOWN_SERVER_ERROR,
    e.MissingFileError: _C.UNKNOWN_SERVER_ERROR,
    e.CommitConflictError: _C.KAFKA_STORAGE_ERROR,
    e.CommitUnknownError: _C.KAFKA_STORAGE_ERROR,
    # What no client of Kafka asks for.
    e.ArchiveUnfinishedError: _C.UNKNOWN_SERVER_ERROR,
    e.EmbeddedRedisError: _C.UNKNOWN_SERVER_ERROR,
    e.SparkUnavailableError: _C.UNKNOWN_SERVER_ERROR,
}

_OF_ADMIN: Mapping[type[LakelogError], ErrorCode] = {
    e.HotTierUnavailableError: _C.NOT_CONTROLLER,
    e.HotTierPausedError: _C.NOT_CONTROLLER,
    e.RecoveryNeededError: _C.NOT_CONTROLLER,
    e.LogClosedError: _C.NOT_CONTROLLER,
    e.QuotaExceededError: _C.POLICY_VIOLATION,
    e.ThrottlingQuotaExceededError: _C.THROTTLING_QUOTA_EXCEEDED,
}

#: Where the same error has another code.
_OTHERWISE: Mapping[Asked, Mapping[type[LakelogError], ErrorCode]] = {
    Asked.PRODUCE: {},
    Asked.FETCH: {},
    # Every call of a group looks for its coordinator again; COORDINATOR_NOT_AVAILABLE would end a
    # consumer of Java before 4.0 that asks for its offsets.
    Asked.GROUP: {
        e.HotTierUnavailableError: _C.NOT_COORDINATOR,
        e.HotTierFullError: _C.NOT_COORDINATOR,
        e.HotTierPausedError: _C.NOT_COORDINATOR,
        e.QuotaExceededError: _C.NOT_COORDINATOR,
        e.ThrottlingQuotaExceededError: _C.NOT_COORDINATOR,
        e.RecoveryNeededError: _C.NOT_COORDINATOR,
        e.ConcurrentChangeError: _C.NOT_COORDINATOR,
        e.LogClosedError: _C.NOT_COORDINATOR,
        e.HotTierAccessError: _C.GROUP_AUTHORIZATION_FAILED,
    },
    Asked.ADMIN: _OF_ADMIN,
    Asked.CLUSTER: {**_OF_ADMIN, e.HotTierAccessError: _C.CLUSTER_AUTHORIZATION_FAILED},
}

#: Codes that Java's consumer has a plan for: any other is an IllegalStateException in `poll`.
_TOLD_TO_FETCHES = frozenset(
    {
        _C.UNKNOWN_SERVER_ERROR,
        _C.OFFSET_OUT_OF_RANGE,
        _C.CORRUPT_MESSAGE,
        _C.UNKNOWN_TOPIC_OR_PARTITION,
        _C.NOT_LEADER_OR_FOLLOWER,
        _C.REPLICA_NOT_AVAILABLE,
        _C.TOPIC_AUTHORIZATION_FAILED,
        _C.KAFKA_STORAGE_ERROR,
        _C.FENCED_LEADER_EPOCH,
        _C.UNKNOWN_LEADER_EPOCH,
        _C.OFFSET_NOT_AVAILABLE,
        _C.UNKNOWN_TOPIC_ID,
        _C.INCONSISTENT_TOPIC_ID,
    }
)


def code_of(error: LakelogError, asked: Asked | None = None) -> ErrorCode:
    """The code that tells a client of Kafka about an error.

    Args:
        error: any; a class that has no code has that of its next base.
        asked: what the request was about; None for what is in `CODES`.
    """
    kind = next(cls for cls in type(error).__mro__ if cls in CODES)
    if isinstance(error, e.HotTierUnavailableError) and error.sent and asked is Asked.PRODUCE:
        return _C.REQUEST_TIMED_OUT  # it may be written, which NOT_LEADER_OR_FOLLOWER denies
    if isinstance(error, e.InvalidTopicError) and error.partitions is not None:
        return _C.INVALID_PARTITIONS
    if kind is e.InvalidArgumentError and error.fields.get("group_id") is not None:
        return _C.INVALID_GROUP_ID
    code = _OTHERWISE[asked].get(kind, CODES[kind]) if asked else CODES[kind]
    if asked is Asked.FETCH and code not in _TOLD_TO_FETCHES:
        return _C.UNKNOWN_SERVER_ERROR
    return code
