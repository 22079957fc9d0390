"""What a Redis server says of itself: its clock, how full it is, how it keeps what it was told.

Of its clock: a record's timestamp is its producer's time, and all that goes by time beside it is
Redis's: which timestamps are refused (``message.timestamp.after.max.ms``, of Redis's now, as Kafka
goes by its broker's), when a segment rolls, how long a record waited to be archived. Kafka only
refuses; who is off by less than an hour finds out from `lakelog doctor`, or when a search by time
gives other records.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ..base.back_off import POLL, wait_until
from ..base.clock import SystemClock
from ..errors import HotTierUnavailableError, LakelogError
from ..values.config import HOUR_MS, MIB
from .connection import Command, Server, by_name

#: Asks how full a server is; the reply is for `MemoryUse.of`.
MEMORY_INFO: Command = ("INFO", "memory")

#: How old what is known of a server may get, once something is appended there.
INTERVAL_S = 0.1

#: And how much may be appended meanwhile: a fast producer fills a small Redis in less than that.
INTERVAL_BYTES = 4 * MIB

#: From here on a clock that is off is told of. Machines that keep theirs by NTP differ by
#: milliseconds.
TOLERATED_MS = 1_000


class ServerInfo(Struct, frozen=True):
    """One server of the hot tier."""

    name: str  # its URL without the password
    program: str  # redis or valkey
    version: str
    role: str  # master or slave, as Redis calls them
    run_id: str
    used_memory_bytes: int  # what counts against the limit, see `MemoryUse`
    max_memory_bytes: int  # 0: no limit
    eviction_policy: str  # noeviction is the only safe one
    append_only_file: bool
    appendfsync: str | None  # None: CONFIG GET is not allowed here
    snapshots: str | None  # the `save` setting; None likewise
    clock_skew_ms: int = 0  # see `skew_ms`
    replicas: int = 0  # that are connected

    @property
    def takes_settings(self) -> bool:
        """Whether CONFIG is allowed, as it is not where somebody else runs the server."""
        return self.appendfsync is not None

    @property
    def memory(self) -> MemoryUse:
        """How full it is."""
        return MemoryUse(self.used_memory_bytes, self.max_memory_bytes)

    @property
    def memory_headroom_bytes(self) -> int | None:
        """Bytes until appends are refused; None without a limit."""
        return self.memory.free_bytes


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


class AppendLooks:
    """How full servers are, asked in the round trips of appends.

    Every tenth of a second, or after some MiB, a command follows the scripts of an append on their
    connection: no trip more, and some tens of microseconds of the server. Thread-safe: what two
    threads find is equally new.
    """

    def __init__(self) -> None:
        self._asked_s: dict[str, float] = {}
        self._sent_bytes: dict[str, int] = {}  # since then
        self._memory: dict[str, MemoryUse | None] = {}

    def begin(self, server: Server, size_bytes: int) -> tuple[Command, ...]:
        """What to ask a server in the next exchange; nothing if the last look is new.

        Args:
            size_bytes: what the exchange appends.
        """
        now_s, name = time.monotonic(), server.name
        sent_bytes = self._sent_bytes.get(name, 0) + size_bytes
        is_new = now_s - self._asked_s.get(name, -INTERVAL_S) < INTERVAL_S
        if is_new and sent_bytes < INTERVAL_BYTES:
            self._sent_bytes[name] = sent_bytes
            return ()
        self._asked_s[name], self._sent_bytes[name] = now_s, 0
        return (MEMORY_INFO,)

    def end(self, server: Server, replies: Sequence[Any]) -> MemoryUse | None:
        """Takes note of the replies to that, errors in place.

        Returns:
            How full the server was when it was last asked; None: not known.
        """
        for reply in replies:
            self._memory[server.name] = MemoryUse.of(reply)
        return self._memory.get(server.name)


def server_info(server: Server) -> ServerInfo:
    """Asks the server.

    Raises:
        HotTierUnavailableError, HotTierAccessError: it does not answer, or refuses us.
    """
    now_ms = SystemClock().now_ms
    sent_ms = now_ms()
    reply, time = server.call(("INFO",), ("TIME",))
    skew = skew_ms(sent_ms, time_ms(time), now_ms())
    info = info_fields(reply)
    memory = MemoryUse.of(reply)
    assert memory is not None, "INFO has no used_memory"
    valkey = info.get("server_name") == "valkey"
    return ServerInfo(
        name=server.name,
        program="valkey" if valkey else "redis",
        version=info["valkey_version"] if valkey else info["redis_version"],
        role=info["role"],
        run_id=info["run_id"],
        used_memory_bytes=memory.used_bytes,
        max_memory_bytes=memory.max_bytes,
        eviction_policy=info.get("maxmemory_policy", "unknown"),
        append_only_file=info.get("aof_enabled") == "1",
        appendfsync=setting(server, "appendfsync"),
        snapshots=setting(server, "save"),
        clock_skew_ms=skew,
        replicas=int(info.get("connected_slaves", 0)),
    )


def setting(server: Server, name: str) -> str | None:
    """A setting of the server; None: CONFIG GET is not allowed here."""
    try:
        reply = server.call(("CONFIG", "GET", name))[0]
    except LakelogError:
        return None
    pairs = by_name(reply)
    value = next(iter(pairs.values()), b"")
    return value.decode() if isinstance(value, bytes) else str(value)


def info_fields(reply: bytes | str) -> dict[str, str]:
    """What INFO says, by name: the fields of the sections that were asked for."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            fields[name] = value
    return fields


