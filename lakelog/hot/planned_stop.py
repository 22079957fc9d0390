"""Stopping and starting a Redis on purpose without leaving gaps in its logs."""

from __future__ import annotations

from ..errors import RecoveryNeededError, UnknownTopicOrPartitionError
from ..record import TopicPartition
from .hot_log import HotLog


def pause_all(hot: HotLog) -> list[TopicPartition]:
    """Refuses appends everywhere and marks partitions clean; then Redis may be stopped.

    Returns:
        The partitions that could not be marked, because they were not recovered after the last
        stop; the next start will leave a gap in them, as it would have anyway.
    """
    # One of an unknown topic is no concern: its creation was cut short, nothing was ever appended.
    return [
        topic_partition
        for topic_partition, refused in hot.pause_each(_all(hot)).items()
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
        for topic_partition, refused in hot.resume_each(_all(hot)).items()
        if not isinstance(refused, UnknownTopicOrPartitionError)
    ]


def _all(hot: HotLog) -> list[TopicPartition]:
    return [tp for topic in hot.topics().list() for tp in topic.topic_partitions()]
