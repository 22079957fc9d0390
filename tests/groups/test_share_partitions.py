"""What members of a share group take from a partition and give back, case by case."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import redis
from share_bench import LOCK_MS, ShareBench

from lakelog.errors import (
    ForeignEntryError,
    InvalidConfigError,
    TooManyRangesError,
)
from lakelog.groups.settings import ShareGroupSettings
from lakelog.groups.share.share_values import Acknowledgement, Outcome, RangeState
from lakelog.hot.embedded.redis_program import RedisProgram
from lakelog.hot.keys import Keys
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisClusterServers, RedisServer


@pytest.fixture
def make_shares() -> Iterator[Callable[..., ShareBench]]:
    made: list[ShareBench] = []

    def make(url: str, **settings: object) -> ShareBench:
        made.append(ShareBench.of(url, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for bench in made:
        bench.hot.close()


@pytest.fixture
def bench(redis_url: str, make_shares: Callable[..., ShareBench]) -> ShareBench:
    made = make_shares(redis_url)
    made.append(10)
    return made


def test_a_group_begins_where_the_first_of_its_members_says(bench: ShareBench) -> None:
    asked = (bench.tp, bench.topic.topic_id, "ada", 500)
    assert bench.shares.describe(bench.tp) is None
    assert bench.shares.acquire(*asked) is None
    found = bench.shares.acquire(*asked, begin=7)
    assert found is not None
    assert [(one.start, one.end) for one in found.delivered] == [(7, 10)]
    bench.clock.advance(LOCK_MS)
    found = bench.shares.acquire(*asked, begin=0)
    assert found is not None
    assert [(one.start, one.end) for one in found.delivered] == [(7, 10)]


def test_acknowledgements_that_cut_it_to_pieces_are_refused(
    redis_url: str, make_shares: Callable[..., ShareBench]
) -> None:
    bench = make_shares(redis_url, partition_max_record_locks=2)
    bench.append(100)
    bench.got("ada", 100)
    before = bench.ranges()
    said = [Acknowledgement(at, at + 1, 1, Outcome.RELEASE) for at in range(1, 100, 2)]
    with pytest.raises(TooManyRangesError) as caught:
        bench.shares.acknowledge(bench.tp, bench.topic.topic_id, "ada", said)
    assert caught.value.max_ranges == 20
    assert bench.ranges() == before


def test_a_topic_removed_for_good_leaves_nothing(
    bench: ShareBench, redis_client: redis.Redis
) -> None:
    bench.got("ada", 4)
    registry = bench.hot.topics()
    registry.end_purge(registry.begin_purge(registry.delete("orders")))
    assert [key for key in redis_client.scan_iter() if b"shares" in key] == []


def test_a_description_says_who_holds_what(bench: ShareBench) -> None:
    bench.got("ada", 4)
    bench.got("bob", 4)
    found = bench.shares.describe(bench.tp)
    assert found is not None
    assert (found.start_offset, found.end_offset, found.log_end) == (0, 8, 10)
    assert found.member_ids == {"ada", "bob"}
    assert found.offsets(RangeState.ACQUIRED) == 8
    bench.clock.advance(LOCK_MS)
    later = bench.shares.describe(bench.tp)
    assert later is not None
    assert later.member_ids == frozenset()


def test_what_is_no_groups_state_is_refused_and_kept(
    bench: ShareBench, redis_client: redis.Redis
) -> None:
    key = Keys().partition(bench.tp).shares
    for junk in (b"junk", b"\x93\x01\x02\x03", b""):
        redis_client.hset(key, "workers", junk)
        for call in (bench.acquire, lambda: bench.shares.describe(bench.tp, bench.topic.topic_id)):
            with pytest.raises(ForeignEntryError):
                call()
        assert redis_client.hget(key, "workers") == junk
    redis_client.delete(key)
    redis_client.set(key, "precious")
    with pytest.raises(ForeignEntryError):
        bench.acquire()


def test_settings_and_ids_are_checked() -> None:
    for name in ("record_lock_duration_ms", "delivery_count_limit", "partition_max_record_locks"):
        for value in (0, -1, True, 2**31, "5"):
            with pytest.raises(InvalidConfigError):
                ShareGroupSettings(**{name: value})  # type: ignore[arg-type]


def test_locks_last_while_a_server_restarts(
    make_redis: Callable[..., RedisServer],
    redis_program: RedisProgram,
    make_shares: Callable[..., ShareBench],
) -> None:
    server = make_redis(program=redis_program)
    bench = make_shares(server.url)
    bench.append(10)
    bench.got("ada", 4)
    bench.say(Outcome.ACCEPT, 0, 2)
    server.restart()
    eventually(lambda: _answers(bench))
    assert bench.ranges() == [(2, 4, "ACQUIRED", 1)]
    assert bench.say(Outcome.ACCEPT, 2, 4)
    assert bench.got("bob") == [(4, 10, 1)]


def test_locks_end_by_the_servers_own_clock(
    redis_url: str, make_shares: Callable[..., ShareBench]
) -> None:
    bench = make_shares(redis_url, on_redis_clock=True, record_lock_duration_ms=50)
    bench.append(4)
    assert bench.got("ada") == [(0, 4, 1)]
    found: list[tuple[int, int, int]] = []
    eventually(lambda: found.extend(bench.got("bob")) or found)
    assert found == [(0, 4, 2)]


def test_partitions_of_a_cluster_lie_apart(
    redis_cluster: RedisClusterServers, make_shares: Callable[..., ShareBench]
) -> None:
    bench = make_shares(redis_cluster.url, partitions=6)
    for partition in range(6):
        bench.append(partition + 1, partition)
    taken = [bench.acquire("ada", partition=partition) for partition in range(6)]
    assert [one.delivered[0].end for one in taken] == [1, 2, 3, 4, 5, 6]
    assert bench.say(Outcome.ACCEPT, 0, 1)


@pytest.mark.slow
def test_a_member_dies_with_a_million_records(
    redis_url: str, make_shares: Callable[..., ShareBench], record_property: Callable[..., None]
) -> None:
    """They are one range, and cost what one record does."""
    bench = make_shares(redis_url)
    for _ in range(20):
        bench.append(50_000)
    assert bench.got("ada", 10**6) == [(0, 10**6, 1)]
    assert bench.ranges() == [(0, 10**6, "ACQUIRED", 1)]
    bench.clock.advance(LOCK_MS)
    began = time.perf_counter()
    assert bench.got("bob", 500) == [(0, 500, 2)]
    record_property("ms to take over", round((time.perf_counter() - began) * 1000, 2))
    assert bench.ranges() == [(0, 500, "ACQUIRED", 2), (500, 10**6, "AVAILABLE", 1)]


def _answers(bench: ShareBench) -> bool:
    try:
        bench.ranges()
    except Exception:
        return False
    return True
