"""Topic by topic: to each subscriber a run of neighbouring partitions, or one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from ...values.topic_partition import TopicPartition
from ..protocol import Assignment
from .assignor import Assignor, Subscriber, in_order, partitions_of, subscribers_by_topic


class RangeAssignor(Assignor):
    """The first subscribers of a topic get one partition more where it does not divide evenly.

    Topics with equally many partitions and the same subscribers are shared out alike, so that
    partition 3 of one is read beside partition 3 of the other. Racks are not looked at: a partition
    here lies in one Redis.
    """

    name = "range"

    def assign(
        self, partition_counts: Mapping[str, int], subscribers: Mapping[str, Subscriber]
    ) -> dict[str, Assignment]:
        given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in subscribers}
        order = in_order(subscribers)
        for topic, of_topic in subscribers_by_topic(partition_counts, subscribers, order).items():
            partitions = partitions_of(topic, partition_counts)
            each, extra = divmod(len(partitions), len(of_topic))
            start = 0
            for place, member_id in enumerate(of_topic):
                end = start + each + (place < extra)
                given[member_id] += partitions[start:end]
                start = end
        return {member_id: Assignment(tuple(found)) for member_id, found in given.items()}


class RoundRobinAssignor(Assignor):
    """Whoever does not subscribe to the topic is passed over, so unlike subscriptions can leave
    members with unlike numbers of partitions.
    """

    name = "roundrobin"

    def assign(
        self, partition_counts: Mapping[str, int], subscribers: Mapping[str, Subscriber]
    ) -> dict[str, Assignment]:
        given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in subscribers}
        order = in_order(subscribers)
        turns = cycle(order)
        for topic, of_topic in subscribers_by_topic(partition_counts, subscribers, order).items():
            takers = frozenset(of_topic)
            for partition in partitions_of(topic, partition_counts):
                given[next(turn for turn in turns if turn in takers)].append(partition)
        return {member_id: Assignment(tuple(found)) for member_id, found in given.items()}
