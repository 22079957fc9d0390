"""The rights of one role, for Redis and for the store under the cold root."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ...base.local_path import path_or_url
from ...errors import InvalidArgumentError
from ...hot.key_patterns import KeyPatterns
from ...hot.keys import DEFAULT_KEYSPACE
from ...values.topic import check_topic_name
from .redis_rules import EVERY, Role, redis_rules
from .store_policies import s3_policy


class Acl(Struct, frozen=True):
    """What is to be given to a user of that role; `acl` makes it."""

    role: Role
    user: str  # of Redis
    redis: tuple[str, ...]  # the rules, in order
    s3: dict[str, Any] | None  # a policy document; None: the root is not in S3, or there is none

    def __str__(self) -> str:
        """The command that makes the user or changes it. It has no password of its own yet."""
        return " ".join(("ACL SETUSER", self.user, *self.redis))


def acl(
    role: Role | str,
    topics: str | Iterable[str] = EVERY,
    *,
    groups: str | Iterable[str] = EVERY,
    keyspace: str = DEFAULT_KEYSPACE,
    cold: str | None = None,
    user: str | None = None,
    load_scripts: bool = False,
) -> Acl:
    """The least rights with which a role can do all of its work.

    Asks nobody: nothing has to be there yet.

    Args:
        role: one of `Role`, or its name.
        topics: names; ``web.*`` for all that begin with ``web.``. An admin has all of the keyspace.
        groups: ids of groups of consumers and of share groups, likewise; only of a consumer.
        keyspace: what its keys begin with.
        cold: the cold root, if there is one.
        user: its name in Redis; default: the role, and the topic if there is one.
        load_scripts: it may also put scripts on the server, which takes no archiver or admin to
            connect before it after each start of Redis. Whoever may do that can run any script
            within its rights, one that never ends too.

    Raises:
        InvalidArgumentError: no such role, a keyspace whose keys lie within another's, a user's
            name that Redis does not take, or a mistyped root.
        InvalidTopicError: no topic has such a name.
    """
    chosen = _role(role)
    names, ids = _listed("topics", topics), _listed("groups", groups)
    for name in names:
        if name not in EVERY:
            check_topic_name(name[:-1] if name.endswith("*") else name)
    if ":" in keyspace:
        raise InvalidArgumentError(
            f"the keys of keyspace {keyspace!r} lie among those of {keyspace.partition(':')[0]!r}, "
            "so that no rule tells them apart; give it a name without ':'",
            name="keyspace",
            value=keyspace,
        )
    if user is None:
        user = chosen.value if len(names) != 1 or names == EVERY else f"{chosen.value}-{names[0]}"
        user = user.rstrip("*")
    if not re.fullmatch(r"[!-~]+", user):
        raise InvalidArgumentError(
            f"{user!r} is no name of a user: give one of letters, digits and signs, without spaces",
            name="user",
            value=user,
        )
    if chosen is Role.ARCHIVER:
        ids = EVERY  # it records them all
    rules = redis_rules(
        chosen,
        KeyPatterns(keyspace),
        names,
        ids,
        loads_scripts=load_scripts or chosen.loads_scripts,
    )
    scheme = path_or_url(cold, "cold root").partition("://")[0] if cold else ""
    return Acl(
        chosen,
        user,
        rules,
        s3_policy(chosen, cold or "", names) if scheme in ("s3", "s3a") else None,
    )


def _role(role: Role | str) -> Role:
    try:
        return role if isinstance(role, Role) else Role(role.lower())
    except (ValueError, AttributeError):
        raise InvalidArgumentError(
            f"{role!r} is no role: give one of {', '.join(one.value for one in Role)}",
            name="role",
            value=role,
        ) from None


def _listed(name: str, given: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Iterable):
        names = tuple(given)
        if all(isinstance(one, str) for one in names):
            return names
    raise InvalidArgumentError(
        f"{name}={given!r:.200} are no names; give one, or a list of them; {name}='web.*' for all "
        "that begin with web.",
        name=name,
        value=given,
    )
