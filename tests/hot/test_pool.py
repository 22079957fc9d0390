"""Which connection a caller gets, and when one is closed or must be waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis
from redis.connection import BlockingConnectionPool

from lakelog.hot.connection import connect
from lakelog.hot.pool import Pool
from lakelog.testing.eventually import eventually


@pytest.fixture
def two(redis_url) -> Iterator[Pool]:
    """A pool of two connections at most."""
    pool = Pool(BlockingConnectionPool.from_url(redis_url, max_connections=2, timeout=None))
    yield pool
    pool.disconnect()


def ask_id(connection) -> int:
    connection.send_command("CLIENT", "ID")
    return connection.read_response()


def test_the_connection_that_came_back_last_is_the_next_to_go(two):
    first = two.take()
    second = two.take()
    two.give_back(second)
    assert two.take() is second
    two.give_back(first)
    assert two.take() is first


def test_whoever_waits_gets_what_is_given_back(two):
    taken = [two.take(), two.take()]
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(two.take())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for one in taken:
        two.give_back(one)
    eventually(lambda: len(got) == 2)
    for thread in threads:
        thread.join()
    assert set(map(id, got)) == set(map(id, taken))


@pytest.mark.parametrize("is_noticed", [True, False])
def test_one_that_was_closed_is_opened_again(two, redis_url, is_noticed):
    connection = two.take()
    before = ask_id(connection)
    if is_noticed:
        connection.disconnect()
    two.give_back(connection)
    with redis.Redis.from_url(redis_url) as client:
        client.client_kill_filter(_id=before)
    again = two.take()
    assert ask_id(again) > before


def test_one_on_which_a_reply_is_under_way_is_not_used_as_it_is(two):
    connection = two.take()
    before = ask_id(connection)
    connection.send_command("PING")
    two.give_back(connection)
    eventually(connection.can_read)
    assert ask_id(two.take()) > before


def test_after_closing_all_they_can_be_opened_again(redis_url):
    servers = connect(redis_url)
    server = servers.for_key("any")
    assert server.call(("PING",)) in ([b"PONG"], ["PONG"])
    servers.close()
    assert server.call(("PING",)) in ([b"PONG"], ["PONG"])
    servers.close()


def test_a_server_that_started_anew_is_asked_on_a_new_connection(make_redis):
    """None of its callers hears that there was no answer: nothing was sent on the old one."""
    server = make_redis()
    servers = connect(server.url)
    before = servers.for_key("any").run_id()
    server.restart()
    assert servers.for_key("any").run_id() != before
    servers.close()
