"""How full servers are and what time it is there, asked in the round trips of appends.

Every tenth of a second, or after some MiB, two commands follow the scripts of an append on their
connection: no trip more, and some tens of microseconds of the server.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..base.clock import SystemClock
from ..values.config import MIB
from .clock_skew import SkewWarning, skew_ms, time_ms
from .connection import Command, Server
from .memory_use import COMMAND, MemoryUse

#: How old what is known of a server may get, once something is appended there.
INTERVAL_S = 0.1

#: And how much may be appended meanwhile: a fast producer fills a small Redis in less than that.
INTERVAL_BYTES = 4 * MIB

_LOOK: tuple[Command, ...] = (("TIME",), COMMAND)


class AppendLooks:
    """What is known of each server. Thread-safe: what two threads find is equally new."""

    def __init__(self) -> None:
        self._now_ms = SystemClock().now_ms
        self._skews = SkewWarning()
        self._asked_s: dict[str, float] = {}
        self._sent_bytes: dict[str, int] = {}  # since then
        self._memory: dict[str, MemoryUse | None] = {}

    def begin(self, server: Server, size_bytes: int) -> Look:
        """A look at a server, for the next exchange; it asks nothing if the last one is new.

        Args:
            size_bytes: what the exchange appends.
        """
        now_s, name = time.monotonic(), server.name
        sent_bytes = self._sent_bytes.get(name, 0) + size_bytes
        is_new = now_s - self._asked_s.get(name, -INTERVAL_S) < INTERVAL_S
        if is_new and sent_bytes < INTERVAL_BYTES:
            self._sent_bytes[name] = sent_bytes
            return Look((), 0)
        self._asked_s[name], self._sent_bytes[name] = now_s, 0
        return Look(_LOOK, self._now_ms())

    def end(self, server: Server, look: Look, replies: Sequence[Any]) -> None:
        """Takes note of the replies to the commands of a look, errors in place."""
        if not look.commands:
            return
        time_reply, memory_reply = replies
        if not isinstance(time_reply, Exception):
            skew = skew_ms(look.sent_ms, time_ms(time_reply), self._now_ms())
            self._skews.look(server.name, skew)
        self._memory[server.name] = MemoryUse.of(memory_reply)

    def memory(self, server: Server) -> MemoryUse | None:
        """How full a server was when it was last asked; None: not known."""
        return self._memory.get(server.name)


class Look:
    """One look under way."""

    __slots__ = ("commands", "sent_ms")

    def __init__(self, commands: tuple[Command, ...], sent_ms: int) -> None:
        self.commands = commands
        self.sent_ms = sent_ms
