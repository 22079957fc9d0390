"""Stopping and starting a Redis on purpose without leaving gaps in its logs.

That takes every partition that may ever be appended to again: those of the keyspace's topics, those
of its tenants' topics, and those of deleted topics, which Redis keeps aside until they come back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import RecoveryNeededError, UnknownTopicOrPartitionError
from ..values.tenant_name import tenant_keyspace
from ..values.topic_partition import TopicPartition
from .hot_log import HotLog
from .keys import KeptKeys, Keys
from .recovery import Recovery
from .tenants import TenantRegister


def pause_all(hot: HotLog) -> list[TopicPartition]:
    """Refuses appends everywhere and marks partitions clean; then Redis may be stopped.

    Returns:
        The partitions that could not be marked, because they were not recovered after the last
        stop; the next start will leave a gap in them, as it would have anyway.
    """
    # One of an unknown topic is no concern: its creation was cut short, nothing was ever appended.
    return [
        topic_partition
        for one, topic_partitions in _everything(hot)
        for topic_partition, refused in one.pause_each(topic_partitions).items()
        if isinstance(refused, RecoveryNeededError)
    ]


def resume_all(hot: HotLog) -> list[TopicPartition]:
    """Accepts appends again, after a planned stop or instead of one.

    Returns:
        The partitions that have no clean mark or whose server does not let us make sure of its
        disk; the next producer or archiver recovers them, with a gap.
    """
    return [
        topic_partition
        for one, topic_partitions in _everything(hot)
        for topic_partition, refused in one.resume_each(topic_partitions).items()
        if not isinstance(refused, UnknownTopicOrPartitionError)
    ]


def _everything(hot: HotLog) -> Iterator[tuple[HotLog | Recovery, list[TopicPartition]]]:
    """What takes the steps of a stop, and of which partitions; the keyspace's own topics first."""
    tenants = TenantRegister(hot.connections, Keys(hot.keyspace)).list()
    others = [HotLog(hot.connections, tenant_keyspace(hot.keyspace, name)) for name in tenants]
    for one in (hot, *others):
        topics = one.topics()
        deleted = topics.deleted()
        # After a deletion that was cut short, partitions may still be in their place.
        there = {topic.name: topic for topic in (*deleted, *topics.list())}
        yield one, [tp for topic in there.values() for tp in topic.topic_partitions()]
        for topic in deleted:
            if topic.purged_ms is None:  # else it cannot come back
                kept = KeptKeys(one.keyspace, topic_id=topic.topic_id)
                yield Recovery(one.connections, kept, None), list(topic.topic_partitions())
