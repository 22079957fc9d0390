"""Records that are older than their topic keeps records already when they are appended.

As in Kafka they are appended like any other, and go at the next check of retention. Who backfills a
topic rarely means that, so it is said, once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from uuid import UUID

from ..codec import Entry
from ..values.config import TopicConfig
from ..values.record import NO_TIMESTAMP_MS, TimestampType
from ..values.topic import Topic

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
            "them, raise the topic's retention.ms (-1: no limit)",
            topic.name,
            limit_ms,
            datetime.fromtimestamp(oldest_ms / 1000, timezone.utc).isoformat(" ", "milliseconds"),
            "with the first cleanup after they are archived"
            if topic.config.tiered
            else "when retention is checked next, every log.retention.check.interval.ms="
            f"{topic.config.retention_check_interval_ms}",
        )
