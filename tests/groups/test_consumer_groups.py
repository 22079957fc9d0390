"""Groups by Kafka's consumer protocol (KIP-848), on a real server whose clock a test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from consumer_bench import GROUP, Client, settle
from group_bench import GroupBench

from lakelog import Lakelog, TopicPartition
from lakelog.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidArgumentError,
    InvalidRegularExpressionError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from lakelog.groups import consumer_groups
from lakelog.groups.consumer_groups import ConsumerGroups
from lakelog.groups.consumer_values import LEAVES, LEAVES_FOR_A_WHILE, ConsumerHeartbeat
from lakelog.groups.group_values import GroupState, JoinRequest, Leaving
from lakelog.groups.protocol import Subscription
from lakelog.groups.recorded_offset import GroupType
from lakelog.groups.settings import GroupSettings
from lakelog.groups.target_assignment import TargetAssignment, target_assignment
from lakelog.values.record import OffsetAndMetadata
from tests.support.servers import RedisServer

Make = Callable[..., Client]
SESSION_MS = 45_000
CLASSIC = JoinRequest((("range", Subscription(("orders",)).encode()),))
ONE = {TopicPartition("orders", 0): OffsetAndMetadata(3)}


@pytest.fixture
def make(lake: Lakelog, groups: GroupBench) -> Make:
    """``make("A", **what_it_says)``, in front of a topic of four partitions."""
    lake.topics.create("orders", 4)
    # Each of them goes its own way to Redis, as through gateways of their own.
    return lambda member_id, **said: Client(
        ConsumerGroups(groups.servers, settings=GroupSettings(max_size=3), clock=groups.clock),
        lake,
        member_id,
        **said,
    )


def state(groups: GroupBench) -> GroupState:
    return groups.admin.describe(GROUP).state


# -- sharing out ----------------------------------------------------------------------------------


def test_a_partition_moves_only_once_its_owner_has_given_it_up(
    make: Make, groups: GroupBench
) -> None:
    first, second = make("A"), make("B")
    first.say()
    first.obey()
    assert len(first.partitions) == 4
    assert state(groups) is GroupState.STABLE
    assert second.say().partitions == ()
    assert (second.epoch, state(groups)) == (2, GroupState.RECONCILING)
    first.say()
    assert (first.epoch, len(first.told)) == (1, 2)  # it is told, and has not given up yet
    assert second.say().partitions is None
    first.obey()
    first.say()
    assert first.epoch == 2
    assert len(second.say().partitions or ()) == 2
    second.obey()
    assert sorted(first.partitions + second.partitions) == [f"orders-{n}" for n in range(4)]
    assert state(groups) is GroupState.STABLE


def test_who_leaves_or_dies_makes_room(make: Make, groups: GroupBench) -> None:
    first, second, third = clients = [make(name) for name in "ABC"]
    settle(*clients)
    assert sorted(len(one.partitions) for one in clients) == [1, 1, 2]
    third.leave()
    settle(first, second)
    assert len(first.partitions) == len(second.partitions) == 2
    groups.clock.advance(SESSION_MS - 1)
    first.say()
    groups.clock.advance(1)
    settle(first)
    assert len(first.partitions) == 4
    with pytest.raises(UnknownMemberIdError):
        second.say()
    second.forget()
    settle(second, first)  # under the id that it had
    assert len(first.partitions) == len(second.partitions) == 2


def test_who_gives_nothing_up_for_its_rebalance_timeout_is_out(
    make: Make, groups: GroupBench
) -> None:
    first, second = make("A", rebalance_timeout_ms=10_000), make("B")
    settle(first)
    second.say()
    first.say()
    groups.clock.advance(9_999)
    first.say()
    assert len(groups.admin.describe(GROUP).members) == 2
    groups.clock.advance(1)
    assert len(second.say().partitions or ()) == 4
    with pytest.raises(UnknownMemberIdError):
        first.say()


def test_new_partitions_and_topics_are_seen(make: Make, lake: Lakelog) -> None:
    named = make("A", topics=("orders", "later"))
    matched = make("B", topics=(), regex="or.*")
    settle(named, matched)
    lake.topics.add_partitions("orders", 6)
    settle(named, matched)
    assert len(named.partitions) == len(matched.partitions) == 3
    lake.topics.create("other", 1)
    lake.topics.create("later", 2)
    settle(named, matched)
    assert {"later-0", "later-1"} <= {*named.partitions}
    assert "other-0" not in matched.partitions
    matched.say(regex="o.*")
    settle(named, matched)
    assert "other-0" in matched.partitions
    lake.topics.delete("orders")
    settle(named, matched)
    assert (named.partitions, matched.partitions) == (["later-0", "later-1"], ["other-0"])


def test_nothing_moves_when_a_topic_changes_that_nobody_reads(make: Make, lake: Lakelog) -> None:
    client = make("A")
    settle(client)
    lake.topics.create("strange", 1)
    settle(client)
    assert client.epoch == 1


def test_members_choose_among_the_servers_assignors(make: Make, groups: GroupBench) -> None:
    settle(make("A", assignor="range"))
    assert groups.admin.describe(GROUP).protocol_name == "range"


# -- epochs and ids -------------------------------------------------------------------------------


def test_a_lost_answer_is_told_again(make: Make) -> None:
    first, second = make("A"), make("B")
    first.say(is_lost=True)
    first.say()
    first.obey()
    assert len(first.partitions) == 4
    second.say()
    first.say(is_lost=True)  # what to give up
    first.say()
    first.obey()
    first.say(is_lost=True)  # that it is in the next epoch
    assert first.epoch == 1
    settle(first, second)
    assert len(first.partitions) == len(second.partitions) == 2


def test_a_member_of_another_epoch_is_fenced_and_joins_again(make: Make) -> None:
    first, second = make("A"), make("B")
    settle(first)
    epoch, first.epoch = first.epoch, 7
    with pytest.raises(FencedMemberEpochError, match="epoch 0"):
        first.say()
    first.epoch = epoch
    settle(second, first)
    first.epoch = epoch  # of before, and what it says it owns is not all its own
    with pytest.raises(FencedMemberEpochError):
        first.say(
            owned=(
                *(
                    f"{p.topic_id.hex}:{p.topic_partition.partition}"
                    for p in (*first.owned, *second.owned)
                ),
            )
        )
    first.forget()
    settle(first, second)
    assert len(first.partitions) == len(second.partitions) == 2


def test_a_static_member_comes_back_to_what_it_had(make: Make, groups: GroupBench) -> None:
    first, second = make("A", instance_id="one"), make("B")
    settle(first, second)
    had, epoch = first.partitions, first.epoch
    again = make("A2", instance_id="one")
    with pytest.raises(UnreleasedInstanceIdError):
        again.say()
    first.leave(LEAVES_FOR_A_WHILE)
    settle(second)
    assert len(second.partitions) == 2
    settle(again)
    assert (again.partitions, again.epoch) == (had, epoch)
    first.epoch = epoch
    with pytest.raises(FencedInstanceIdError):
        first.say()
    again.leave(LEAVES_FOR_A_WHILE)
    groups.clock.advance(SESSION_MS - 1)
    second.say()
    groups.clock.advance(1)
    settle(second)
    assert len(second.partitions) == 4


@pytest.mark.parametrize("instance_id", [None, "one"])
def test_who_comes_while_partitions_are_shared_out_gets_its_own(
    make: Make, monkeypatch: pytest.MonkeyPatch, instance_id: str | None
) -> None:
    first, second, third = make("A", instance_id=instance_id), make("B"), make("C")
    settle(first, second)
    first.leave(LEAVES_FOR_A_WHILE if instance_id else LEAVES)
    again, comes = make("A2", instance_id=instance_id), [True]

    def shared_out_late(*given: Any, **told: Any) -> TargetAssignment:
        target = target_assignment(*given, **told)
        if comes and comes.pop():
            again.say()
        return target

    monkeypatch.setattr(consumer_groups, "target_assignment", shared_out_late)
    third.say()
    settle(again, second, third)
    found = sorted(again.partitions + second.partitions + third.partitions)
    assert found == [f"orders-{n}" for n in range(4)]


def test_a_group_takes_no_more_than_its_size(make: Make) -> None:
    settle(*(make(name) for name in "ABC"))
    with pytest.raises(GroupMaxSizeReachedError):
        make("D").say()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"topics": (), "regex": None}, InvalidArgumentError),
        ({"regex": "("}, InvalidRegularExpressionError),
        ({"assignor": "sticky"}, UnsupportedAssignorError),
        ({"rebalance_timeout_ms": None}, InvalidArgumentError),
        ({"owned": None}, InvalidArgumentError),
        ({"instance_id": ""}, InvalidArgumentError),
    ],
)
def test_what_no_member_may_say_is_refused(
    make: Make, groups: GroupBench, said: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        make("A").say(**said)
    assert state(groups) is GroupState.DEAD
    with pytest.raises(UnknownMemberIdError):
        ConsumerGroups(groups.servers).heartbeat(
            GROUP, ConsumerHeartbeat(member_id="A", member_epoch=1), (0, 0)
        )


# -- offsets --------------------------------------------------------------------------------------


def test_only_a_member_in_its_epoch_commits_and_asks(make: Make, groups: GroupBench) -> None:
    client = make("A")
    settle(client)
    commit, committed = groups.coordinator.commit, groups.coordinator.committed
    commit(GROUP, ONE, member_id="A", generation_id=1)
    assert committed(GROUP, member_id="A", member_epoch=1)[TopicPartition("orders", 0)]
    assert committed(GROUP)
    for member_id, epoch, error in (
        ("A", 0, StaleMemberEpochError),
        ("B", 1, UnknownMemberIdError),
        ("", -1, UnknownMemberIdError),
    ):
        with pytest.raises(error):
            commit(GROUP, ONE, member_id=member_id, generation_id=epoch)
    with pytest.raises(StaleMemberEpochError):
        committed(GROUP, member_id="A", member_epoch=2)
    with pytest.raises(UnknownMemberIdError):
        committed(GROUP, member_id="B", member_epoch=1)
    client.leave()
    commit(GROUP, ONE)  # by hand


# -- kinds ----------------------------------------------------------------------------------------


def test_an_empty_group_changes_its_kind_and_keeps_its_offsets(
    make: Make, groups: GroupBench
) -> None:
    classic = groups.coordinator.join(GROUP, CLASSIC)
    client = make("A")
    with pytest.raises(GroupIdNotFoundError, match=r"group\.protocol=classic"):
        client.say()
    groups.coordinator.sync(GROUP, classic, {classic.member_id: b""})
    groups.coordinator.commit(
        GROUP, ONE, member_id=classic.member_id, generation_id=classic.generation_id
    )
    groups.coordinator.leave(GROUP, [Leaving(classic.member_id)])
    settle(client)
    assert client.epoch > classic.generation_id
    with pytest.raises(InconsistentGroupProtocolError, match=r"group\.protocol=consumer"):
        groups.coordinator.join(GROUP, CLASSIC)
    with pytest.raises(UnknownMemberIdError):
        groups.coordinator.heartbeat(GROUP, "A", client.epoch)
    client.leave()
    again = groups.coordinator.join(GROUP, CLASSIC)
    assert again.generation_id > 2
    assert groups.admin.describe(GROUP).group_type is GroupType.CLASSIC
    assert groups.coordinator.committed(GROUP)


def test_a_group_is_listed_described_and_deleted_once_it_is_empty(
    make: Make, groups: GroupBench
) -> None:
    client = make("A", rack_id="r")
    settle(client)
    (listed,) = groups.admin.list()
    assert (listed.group_type, listed.state) == (GroupType.CONSUMER, GroupState.STABLE)
    assert groups.admin.list(GroupType.CONSUMER) == [listed]
    group = groups.admin.describe(GROUP)
    (member,) = group.members
    assert member.consumer is not None
    assert member.consumer.rack_id == "r"
    assert set(member.consumer.assigned) == set(member.consumer.target) == client.owned
    assert group.subscribed_topics == {"orders"}
    with pytest.raises(NonEmptyGroupError):
        groups.admin.delete(GROUP)
    client.leave()
    assert state(groups) is GroupState.EMPTY
    groups.admin.delete(GROUP)
    assert groups.admin.list() == []


def test_an_administrator_takes_a_static_member_out(make: Make, groups: GroupBench) -> None:
    first, second = make("A", instance_id="one"), make("B")
    settle(first, second)
    assert groups.coordinator.leave(GROUP, [one := Leaving("", "one")]) == {one: None}
    settle(second)
    assert len(second.partitions) == 4


# -- servers --------------------------------------------------------------------------------------


def test_after_a_restart_of_redis_members_join_above_their_epochs(
    make_redis: Callable[..., RedisServer], make_groups: Callable[..., GroupBench]
) -> None:
    server = make_redis()
    bench = make_groups(server.url)
    with Lakelog.connect(server.url) as lake:
        lake.topics.create("orders", 4, {"remote.storage.enable": False, "retention.ms": -1})
        groups = ConsumerGroups(bench.servers, clock=bench.clock)
        first, second = Client(groups, lake, "A"), Client(groups, lake, "B")
        settle(first, second)
        epoch = first.epoch
        bench.coordinator.commit(GROUP, ONE, member_id="A", generation_id=epoch)
        server.restart()
        with pytest.raises(UnknownMemberIdError):
            bench.coordinator.commit(GROUP, ONE, member_id="A", generation_id=epoch)
        for client in (first, second):
            with pytest.raises(UnknownMemberIdError):
                client.say()
            client.forget()
        settle(first, second)
        assert first.epoch > epoch + 1_000
        assert len(first.partitions) == len(second.partitions) == 2
        assert bench.coordinator.committed(GROUP)
