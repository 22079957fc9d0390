"""A coordinator on a real server, whose clock stands still unless a test moves it."""

from __future__ import annotations

from dataclasses import dataclass

from lakelog.base.clock import ManualClock
from lakelog.groups.admin import GroupAdmin
from lakelog.hot.connection import Servers
from tests.support.waiting_coordinator import WaitingCoordinator


@dataclass
class GroupBench:
    """What looks at one server's groups, and the clock that it goes by."""

    url: str
    servers: Servers
    clock: ManualClock
    coordinator: WaitingCoordinator
    admin: GroupAdmin
