"""How full a Redis server is, by which a nearly full one is relieved before it refuses appends."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .info_reply import info_fields

#: Asks for it; the reply is for `MemoryUse.of`.
COMMAND = ("INFO", "memory")


class MemoryUse(Struct, frozen=True):
    """What counts against ``maxmemory``, and that."""

    used_bytes: int
    max_bytes: int  # 0: no limit

    @classmethod
    def of(cls, reply: Any) -> MemoryUse | None:
        """None: the server does not tell us."""
        if not isinstance(reply, bytes | str):
            return None
        info = info_fields(reply)
        try:
            # Buffers of replicas and of the append-only file do not count.
            used = int(info["used_memory"]) - int(info.get("mem_not_counted_for_evict", 0))
            return cls(max(0, used), int(info.get("maxmemory", 0)))
        except (KeyError, ValueError):
            return None

    @property
    def percent(self) -> float:
        """Of ``maxmemory``; 0 without a limit."""
        return 100 * self.used_bytes / self.max_bytes if self.max_bytes else 0.0

    @property
    def free_bytes(self) -> int | None:
        """Until appends are refused; None without a limit."""
        return max(0, self.max_bytes - self.used_bytes) if self.max_bytes else None
