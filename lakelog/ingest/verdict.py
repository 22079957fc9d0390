"""What an answer of the log means for the records that were sent."""

from __future__ import annotations

from enum import Enum, auto

from ..errors import (
    HotTierUnavailableError,
    NotEnoughReplicasAfterAppendError,
    OutOfOrderSequenceError,
    RecoveryNeededError,
    UnknownProducerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..hot import AppendResult


class Verdict(Enum):
    """What to do with a call after an answer."""

    WRITTEN = auto()
    WAIT = auto()  # send it again after a pause
    RESEND = auto()  # send it again in order, after the call before it
    RENUMBER = auto()  # it was not written, and is sent again in a new epoch
    RECOVER = auto()  # recover the partition, then send it again
    REPAIR = auto()  # mend a half-made topic, then send it again
    TOPIC_GONE = auto()
    REFUSED = auto()  # it fails with this error, surely not written
    UNKNOWN = auto()  # it fails, and may be written


def verdict(answer: AppendResult | Exception, *, may_be_written: bool, is_first: bool) -> Verdict:
    """What an answer means for a call.

    A call that may be written never gets another number: it is sent again as it was, or fails as
    unknown.

    Args:
        answer: of this round.
        may_be_written: whether an earlier round ended without an answer.
        is_first: whether all earlier calls of the partition are written.
    """
    match answer:
        case AppendResult():
            return Verdict.WRITTEN
        case UnknownTopicIdError():
            return Verdict.TOPIC_GONE
        case UnknownTopicOrPartitionError():
            return Verdict.REPAIR
        case RecoveryNeededError():
            return Verdict.RECOVER
        case OutOfOrderSequenceError() if not is_first:
            return Verdict.RESEND
        case OutOfOrderSequenceError() | UnknownProducerError() if not may_be_written:
            return Verdict.RENUMBER
        case NotEnoughReplicasAfterAppendError() | HotTierUnavailableError():
            return Verdict.WAIT
        case _ if getattr(answer, "retriable", False):
            return Verdict.WAIT
        case _:
            return Verdict.UNKNOWN if may_be_written else Verdict.REFUSED
