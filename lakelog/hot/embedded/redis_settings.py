"""What the hot tier relies on in a Redis, each setting with its reason.

The embedded server runs with these; ``conf/redis.conf`` is the same list for those who run their
own, and a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple


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
