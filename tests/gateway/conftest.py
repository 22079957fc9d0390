"""A log behind a gateway, as clients see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.gateway.gateway import Gateway


@pytest.fixture
def make_gateway(lake: Lakelog) -> Iterator[Callable[..., Gateway]]:
    """``make_gateway(**settings)`` in front of `lake`, on a port that is free."""
    with ExitStack() as opened:

        def make(**settings: Any) -> Gateway:
            return opened.enter_context(lake.gateway("127.0.0.1:0", **settings))

        yield make


@pytest.fixture
def gateway(make_gateway: Callable[..., Gateway]) -> Gateway:
    return make_gateway()
