"""When the connection that a caller gets is opened again."""

from __future__ import annotations

import redis

from lakelog.hot.connection import connect


def test_one_that_was_closed_is_opened_again(redis_url):
    """A command that changes something is not sent a second time: it was noticed before."""
    servers = connect(redis_url)
    server = servers.for_key("any")
    (before,) = server.call(("CLIENT", "ID"))
    with redis.Redis.from_url(redis_url) as client:
        client.client_kill_filter(_id=before)
    (again,) = server.call(("CLIENT", "ID"))
    assert again > before
    servers.close()


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
