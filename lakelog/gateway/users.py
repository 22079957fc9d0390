"""Users of a gateway, who log in by SCRAM: what is kept of their passwords, in Redis.

One hash, ``{keyspace}:gateway_users``: mechanism and name, with a space between → the credential as
JSON (`ScramCredential`). Of the roles of `acl`, only an admin may read or change it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..errors import InvalidArgumentError
from ..hot import HotLog
from ..hot.connection import by_name
from ..hot.foreign import foreign_if_illegible
from ..hot.keys import Keys
from .scram import HASHES, ScramCredential

_LONGEST = 255


class ScramUser(Struct, frozen=True):
    """What may be told of a user."""

    name: str
    mechanism: str
    iterations: int


class ScramUsers:
    """Who may log in to the gateways of a keyspace by SCRAM.

    Args:
        hot: whose user of Redis has the right to it.
    """

    def __init__(self, hot: HotLog) -> None:
        self._key = Keys(hot.keyspace).gateway_users
        self._servers = hot.connections

    def set(self, name: str, password: str, mechanisms: Sequence[str] = tuple(HASHES)) -> None:
        """Makes a user, or gives it another password.

        Raises:
            InvalidArgumentError: no legal name, no such mechanism, or an empty password.
        """
        check_name(name)
        unknown = [one for one in mechanisms if one not in HASHES]
        if unknown or not mechanisms:
            raise InvalidArgumentError(
                f"{', '.join(unknown) or 'nothing'} is no mechanism that keeps users here: "
                f"{' and '.join(HASHES)} are"
            )
        made = {one: ScramCredential.of(one, password) for one in mechanisms}
        self.put({(one, name): credential for one, credential in made.items()})

    def put(self, credentials: dict[tuple[str, str], ScramCredential]) -> None:
        """Keeps credentials, each by its mechanism and name."""
        fields = [
            text
            for (mechanism, name), credential in credentials.items()
            for text in (_field(mechanism, name), credential.to_json())
        ]
        self._call("HSET", *fields)

    def find(self, mechanism: str, name: str) -> ScramCredential | None:
        """What is kept of a password; None: there is no such user.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
            ForeignEntryError: somebody else wrote it.
        """
        found = self._call("HGET", _field(mechanism, name))
        return None if found is None else _credential(found, name)

    def list(self) -> list[ScramUser]:
        """All users, by name; one for each mechanism.

        Raises:
            LakelogError: see `find`.
        """
        found = []
        for field, text in by_name(self._call("HGETALL")).items():
            with foreign_if_illegible(field, "name of a user"):
                mechanism, name = field.decode().split(" ", 1)
            found.append(ScramUser(name, mechanism, _credential(text, name).iterations))
        return sorted(found, key=lambda user: (user.name, user.mechanism))

    def delete(self, name: str, mechanisms: Sequence[str] = tuple(HASHES)) -> bool:
        """Forgets a user; False if there is none. Who is logged in stays so."""
        return bool(self._call("HDEL", *(_field(one, name) for one in mechanisms)))

    def _call(self, command: str, *arguments: str) -> object:
        server = self._servers.for_key(self._key)
        found: object = server.call((command, self._key, *arguments))[0]
        return found


def check_name(name: str) -> None:
    """Refuses what no user can be called.

    Raises:
        InvalidArgumentError: it is empty, too long, or holds control characters.
    """
    if not name or len(name) > _LONGEST or not name.isprintable():
        raise InvalidArgumentError(
            f"{name[:40]!r} is no name of a user: give one of up to {_LONGEST} printable signs",
            name="user",
            value=name,
        )


def _field(mechanism: str, name: str) -> str:
    return f"{mechanism} {name}"


def _credential(text: object, name: str) -> ScramCredential:
    # Not the text itself: an error is no place for keys.
    with foreign_if_illegible(f"what is kept of {name!r}", "credential of a user"):
        assert isinstance(text, bytes)
        return ScramCredential.from_json(text, f"user {name!r}")
