"""As even as possible, and then as much as possible with whoever had it before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import SchemaError
from ...values.topic_partition import TopicPartition
from ..protocol import NO_GENERATION, Assignment, Subscription
from ..wire import Reader, Writer
from .assignor import Assignor, Subscriber
from .balance import balanced
from .claims import Claim, owners


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
            member_id: _claim(subscriber.subscription)
            for member_id, subscriber in subscribers.items()
        }
        given = balanced(partition_counts, subscribers, owners(claims), claims)
        return {member_id: Assignment(tuple(found)) for member_id, found in given.items()}


def _claim(subscription: Subscription) -> Claim:
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
