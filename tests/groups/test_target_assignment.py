"""The server's assignors: what holds of each, whatever members ask for."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidRegularExpressionError
from lakelog.groups.consumer_values import ConsumerMember, TopicIdPartition
from lakelog.groups.target_assignment import (
    ASSIGNORS,
    TargetAssignment,
    matching,
    subscribed,
    target_assignment,
)
from lakelog.values.topic import Topic

NAMES = ("a", "b", "ab")


def topic(name: str, partitions: int, number: int = 0) -> Topic:
    return Topic(name, UUID(int=NAMES.index(name) + 10 * number + 1), partitions)


TOPICS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 7)).map(
    lambda found: {name: topic(name, count) for name, count in found.items()}
)
MEMBERS = st.lists(
    st.builds(
        ConsumerMember,
        member_id=st.sampled_from("ABCDE"),
        topics=st.sets(st.sampled_from(NAMES)).map(lambda names: tuple(sorted(names))),
        regex=st.sampled_from(["", "a.*", "b"]),
        assignor=st.sampled_from(["", *ASSIGNORS]),
    ),
    max_size=5,
    unique_by=lambda one: one.member_id,
)


def given_again(members: list[ConsumerMember], last: TargetAssignment) -> list[ConsumerMember]:
    return [
        ConsumerMember(
            member_id=one.member_id,
            topics=one.topics,
            assignor="uniform",
            target=last.partitions[one.member_id],
        )
        for one in members
    ]


@given(MEMBERS, TOPICS)
def test_each_partition_that_somebody_asks_for_goes_to_one_who_does(
    members: list[ConsumerMember], topics: dict[str, Topic]
) -> None:
    target = target_assignment(members, topics)
    found = Counter(one for given in target.partitions.values() for one in given)
    asked = {one.member_id: subscribed(one, topics) for one in members}
    assert set(found.values()) <= {1}
    assert set(found) == {
        TopicIdPartition(topics[name].topic_id, tp)
        for name in set().union(*asked.values())
        for tp in topics[name].topic_partitions()
    }
    for member_id, parts in target.partitions.items():
        assert {one.topic_partition.topic for one in parts} <= asked[member_id]


@given(MEMBERS, st.integers(1, 9))
def test_uniform_moves_no_more_than_it_must(members: list[ConsumerMember], count: int) -> None:
    alike = [
        ConsumerMember(member_id=one.member_id, topics=("a",), assignor="uniform")
        for one in members
    ]
    topics = {"a": topic("a", count)}
    first = target_assignment(alike, topics)
    assert target_assignment(given_again(alike, first), topics) == first
    if len(alike) > 1:
        left = given_again(alike, first)[1:]
        second = target_assignment(left, topics)
        for one in left:
            assert set(one.target) <= set(second.partitions[one.member_id])
    sizes = [len(given) for given in first.partitions.values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_range_gives_neighbours_topic_by_topic() -> None:
    members = [
        ConsumerMember(member_id=one, topics=("a", "b"), assignor="range") for one in ("A", "B")
    ]
    target = target_assignment(members, {"a": topic("a", 3), "b": topic("b", 3)})
    assert target.assignor == "range"
    assert [str(one.topic_partition) for one in target.partitions["A"]] == [
        *("a-0", "a-1", "b-0", "b-1")
    ]


def test_what_most_ask_for_is_taken_and_uniform_else() -> None:
    asked = [("A", "range"), ("B", ""), ("C", "uniform"), ("D", "range")]
    members = [ConsumerMember(member_id=one, topics=("a",), assignor=by) for one, by in asked]
    topics = {"a": topic("a", 1)}
    assert target_assignment(members, topics).assignor == "range"
    assert target_assignment(members[:3], topics).assignor == "uniform"
    assert target_assignment(members[1:2], topics).assignor == "uniform"


def test_a_topic_that_was_made_again_is_another_and_an_unread_one_is_none() -> None:
    members = [ConsumerMember(member_id="A", topics=("a",))]
    first = target_assignment(members, {"a": topic("a", 1), "b": topic("b", 1)})
    again = target_assignment(given_again(members, first), {"a": topic("a", 1, 1)})
    assert again.digest != first.digest
    assert again.partitions["A"][0].topic_id == topic("a", 1, 1).topic_id
    assert target_assignment(members, {"a": topic("a", 1)}).digest == first.digest


def test_a_regex_matches_whole_names_in_linear_time() -> None:
    assert matching("a|b.*", ["a", "ab", "bc", "b\n"]) == ["a", "bc"]
    assert matching("(a+)+b", ["a" * 249]) == []
    for wrong in ("(", "a)|(b", "(?=a)"):
        with pytest.raises(InvalidRegularExpressionError, match="RE2"):
            matching(wrong, ["a"])
