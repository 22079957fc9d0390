"""Who had which partition before, by what members say, who may contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ...values.topic_partition import TopicPartition


class Claim(Struct, frozen=True):
    """What a member says that it owned last."""

    partitions: Sequence[TopicPartition]
    generation_id: int  # in which it got them


def owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str | None]:
    """The owner of each claimed partition: who got it in the latest generation.

    None where two say so of the same generation. That cannot both be true, so neither keeps it.
    """
    found: dict[TopicPartition, str | None] = {}
    generations: dict[TopicPartition, int] = {}
    for member_id, claim in claims.items():
        for partition in dict.fromkeys(claim.partitions):
            known = generations.get(partition)
            if known is None or claim.generation_id > known:
                found[partition] = member_id
                generations[partition] = claim.generation_id
            elif claim.generation_id == known:
                found[partition] = None
    return found
