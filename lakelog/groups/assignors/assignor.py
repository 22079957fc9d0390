"""What every assignor is: a pure function from subscriptions to assignments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import ClassVar

from msgspec import Struct

from ...values.topic_partition import TopicPartition
from ..protocol import Assignment, Subscription


class RebalanceProtocol(IntEnum):
    """What members do with their partitions while they join again (Kafka's numbers)."""

    EAGER = 0  # they give all up before they join
    COOPERATIVE = 1  # they keep them, and give up only what the assignment takes (KIP-429)


class Subscriber(Struct, frozen=True):
    """A member as the assignor sees it."""

    subscription: Subscription
    instance_id: str | None = None  # of a static member


class Assignor(ABC):
    """Decides which member reads which partition. The leader of a group calls it.

    It keeps nothing between calls: what a sticky one must remember, members carry along in their
    subscriptions.
    """

    name: ClassVar[str]
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)

    def user_data(self, owned: Sequence[TopicPartition], generation_id: int) -> bytes | None:
        """What a member that joins sends along for this assignor.

        Args:
            owned: the partitions of its last assignment.
            generation_id: of that assignment; -1: there was none.
        """
        return None

    @abstractmethod
    def assign(
        self, partition_counts: Mapping[str, int], subscribers: Mapping[str, Subscriber]
    ) -> dict[str, Assignment]:
        """An assignment for each member; each partition of a subscribed topic is in at most one.

        Args:
            partition_counts: topic → partitions; a topic that is missing is not there.
            subscribers: member id → what it asks for.
        """


def in_order(subscribers: Mapping[str, Subscriber]) -> list[str]:
    """Member ids: static members by instance id, then the others by member id.

    So a static member keeps its place when it comes back under another member id.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = subscribers[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(subscribers, key=place)


def subscribers_by_topic(
    partition_counts: Mapping[str, int], subscribers: Mapping[str, Subscriber], order: Iterable[str]
) -> dict[str, list[str]]:
    """Topic → its subscribers in that order, for the topics that have partitions; by topic."""
    found: dict[str, list[str]] = {}
    for member_id in order:
        for topic in set(subscribers[member_id].subscription.topics):
            if partition_counts.get(topic, 0) > 0:
                found.setdefault(topic, []).append(member_id)
    return dict(sorted(found.items()))


def partitions_of(topic: str, partition_counts: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in range(partition_counts[topic])]
