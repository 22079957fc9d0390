"""Makes what the tests of groups share importable, and a coordinator whose clock stands still."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelog.base.clock import ManualClock
from lakelog.groups.admin import GroupAdmin
from lakelog.groups.settings import GroupSettings
from lakelog.hot.connection import connect
from tests.support.waiting_coordinator import WaitingCoordinator

sys.path.insert(0, str(Path(__file__).parent))  # group_*.py are no test modules

from group_bench import GroupBench


@pytest.fixture
def make_groups(redis_url: str) -> Iterator[Callable[..., GroupBench]]:
    """``make_groups(url=…, clock=True, **settings)``; ``clock=False`` lets Redis's own go."""
    made: list[GroupBench] = []

    def make(url: str = redis_url, *, clock: bool = True, **settings: int) -> GroupBench:
        servers, hands = connect(url), ManualClock()
        chosen = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        given = {"settings": chosen, "clock": hands if clock else None}
        made.append(
            GroupBench(
                url,
                servers,
                hands,
                WaitingCoordinator(servers, **given),
                GroupAdmin(servers, **given),
            )
        )
        return made[-1]

    yield make
    for bench in made:
        bench.servers.close()


@pytest.fixture
def groups(make_groups: Callable[..., GroupBench]) -> GroupBench:
    return make_groups()
