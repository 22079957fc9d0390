"""A store's clock that is ahead, so that files written just now are old enough to be deleted."""

from __future__ import annotations

from msgspec import Struct

from lakelog.base.clock import SystemClock
from lakelog.values.config import HOUR_MS


class LaterClock(Struct, frozen=True):
    """The machine's clock, and some time more: for `PathTable`'s ``store_clock``."""

    later_ms: int = HOUR_MS

    def now_ms(self) -> int:
        return SystemClock().now_ms() + self.later_ms
