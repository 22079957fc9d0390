"""Which member of a group by Kafka's consumer protocol is to have what: the server's assignors."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..base import compute as pc
from ..errors import InvalidRegularExpressionError
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .assignors import RangeAssignor, Subscriber
from .assignors.balance import Claim, balanced, owners
from .consumer_values import ConsumerMember, TopicIdPartition
from .protocol import NO_GENERATION, Subscription

UNIFORM, RANGE, SIMPLE = "uniform", "range", "simple"

#: The first is taken where no member asks for one.
ASSIGNORS = (UNIFORM, RANGE)


class TargetAssignment(Struct, frozen=True):
    """What each member is to have once all have given up what they are to lose."""

    assignor: str
    partitions: Mapping[str, tuple[TopicIdPartition, ...]]  # by member id
    digest: str  # of the topics that mattered: another one means that it is to be made anew


def target_assignment(
    members: Sequence[ConsumerMember], topics: Mapping[str, Topic], *, is_share_group: bool = False
) -> TargetAssignment:
    """Shares out the partitions of all topics that members subscribe to, each to one of these.
    Members of a share group get all partitions of their topics, each of them.

    ``uniform`` gives even shares and leaves with a member as much of its last target as it can;
    ``range`` gives neighbouring partitions, topic by topic. The one that most members ask for is
    taken. Racks play no part.

    Args:
        topics: those there are, by name.

    Source: ``UniformAssignor`` and ``RangeAssignor`` of Kafka's group coordinator.
    """
    subscribers = {
        one.member_id: Subscriber(
            Subscription(tuple(sorted(subscribed(one, topics)))), one.instance_id
        )
        for one in members
    }
    named = {topic for one in subscribers.values() for topic in one.subscription.topics}
    counts = {topic: topics[topic].partitions for topic in sorted(named)}
    assignor = SIMPLE if is_share_group else _chosen(members)
    given: Mapping[str, Sequence[TopicPartition]]
    if is_share_group:
        given = {
            member_id: [
                TopicPartition(topic, number)
                for topic in one.subscription.topics
                for number in range(counts[topic])
            ]
            for member_id, one in subscribers.items()
        }
    elif assignor == RANGE:
        ranges = RangeAssignor().assign(counts, subscribers)
        given = {member_id: one.partitions for member_id, one in ranges.items()}
    else:
        claims = {
            one.member_id: Claim(
                [
                    part.topic_partition
                    for part in one.target
                    if part.is_of(topics.get(part.topic_partition.topic))
                ],
                NO_GENERATION,
            )
            for one in members
        }
        given = balanced(counts, subscribers, owners(claims), claims)
    mattered = repr([(name, topics[name].topic_id.hex, count) for name, count in counts.items()])
    return TargetAssignment(
        assignor,
        {
            member_id: tuple(TopicIdPartition(topics[tp.topic].topic_id, tp) for tp in found)
            for member_id, found in given.items()
        },
        hashlib.blake2b(mattered.encode(), digest_size=8).hexdigest(),
    )


def _chosen(members: Sequence[ConsumerMember]) -> str:
    votes = Counter(one.assignor for one in members if one.assignor)
    return max(ASSIGNORS, key=lambda name: votes[name])  # the first of several


def subscribed(member: ConsumerMember, topics: Mapping[str, Topic]) -> set[str]:
    """The topics that a member subscribes to and that are there."""
    found = {name for name in member.topics if name in topics}
    return found | set(matching(member.regex, list(topics))) if member.regex else found


def matching(regex: str, names: Sequence[str]) -> list[str]:
    """Those that a regular expression of RE2's syntax matches as a whole.

    RE2, as Kafka: an expression of a client's must not take more than linear time.

    Raises:
        InvalidRegularExpressionError: it is none.
    """
    import pyarrow as pa

    try:
        pc.match_substring_regex(pa.array([""]), regex)  # by itself, without what is put around it
        mask = pc.match_substring_regex(pa.array(names, pa.string()), rf"\A(?:{regex})\z")
    except pa.ArrowInvalid as error:
        raise InvalidRegularExpressionError(
            f"{regex!r} is no regular expression of RE2's syntax: {error}. Correct it, or "
            "subscribe to topics by name",
            regex=regex,
        ) from error
    return [name for name, is_match in zip(names, mask.to_pylist(), strict=True) if is_match]
