"""Members that join, share, go, die and come back, against a real coordinator."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from group_bench import GroupBench
from msgspec.structs import replace
from reading_member import ReadingMember, of

from lakelog.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    InvalidArgumentError,
    InvalidConfigError,
    InvalidGroupIdError,
    MemberIdRequiredError,
    RebalanceInProgressError,
)
from lakelog.groups.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RebalanceProtocol,
    assignor_named,
)
from lakelog.groups.group_values import Joined, JoinRequest, Leaving
from lakelog.groups.membership import Membership, MemberState
from lakelog.groups.protocol import Assignment, Subscription
from lakelog.groups.settings import MemberConfig, chosen_assignors
from lakelog.testing.eventually import eventually
from lakelog.values.record import OffsetAndMetadata
from tests.support.servers import RedisClusterServers

GROUP = "readers"
ALL = of("orders", 0, 1, 2, 3)
EAGER = MemberConfig(
    assignors=(assignor_named("range"),), session_timeout_ms=4_000, heartbeat_interval_ms=50
)
COOPERATIVE = replace(EAGER, assignors=(assignor_named("cooperative-sticky"),))
BOTH = pytest.mark.parametrize("config", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])


class World:
    """A group, the topics there are, and members of it."""

    def __init__(self, bench: GroupBench) -> None:
        self.bench = bench
        self.topics = {"orders": 4}
        self.members: list[ReadingMember] = []

    def member(self, config: MemberConfig = EAGER, **more: Any) -> ReadingMember:
        made = ReadingMember(
            GROUP, self.bench.coordinator, lambda: self.topics, config=config, **more
        )
        self.members.append(made)
        return made

    def quiet(self, config: MemberConfig = EAGER, *topics: str) -> Membership:
        """One that only attends when it is told to; it notes nothing."""
        member = self.member(config).member
        member.subscribe(topics or ("orders",))
        return member

    def shared(self, *members: ReadingMember) -> None:
        """Waits until these, and they alone, have all partitions in one generation."""

        def settled() -> bool:
            for one in self.members:
                if one.error is not None and one in members:
                    raise one.error
            seen = [one.now for one in members]
            if None in seen or len({one.generation_id for one in seen if one}) != 1:
                return False
            held = [tp for one in seen if one for tp in one.partitions]
            there = [tp for topic, n in self.topics.items() for tp in of(topic, *range(n))]
            return sorted(held) == sorted(there)

        eventually(settled, said=lambda: [(one.now, one.error, one.told) for one in members])

    @property
    def committed(self) -> dict[str, int]:
        found = self.bench.coordinator.committed(GROUP)
        return {str(tp): one.committed.offset for tp, one in found.items()}

    def check_owners(self) -> None:
        """Nobody had what somebody else had in the same generation."""
        owners: dict[Any, Any] = {}
        for one in self.members:
            name = one.config.group_instance_id or one
            for seen in one.seen:
                for partition in seen.partitions:
                    owner = owners.setdefault((seen.generation_id, partition), name)
                    assert owner == name, (seen.generation_id, partition)


@pytest.fixture
def make_world(make_groups: Callable[..., GroupBench]) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(*args: Any, **settings: Any) -> World:
        chosen = {"clock": False, "min_session_timeout_ms": 1, **settings}
        made.append(World(make_groups(*args, **chosen)))
        return made[-1]

    yield make
    for world in made:
        for member in world.members:
            member.stop()
        world.check_owners()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


# -- coming and going --------------------------------------------------------------------------


@BOTH
def test_who_comes_is_heard_of_before_the_next_heartbeat_is_due(
    world: World, config: MemberConfig
) -> None:
    """It is far beyond the end of the test."""
    calm = replace(config, session_timeout_ms=1_000_000, heartbeat_interval_ms=300_000)
    one = world.member(calm).start()
    world.shared(one)
    other = world.member(calm).start()
    world.shared(one, other)


def test_a_membership_that_is_dropped_without_leaving_does_not_seem_alive(world: World) -> None:
    member = world.member()
    member.member.subscribe(["orders"])
    assert eventually_settled(member.member)
    before = threading.active_count()
    world.members.remove(member)
    del member

    def has_ended() -> bool:
        gc.collect()  # again and again: what it is part of stays while its thread is in a call
        return threading.active_count() < before

    eventually(has_ended)
    eventually(lambda: not world.bench.admin.describe(GROUP).members)


def eventually_settled(*members: Membership) -> bool:
    """They attend in turn until all are settled at once."""

    def settled() -> bool:
        found = [member.attend(10) for member in members]
        return all(found)

    eventually(settled)
    return True


def test_members_of_other_topics_do_not_meet(world: World) -> None:
    world.topics = {"orders": 2, "old": 1}
    one, other = world.member().start("orders"), world.member().start("old")
    world.shared(one, other)
    assert one.seen[-1].partitions == of("orders", 0, 1)
    assert other.seen[-1].partitions == of("old", 0)


def test_a_round_can_be_asked_for(world: World) -> None:
    member = world.quiet()
    assert eventually_settled(member)
    first = member.generation_id
    member.join_again()
    assert eventually_settled(member)
    assert member.generation_id == first + 1


# -- waiting -----------------------------------------------------------------------------------


def test_who_waits_for_others_can_do_something_else_meanwhile(world: World) -> None:
    one, other = world.quiet(), world.quiet()
    assert eventually_settled(one)
    assert not other.attend(0)
    assert (other.state, other.partitions) == (MemberState.REBALANCING, frozenset())
    assert not other.attend(50)
    assert eventually_settled(one, other)
    assert (one.state, other.state) == (MemberState.STABLE, MemberState.STABLE)


def test_who_waits_lives_although_it_does_not_attend(world: World) -> None:
    """Its session is shorter than the others' round."""
    one = world.quiet(replace(EAGER, session_timeout_ms=60_000))
    other = world.quiet(replace(EAGER, session_timeout_ms=2_000))
    assert eventually_settled(one)
    assert not other.attend(0)
    member_id, seen = other.member_id, world.bench.coordinator.committed
    clock = world.bench.servers.for_key(GROUP)
    begin = clock.call(("TIME",))[0]
    eventually(lambda: int(clock.call(("TIME",))[0][0]) > int(begin[0]) + 3)
    assert seen(GROUP) == {}
    assert eventually_settled(one, other)
    assert other.member_id == member_id


