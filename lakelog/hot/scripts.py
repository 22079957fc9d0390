"""The Lua scripts, each as a text for one run of one server.

A file holds one script of its name, or several: each begins behind a line ``-- script: NAME``, and
what stands above the first is in front of all of them.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from importlib import resources

from msgspec import Struct
from redis.exceptions import RedisError


class Run(Struct, frozen=True):
    """A stretch of a server's life in which it cannot have lost anything unnoticed.

    It ends with the process, and when the server takes over from another one: a server that was
    demoted, filled anew and promoted again is the same process with other data.
    """

    run_id: str  # the server's, and behind a slash what follows
    took_over: str  # its replication id if it has taken over from another since it started, or ""

    @classmethod
    def of(cls, info: str) -> Run:
        """The run that INFO describes.

        Raises:
            RedisError: INFO does not say enough.
        """
        fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        try:
            if not fields["master_replid2"].strip("0"):
                return cls(fields["run_id"], "")
            took_over = fields["master_replid"]
            return cls(f"{fields['run_id']}/{took_over}", took_over)
        except KeyError as missing:
            raise RedisError(f"its INFO has no {missing}, which lakelog goes by") from None


class Script(Struct, frozen=True):
    """One script."""

    file: str  # below lakelog
    shared: str | None  # the file in front of it, and in front of that hot/run; None: neither
    flags: str


#: Making room must work when Redis is full, and so must reading in a group.
_ANYWAY = "allow-oom"
_READS = "no-writes,allow-oom"

_PARTITION, _GROUP, _SHARE = "hot/common", "groups/group", "groups/share/share"

#: file → what is in front of its scripts, and each with the flags it needs.
_FILES: dict[str, tuple[str | None, dict[str, str]]] = {
    "hot/append": (_PARTITION, {"append": ""}),
    "hot/partition": (
        _PARTITION,
        {"init": "", "delete": _ANYWAY, "archived_into": _ANYWAY, "allow": _ANYWAY},
    ),
    "hot/look": (_PARTITION, dict.fromkeys(("offsets", "inspect", "find_timestamp"), _READS)),
    "hot/trim": (_PARTITION, dict.fromkeys(("trim", "retain", "roll"), _ANYWAY)),
    "hot/recovery": (_PARTITION, dict.fromkeys(("recover", "pause"), _ANYWAY)),
    "hot/mend": (_PARTITION, dict.fromkeys(("mend", "rebuild"), _ANYWAY)),
    "hot/skip": (_PARTITION, {"skip": _ANYWAY}),
    "hot/topics": (
        None,
        {
            **dict.fromkeys(("define", "defaults", "redefine", "restore"), ""),
            **dict.fromkeys(("undefine", "purge", "tenant"), _ANYWAY),
        },
    ),
    "hot/quota": (None, dict.fromkeys(("quota", "cold_bytes"), _ANYWAY)),
    "hot/lock": (None, {"lock": _ANYWAY}),
}

#: name → script. Those of groups have a file each, by which they are called.
SCRIPTS: dict[str, Script] = {
    **{
        name: Script(file, shared, flags)
        for file, (shared, scripts) in _FILES.items()
        for name, flags in scripts.items()
    },
    **{
        f"groups/{name}": Script(f"groups/{name}", shared, flags)
        for shared, names, flags in (
            (_GROUP, ("join", "attend", "commit", "look", "remove"), _ANYWAY),
            (_GROUP, ("consumer_heartbeat",), _ANYWAY),
            (_GROUP, ("bring_back",), ""),
            (None, ("listing", "record"), _ANYWAY),
            (_SHARE, ("share/acquire", "share/acknowledge", "share/forget", "share/move"), _ANYWAY),
            (_SHARE, ("share/look", "share/starts"), _READS),
            (_SHARE, ("share/bring_back",), ""),
        )
        for name in names
    },
}


#: Those that write nothing.
READING = frozenset(name for name, script in SCRIPTS.items() if script.flags == _READS)


@lru_cache(maxsize=64)
def script_text(name: str, run: Run) -> str:
    """The text of a script as loaded on the server in that run."""
    script = SCRIPTS[name]
    header = f"#!lua flags={script.flags}\n" if script.flags else "#!lua\n"
    parts = _parts(script.file)
    own = parts[""] + parts.get(name, "")
    if script.shared is None:
        return header + own
    run_ids = f"local RUN_ID, REPLICATION_ID = '{run.run_id}', '{run.took_over}'\n"
    shared = "".join(_parts(file)[""] for file in ("hot/run", script.shared))
    return header + run_ids + shared + own


@lru_cache(maxsize=64)
def script_sha(name: str, run: Run) -> str:
    return hashlib.sha1(script_text(name, run).encode(), usedforsecurity=False).hexdigest()


@lru_cache(maxsize=64)
def _parts(file: str) -> dict[str, str]:
    """The scripts of a file by name, and under "" what stands above them."""
    text = (resources.files("lakelog") / f"{file}.lua").read_text("utf-8")
    above, *named = re.split(r"^-- script: (\w+)\n", text, flags=re.MULTILINE)
    return {"": above, **dict(zip(named[::2], named[1::2], strict=True))}
