"""As even as possible, and then as much as possible with whoever had it before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...errors import SchemaError
from ...values.topic_partition import TopicPartition
from ..protocol import NO_GENERATION, Assignment, Reader, Subscription, Writer
from .assignor import Assignor, RebalanceProtocol, Subscriber
from .balance import Claim, balanced, owners


class StickyAssignor(Assignor):
    """Members tell in their user data what they had: as eager ones they own nothing any more.

    Source: KIP-54; the user data is Kafka's ``StickyAssignorUserData`` version 1.
    """

    name = "sticky"

    def user_data(self, owned: Sequence[TopicPartition], generation_id: int) -> bytes | None:
        if generation_id == NO_GENERATION and not owned:
            return None
        writer = Writer()
        writer.topic_partitions(owned)
        writer.int32(generation_id)
        return writer.taken()

    def assign(
        self, partition_counts: Mapping[str, int], subscribers: Mapping[str, Subscriber]
    ) -> dict[str, Assignment]:
        claims = {
            member_id: _claim_by_user_data(subscriber.subscription)
            for member_id, subscriber in subscribers.items()
        }
        given = balanced(partition_counts, subscribers, owners(claims), claims)
        return {member_id: Assignment(tuple(found)) for member_id, found in given.items()}


def _claim_by_user_data(subscription: Subscription) -> Claim:
    """What the user data says; none that can be read is nothing owned, as in Kafka."""
    if not subscription.user_data:
        return Claim((), NO_GENERATION)
    reader = Reader(subscription.user_data, "the user data of a sticky member")
    try:
        partitions = reader.topic_partitions()
    except SchemaError:
        return Claim((), NO_GENERATION)
    try:
        return Claim(partitions, reader.int32())
    except SchemaError:  # version 0 had no generation
        return Claim(partitions, NO_GENERATION)


class CooperativeStickyAssignor(Assignor):
    """A partition that moves is given to nobody at first. Its owner sees that it is gone, gives it
    up and joins again; the assignment after that hands it over.

    Source: KIP-429. The user data is the generation alone, for members of version 1, whose
    subscription has no field for it.
    """

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def user_data(self, owned: Sequence[TopicPartition], generation_id: int) -> bytes | None:
        writer = Writer()
        writer.int32(generation_id)
        return writer.taken()

    def assign(
        self, partition_counts: Mapping[str, int], subscribers: Mapping[str, Subscriber]
    ) -> dict[str, Assignment]:
        claims = {
            member_id: _owned(subscriber.subscription)
            for member_id, subscriber in subscribers.items()
        }
        owned = owners(claims)
        claimants: dict[TopicPartition, set[str]] = defaultdict(set)
        for member_id, claim in claims.items():
            for partition in claim.partitions:
                claimants[partition].add(member_id)

        def may_have(member_id: str, partition: TopicPartition) -> bool:
            others = claimants.get(partition, set()) - {member_id}
            return not others or owned.get(partition) == member_id

        given = balanced(partition_counts, subscribers, owned, claims)
        return {
            member_id: Assignment(tuple(tp for tp in found if may_have(member_id, tp)))
            for member_id, found in given.items()
        }


def _owned(subscription: Subscription) -> Claim:
    generation_id = subscription.generation_id
    if generation_id == NO_GENERATION and subscription.user_data:
        try:
            generation_id = Reader(subscription.user_data, "a generation").int32()
        except SchemaError:  # another assignor's: its owner is as one without a generation
            generation_id = NO_GENERATION
    return Claim(subscription.owned_partitions, generation_id)
