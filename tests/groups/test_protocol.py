"""The bytes that members of a group exchange: kafka-python reads and writes the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from lakelog.errors import InvalidArgumentError, SchemaError
from lakelog.groups.assignors import assignor_named
from lakelog.groups.protocol import NEWEST_VERSION, Assignment, Subscription
from lakelog.values.topic_partition import TopicPartition

topics = st.text("abxyz-_.é", min_size=1, max_size=6)
int32s = st.integers(-(2**31), 2**31 - 1)
partitions = st.lists(
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)), unique=True, max_size=8
).map(lambda found: tuple(sorted(found)))
user_data = st.none() | st.binary(max_size=20)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(topics, unique=True, max_size=6).map(lambda found: tuple(sorted(found))),
    user_data=user_data,
    owned_partitions=partitions,
    generation_id=int32s,
    rack_id=st.none() | st.text(max_size=10),
)
assignments = st.builds(Assignment, partitions=partitions, user_data=user_data)
versions = st.integers(0, NEWEST_VERSION)


def by_topic(found: tuple[TopicPartition, ...]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in found:
        grouped.setdefault(topic, []).append(partition)
    return grouped


@given(subscriptions, versions)
def test_kafka_python_writes_the_same_subscription(
    subscription: Subscription, version: int
) -> None:
    owned = [
        ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in by_topic(subscription.owned_partitions).items()
    ]
    theirs = ConsumerProtocolSubscription(
        version=version,
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=owned,
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    assert subscription.encode(version) == theirs.encode()


@given(subscriptions, versions)
def test_a_subscription_comes_back_without_what_its_version_lacks(
    subscription: Subscription, version: int
) -> None:
    expected = Subscription(
        subscription.topics,
        subscription.user_data,
        subscription.owned_partitions if version >= 1 else (),
        subscription.generation_id if version >= 2 else -1,
        subscription.rack_id if version >= 3 else None,
    )
    assert Subscription.decode(subscription.encode(version)) == expected


@given(assignments, versions)
def test_kafka_python_writes_the_same_assignment_and_reads_ours(
    assignment: Assignment, version: int
) -> None:
    ours = assignment.encode(version)
    grouped = list(by_topic(assignment.partitions).items())
    theirs = ConsumerProtocolAssignment(
        version=version, assigned_partitions=grouped, user_data=assignment.user_data
    )
    assert ours == theirs.encode()
    assert tuple(ConsumerProtocolAssignment.decode(ours).partitions()) == assignment.partitions
    assert Assignment.decode(ours) == assignment


@given(subscriptions, st.binary(max_size=20), st.integers(NEWEST_VERSION + 1, 2**15 - 1))
def test_a_newer_version_is_read_as_the_newest_that_is_known(
    subscription: Subscription, added: bytes, version: int
) -> None:
    newest = subscription.encode()
    assert Subscription.decode(version.to_bytes(2, "big") + newest[2:] + added) == subscription


@given(
    st.binary(max_size=60)
    | st.builds(
        lambda count, rest: b"\0\1" + count + rest,
        st.binary(min_size=4, max_size=4),
        st.binary(max_size=40),
    )
    | st.sampled_from([b"\0\3\x7f\xff\xff\xff", b"[" * 5_000, b"9" * 5_000])
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for of in (Subscription, Assignment):
        try:
            found = of.decode(data)
        except SchemaError:
            continue
        assert isinstance(found, of)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff\xff", "version -1 is negative"),
        (b"\x00\x00\x7f\xff\xff\xff", "an array says that it has 2147483647 elements"),
        (b"\x00\x00\xff\xff\xff\xff", "an array says that it has -1 elements"),
        (b"\x00\x00\x00\x00\x00\x01\xff\xff", "a text that must be there is null"),
        (b"\x00\x00\x00\x00\x00\x01\x00\x01\xff", "a text is not UTF-8"),
        (b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xfe", "a value says that it has -2 bytes"),
    ],
)
def test_what_is_wrong_with_a_subscription_is_said(data: bytes, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        Subscription.decode(data)


@pytest.mark.parametrize("version", [-1, NEWEST_VERSION + 1])
def test_a_version_that_there_is_not_is_refused(version: int) -> None:
    with pytest.raises(InvalidArgumentError, match="version"):
        Subscription(()).encode(version)


@given(partitions, st.integers(0, 2**31 - 1))
def test_sticky_members_tell_what_they_had_as_kafka_python_does(
    owned: tuple[TopicPartition, ...], generation_id: int
) -> None:
    of = StickyAssignorUserData.TopicPartition
    theirs = StickyAssignorUserData(
        previous_assignment=[of(topic=t, partitions=found) for t, found in by_topic(owned).items()],
        generation=generation_id,
    )
    # Java's client writes no version before it; kafka-python's assignor does.
    assert assignor_named("sticky").user_data(owned, generation_id) == theirs.encode(header=False)