def test_what_a_cooperative_member_keeps_while_it_waits_is_its_own(world: World) -> None:
    one, other = world.quiet(COOPERATIVE), world.quiet(COOPERATIVE)
    assert eventually_settled(one)
    assert not other.attend(0)
    late = JoinRequest(
        (("cooperative-sticky", Subscription(("orders",)).encode()),), session_timeout_ms=60_000
    )
    with pytest.raises(MemberIdRequiredError) as given:  # the round waits for this one, too
        world.bench.coordinator.try_join(GROUP, late)
    eventually(lambda: not one.attend(0))
    assert one.partitions == ALL
    one.commit({tp: OffsetAndMetadata(7) for tp in ALL})
    late = replace(late, member_id=given.value.member_id)
    assert isinstance(world.bench.coordinator.try_join(GROUP, late), Joined)
    with pytest.raises(RebalanceInProgressError, match="commit again"):
        one.commit({tp: OffsetAndMetadata(8) for tp in ALL})
    assert world.committed == {str(tp): 7 for tp in ALL}
    world.bench.coordinator.leave(GROUP, [Leaving(late.member_id)])
    assert eventually_settled(one, other)
    one.commit({tp: OffsetAndMetadata(9) for tp in one.partitions})


# -- commits -----------------------------------------------------------------------------------


def test_who_has_not_joined_commits_nothing(world: World) -> None:
    with pytest.raises(CommitFailedError, match="has not joined"):
        world.quiet().commit({tp: OffsetAndMetadata(7) for tp in ALL})


