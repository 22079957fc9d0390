"""The even shares of the sticky assignors, and what stays where it was.

With equal subscriptions every member gets ⌊partitions / members⌋ or one more, and keeps as much of
what it had as that allows. With unlike ones no partition could go to another subscriber that has
two partitions less than its owner; among such assignments this takes one in which few moved.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from ...values.topic_partition import TopicPartition
from .assignor import Subscriber, partitions_of, subscribers_by_topic

Given = dict[str, list[TopicPartition]]
#: Who had them → who has them now → the partitions, of one topic.
Moves = dict[str, dict[str, list[TopicPartition]]]


def balanced(
    partition_counts: Mapping[str, int],
    subscribers: Mapping[str, Subscriber],
    owned: Mapping[TopicPartition, str | None],
    claims: Mapping[str, Claim],
) -> Given:
    """Member id → its partitions, first those that it had.

    Args:
        partition_counts: topic → partitions.
        subscribers: member id → what it asks for.
        owned: see `owners`; what nobody can have any more is passed over.
        claims: member id → what it says it had, which gives the order in which it keeps it.
    """
    members = sorted(subscribers)
    by_topic = subscribers_by_topic(partition_counts, subscribers, members)
    takers = {topic: frozenset(of_topic) for topic, of_topic in by_topic.items()}
    kept: Given = {
        member_id: [
            tp
            for tp in dict.fromkeys(claims[member_id].partitions)
            if owned.get(tp) == member_id
            and 0 <= tp.partition < partition_counts.get(tp.topic, 0)
            and member_id in takers.get(tp.topic, ())
        ]
        for member_id in members
    }
    topics = {frozenset(subscribers[member_id].subscription.topics) for member_id in members}
    if len(topics) == 1:
        return _equal_shares(
            [tp for t in by_topic for tp in partitions_of(t, partition_counts)], kept
        )
    before = {tp: member_id for member_id, found in kept.items() for tp in found}
    _give_to_least(_free(partition_counts, by_topic, before), by_topic, kept)
    _even_out(by_topic, kept, before)
    _undo_circles(by_topic, kept, before)
    return kept


def _equal_shares(partitions: Sequence[TopicPartition], kept: Given) -> Given:
    """Everybody subscribes to the same topics."""
    if not kept:
        return {}
    least, larger = divmod(len(partitions), len(kept))  # so many members get one more than least
    given: Given = {}
    below: deque[str] = deque()
    at_least: deque[str] = deque()
    for member_id, found in kept.items():
        size = least + 1 if larger and len(found) > least else min(least, len(found))
        larger -= size > least
        given[member_id] = found[:size]
        (below if size < least else at_least).append(member_id)
    if larger:
        at_least = deque(m for m in at_least if len(given[m]) == least)
    taken = {tp for found in given.values() for tp in found}
    for tp in partitions:
        if tp in taken:
            continue
        if below:
            member_id = below.popleft()
            given[member_id].append(tp)
            (below if len(given[member_id]) < least else at_least).append(member_id)
        else:
            given[at_least.popleft()].append(tp)
    return given


def _free(
    partition_counts: Mapping[str, int],
    by_topic: Mapping[str, Sequence[str]],
    before: Mapping[TopicPartition, str],
) -> list[TopicPartition]:
    """What nobody has, first the topics with few subscribers."""
    topics = sorted(by_topic, key=lambda topic: (len(by_topic[topic]), topic))
    return [tp for t in topics for tp in partitions_of(t, partition_counts) if tp not in before]


def _give_to_least(
    free: Iterable[TopicPartition], by_topic: Mapping[str, Sequence[str]], given: Given
) -> None:
    """Each to whichever of its subscribers has the fewest so far."""
    heaps: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for tp in free:
        key = tuple(by_topic[tp.topic])
        heap = heaps.get(key)
        if heap is None:
            heap = heaps[key] = [(len(given[member_id]), member_id) for member_id in key]
            heapq.heapify(heap)
        while heap[0][0] != len(given[heap[0][1]]):  # it got something through another topic
            heapq.heapreplace(heap, (len(given[heap[0][1]]), heap[0][1]))
        member_id = heap[0][1]
        given[member_id].append(tp)
        heapq.heapreplace(heap, (len(given[member_id]), member_id))


def _even_out(
    by_topic: Mapping[str, Sequence[str]], given: Given, before: Mapping[TopicPartition, str]
) -> None:
    """Moves one partition at a time to a subscriber that has two less, until there is none.

    It ends: each move makes the sum of the squared sizes smaller.
    """
    moved = True
    while moved:
        moved = False
        for topic, members in by_topic.items():
            while (move := _next_move(topic, members, given, before)) is not None:
                tp, giver, taker = move
                given[giver].remove(tp)
                given[taker].append(tp)
                moved = True


def _next_move(
    topic: str, members: Sequence[str], given: Given, before: Mapping[TopicPartition, str]
) -> tuple[TopicPartition, str, str] | None:
    taker = min(members, key=lambda member_id: len(given[member_id]))
    for giver in sorted(members, key=lambda member_id: -len(given[member_id])):
        if len(given[giver]) < len(given[taker]) + 2:
            return None
        found = [tp for tp in given[giver] if tp.topic == topic]
        if found:
            # Best one that the taker had, then one that the giver did not have either.
            had = {tp: before.get(tp) for tp in found}
            best = min(found, key=lambda tp: (had[tp] != taker, had[tp] == giver))
            return best, giver, taker
    return None


def _undo_circles(
    by_topic: Iterable[str], given: Given, before: Mapping[TopicPartition, str]
) -> None:
    """Gives back what went around in a circle: A's partition to B while one of B's came to A.

    Nobody has more or fewer for it.
    """
    moves: dict[str, Moves] = {topic: defaultdict(dict) for topic in by_topic}
    for member_id, found in given.items():
        for tp in found:
            owner = before.get(tp, member_id)
            if owner != member_id:
                moves[tp.topic][owner].setdefault(member_id, []).append(tp)
    for of_topic in moves.values():
        while circle := _circle(of_topic):
            for giver, taker in circle:
                tp = of_topic[giver][taker].pop()
                if not of_topic[giver][taker]:
                    del of_topic[giver][taker]
                given[taker].remove(tp)
                given[giver].append(tp)


def _circle(moves: Moves) -> list[tuple[str, str]]:
    """Some circle of the graph as its edges; none if there is no circle."""
    done: set[str] = set()
    for start in list(moves):
        path: list[str] = []
        branches = [iter([start])]
        while branches:
            member_id = next(branches[-1], None)
            if member_id is None:
                branches.pop()
                if path:
                    done.add(path.pop())
            elif member_id in path:
                return list(pairwise([*path[path.index(member_id) :], member_id]))
            elif member_id not in done:
                path.append(member_id)
                branches.append(iter(list(moves.get(member_id, ()))))
    return []


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
