"""A log behind a gateway, as clients see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.gateway.gateway import Gateway
from tests.support.servers import RedisServer


@pytest.fixture
def make_gateway(lake: Lakelog) -> Iterator[Callable[..., Gateway]]:
    """``make_gateway(**settings)`` in front of `lake`, on a port that is free."""
    with ExitStack() as opened:

        def make(**settings: Any) -> Gateway:
            return opened.enter_context(lake.gateway("127.0.0.1:0", **settings))

        yield make


@pytest.fixture(scope="module")
def shared_gateway(
    _redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """One for tests that leave nothing behind."""
    cold = tmp_path_factory.mktemp("cold")
    keyspace = {"keyspace": "shared-gateway"}
    with (
        Lakelog.connect(_redis_server.url, str(cold), engine="inline", **keyspace) as lake,
        lake.gateway("127.0.0.1:0") as gateway,
    ):
        yield gateway


@pytest.fixture
def gateway(make_gateway: Callable[..., Gateway]) -> Gateway:
    return make_gateway()
