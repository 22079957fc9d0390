"""What the bundle is told, as far as a workspace can be asked about it before a deployment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ...errors import InvalidArgumentError

_SECRET = re.compile(r"\{\{secrets/([\w.@-]+)/([\w.-]+)\}\}")
_ENVIRONMENT = "BUNDLE_VAR_"
_DEPLOYER = "${workspace.current_user.userName}"


class Deployment(Struct, frozen=True):
    """Variables of databricks.yml by their names, with its defaults; an empty one is not used."""

    catalog: str = ""
    schema: str = "lakelog"
    external_location: str = ""
    redis_url: str = ""
    redis_password: str = "{{secrets/lakelog/redis-password}}"  # a reference
    node_type_id: str = "Standard_D4ds_v5"
    instance_pool_id: str = ""
    cluster_policy_id: str = ""
    warehouse_id: str = ""
    runner: str = _DEPLOYER
    reader: str = _DEPLOYER
    external_use: str = "USE_SCHEMA"

    @staticmethod
    def of(assignments: list[str], environment: Mapping[str, str]) -> Deployment:
        """As the Databricks CLI reads ``--var``, and before that BUNDLE_VAR_….

        Raises:
            InvalidArgumentError: not NAME=VALUE, or no variable that is looked at.
        """
        known = set(Deployment.__struct_fields__)
        given = {
            name: environment[_ENVIRONMENT + name]
            for name in known
            if _ENVIRONMENT + name in environment
        }
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals or name not in known:
                raise InvalidArgumentError(
                    f"--var {name} is no variable that a workspace is asked about, as NAME=VALUE; "
                    f"there are {', '.join(sorted(known))}",
                    name="var",
                    value=name,
                )
            given[name] = value
        return Deployment(**given)

    @property
    def secret(self) -> tuple[str, str] | None:
        """Scope and key of Redis's password; None if it has none, or it is no secret.

        Raises:
            InvalidArgumentError: it is not a reference to a secret.
        """
        if not self.redis_password:
            return None
        found = _SECRET.fullmatch(self.redis_password)
        if found is None:  # the message does not repeat what may be the password itself
            raise InvalidArgumentError(
                "redis_password does not say where the password is; write "
                "{{secrets/SCOPE/KEY}}, and never the password itself",
                name="redis_password",
            )
        return found[1], found[2]

    def may(self, user: str) -> dict[str, set[str]]:
        """Who has which rights on the schema after a deployment, by the default of ``grants``."""
        runner, reader = (
            user if name == _DEPLOYER else name for name in (self.runner, self.reader)
        )
        held = {runner: {"USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY", self.external_use}}
        held.setdefault(reader, set()).update({"USE_SCHEMA", "SELECT", self.external_use})
        return held

    def may_use_files(self, user: str) -> dict[str, set[str]]:
        """The same on the volume, by the default of ``volume_grants``."""
        runner = user if self.runner == _DEPLOYER else self.runner
        return {runner: {"READ_VOLUME", "WRITE_VOLUME"}}
