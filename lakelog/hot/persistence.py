"""Has a Redis write what it keeps on its disk anew, so that it holds nothing that was trimmed.

The append-only file has every command since it was last rewritten, and a snapshot the keys as they
were when it was made.
"""

from __future__ import annotations

from msgspec import Struct

from ..base.back_off import POLL, wait_until
from ..errors import HotTierUnavailableError, LakelogError
from ..values.config import HOUR_MS
from .connection import Server
from .server_info import info_fields, setting

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