def time_ms(reply: Sequence[Any]) -> int:
    """The reply to TIME in milliseconds."""
    seconds, microseconds = reply
    return int(seconds) * 1000 + int(microseconds) // 1000


def skew_ms(sent_ms: int, server_ms: int, received_ms: int) -> int:
    """By how much a server's clock is surely ahead of ours; negative: behind; 0: it may be right.

    Args:
        sent_ms: our time before it was asked.
        server_ms: what it answered.
        received_ms: our time after that. Whatever the exchange took, its time lies between ours.
    """
    if server_ms > received_ms:
        return server_ms - received_ms
    return min(0, server_ms - sent_ms)


def is_off(skew: int) -> bool:
    """Whether a skew in milliseconds is worth a word."""
    return abs(skew) >= TOLERATED_MS


def skew_text(skew: int) -> str:
    """The skew as the end of a sentence on the server's clock."""
    return f"{abs(skew) / 1000:,.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"


#: What is awaited of one rewrite: a Redis of 100 GB takes some minutes.
WITHIN_S = HOUR_MS / 1000

REWRITTEN, NONE = "rewritten", "none is kept"


class Persistence(Struct, frozen=True):
    """What became of one server's files."""

    server: str  # its URL without the password
    append_only_file: str  # REWRITTEN, NONE, or why not
    snapshot: str  # likewise
    replicas: int  # that follow it, with files of their own
    slow_log_entries: int  # that show the beginning of long arguments; -1: it does not say

    @property
    def is_rewritten(self) -> bool:
        return {self.append_only_file, self.snapshot} <= {REWRITTEN, NONE}


def rewrite_persistence(server: Server) -> Persistence:
    """Has the server rewrite its append-only file and its snapshot, and waits until it has.

    A server that refuses (managed ones do) or fails is told of, and nothing is raised.

    Raises:
        HotTierUnavailableError: it does not answer.
    """
    info = _info(server)
    append_only_file = NONE
    if info.get("aof_enabled") == "1":
        append_only_file = _rewritten(
            server,
            ("BGREWRITEAOF",),
            ("aof_rewrite_in_progress", "aof_rewrite_scheduled"),
            "aof_last_bgrewrite_status",
        )
    snapshot = NONE
    save = setting(server, "save")
    if save or info.get("rdb_saves", "0") != "0" or save is None:
        snapshot = _rewritten(
            server,
            ("BGSAVE",),
            ("rdb_bgsave_in_progress",),
            "rdb_last_bgsave_status",
        )
    return Persistence(
        server.name,
        append_only_file,
        snapshot,
        int(info.get("connected_slaves", 0)),
        _slow_log_entries(server),
    )


def _rewritten(
    server: Server, command: tuple[str, ...], running: tuple[str, ...], status: str
) -> str:
    """Runs a command that writes a file in the background; what came of it."""

    def is_idle() -> bool:
        info = _info(server)
        return all(info.get(name, "0") == "0" for name in (*running, "rdb_bgsave_in_progress"))

    # One that runs already began before what is to be gone was trimmed.
    if not wait_until(f"an earlier {command[0]} of {server.name}", is_idle, _PATIENCE):
        return f"an earlier one was not over after {WITHIN_S:.0f} s"
    try:
        server.call(command)
    except HotTierUnavailableError:
        raise
    except LakelogError as error:
        return f"{command[0]} was refused: {error.message}"
    if not wait_until(f"{command[0]} of {server.name}", is_idle, _PATIENCE):
        return f"it was begun and not over after {WITHIN_S:.0f} s"
    said = _info(server).get(status, "ok")
    return REWRITTEN if said == "ok" else f"{command[0]} failed ({said}); the server's log says why"


_PATIENCE = POLL.within(WITHIN_S)


def _info(server: Server) -> dict[str, str]:
    return info_fields(server.call(("INFO",))[0])


def _slow_log_entries(server: Server) -> int:
    try:
        return int(server.call(("SLOWLOG", "LEN"))[0])
    except HotTierUnavailableError:
        raise
    except LakelogError:
        return -1