def test_a_member_that_missed_a_rebalance_commits_nothing(world: World) -> None:
    """It hears of it from the commit, before any heartbeat."""
    config = replace(EAGER, heartbeat_interval_ms=3_999, max_poll_interval_ms=100)
    member = world.quiet(config)
    assert eventually_settled(member)
    other = world.bench.coordinator.join(GROUP, request())  # waits for its 100 ms
    assert other.is_leader
    with pytest.raises(CommitFailedError):
        member.commit({tp: OffsetAndMetadata(7) for tp in ALL})


def request() -> JoinRequest:
    return JoinRequest((("range", Subscription(("orders",)).encode()),))


def test_while_the_leader_assigns_nothing_is_committed(world: World) -> None:
    member = world.quiet(COOPERATIVE)
    assert eventually_settled(member)
    described = world.bench.admin.describe(GROUP)
    again = world.bench.coordinator.try_join(
        GROUP,
        JoinRequest(
            (("cooperative-sticky", described.members[0].metadata),), member_id=member.member_id
        ),
    )
    assert isinstance(again, Joined)
    with pytest.raises((CommitFailedError, RebalanceInProgressError)):
        member.commit({tp: OffsetAndMetadata(7) for tp in ALL})
    assert world.committed == {}
    assert eventually_settled(member)


# -- static members ----------------------------------------------------------------------------


def static(config: MemberConfig, name: str) -> MemberConfig:
    return replace(config, group_instance_id=name, session_timeout_ms=60_000)


@BOTH
def test_what_grew_while_the_leader_was_away_is_read(world: World, config: MemberConfig) -> None:
    one = world.member(static(config, "one")).start()
    other = world.member(static(config, "other")).start()
    world.shared(one, other)
    both = [one, other]
    leader = world.bench.admin.describe(GROUP).leader_id
    led = next(member for member in both if member.member.member_id == leader)
    both.remove(led)
    led.die()
    world.topics = {"orders": 7}
    world.shared(world.member(led.config).start(), *both)


def test_a_fenced_member_that_left_may_begin_anew(world: World) -> None:
    one, other = world.quiet(static(EAGER, "one")), world.quiet(static(EAGER, "one"))
    assert eventually_settled(one)
    assert eventually_settled(other)
    with pytest.raises(FencedInstanceIdError):
        one.commit({tp: OffsetAndMetadata(7) for tp in ALL})
    with pytest.raises(FencedInstanceIdError):
        one.attend()
    one.leave()
    assert eventually_settled(one)
    assert one.partitions == ALL


def test_a_static_member_that_was_away_too_long_does_not_fence_its_successor(world: World) -> None:
    short = replace(static(EAGER, "one"), max_poll_interval_ms=200)
    one = world.member(short).start()
    world.shared(one)
    one.pause()
    other = world.member(static(EAGER, "one")).start()
    world.shared(other)
    one.go_on()
    eventually(lambda: isinstance(one.error, FencedInstanceIdError))
    assert other.error is None


# -- servers -----------------------------------------------------------------------------------


def test_members_of_a_cluster(
    redis_cluster: RedisClusterServers, make_world: Callable[..., World]
) -> None:
    world = make_world(redis_cluster.url)
    one, other = world.member().start(), world.member().start()
    world.shared(one, other)


# -- what goes wrong ---------------------------------------------------------------------------


class Fails(Exception):
    """Of an owner."""


