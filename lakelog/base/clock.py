"""Where "now" comes from: whoever needs a clock is given one, so that tests can set the time."""

from __future__ import annotations

from time import time_ns
from typing import Protocol

from msgspec import Struct


class Clock(Protocol):
    """Milliseconds since the UTC epoch."""

    def now_ms(self) -> int: ...


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        return time_ns() // 1_000_000


class ManualClock(Struct):
    """A clock that stands still until told to move."""

    time_ms: int = 1_700_000_000_000  # 2023-11-14T22:13:20Z

    def now_ms(self) -> int:
        return self.time_ms

    def advance(self, milliseconds: int) -> None:
        self.time_ms += milliseconds
