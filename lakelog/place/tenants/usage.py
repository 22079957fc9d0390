"""What the topics of a keyspace use of its quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...cold.table import NO_TABLE, ColdTable
from ...errors import LakelogError
from ...hot import HotLog, TopicRegistry
from ...values.config import (
    KEYSPACE_SETTINGS,
    QUOTA_BYTE_RATE,
    QUOTA_COLD_BYTES,
    QUOTA_HOT_BYTES,
    QUOTA_TOPICS,
    QUOTAS,
)
from ...values.record import MAX_OFFSET
from ...values.topic import Topic
from .tenant import QuotaUsage


def quota_usage(
    hot: HotLog, topics: TopicRegistry, table_of: Callable[[Topic], ColdTable | None]
) -> list[QuotaUsage]:
    """What is used of each quota, by its name.

    Looks at every partition and, if there is a quota of them, notes the sizes of the tables anew.

    Args:
        table_of: gives a topic's table; None if it has none.

    Raises:
        HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
    """
    there, defaults = topics.list(), topics.defaults()
    hot_bytes = 0
    for topic in there:
        partitions = topic.topic_partitions()
        seen = hot.segments(
            partitions,
            start=dict.fromkeys(partitions, MAX_OFFSET),
            oldest=1,
            topic_id=topic.topic_id,
        )
        hot_bytes += sum(one.held_bytes for one in seen.values())
    used = {
        QUOTA_HOT_BYTES: hot_bytes,
        QUOTA_COLD_BYTES: _cold_bytes(hot, [*there, *topics.deleted()], table_of),
        QUOTA_TOPICS: len(there),
        QUOTA_BYTE_RATE: None,
    }
    limits = {
        name: KEYSPACE_SETTINGS[name].parse(defaults.get(name, KEYSPACE_SETTINGS[name].default))
        for name in QUOTAS
    }
    return [
        QuotaUsage(name, used[name], None if limits[name] < 0 else limits[name]) for name in QUOTAS
    ]


def _cold_bytes(
    hot: HotLog, topics: Iterable[Topic], table_of: Callable[[Topic], ColdTable | None]
) -> int | None:
    """The bytes of all tables, those of deleted topics too; None: some cannot be looked at."""
    quota, sizes = hot.cold_quota(), {}
    for topic in topics:
        try:
            table = table_of(topic)
            if table is not None:
                cold = table.snapshot()
                if cold.version == NO_TABLE and topic.deleted_ms is None:
                    hot.check_own(topic, table)  # it may be away
                sizes[topic] = cold.files.size_bytes
        except LakelogError:
            return None
    quota.retain(topic.topic_id for topic in sizes)
    for topic, size_bytes in sizes.items():
        quota.told(topic, size_bytes)
    return sum(sizes.values())
