"""The hot log on an event loop: it answers as the one of threads does, and waits without one."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from lakelog.errors import (
    CorruptRecordError,
    HotTierUnavailableError,
    OutOfOrderSequenceError,
    RecoveryNeededError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot import AppendCall, AppendResult
from lakelog.hot.asynchronous import Ask
from lakelog.hot.fetch import EntriesStep
from lakelog.values.topic_partition import TopicPartition

NOW_MS = 1_700_000_000_000


def run(bench, work):
    """What ``work(hot)`` comes to, on a loop of its own."""

    async def whole():
        hot = bench.hot.asynchronous()
        try:
            return await work(hot)
        finally:
            hot.close()

    return asyncio.run(whole())


def ask(bench, offset=0, count=10, partition=0):
    return Ask(bench.tp(partition), bench.topic.topic_id, offset, count)


def test_appends_come_back_in_order_with_refusals_in_place(make_bench, make_batch):
    bench = make_bench(2)
    calls = [
        bench.call(make_batch([NOW_MS] * 3), 0),
        bench.call(make_batch([NOW_MS], producer_id=2), 1),
        bench.call(make_batch([NOW_MS], first_sequence=9), 0),
        bench.call(make_batch([NOW_MS], first_sequence=3), 0),
        AppendCall(TopicPartition("orders", 5), bench.topic.topic_id, make_batch([NOW_MS])),
    ]
    first, second, refused, third, unknown = run(bench, lambda hot: hot.append_all(calls))
    assert [(one.base_offset, one.duplicate) for one in (first, second, third)] == [
        (0, False),
        (0, False),
        (3, False),
    ]
    assert isinstance(refused, OutOfOrderSequenceError)
    assert isinstance(unknown, UnknownTopicOrPartitionError)
    assert run(bench, lambda hot: hot.append_all(calls[:1]))[0].duplicate


def test_entries_and_ends_are_what_is_stored(bench):
    for _ in range(3):
        bench.append(NOW_MS, NOW_MS)

    async def work(hot):
        return await hot.entries([ask(bench, 3), ask(bench, 6)]), await hot.ends([bench.tp()])

    (step, at_end), (ends,) = run(bench, work)
    assert [entry_id.base_offset for entry_id, _ in step.entries] == [3, 4, 5]
    assert step.recovered
    assert (at_end.entries, at_end.declared.log_end) == ([], 6)
    assert (ends.log_start, ends.local_log_start, ends.log_end) == (0, 0, 6)


def test_what_cannot_be_read_is_an_error_in_its_place(make_bench):
    bench = make_bench(2)
    bench.append(NOW_MS)
    bench.append(NOW_MS)
    bench.client.xdel(bench.keys()[0], "1-1")
    missing = TopicPartition("orders", 7)
    other = Ask(missing, bench.topic.topic_id, 0, 1)

    async def work(hot):
        return await hot.entries([ask(bench, 1), ask(bench, 0), other, ask(bench, 0, 1, 1)])

    hole, fine, gone, empty = run(bench, work)
    assert isinstance(hole, CorruptRecordError)
    assert isinstance(fine, EntriesStep)
    assert isinstance(gone, UnknownTopicIdError)
    assert isinstance(empty, EntriesStep)


def test_a_server_without_the_scripts_gets_them_again(bench, make_batch):
    async def work(hot):
        await hot.append_all([bench.call(make_batch([NOW_MS]))])
        bench.client.script_flush()
        once = await hot.append_all([bench.call(make_batch([NOW_MS], first_sequence=1))])
        again = await hot.append_all([bench.call(make_batch([NOW_MS], first_sequence=2))])
        return once + again

    assert [one.base_offset for one in run(bench, work)] == [1, 2]


def test_quotas_are_asked_for_more(make_bench, make_batch):
    bench = make_bench(clock=False)
    bench.hot.topics().set_defaults({"lakelog.quota.hot.bytes": "1000000"})
    now_ms = int(time.time() * 1000)
    calls = [bench.call(make_batch([now_ms], first_sequence=i)) for i in range(5)]
    answers = run(bench, lambda hot: hot.append_all(calls))
    assert [one.base_offset for one in answers] == [0, 1, 2, 3, 4]


def test_a_server_that_starts_again_is_found_and_asks_for_recovery(
    make_redis, make_bench, make_batch, redis_program
):
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)

    async def work(hot):
        first = await hot.append_all([bench.call(make_batch([NOW_MS]))])
        server.kill()
        away = await hot.append_all([bench.call(make_batch([NOW_MS], first_sequence=1))])
        server.start()
        back = await hot.append_all([bench.call(make_batch([NOW_MS], first_sequence=1))])
        return first + away + back

    first, away, back = run(bench, work)
    assert isinstance(first, AppendResult)
    assert isinstance(away, HotTierUnavailableError)
    assert isinstance(back, RecoveryNeededError)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_wait_ends_with_what_is_appended(make_bench, redis_url, protocol):
    bench = make_bench(url=f"{redis_url}?protocol={protocol}")
    tp = bench.tp()

    async def work(hot):
        loop = asyncio.get_running_loop()
        waits = [asyncio.ensure_future(hot.wait({tp: 0}, 60)) for _ in range(3)]
        await asyncio.sleep(0)
        await loop.run_in_executor(None, bench.append, NOW_MS, NOW_MS)
        await asyncio.gather(*waits)
        await hot.wait({tp: 1}, 60)  # it is there already
        behind = asyncio.ensure_future(hot.wait({tp: 2}, 60))
        await hot.wait({tp: 2}, 0.01)  # one that leaves takes nobody along
        assert not behind.done()
        await loop.run_in_executor(None, bench.append, NOW_MS)
        await behind

    run(bench, work)


def test_one_connection_waits_for_all(make_bench):
    bench = make_bench(8)

    async def work(hot):
        loop = asyncio.get_running_loop()
        waits = [asyncio.ensure_future(hot.wait({bench.tp(p): 0}, 60)) for p in range(8)]
        while not any(client["flags"] == "b" for client in bench.client.client_list()):
            await asyncio.sleep(0.001)
        for partition in reversed(range(8)):
            await loop.run_in_executor(None, lambda p=partition: bench.append(NOW_MS, partition=p))
            await waits[partition]
        return [c for c in bench.client.client_list() if c["cmd"] == "xread"]

    assert len(run(bench, work)) == 1


def test_one_who_leaves_while_the_connection_is_opened_takes_nobody_along(bench):
    async def work(hot):
        failures = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
        leaving = asyncio.ensure_future(hot.wait({bench.tp(): 0}, 60))
        for _ in range(3):
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0.1)
        await hot.wait({bench.tp(): 0}, 0.05)  # the read that failed, if it did, is told of now
        return failures

    assert run(bench, work) == []


def test_a_user_who_may_not_unblock_waits_as_well(make_bench, redis_url):
    bench = make_bench()
    bench.client.acl_setuser(
        "waiter",
        enabled=True,
        passwords=["+secret"],
        keys=["*"],
        commands=["+@all", "-client|unblock"],
    )
    url = redis_url.replace("redis://", "redis://waiter:secret@")
    waiting = make_bench(url=url, name="other")

    async def work(hot):
        loop = asyncio.get_running_loop()
        first = asyncio.ensure_future(hot.wait({bench.tp(): 0}, 60))
        await asyncio.sleep(0.02)
        second = asyncio.ensure_future(hot.wait({waiting.tp(): 0}, 60))
        await asyncio.sleep(0.02)
        await loop.run_in_executor(None, waiting.append, NOW_MS)
        await second
        await loop.run_in_executor(None, bench.append, NOW_MS)
        await first

    run(waiting, work)
    bench.client.acl_deluser("waiter")


def test_a_wait_hears_that_the_server_is_gone(make_redis, make_bench, redis_program):
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)

    async def work(hot):
        waiting = asyncio.ensure_future(hot.wait({bench.tp(): 0}, 60))
        while not any(client["flags"] == "b" for client in bench.client.client_list()):
            await asyncio.sleep(0.001)
        server.kill()
        with pytest.raises(HotTierUnavailableError):
            await waiting

    run(bench, work)


def test_who_comes_back_hears_of_what_came_in_between(make_bench):
    bench = make_bench(2)
    one, other = bench.tp(0), bench.tp(1)

    async def work(hot):
        loop = asyncio.get_running_loop()
        follower = hot.follower()
        assert not follower.follows(one, 0)
        assert await follower.wait({one: 0, other: 0}, 0.01) == set()
        assert follower.follows(one, 0)
        assert not follower.follows(one, 1)
        await loop.run_in_executor(None, lambda: bench.append(NOW_MS, partition=1))
        while follower.follows(other, 0):
            await asyncio.sleep(0.001)
        assert follower.follows(one, 0)
        assert await follower.wait({one: 0, other: 0}, 60) == {other}
        assert await follower.wait({other: 1}, 0.01) == set()
        assert not follower.follows(one, 0)
        await loop.run_in_executor(None, lambda: bench.append(NOW_MS, partition=0))
        assert await follower.wait({one: 0, other: 1}, 60) == {one}
        follower.close()
        assert not follower.follows(other, 1)

    run(bench, work)


def test_a_wait_hears_that_the_server_hangs(make_redis, make_bench, redis_program):
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)

    async def work(hot):
        follower = hot.follower()
        waiting = asyncio.ensure_future(follower.wait({bench.tp(): 0}, 60))
        while not any(client["flags"] == "b" for client in bench.client.client_list()):
            await asyncio.sleep(0.001)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(HotTierUnavailableError):
                await waiting
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert not follower.follows(bench.tp(), 0)

    run(bench, work)
