"""What the user of a workspace may do to things in Unity Catalog.

A right is held by the user, by a group the workspace names for that user, or by everybody; an owner
has all of them. Source: Databricks REST API, ``effective-permissions``, which knows inherited ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

#: Not part of ALL PRIVILEGES, and not an owner's by itself.
_APART = frozenset({"EXTERNAL_USE_LOCATION", "EXTERNAL_USE_SCHEMA"})
_EVERYBODY = "account users"
_API = "/api/2.1/unity-catalog"


class User(Struct, frozen=True):
    """Who is logged in."""

    name: str
    groups: tuple[str, ...]
    entitlements: frozenset[str]

    @staticmethod
    def of(client: Any) -> User:
        me = client.api_client.do("GET", "/api/2.0/preview/scim/v2/Me")
        return User(
            me["userName"],
            tuple(group["display"] for group in me.get("groups", ())),
            frozenset(one["value"] for one in me.get("entitlements", ())),
        )

    @property
    def principals(self) -> frozenset[str]:
        return frozenset({self.name, _EVERYBODY, *self.groups})


class Rights(Struct, frozen=True):
    """Asks for a user's rights."""

    client: Any  # a WorkspaceClient
    user: User

    def missing(self, kind: str, securable: dict[str, Any], wanted: Sequence[str]) -> list[str]:
        """The privileges among `wanted` that the user lacks.

        Args:
            kind: ``catalog``, ``schema`` or ``external_location``.
            securable: as the API describes it.

        Raises:
            DatabricksError: the workspace refuses to say.
        """
        name = securable.get("full_name") or securable["name"]
        answer = self.client.api_client.do("GET", f"{_API}/effective-permissions/{kind}/{name}")
        held = {
            one["privilege"]
            for assignment in answer.get("privilege_assignments", ())
            if assignment["principal"] in self.user.principals
            for one in assignment["privileges"]
        }
        everything = "ALL_PRIVILEGES" in held or securable.get("owner") in self.user.principals
        return [one for one in wanted if one not in held and not (everything and one not in _APART)]

    def grant(self, kind: str, name: str, privileges: Sequence[str]) -> str:
        """The SQL that gives them."""
        spoken = ", ".join(one.replace("_", " ") for one in privileges)
        quoted = ".".join(f"`{part}`" for part in name.split("."))
        return f"GRANT {spoken} ON {kind.replace('_', ' ').upper()} {quoted} TO `{self.user.name}`"
