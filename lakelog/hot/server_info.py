"""What a Redis server says of itself, as far as the hot tier depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LakelogError
from .connection import Server


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """One server of the hot tier."""

    name: str  # its URL without the password
    program: str  # redis or valkey
    version: str
    role: str  # master or slave, as Redis calls them
    run_id: str
    used_memory_bytes: int
    max_memory_bytes: int  # 0: no limit
    eviction_policy: str  # noeviction is the only safe one
    append_only_file: bool
    appendfsync: str | None  # None: CONFIG GET is not allowed here
    snapshots: str | None  # the `save` setting; None likewise

    @property
    def memory_headroom_bytes(self) -> int | None:
        """Bytes until appends are refused; None without a limit."""
        if not self.max_memory_bytes:
            return None
        return max(0, self.max_memory_bytes - self.used_memory_bytes)


def server_info(server: Server) -> ServerInfo:
    """Asks the server.

    Raises:
        HotTierUnavailableError, HotTierAccessError: it does not answer, or refuses us.
    """
    info = info_fields(server.call(("INFO",))[0])
    valkey = info.get("server_name") == "valkey"
    return ServerInfo(
        name=server.name,
        program="valkey" if valkey else "redis",
        version=info["valkey_version"] if valkey else info["redis_version"],
        role=info["role"],
        run_id=info["run_id"],
        used_memory_bytes=int(info["used_memory"]),
        max_memory_bytes=int(info.get("maxmemory", 0)),
        eviction_policy=info.get("maxmemory_policy", "unknown"),
        append_only_file=info.get("aof_enabled") == "1",
        appendfsync=setting(server, "appendfsync"),
        snapshots=setting(server, "save"),
    )


def info_fields(reply: bytes | str) -> dict[str, str]:
    """What INFO says, by name."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def setting(server: Server, name: str) -> str | None:
    """A setting of the server; None: CONFIG GET is not allowed here."""
    try:
        reply = server.call(("CONFIG", "GET", name))[0]
    except LakelogError:
        return None
    pairs = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
    value = next(iter(pairs.values()), b"")
    return value.decode() if isinstance(value, bytes) else str(value)
