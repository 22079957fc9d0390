"""Assignments: Kafka's own cases, what holds of each, and kafka-python beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from lakelog.errors import InvalidArgumentError
from lakelog.groups.assignors import ASSIGNORS, RebalanceProtocol, Subscriber, assignor_named
from lakelog.groups.protocol import Subscription
from lakelog.values.topic_partition import TopicPartition

Owned = Mapping[str, tuple[TopicPartition, ...]]
CASES = yaml.safe_load(Path(__file__).with_name("assignor_cases.yml").read_text("utf-8"))
STICKY = ("sticky", "cooperative-sticky")
ROUNDS = 4  # Kafka's tests let a cooperative group settle in so many


def partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


@dataclass
class Group:
    """Members that join again and again, each telling what it has."""

    assignor: str
    counts: dict[str, int] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    owned: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    version: int = 3

    def subscribers(self) -> dict[str, Subscriber]:
        found = {}
        for member_id, member in self.members.items():
            owned = self.owned.get(member_id, ())
            generation = self.generations.get(member_id, -1)
            is_cooperative = self.assignor == "cooperative-sticky"
            joined = Subscription(
                tuple(member["topics"]),
                assignor_named(self.assignor).user_data(owned, generation),
                owned if is_cooperative else (),
                generation if is_cooperative else -1,
            )
            # Over the wire, so that what a version lacks is missing. Its order is another, however.
            decoded = Subscription.decode(joined.encode(self.version))
            if is_cooperative:
                decoded = Subscription(
                    decoded.topics, decoded.user_data, owned, decoded.generation_id
                )
            found[member_id] = Subscriber(decoded, member.get("instance"))
        return found

    def rebalance(self) -> dict[str, tuple[TopicPartition, ...]]:
        """One assignment, checked for what holds of every one."""
        subscribers = self.subscribers()
        found = assignor_named(self.assignor).assign(self.counts, subscribers)
        given = {member_id: assignment.partitions for member_id, assignment in found.items()}
        check_validity(self.counts, self.members, given)
        if self.assignor == "cooperative-sticky":
            self.check_nothing_is_taken_from_a_live_owner(given)
        else:
            check_all_is_given(self.counts, self.members, given)
        return given

    def settle(self) -> list[dict[str, tuple[TopicPartition, ...]]]:
        """As many assignments as it takes until nobody has to give anything up."""
        rounds = [self.rebalance()]
        while self.assignor == "cooperative-sticky" and self.revoked(rounds[-1]):
            self.own(rounds[-1])
            rounds.append(self.rebalance())
            assert len(rounds) <= ROUNDS
        self.own(rounds[-1])
        check_all_is_given(self.counts, self.members, rounds[-1])
        if self.assignor in STICKY:
            check_balance(self.members, rounds[-1])
        return rounds

    def own(self, given: Owned) -> None:
        self.owned = dict(given)
        generation = 1 + max(self.generations.values(), default=0)
        self.generations = dict.fromkeys(given, generation)

    def revoked(self, given: Owned) -> set[TopicPartition]:
        return {tp for m in given for tp in set(self.owned.get(m, ())) - set(given[m])}

    def check_nothing_is_taken_from_a_live_owner(self, given: Owned) -> None:
        for member_id, found in given.items():
            for tp in set(found) - set(self.owned.get(member_id, ())):
                others = [m for m in self.members if tp in self.owned.get(m, ())]
                assert not others, f"{tp} goes to {member_id} while {others} have it"


def check_validity(counts: Mapping[str, int], members: Mapping[str, Any], given: Owned) -> None:
    assert given.keys() == members.keys()
    everything = [tp for found in given.values() for tp in found]
    assert len(everything) == len(set(everything)), "a partition has two owners"
    for member_id, found in given.items():
        for topic, number in found:
            assert topic in members[member_id]["topics"]
            assert 0 <= number < counts[topic]


def check_all_is_given(counts: Mapping[str, int], members: Mapping[str, Any], given: Owned) -> None:
    topics = {topic for member in members.values() for topic in member["topics"]}
    wanted = {TopicPartition(t, number) for t in topics for number in range(counts.get(t, 0))}
    assert {tp for found in given.values() for tp in found} == wanted


def check_balance(members: Mapping[str, Any], given: Owned) -> None:
    """No partition could go to a subscriber that has two less than its owner."""
    for owner, found in given.items():
        for topic in {tp.topic for tp in found}:
            for other in given:
                if topic in members[other]["topics"]:
                    assert len(given[other]) >= len(found) - 1, f"{owner} → {other}: {topic}"


def runs() -> list[Any]:
    return [
        pytest.param(case, assignor, id=f"{case['kafka'][1]}-{assignor}")
        for case in CASES
        for assignor in (STICKY if case["assignor"] == "stickies" else [case["assignor"]])
    ]


@pytest.mark.parametrize(("case", "assignor"), runs())
def test_kafkas_case(case: dict[str, Any], assignor: str) -> None:
    group = Group(assignor, version=case.get("version", 3))
    for step in case["steps"]:
        group.counts = step.get("counts", group.counts)
        for member_id, said in step["members"].items():
            member = said if isinstance(said, dict) else {"topics": said}
            group.members.pop(member_id, None)
            if said is None:
                continue
            group.members[member_id] = member
            if "owned" in member:
                group.owned[member_id] = tuple(map(partition, member["owned"]))
                group.generations[member_id] = member.get("generation", 1)
        rounds = group.settle()
        if "expect" in step:
            expected = {m: list(map(partition, found)) for m, found in step["expect"].items()}
            in_order = step.get("in order", False)
            found = {m: list(given) for m, given in rounds[-1].items()}
            key = list if in_order else sorted
            assert {m: key(given) for m, given in found.items()} == {
                m: key(given) for m, given in expected.items()
            }
        if "sizes" in step:
            assert sorted(map(len, rounds[-1].values())) == step["sizes"]
        if assignor == "cooperative-sticky":
            first = {tp for found in rounds[0].values() for tp in found}
            last = {tp for found in rounds[-1].values() for tp in found}
            assert last - first == set(map(partition, step.get("withheld", ())))


# -- what holds of any ---------------------------------------------------------------------------

TOPICS = ("a", "b", "c", "d")
counts_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7))
topics_of = st.lists(st.sampled_from(TOPICS), unique=True, max_size=4)
member_ids = st.lists(st.sampled_from("ABCDEFGH"), unique=True, min_size=1, max_size=7)


@st.composite
def groups(draw: st.DrawFn, assignor: str, *, alike: bool | None = None) -> Group:
    """A group whose members claim anything."""
    group = Group(assignor, draw(counts_of))
    same = draw(topics_of)
    is_alike = draw(st.booleans()) if alike is None else alike
    for member_id in draw(member_ids):
        group.members[member_id] = {"topics": same if is_alike else draw(topics_of)}
        if draw(st.booleans()):
            group.members[member_id]["instance"] = f"i{member_id}"
        claimed = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 8))
        group.owned[member_id] = tuple(draw(st.lists(claimed, unique=True, max_size=8)))
        group.generations[member_id] = draw(st.integers(-1, 3))
    return group


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(data=st.data())
def test_each_partition_gets_one_subscriber(assignor: str, data: st.DataObject) -> None:
    data.draw(groups(assignor)).settle()


@pytest.mark.parametrize("assignor", STICKY)
@given(data=st.data())
def test_nothing_moves_when_nothing_changed(assignor: str, data: st.DataObject) -> None:
    group = data.draw(groups(assignor))
    before = group.settle()[-1]
    again = group.settle()
    assert len(again) == 1
    assert {m: set(found) for m, found in again[0].items()} == {
        m: set(found) for m, found in before.items()
    }


@given(data=st.data())
def test_members_alike_keep_as_much_as_even_shares_allow(data: st.DataObject) -> None:
    group = data.draw(groups("sticky", alike=True))
    group.settle()
    changed = data.draw(groups("sticky", alike=True))
    changed.owned, changed.generations = group.owned, group.generations
    had = {
        m: {
            tp
            for tp in changed.owned.get(m, ())
            if tp.topic in member["topics"] and tp.partition < changed.counts.get(tp.topic, 0)
        }
        for m, member in changed.members.items()
    }
    given = changed.rebalance()
    total = sum(map(len, given.values()))
    least, larger = divmod(total, len(given))
    most = sum(min(len(found), least) for found in had.values())
    most += min(larger, sum(len(found) > least for found in had.values()))
    assert sum(len(had[m] & set(found)) for m, found in given.items()) == most


@given(data=st.data())
def test_no_two_partitions_of_a_topic_change_places(data: st.DataObject) -> None:
    group = data.draw(groups("sticky"))
    group.settle()
    before = {tp: m for m, found in group.owned.items() for tp in found}
    changed = data.draw(groups("sticky"))
    changed.owned, changed.generations = group.owned, group.generations
    moves = {
        (tp.topic, before[tp], m)
        for m, found in changed.rebalance().items()
        for tp in found
        if before.get(tp, m) != m
        and before[tp] in changed.members
        and tp.topic in changed.members[before[tp]]["topics"]
    }
    assert not {(topic, taker, giver) for topic, giver, taker in moves} & moves


@given(data=st.data())
def test_a_static_member_under_a_new_id_gets_what_it_had(data: st.DataObject) -> None:
    for assignor in ("range", "roundrobin"):
        group = data.draw(groups(assignor))
        for member in group.members.values():
            member.setdefault("instance", f"i{id(member)}")
        before = group.rebalance()
        new_ids = dict(zip(group.members, sorted(group.members, reverse=True), strict=True))
        group.members = {new_ids[m]: member for m, member in group.members.items()}
        assert group.rebalance() == {new_ids[m]: found for m, found in before.items()}


# -- kafka-python --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignor", "theirs", "alike"),
    [
        ("range", RangePartitionAssignor, None),
        ("roundrobin", RoundRobinPartitionAssignor, True),  # it cannot pass a member over
    ],
)
@given(data=st.data())
def test_kafka_python_gives_the_same(
    assignor: str, theirs: Any, alike: bool | None, data: st.DataObject
) -> None:
    group = data.draw(groups(assignor, alike=alike))
    ours = {m: sorted(found) for m, found in group.rebalance().items()}
    assert their_assignment(theirs, group) == ours


@given(data=st.data())
def test_kafka_python_moves_no_fewer_of_a_sticky_group_alike(data: st.DataObject) -> None:
    """It reads what sticky members say with a version before it, so it is told that here."""
    group = data.draw(groups("sticky", alike=True))
    group.settle()
    ours = group.rebalance()
    theirs = their_assignment(StickyPartitionAssignor(), group)
    assert sorted(map(len, theirs.values())) == sorted(map(len, ours.values()))
    assert stays(group.owned, ours) >= stays(group.owned, theirs)


def stays(before: Owned, after: Mapping[str, Any]) -> int:
    return sum(len(set(before[m]) & set(found)) for m, found in after.items())


def their_assignment(theirs: Any, group: Group) -> dict[str, list[TopicPartition]]:
    cluster = SimpleNamespace(
        partitions_for_topic=lambda t: set(range(group.counts[t])) if group.counts.get(t) else None,
        topics=lambda: {topic for topic, count in group.counts.items() if count},
    )
    members = [
        SimpleNamespace(
            member_id=member_id,
            group_instance_id=subscriber.instance_id,
            metadata=ConsumerProtocolSubscription(
                0,
                list(subscriber.subscription.topics),
                b"\x00\x01" + (subscriber.subscription.user_data or b""),
            ),
        )
        for member_id, subscriber in group.subscribers().items()
    ]
    members.sort(key=lambda member: member.group_instance_id is None)  # it groups neighbours
    return {
        member_id: sorted(TopicPartition(*tp) for tp in assignment.partitions())
        for member_id, assignment in theirs.assign(cluster, members).items()
    }


def test_assignors_are_found_by_kafkas_names() -> None:
    assert list(ASSIGNORS) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert assignor_named("range").protocols == (RebalanceProtocol.EAGER,)
    assert RebalanceProtocol.COOPERATIVE in assignor_named("cooperative-sticky").protocols
    with pytest.raises(InvalidArgumentError, match="there is no assignor 'fair'"):
        assignor_named("fair")


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_hundred_thousand_partitions_are_shared_out(assignor: str) -> None:
    """Of unlike subscriptions, and again when members come and go."""
    names = [f"t{n:03}" for n in range(100)]
    group = Group(assignor, dict.fromkeys(names, 1_000))
    for n in range(60):
        group.members[f"m{n:02}"] = {"topics": names[:50] if n % 4 == 0 else names}
    group.settle()
    del group.members["m07"]
    group.members["m99"] = {"topics": names[10:]}
    group.settle()
