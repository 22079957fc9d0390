"""What a role may do below a cold root in an object store, whoever runs the store. Pure.

| role             | reads and lists            | writes                      | deletes    |
|------------------|----------------------------|-----------------------------|------------|
| reader, consumer | its topics' folders        |                             |            |
| producer         | its topics' folders        | the Delta log in them: a    |            |
|                  |                            | reservation is a commit     |            |
| archiver         | its topics' folders, the   | the same                    | the same   |
|                  | tables of runs and groups  |                             |            |
| admin            | the root                   | the root                    | the root   |

A commit is a write that fails where the object is there already (in S3 and Azure by
``If-None-Match``, in Google Cloud Storage by the generation 0): in none of them a right of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import InvalidArgumentError
from ...values.topic import GROUPS_TABLE, STATUS_TABLE
from .role import Role


class ColdRights(Struct, frozen=True):
    """The rights of one role, by the names of objects.

    Args:
        bucket: its name; in Azure ``container@account…``.
        folders: what it reads and lists, each ending in ``/`` or empty for the whole bucket; a
            ``*`` stands for any rest of a name.
        reserves: whether it writes in the Delta logs below them.
        changes: whether it writes and deletes anything below them.
    """

    bucket: str
    folders: tuple[str, ...]
    reserves: bool
    changes: bool

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Without stars: what the names of all objects below each folder begin with."""
        return tuple(folder.partition("*")[0] for folder in self.folders)


def cold_rights(
    role: Role, root: str, topics: Iterable[str], schemes: Iterable[str], wanted: str
) -> ColdRights:
    """The rights of a role under a root.

    Args:
        topics: names; ``web.*`` for all that begin with ``web.``.
        schemes: those of the store.
        wanted: what a root there looks like.

    Raises:
        InvalidArgumentError: the root is none in that store.
    """
    parts = urlsplit(root)
    prefix = "".join(f"{part}/" for part in parts.path.split("/") if part)
    if parts.scheme not in schemes or not parts.netloc or set(prefix) & set("*?\"'\\"):
        raise InvalidArgumentError(
            f"{root} is no root that a policy can name; policies are made for {wanted}, without "
            "stars, question marks, quotes and backslashes",
            name="cold",
            value=root,
        )
    topics = tuple(topics)
    if role is Role.ADMIN:
        folders = [prefix]
    elif role is Role.ARCHIVER:
        folders = [f"{prefix}{name}/" for name in (*topics, STATUS_TABLE, GROUPS_TABLE)]
    else:
        folders = [f"{prefix}{name}/" for name in topics]
    return ColdRights(
        parts.netloc,
        tuple(folders),
        reserves=role is Role.PRODUCER,
        changes=role in (Role.ARCHIVER, Role.ADMIN),
    )
