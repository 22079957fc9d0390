"""The roles that processes of a log have."""

from __future__ import annotations

from enum import Enum

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
