"""Hop by hop to Redis: which one fails is named, and what to do about it."""

from __future__ import annotations

import contextlib
import pickle
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from lakelog.hot import HotSource
from lakelog.hot.reachability import Way, ways_to_redis
from tests.support.servers import RedisServer, TlsFront, free_port

SECRET = "s3cr3t"


def way(url: str, password_ref: str | None = None) -> Way:
    (found,) = ways_to_redis(HotSource(url, password_ref=password_ref))
    assert SECRET not in repr(found)
    return pickle.loads(pickle.dumps(found))


def test_all_hops_of_a_plain_server(redis_url: str) -> None:
    target = redis_url.removeprefix("redis://")
    assert way(redis_url) == Way(target, ("name", "TCP", "connection", "AUTH", "PING"))


def test_all_hops_of_a_server_with_tls_and_a_password(
    make_redis: Callable[..., RedisServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_PASSWORD", SECRET)
    with tls_front(make_redis(requirepass=SECRET), tmp_path) as port:
        found = way(
            f"rediss://127.0.0.1:{port}?ssl_ca_certs={tmp_path / 'ca.pem'}", "env:LAKE_PASSWORD"
        )
    assert found == Way(f"127.0.0.1:{port}", ("name", "TCP", "TLS", "AUTH", "PING"))


def test_a_unix_socket(make_redis: Callable[..., RedisServer], tmp_path: Path) -> None:
    make_redis(unixsocket=str(tmp_path / "s"))
    assert way(f"unix://{tmp_path}/s") == Way(f"{tmp_path}/s", ("connection", "AUTH", "PING"))


def test_a_host_that_has_no_address() -> None:
    found = way("redis://no-such-host.invalid:6379")
    assert (found.failed, found.passed) == ("name", ())
    assert found.found.startswith("no-such-host.invalid has no address here")
    assert "private DNS" in found.do


def test_a_host_that_is_no_name() -> None:
    (way,) = ways_to_redis(HotSource("redis://a..b:6379"))
    assert (way.failed, way.passed) == ("name", ())
    assert "a..b has no address here" in way.found


def test_a_port_nobody_listens_on() -> None:
    port = free_port()
    found = way(f"redis://127.0.0.1:{port}")
    assert (found.failed, found.passed) == ("TCP", ("name",))
    assert found.do.startswith(f"nothing listens on port {port}")


def test_packets_that_get_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", lost)
    found = way("redis://127.0.0.1:6379")
    assert (found.failed, found.found) == ("TCP", "timed out")
    assert "security group" in found.do


@contextlib.contextmanager
def tls_front(server: RedisServer, folder: Path, name: str = "127.0.0.1") -> Any:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    front = TlsFront(server, context).start()
    try:
        yield front.port
    finally:
        front.stop()


def test_a_certificate_of_an_unknown_authority_or_for_another_name(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis()
    with tls_front(server, tmp_path) as port:
        unknown = way(f"rediss://127.0.0.1:{port}")
        missing = way(f"rediss://127.0.0.1:{port}?ssl_ca_certs={tmp_path / 'not-here.pem'}")
    assert (unknown.failed, unknown.passed) == ("TLS", ("name", "TCP"))
    assert "ssl_ca_certs" in unknown.do
    assert missing.failed == "TLS"
    assert "there is no such file on this machine" in missing.found
    assert "on every machine" in missing.do
    with tls_front(server, tmp_path, "redis.internal") as port:
        other = way(f"rediss://127.0.0.1:{port}?ssl_ca_certs={tmp_path / 'ca.pem'}")
        unchecked = way(f"rediss://127.0.0.1:{port}?ssl_cert_reqs=none")
    assert other.failed == "TLS"
    assert other.do == "connect by the name that the certificate was issued for"
    assert unchecked.failed is None


def test_tls_to_a_plain_port_and_the_other_way_round(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis()
    found = way(f"rediss://127.0.0.1:{server.port}")
    assert (found.failed, found.passed) == ("TLS", ("name", "TCP"))
    assert found.do == (
        f"port {server.port} does not speak TLS: write redis://, or give the port that does"
    )
    with tls_front(server, tmp_path) as port:
        found = way(f"redis://127.0.0.1:{port}")
    assert (found.failed, found.passed) == ("AUTH", ("name", "TCP", "connection"))
    assert "rediss://" in found.do


@pytest.mark.parametrize("password", ["wrong", None])
def test_a_password_that_is_wrong_or_not_given(make_redis, monkeypatch, password) -> None:
    server = make_redis(requirepass=SECRET)
    monkeypatch.setenv("LAKE_PASSWORD", password or "")
    reference = "env:LAKE_PASSWORD" if password else None
    found = way(f"redis://127.0.0.1:{server.port}", reference)
    assert (found.failed, found.passed) == ("AUTH", ("name", "TCP", "connection"))
    assert "the password that the reference names" in found.do


def test_a_reference_that_names_nothing_here(redis_url: str) -> None:
    """How far the network goes is told all the same."""
    found = way(redis_url, "env:LAKELOG_NOT_SET")
    assert (found.failed, found.passed) == ("password", ("name", "TCP", "connection"))
    assert "LAKELOG_NOT_SET is not set in this process" in found.found
    closed = way(f"redis://127.0.0.1:{free_port()}", "env:LAKELOG_NOT_SET")
    assert closed.failed == "TCP"


@pytest.mark.parametrize("rights", ["-@all +info", "+@all -info"])
def test_a_user_who_lacks_a_right(make_redis, monkeypatch, rights) -> None:
    server = make_redis(user=[f"ada on >{SECRET} ~lakelog:* {rights}"])
    monkeypatch.setenv("LAKE_PASSWORD", SECRET)
    found = way(f"redis://ada@127.0.0.1:{server.port}", "env:LAKE_PASSWORD")
    assert (found.failed, found.passed) == ("PING", ("name", "TCP", "connection", "AUTH"))
    assert "the user lacks a right" in found.found


def test_every_server_of_a_cluster(redis_cluster: Any) -> None:
    found = ways_to_redis(HotSource(redis_cluster.url))
    assert {one.target for one in found} == {f"127.0.0.1:{n.port}" for n in redis_cluster.nodes}
    assert all(one.passes for one in found)


def test_a_server_that_is_no_cluster(redis_url: str) -> None:
    found = way(f"{redis_url}?cluster=true")
    assert found.failed == "cluster"
    assert "cluster support disabled" in found.found
