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
from lakelog.groups.membership import Membership
from lakelog.groups.protocol import Subscription
from lakelog.groups.settings import MemberConfig, chosen_assignors
from lakelog.testing.eventually import eventually
from lakelog.values.record import OffsetAndMetadata

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


# -- waiting -----------------------------------------------------------------------------------


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


# -- what goes wrong ---------------------------------------------------------------------------


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


def test_a_member_without_an_assignor_that_the_others_have(world: World) -> None:
    assert eventually_settled(world.quiet(EAGER))
    other = world.quiet(replace(EAGER, assignors=(assignor_named("sticky"),)))
    with pytest.raises(InconsistentGroupProtocolError, match="sticky"):
        other.attend()


def test_who_has_not_joined_commits_nothing(world: World) -> None:
    with pytest.raises(CommitFailedError, match="has not joined"):
        world.quiet().commit({tp: OffsetAndMetadata(7) for tp in ALL})


def test_a_fenced_member_that_left_may_begin_anew(world: World) -> None:
    one, other = world.quiet(static(EAGER, "one")), world.quiet(static(EAGER, "one"))
    assert eventually_settled(one)
    assert eventually_settled(other)
    with pytest.raises(FencedInstanceIdError):
        one.commit({tp: OffsetAndMetadata(7) for tp in ALL})
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError):
            one.attend()
    one.leave()
    assert eventually_settled(one)
    assert one.partitions == ALL


class FailingOwner:
    """Fails once, in one of the calls."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _told(self, where: str) -> None:
        if where == self.where:
            self.where = ""
            raise ArithmeticError(where)

    def revoked(self, partitions: object) -> None:
        self._told("revoked")

    def lost(self, partitions: object) -> None:
        self._told("lost")

    def assigned(self, partitions: object) -> None:
        self._told("assigned")


@BOTH
@pytest.mark.parametrize("where", ["revoked", "lost", "assigned"])
def test_what_an_owner_raises_is_raised_and_the_member_goes_on(
    world: World, config: MemberConfig, where: str
) -> None:
    coordinator = world.bench.coordinator
    member = Membership(coordinator, GROUP, FailingOwner(where), lambda: world.topics, config)
    member.subscribe(["orders"])

    def provoke() -> None:
        assert eventually_settled(member)
        if where == "lost":
            coordinator.leave(GROUP, [Leaving(member.member_id)])
        else:
            member.subscribe([])
        eventually(lambda: member.attend(10) and member.generation_id > 1)

    with pytest.raises(ArithmeticError, match=where):
        provoke()
    member.subscribe(["orders"])
    assert eventually_settled(member)
    assert member.partitions == ALL
    member.leave()
    assert (member.partitions, member.member_id) == (frozenset(), "")
