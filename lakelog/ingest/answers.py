"""What an answer of the log means for the records that were sent, and for those that follow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from enum import Enum, auto
from uuid import UUID

from ..codec import Entry
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
from ..values.config import TopicConfig
from ..values.record import NO_TIMESTAMP_MS, TimestampType
from ..values.topic import Topic


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


logger = logging.getLogger(__name__)


def age_limit_ms(config: TopicConfig) -> int | None:
    """How old a topic's records get, by the timestamps that producers give; None: no limit."""
    if (
        config["retention.ms"] < 0
        or "delete" not in config["cleanup.policy"]
        or config["message.timestamp.type"] is TimestampType.LOG_APPEND_TIME
    ):
        return None
    return int(config["retention.ms"])


def oldest_expired_ms(entries: Iterable[Entry], limit_ms: int, now_ms: int) -> int | None:
    """The oldest timestamp of the entries if it is beyond the limit, else None."""
    times = [e.min_timestamp_ms for e in entries if e.min_timestamp_ms != NO_TIMESTAMP_MS]
    oldest_ms = min(times, default=now_ms)
    return oldest_ms if now_ms - oldest_ms > limit_ms else None


class ExpiryWarning:
    """Warns once a topic that records which were appended are too old to stay."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._warned: set[UUID] = set()

    def look(self, topic: Topic, limit_ms: int | None, entries: Iterable[Entry]) -> None:
        """Looks at entries that were appended.

        Args:
            limit_ms: see `age_limit_ms`.
        """
        if limit_ms is None or topic.topic_id in self._warned:
            return
        oldest_ms = oldest_expired_ms(entries, limit_ms, self._now_ms())
        if oldest_ms is None:
            return
        self._warned.add(topic.topic_id)
        logger.warning(
            "topic %r takes records that are older than retention.ms=%d already, such as one of "
            "%s: they go %s, with all of their segment, unless it holds a younger record. To keep "
            "them, raise the topic's retention.ms (-1: no limit): `lakelog topics alter "
            "%s --config retention.ms=-1`",
            topic.name,
            limit_ms,
            datetime.fromtimestamp(oldest_ms / 1000, timezone.utc).isoformat(" ", "milliseconds"),
            "with the first cleanup after they are archived"
            if topic.config.tiered
            else "when retention is checked next, every log.retention.check.interval.ms="
            f"{topic.config.retention_check_interval_ms}",
            topic.name,
        )
