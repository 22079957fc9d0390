"""What a reset of a group's offsets has to know of partitions, read with one look at each topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..groups.reset import PartitionFacts
from ..read.topic_log import TopicLog
from ..values.offsets import AtTimestamp, LogOffsets
from ..values.topic_partition import TopicPartition


def partition_facts(
    logs: Mapping[str, TopicLog],
    partitions: Iterable[TopicPartition],
    known: Mapping[TopicPartition, int],
    at_ms: int | None,
) -> dict[TopicPartition, PartitionFacts]:
    """The facts of each partition, in the order of the topics.

    Args:
        logs: of all their topics.
        known: where the group is, as far as it is anywhere.
        at_ms: the time that the scenario goes to, if it goes to one.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
    """
    facts = {}
    for tp, log in log_offsets(logs, partitions).items():
        found = None if at_ms is None else logs[tp.topic].seek(tp.partition, AtTimestamp(at_ms))
        facts[tp] = PartitionFacts(log.log_start, log.log_end, known.get(tp), found)
    return facts


def log_offsets(
    logs: Mapping[str, TopicLog], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LogOffsets]:
    """Where each begins and ends.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(logs[topic].topic.partition(number).partition)
    return {
        TopicPartition(topic, number): found
        for topic, numbers in by_topic.items()
        for number, found in logs[topic].offsets(numbers).items()
    }
