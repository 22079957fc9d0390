"""Each error has a code, and one that has clients do what the error asks for."""

from __future__ import annotations

import kafka.errors
import pytest

from lakelog import errors
from lakelog.errors import (
    HotTierUnavailableError,
    InvalidArgumentError,
    InvalidTopicError,
    LakelogError,
    UnknownProducerError,
)
from lakelog.gateway.protocol.codes import CODES, Asked, ErrorCode, code_of
from lakelog.gateway.protocol.wire import MalformedRequestError

CLASSES = [
    error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, LakelogError) and name == error.__name__
]

#: Codes after which Java's clients try the same again, by themselves.
RETRIABLE = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}

#: Where clients and callers of lakelog do otherwise, and why.
OTHERWISE = {
    "CorruptRecordError": "Kafka's producers send again what did not arrive whole",
    "ForeignEntryError": "as those",
    "DecryptionError": "a consumer of Java ends with it, as it should",
    "UnknownTopicOrPartitionError": "the topic may be a new one that a client will see soon",
    "UnknownTopicIdError": "clients look the topic up again",
    "NotEnoughReplicasAfterAppendError": "a resend has the same sequence, so is not written twice",
    "LogClosedError": "another gateway may serve",
    "DeliveryError": "as with a broker that does not answer",
    "TrimmedError": "the gateway reads the cold tier",
    "MemberIdRequiredError": "the member joins again with its id",
    "RebalanceInProgressError": "the member joins again",
}


def made(error: type[LakelogError], **given: object) -> LakelogError:
    required = {name: 1 for name in error.field_names if not hasattr(error, name)}
    return error(**{**required, "message": "a sentence", **given})


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_has_a_code_of_its_own(error: type[LakelogError]) -> None:
    assert error in CODES
    assert code_of(made(error)) == CODES[error]


@pytest.mark.parametrize("error", CLASSES)
def test_clients_retry_what_is_retriable(error: type[LakelogError]) -> None:
    does_as_said = (CODES[error] in RETRIABLE) == error.retriable
    assert does_as_said != (error.__name__ in OTHERWISE), OTHERWISE.get(error.__name__)


def test_codes_are_kafkas() -> None:
    known = {
        one.errno: one
        for one in vars(kafka.errors).values()
        if isinstance(one, type) and isinstance(getattr(one, "errno", None), int)
    }
    same = [code for code in ErrorCode if code in known and code.name == known[code].message]
    assert len(same) > 80
    assert [code.value for code in ErrorCode] == list(range(-1, 134))


def test_an_unknown_class_has_the_code_of_its_base() -> None:
    class NearlyFullError(errors.HotTierFullError):
        pass

    class StrangeError(LakelogError):
        pass

    assert code_of(NearlyFullError("no")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(NearlyFullError("no"), Asked.GROUP) == ErrorCode.NOT_COORDINATOR
    assert code_of(StrangeError("no")) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert code_of(MalformedRequestError("no")) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("error", CLASSES)
def test_a_fetch_is_told_only_what_consumers_of_java_have_a_plan_for(
    error: type[LakelogError],
) -> None:
    """Source: ``FetchCollector.handleInitializeErrors``; others end ``poll``."""
    assert code_of(made(error), Asked.FETCH).name in {
        "UNKNOWN_SERVER_ERROR",
        "OFFSET_OUT_OF_RANGE",
        "CORRUPT_MESSAGE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_LEADER_OR_FOLLOWER",
        "TOPIC_AUTHORIZATION_FAILED",
        "KAFKA_STORAGE_ERROR",
    }


def test_only_an_offset_that_no_tier_holds_has_consumers_go_elsewhere() -> None:
    told = {error for error in CLASSES if CODES[error] == ErrorCode.OFFSET_OUT_OF_RANGE}
    assert told == {errors.OffsetOutOfRangeError}


def test_a_producer_that_is_not_known_does_not_begin_anew_by_itself() -> None:
    code = code_of(UnknownProducerError("gone"), Asked.PRODUCE)
    assert code not in {
        ErrorCode.UNKNOWN_PRODUCER_ID,  # Java writes again under a new epoch
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,  # the same
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,  # Java takes it for success
    }
    assert code not in RETRIABLE


def test_a_redis_that_is_away_is_asked_for_again_where_it_may_be() -> None:
    asked = {one: code_of(HotTierUnavailableError("away"), one).name for one in Asked}
    assert asked == {
        Asked.PRODUCE: "NOT_LEADER_OR_FOLLOWER",
        Asked.FETCH: "NOT_LEADER_OR_FOLLOWER",
        Asked.GROUP: "NOT_COORDINATOR",
        Asked.ADMIN: "NOT_CONTROLLER",
        Asked.CLUSTER: "NOT_CONTROLLER",
    }
    sent = HotTierUnavailableError("away", sent=True)
    assert code_of(sent, Asked.PRODUCE) == ErrorCode.REQUEST_TIMED_OUT
    assert code_of(sent, Asked.FETCH) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_fields_say_which_argument_was_wrong() -> None:
    assert code_of(InvalidTopicError("no", topic="a b")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code_of(InvalidTopicError("no", partitions=0)) == ErrorCode.INVALID_PARTITIONS
    assert code_of(InvalidArgumentError("no", group_id="")) == ErrorCode.INVALID_GROUP_ID
    assert code_of(InvalidArgumentError("no", offset=-5)) == ErrorCode.INVALID_REQUEST