class FailingOwner:
    """Fails in one of the calls."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _told(self, where: str) -> None:
        if where == self.where:
            self.where = ""
            raise Fails(where)

    def revoked(self, partitions: object) -> None:
        self._told("revoked")

    def lost(self, partitions: object) -> None:
        self._told("lost")

    def assigned(self, partitions: object) -> None:
        self._told("assigned")


def provoke(world: World, member: Membership, where: str) -> None:
    assert eventually_settled(member)
    if where == "lost":
        world.bench.coordinator.leave(GROUP, [Leaving(member.member_id)])
    else:
        member.subscribe([])
    eventually(lambda: member.attend(10) and member.generation_id > 1)


@BOTH
@pytest.mark.parametrize("where", ["revoked", "lost", "assigned"])
def test_what_an_owner_raises_is_raised_and_the_member_goes_on(
    world: World, config: MemberConfig, where: str
) -> None:
    member = Membership(
        world.bench.coordinator, GROUP, FailingOwner(where), lambda: world.topics, config
    )
    member.subscribe(["orders"])
    with pytest.raises(Fails, match=where):
        provoke(world, member, where)
    member.subscribe(["orders"])
    assert eventually_settled(member)
    assert member.partitions == ALL
    member.leave()
    assert (member.partitions, member.member_id, member.generation_id) == (frozenset(), "", -1)
    assert world.bench.admin.describe(GROUP).members == ()


def test_a_member_without_an_assignor_that_the_others_have(world: World) -> None:
    assert eventually_settled(world.quiet(EAGER))
    other = world.quiet(replace(EAGER, assignors=(assignor_named("sticky"),)))
    for _ in range(2):
        with pytest.raises(InconsistentGroupProtocolError, match="sticky"):
            other.attend()


def test_a_group_without_an_id(world: World) -> None:
    with pytest.raises(InvalidGroupIdError):
        Membership(world.bench.coordinator, "", FailingOwner(""), dict)


class Neither(RangeAssignor):
    """Of no protocol that the others have."""

    name = "neither"
    protocols = (RebalanceProtocol.COOPERATIVE,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("assignors", ()),
        ("assignors", (RangeAssignor(), Neither())),
        ("group_instance_id", ""),
        ("group_instance_id", "a b"),
        ("group_instance_id", "."),
        ("group_instance_id", "x" * 250),
        ("client_id", None),
        ("session_timeout_ms", 0),
        ("session_timeout_ms", 1.5),
        ("session_timeout_ms", 3_000),
        ("heartbeat_interval_ms", True),
        ("heartbeat_interval_ms", 45_000),
        ("max_poll_interval_ms", -1),
    ],
)
def test_what_is_no_setting_of_a_member(name: str, value: Any) -> None:
    with pytest.raises(InvalidConfigError):
        MemberConfig(**{name: value})


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        ("range", ["range"]),
        ("range, sticky", ["range", "sticky"]),
        (["roundrobin", CooperativeStickyAssignor], ["roundrobin", "cooperative-sticky"]),
        (RangeAssignor(), ["range"]),
        (RangeAssignor, ["range"]),
    ],
)
def test_how_assignors_may_be_named(strategy: object, names: list[str]) -> None:
    found = chosen_assignors(strategy)
    assert [one.name for one in found] == names
    assert all(isinstance(one, Assignor) for one in found)


@pytest.mark.parametrize("strategy", ["best", 5, None, [None], ["range", "range"]])
def test_what_is_no_assignor(strategy: object) -> None:
    with pytest.raises((InvalidConfigError, InvalidArgumentError)):
        chosen_assignors(strategy)


def test_members_that_prefer_both_kinds_go_eagerly() -> None:
    assert MemberConfig().protocol is RebalanceProtocol.EAGER
    assert COOPERATIVE.protocol is RebalanceProtocol.COOPERATIVE


def test_a_member_tells_others_what_it_has(world: World) -> None:
    member = world.quiet(replace(COOPERATIVE, client_id="ada", client_host="here"))
    assert eventually_settled(member)
    (described,) = world.bench.admin.describe(GROUP).members
    assert (described.client_id, described.client_host) == ("ada", "here")
    assert frozenset(Assignment.decode(described.assignment).partitions) == ALL
    member.join_again()
    assert eventually_settled(member)
    (described,) = world.bench.admin.describe(GROUP).members
    asked = Subscription.decode(described.metadata)
    assert (frozenset(asked.owned_partitions), asked.generation_id) == (ALL, 1)
