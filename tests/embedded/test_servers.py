"""The servers that tests run on do what tests take for granted."""

from __future__ import annotations

import pytest
import redis


def test_a_restarted_server_holds_what_was_written_under_a_new_run_id(make_redis, redis_program):
    server = make_redis(program=redis_program)
    with server.client() as client:
        client.set("key", "value")
        before = client.info("server")["run_id"]
        for clean in (True, False):
            server.restart(clean=clean)
            assert client.get("key") == b"value"
        assert client.info("server")["run_id"] != before


def test_a_cut_append_only_file_loses_the_tail_and_nothing_else(make_redis, redis_program):
    server = make_redis(program=redis_program)
    with server.client() as client:
        client.set("first", 1)
        size = server.append_only_size()
        client.set("second", 2)
        client.set("third", 3)
        server.cut_append_only_file(to_size=size)
        server.start()
        assert client.keys() == [b"first"]
        client.set("fourth", 4)
        server.cut_append_only_file(drop=1)  # mid-command: the whole command goes
        server.start()
        assert client.keys() == [b"first"]


def test_a_server_with_a_password_has_it_in_its_url(make_redis):
    server = make_redis(requirepass="p@ss:word/%")
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()


def test_a_cluster_spreads_keys_over_its_nodes(redis_cluster):
    with redis.RedisCluster.from_url(redis_cluster.url.partition("?")[0]) as client:
        for number in range(100):
            client.set(f"key-{number}", number)
        assert client.dbsize(target_nodes=redis.RedisCluster.PRIMARIES) == 100
    held = []
    for node in redis_cluster.nodes:
        with node.client() as client:
            held.append(client.dbsize())
    assert min(held) > 0


def test_a_server_behind_tls_answers_who_trusts_its_authority(redis_tls_url):
    with redis.Redis.from_url(redis_tls_url) as client:
        client.set("key", "v" * 1_000_000)
        assert client.get("key") == b"v" * 1_000_000
    with (
        redis.Redis.from_url(redis_tls_url.partition("?")[0]) as stranger,
        pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        stranger.ping()
