"""What a power cut takes of a server's file, and what it must leave."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog.testing.eventually import eventually

from .places import SingleServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SingleServer]:
    found = SingleServer(tmp_path / "redis", {"appendonly": "yes"})
    found.start()
    yield found
    found.stop()


def test_what_the_server_was_made_to_sync_stays_and_what_followed_may_go(server):
    found = set()
    for seed in range(10):
        eventually(lambda: server.sizes)  # a cut goes back to before what follows, if it may
        with server.server.client() as client:
            client.flushall()
            client.set(b"first", b"x" * 1_000)
            client.config_set("appendfsync", "always")
            client.set(b"synced", "1")
            client.config_set("appendfsync", "everysec")
        size = server.server.append_only_size_now()
        eventually(lambda size=size: server.synced_size >= size)
        with server.server.client() as client:
            client.set(b"second", b"x" * 1_000)
        server.cut(random.Random(seed), 0.0)
        with server.server.client() as client:
            found.add(frozenset(client.keys()))
    assert all({b"first", b"synced"} <= kept for kept in found)
    assert any(b"second" not in kept for kept in found)
