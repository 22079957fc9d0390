"""The coordinator on real servers: members that wait, servers that restart, clusters, bad input."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import redis
from group_bench import GroupBench
from msgspec.structs import replace

from lakelog.errors import (
    ForeignEntryError,
    GroupError,
    IllegalGenerationError,
    InvalidArgumentError,
    InvalidConfigError,
    InvalidGroupIdError,
    MemberIdRequiredError,
    OffsetMetadataTooLargeError,
    UnknownMemberIdError,
)
from lakelog.groups.assignors import Subscriber, assignor_named
from lakelog.groups.group_values import GroupState, Joined, JoinRequest, Leaving, Pending
from lakelog.groups.protocol import Assignment, Subscription
from lakelog.groups.settings import GroupSettings
from lakelog.hot.embedded.redis_program import RedisProgram
from lakelog.testing.eventually import eventually
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition
from tests.support.servers import RedisClusterServers, RedisServer
from tests.support.waiting_coordinator import WaitingCoordinator

GROUP = "readers"
ORDERS = [TopicPartition("orders", n) for n in range(4)]
REQUEST = JoinRequest((("range", Subscription(("orders",)).encode()),))
DIRECT = replace(REQUEST, requires_known_member_id=False)


def shares_of(joined: Joined, partitions: int = 4) -> dict[str, bytes]:
    """What a leader assigns."""
    asked = {m.member_id: Subscriber(Subscription.decode(m.metadata)) for m in joined.members}
    given = assignor_named("range").assign({"orders": partitions}, asked)
    return {member_id: share.encode() for member_id, share in given.items()}


def take_part(coordinator: WaitingCoordinator, request: JoinRequest = REQUEST) -> Joined:
    """Join and sync, waiting for the others."""
    joined = coordinator.join(GROUP, request)
    coordinator.sync(GROUP, joined, shares_of(joined))
    return joined


def commit(bench: GroupBench, joined: Joined, offset: int) -> None:
    bench.coordinator.commit(
        GROUP,
        {ORDERS[0]: OffsetAndMetadata(offset)},
        member_id=joined.member_id,
        generation_id=joined.generation_id,
    )


def committed(bench: GroupBench) -> int | None:
    found = bench.coordinator.committed(GROUP).get(ORDERS[0])
    return found and found.committed.offset


# -- waiting -----------------------------------------------------------------------------------


def test_members_wait_for_each_other_and_share(make_groups: Callable[..., GroupBench]) -> None:
    bench = make_groups(clock=False, initial_rebalance_delay_ms=2_000)
    together = Barrier(20)

    def share(_: int) -> tuple[int, tuple[TopicPartition, ...]]:
        together.wait()
        joined = bench.coordinator.join(GROUP, REQUEST)
        while True:
            try:
                synced = bench.coordinator.sync(GROUP, joined, shares_of(joined, 40))
                break
            except GroupError:  # one more has come
                joined = bench.coordinator.join(GROUP, replace(REQUEST, member_id=joined.member_id))
        return joined.generation_id, Assignment.decode(synced.assignment).partitions

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(share, range(20)))
    last = max(generation for generation, _ in found)
    given = [tp for generation, partitions in found if generation == last for tp in partitions]
    assert len(given) == len(set(given))
    described = bench.admin.describe(GROUP)
    assert (described.state, len(described.members)) == (GroupState.STABLE, 20)


def test_who_waits_hears_of_the_last_that_joins(make_groups: Callable[..., GroupBench]) -> None:
    bench = make_groups(clock=False)
    first = take_part(bench.coordinator)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(bench.coordinator.join, GROUP, REQUEST)
        eventually(lambda: len(bench.admin.describe(GROUP).members) == 2)
        assert bench.admin.describe(GROUP).state is GroupState.PREPARING_REBALANCE
        again = bench.coordinator.join(GROUP, replace(REQUEST, member_id=first.member_id))
        assert second.result().generation_id == again.generation_id == 2
        assert again.is_leader
        assert {m.member_id for m in again.members} == {first.member_id, second.result().member_id}


def test_five_hundred_members_at_once(groups: GroupBench) -> None:
    ids = []
    for _ in range(500):
        with pytest.raises(MemberIdRequiredError) as required:
            groups.coordinator.try_join(GROUP, REQUEST)
        ids.append(required.value.member_id)
    answers = [groups.coordinator.try_join(GROUP, replace(REQUEST, member_id=one)) for one in ids]
    assert all(isinstance(answer, Pending) for answer in answers[:-1])
    joined = [groups.coordinator.await_join(GROUP, replace(REQUEST, member_id=one)) for one in ids]
    assert all(isinstance(one, Joined) and one.generation_id == 1 for one in joined)
    (leader,) = [one for one in joined if isinstance(one, Joined) and one.is_leader]
    given = shares_of(leader, 1_000)
    groups.coordinator.try_sync(GROUP, leader, given)
    for member_id in ids:
        synced = groups.coordinator.sync(GROUP, replace(leader, member_id=member_id))
        assert synced.assignment == given[member_id]


# -- servers -----------------------------------------------------------------------------------


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis()


def test_after_a_restart_nobody_goes_on_in_an_old_generation(
    server: RedisServer, make_groups: Callable[..., GroupBench]
) -> None:
    bench = make_groups(server.url)
    joined = take_part(bench.coordinator)
    commit(bench, joined, 5)
    bench.clock.advance(60_000)  # it was away for longer than a session
    server.restart()
    with pytest.raises(IllegalGenerationError):
        commit(bench, joined, 6)
    again = bench.coordinator.join(GROUP, replace(REQUEST, member_id=joined.member_id))
    assert (again.member_id, committed(bench)) == (joined.member_id, 5)
    assert again.generation_id > joined.generation_id + 1_000


def test_a_lost_tail_takes_a_commit_back_and_lets_no_generation_come_again(
    server: RedisServer, make_groups: Callable[..., GroupBench]
) -> None:
    bench = make_groups(server.url)
    joined = take_part(bench.coordinator)
    commit(bench, joined, 5)
    size = server.append_only_size()
    lost = bench.coordinator.join(GROUP, replace(REQUEST, member_id=joined.member_id))
    bench.coordinator.sync(GROUP, lost, shares_of(lost))
    commit(bench, lost, 9)
    server.cut_append_only_file(to_size=size)
    server.start()
    assert committed(bench) == 5
    anew = bench.coordinator.join(GROUP, replace(REQUEST, member_id=joined.member_id))
    bench.coordinator.sync(GROUP, anew, shares_of(anew))
    for stale in (joined, lost):
        with pytest.raises(IllegalGenerationError):
            commit(bench, stale, 7)
    commit(bench, anew, 9)
    assert committed(bench) == 9


def test_after_a_failover_members_join_again_above_what_may_be_lost(
    server: RedisServer,
    make_redis: Callable[..., RedisServer],
    make_groups: Callable[..., GroupBench],
) -> None:
    joined = take_part(make_groups(server.url).coordinator)
    replica = make_redis(replicaof=f"127.0.0.1 {server.port}")
    with replica.client() as client, server.client() as primary:
        eventually(lambda: client.exists(f"lakelog:group:{GROUP}"))
        eventually(lambda: primary.wait(1, 100))
        server.kill()
        client.replicaof("NO", "ONE")
    bench = make_groups(replica.url)
    with pytest.raises(IllegalGenerationError):
        commit(bench, joined, 6)
    again = bench.coordinator.join(GROUP, replace(REQUEST, member_id=joined.member_id))
    assert again.member_id == joined.member_id
    assert again.generation_id > joined.generation_id + 1_000


def test_after_all_is_lost_members_begin_again(
    groups: GroupBench, redis_client: redis.Redis
) -> None:
    joined = take_part(groups.coordinator)
    redis_client.flushall()
    with pytest.raises(UnknownMemberIdError):
        groups.coordinator.heartbeat(GROUP, joined.member_id, joined.generation_id)
    assert take_part(groups.coordinator).generation_id == 1
    assert [group.group_id for group in groups.admin.list()] == [GROUP]


KEY = f"{{lakelog:group:{GROUP}}}"


@pytest.mark.parametrize(
    "half",
    [
        [("HDEL", f"lakelog:group:{GROUP}", "p:range")],
        [("HSET", f"lakelog:group:{GROUP}", "p:range", "7")],
        [("HSET", f"lakelog:group:{GROUP}", "i:one", "nobody")],
        [("ZADD", f"{KEY}:deadlines", 10**15, "nobody"), ("ZADD", f"{KEY}:arrived", 0, "nobody")],
        [("DEL", f"{KEY}:deadlines")],
        [("DEL", f"{KEY}:members")],
        [("DEL", f"lakelog:group:{GROUP}")],
    ],
    ids=str,
)
def test_half_of_what_a_script_wrote_stands_in_nobodys_way(
    server: RedisServer, make_groups: Callable[..., GroupBench], half: list[tuple[Any, ...]]
) -> None:
    """A server may run half a transaction that a power cut left at the end of its file."""
    bench = make_groups(server.url)
    take_part(bench.coordinator)
    with server.client() as client:
        for command in half:
            client.execute_command(*command)
    server.restart()
    static = replace(REQUEST, instance_id="one")
    bench.admin.list()
    bench.clock.advance(1_000_000)  # whoever was there is gone
    joined = take_part(bench.coordinator, static)
    bench.clock.advance(1_000)
    bench.coordinator.heartbeat(GROUP, joined.member_id, joined.generation_id, "one")
    described = bench.admin.describe(GROUP)
    assert [member.member_id for member in described.members] == [joined.member_id]
    bench.coordinator.leave(GROUP, [Leaving(instance_id="one")])
    bench.admin.delete(GROUP)
    with server.client() as client:
        assert client.keys("*") == []


def whole_story(bench: GroupBench) -> None:
    """Some groups from their first member to their removal."""
    names = [f"g{n}" for n in range(12)]
    for name in names:
        joined = bench.coordinator.join(name, REQUEST)
        bench.coordinator.sync(name, joined, shares_of(joined))
        bench.coordinator.heartbeat(name, joined.member_id, joined.generation_id)
        bench.coordinator.commit(
            name,
            {tp: OffsetAndMetadata(7, "seven", 3) for tp in ORDERS},
            member_id=joined.member_id,
            generation_id=joined.generation_id,
        )
        assert {
            tp: one.committed for tp, one in bench.coordinator.committed(name).items()
        } == dict.fromkeys(ORDERS, OffsetAndMetadata(7, "seven", 3))
        assert bench.admin.describe(name).state is GroupState.STABLE
        bench.coordinator.leave(name, [Leaving(joined.member_id)])
    assert [group.group_id for group in bench.admin.list()] == sorted(names)
    for name in names:
        bench.admin.delete(name)
    assert bench.admin.list() == []


def test_on_each_server_of_this_machine(
    redis_program: RedisProgram,
    make_redis: Callable[..., RedisServer],
    make_groups: Callable[..., GroupBench],
) -> None:
    server = make_redis(program=redis_program)
    whole_story(make_groups(server.url))
    with server.client() as client:
        assert client.keys("*") == []


def test_on_a_cluster(
    redis_cluster: RedisClusterServers, make_groups: Callable[..., GroupBench]
) -> None:
    whole_story(make_groups(redis_cluster.url))
    for node in redis_cluster.nodes:
        with node.client() as client:
            assert client.keys("*") == []


def test_the_rights_of_a_keyspace_are_enough(
    make_redis: Callable[..., RedisServer], make_groups: Callable[..., GroupBench]
) -> None:
    """Those that an error advises; see tests/hot/test_connection.py."""
    rights = "~lakelog:* ~{lakelog:* +@read +@write +@scripting -@dangerous +info +time"
    server = make_redis(user=[f"lake on >secret {rights}"])
    whole_story(make_groups(server.url.replace("//", "//lake:secret@")))


def test_a_full_server_lets_members_live_and_commit(
    make_redis: Callable[..., RedisServer], make_groups: Callable[..., GroupBench]
) -> None:
    server = make_redis()
    bench = make_groups(server.url)
    joined = take_part(bench.coordinator)
    with server.client() as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("more", "x")
    bench.coordinator.heartbeat(GROUP, joined.member_id, joined.generation_id)
    commit(bench, joined, 5)
    assert committed(bench) == 5
    assert take_part(bench.coordinator, replace(REQUEST, member_id=joined.member_id)).is_leader


# -- what Redis holds --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_idle_groups_of_ten_partitions_take_less_than_five_megabytes(
    groups: GroupBench, redis_client: redis.Redis
) -> None:
    take_part(groups.coordinator)  # what a connection and the scripts take
    before = redis_client.info("memory")["used_memory"]
    offsets = {TopicPartition("orders", n): OffsetAndMetadata(10**9 + n) for n in range(10)}
    topic_ids = {"orders": uuid.uuid4()}
    for n in range(1_000):
        joined = groups.coordinator.join(f"consumers-of-orders-{n:04}", DIRECT)
        groups.coordinator.sync(f"consumers-of-orders-{n:04}", joined, shares_of(joined))
        groups.coordinator.commit(
            f"consumers-of-orders-{n:04}",
            offsets,
            member_id=joined.member_id,
            generation_id=joined.generation_id,
            topic_ids=topic_ids,
        )
        groups.coordinator.leave(f"consumers-of-orders-{n:04}", [Leaving(joined.member_id)])
    taken = redis_client.info("memory")["used_memory"] - before
    assert taken < 5_000_000


def test_nothing_is_left_of_a_group_whose_offsets_expired(
    make_groups: Callable[..., GroupBench], redis_client: redis.Redis
) -> None:
    bench = make_groups(offsets_retention_ms=1_000)
    joined = take_part(bench.coordinator)
    commit(bench, joined, 5)
    bench.coordinator.leave(GROUP, [Leaving(joined.member_id)])
    assert redis_client.keys("*news*") == []
    bench.clock.advance(1_000)
    assert bench.admin.expire_offsets(GROUP) == 1
    assert redis_client.keys("*") == []


# -- input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "group_id", ["{", "a{b}c", "%7B", "50% {off}", " ", "naïve ☃", "a:b", "x" * 32_767]
)
def test_any_text_is_a_group(groups: GroupBench, group_id: str) -> None:
    other = group_id[:-1] + "y"
    for n, one in enumerate((group_id, other)):
        groups.coordinator.commit(one, {ORDERS[0]: OffsetAndMetadata(n)})
    assert groups.coordinator.committed(group_id)[ORDERS[0]].committed.offset == 0
    assert {group.group_id for group in groups.admin.list()} == {group_id, other}


@pytest.mark.parametrize("group_id", ["", None, 5, b"bytes", "x" * 32_768, "\ud800"])
def test_what_is_no_group(groups: GroupBench, group_id: Any) -> None:
    for ask in (
        lambda: groups.coordinator.join(group_id, REQUEST),
        lambda: groups.coordinator.commit(group_id, {}),
        lambda: groups.coordinator.committed(group_id),
        lambda: groups.coordinator.leave(group_id, []),
        lambda: groups.admin.describe(group_id),
        lambda: groups.admin.delete(group_id),
        lambda: groups.admin.delete_offsets(group_id, []),
        lambda: groups.admin.expire_offsets(group_id),
    ):
        with pytest.raises(InvalidGroupIdError):
            ask()


def test_groups_and_their_keys_do_not_meet_other_keyspaces(
    make_groups: Callable[..., GroupBench],
) -> None:
    bench = make_groups()
    other = WaitingCoordinator(bench.servers, "other", clock=bench.clock)
    bench.coordinator.commit(GROUP, {ORDERS[0]: OffsetAndMetadata(1)})
    assert other.committed(GROUP) == {}


def test_an_offset_comes_back_with_all_that_was_said_of_it(groups: GroupBench) -> None:
    topic_id = uuid.uuid4()
    offsets = {
        TopicPartition("a-1", 10): OffsetAndMetadata(5, "two words\n", 3),
        TopicPartition("b", 0): OffsetAndMetadata(2**53 - 1),
    }
    groups.coordinator.commit(GROUP, offsets, topic_ids={"b": topic_id})
    found = groups.coordinator.committed(GROUP)
    assert {tp: one.committed for tp, one in found.items()} == offsets
    assert found[TopicPartition("b", 0)].topic_id == topic_id
    assert found[TopicPartition("a-1", 10)].topic_id is None
    assert found[TopicPartition("b", 0)].committed_ms == groups.clock.now_ms()
    assert groups.coordinator.committed(GROUP, [TopicPartition("c", 0)]) == {}
    assert list(groups.coordinator.committed(GROUP, [TopicPartition("b", 0)])) == [
        TopicPartition("b", 0)
    ]
    assert groups.coordinator.committed(GROUP, []) == {}


def test_metadata_that_is_too_long_commits_nothing(groups: GroupBench) -> None:
    offsets = {ORDERS[0]: OffsetAndMetadata(1), ORDERS[1]: OffsetAndMetadata(1, "é" * 2_049)}
    with pytest.raises(OffsetMetadataTooLargeError) as caught:
        groups.coordinator.commit(GROUP, offsets)
    assert (caught.value.topic_partition, caught.value.size_bytes) == (ORDERS[1], 4_098)
    assert groups.coordinator.committed(GROUP) == {}


@pytest.mark.parametrize("offset", [-1, 1.5, None, True, 2**53 + 1])
def test_what_is_no_offset_commits_nothing(groups: GroupBench, offset: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        groups.coordinator.commit(GROUP, {ORDERS[0]: OffsetAndMetadata(offset)})
    assert groups.admin.describe(GROUP).state is GroupState.DEAD


@pytest.mark.parametrize("value", [-1, 1.5, None, True])
def test_what_is_no_setting_of_groups(value: Any) -> None:
    with pytest.raises(InvalidConfigError, match="max_size"):
        GroupSettings(max_size=value)


@pytest.mark.parametrize("kind", ["group", "members", "deadlines", "offsets"])
def test_what_somebody_else_wrote_is_not_taken_for_a_group(
    groups: GroupBench, redis_client: redis.Redis, kind: str
) -> None:
    joined = take_part(groups.coordinator)
    key = f"lakelog:group:{GROUP}"
    redis_client.set(key if kind == "group" else f"{{{key}}}:{kind}", "theirs")
    before = redis_client.keys("*")
    with pytest.raises(ForeignEntryError):
        commit(groups, joined, 5)
    with pytest.raises(ForeignEntryError):
        groups.admin.describe(GROUP)
    assert sorted(redis_client.keys("*")) == sorted(before)


def test_a_static_member_that_asks_for_something_else_begins_a_round(groups: GroupBench) -> None:
    def asks(*topics: str, owned: int) -> JoinRequest:
        subscription = Subscription(topics, owned_partitions=tuple(ORDERS[:owned]))
        protocols = (("range", subscription.encode()),)
        return JoinRequest(protocols, instance_id="i1", asked_bytes=subscription.asked_bytes)

    first = groups.coordinator.join(GROUP, asks("orders", owned=0))
    groups.coordinator.sync(GROUP, first, shares_of(first), instance_id="i1")
    same = groups.coordinator.join(GROUP, asks("orders", owned=3))
    assert (same.generation_id, same.skip_assignment) == (1, True)
    assert groups.coordinator.assignments(GROUP) == {same.member_id: shares_of(first).popitem()[1]}
    other = groups.coordinator.join(GROUP, asks("orderz", owned=3))
    assert (other.generation_id, other.skip_assignment) == (2, False)
