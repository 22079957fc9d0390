"""What a role may do in Redis, as rules of an ``ACL SETUSER``.

Redis has rights to commands and to keys, and a script has those of whoever calls it. So a role's
commands are what its scripts call and what lakelog sends beside them, and its keys are those of its
topics and groups. Keys that a role only reads are ``%R~``: scripts that only read are called by
``EVALSHA_RO``, for which that is enough.

What no role has, since Redis cannot confine it to a role's own keys: ``EVAL``, ``SCRIPT FLUSH``,
``SCRIPT KILL``, ``SCAN``, ``KEYS``, ``RANDOMKEY``, ``DBSIZE``, ``FLUSHDB``, ``CONFIG``,
``MONITOR``, ``ACL``. ``INFO`` cannot be confined either, and every role has it: the scripts ask it
at each call which run of the server they are on.

Scripts are not a library of functions, for Redis keeps functions over a restart and copies them to
replicas. A script is gone with the process that knew it, and lakelog goes by that: a server that
may have lost its tail knows no append until somebody has asked which run of it this is. Functions
have the rights of their caller, as scripts do, so they would take away nothing besides.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from ...hot.key_patterns import KeyPatterns

#: Of topics or groups: all.
EVERY = ("*",)


class Role(Enum):
    """What a process does with a log; each has what its work takes, and nothing else."""

    PRODUCER = "producer"  # appends to its topics
    CONSUMER = "consumer"  # reads its topics as a member of its groups, share groups too
    READER = "reader"  # reads its topics, and says where it is to nobody
    ARCHIVER = "archiver"  # archives and cleans up its topics, and records groups
    ADMIN = "admin"  # all of a keyspace: topics, settings, groups, skipping, erasing, restoring

    @property
    def loads_scripts(self) -> bool:
        """Whether it puts lakelog's scripts on a server that has started, for the others too."""
        return self in (Role.ARCHIVER, Role.ADMIN)


#: What every connection sends, and what scripts that only read are called by.
_CONNECTING = ("ping", "select", "info", "time", "cluster|slots", "script|exists", "evalsha_ro")

_READING = (
    *("xread", "xrange", "xrevrange", "xlen", "type"),
    *("hget", "hmget", "hgetall", "hkeys", "hlen", "hexists", "hscan"),
    *("zrange", "zrevrange", "zrangebyscore", "zrevrangebyscore", "zcard", "zscore"),
    "memory|usage",
)

_APPENDING = (
    *("evalsha", "xadd", "xlen", "xrange", "xrevrange", "xtrim", "wait"),
    "xsetid",  # of recovery alone, for a stream that an older lakelog left closed
    *("hget", "hmget", "hgetall", "hset", "hdel", "hlen", "hexists", "hscan", "hrandfield"),
    "hkeys",
    *("zadd", "zcard", "zrange", "zrevrange", "zrem", "zremrangebyrank"),
)

#: Of the lock under which a server is taken over after a planned stop.
_LOCKING = ("evalsha", "set", "get", "pttl", "pexpire", "del")

_GROUPING = (
    *("evalsha", "hset", "hdel", "hincrby", "hrandfield", "xadd", "del"),
    *("zadd", "zrem", "zremrangebyscore"),
)

_ARCHIVING = (
    *(*_APPENDING, *_GROUPING, *_LOCKING),
    *("hsetnx", "pexpireat", "exists", "unlink", "rename"),
)

_ADMINISTERING = (
    *(*_ARCHIVING, "xdel", "persist", "xinfo|stream"),
    *("bgrewriteaof", "bgsave", "slowlog|len"),  # what was erased must leave the disk, too
)

_LOADING = ("script|load",)


def redis_rules(
    role: Role,
    patterns: KeyPatterns,
    topics: Iterable[str],
    groups: Iterable[str],
    *,
    loads_scripts: bool,
) -> tuple[str, ...]:
    """The rules, in an order that takes away what a user of that name had before.

    The user keeps its passwords.
    """
    topics, groups = tuple(topics), tuple(groups)
    commands = list(_CONNECTING)
    keys: list[str] = []
    selectors: list[str] = []
    partitions = [pattern for topic in topics for pattern in patterns.partitions(topic)]
    of_groups = [pattern for group in groups for pattern in patterns.group(group)]
    if role is Role.ADMIN:
        commands += [*_READING, *_ADMINISTERING]
        keys += _all(patterns.everything())
    elif role is Role.ARCHIVER:
        commands += [*_READING, *_ARCHIVING]
        keys += _all([patterns.topics, patterns.quotas, patterns.archivers, patterns.cleanups])
        keys += _all(partitions)
        keys += _all([patterns.groups, patterns.groups_recorded, patterns.share_groups, *of_groups])
        keys += _all([patterns.resume_locks, patterns.naming_locks])
    elif role is Role.PRODUCER:
        commands += _APPENDING
        keys += [*_read([patterns.topics]), *_all([patterns.quotas, *partitions])]
        selectors.append(_selector(_LOCKING, [patterns.resume_locks]))
    elif role is Role.CONSUMER:
        commands += [*_READING, *_GROUPING]
        keys += _read([patterns.topics, *partitions])
        keys += _all([patterns.groups, patterns.share_groups, *of_groups])
        keys += _all(map(patterns.shares, topics))
    else:
        commands += _READING
        keys += _read([patterns.topics, patterns.archivers, *partitions])
    if loads_scripts:
        commands += _LOADING
    allowed = [f"+{command}" for command in dict.fromkeys(commands)]
    return (*_NOTHING, *dict.fromkeys(keys), *allowed, *selectors)


#: In this order: a user that is there already loses every other right.
_NOTHING = ("on", "resetkeys", "resetchannels", "clearselectors", "nocommands")


def _all(patterns: Iterable[str]) -> list[str]:
    return [f"~{pattern}" for pattern in patterns]


def _read(patterns: Iterable[str]) -> list[str]:
    return [f"%R~{pattern}" for pattern in patterns]


def _selector(commands: Iterable[str], patterns: Iterable[str]) -> str:
    return f"({' '.join([*(f'+{command}' for command in commands), *_all(patterns)])})"
