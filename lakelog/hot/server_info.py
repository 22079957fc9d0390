"""What a Redis server says of itself, as far as the hot tier depends on it."""

from __future__ import annotations

from msgspec import Struct

from ..base.clock import SystemClock
from ..errors import LakelogError
from .clock_skew import skew_ms, time_ms
from .connection import Server
from .info_reply import info_fields
from .memory_use import MemoryUse


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
    clock_skew_ms: int = 0  # see `clock_skew.skew_ms`
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
    pairs = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
    value = next(iter(pairs.values()), b"")
    return value.decode() if isinstance(value, bytes) else str(value)
