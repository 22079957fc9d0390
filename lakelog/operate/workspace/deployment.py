"""What the bundle is told, as far as a workspace can be asked about it before a deployment."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from msgspec import Struct

from ...errors import InvalidArgumentError

_SECRET = re.compile(r"\{\{secrets/([\w.@-]+)/([\w.-]+)\}\}")
_ENVIRONMENT = "BUNDLE_VAR_"
_DEPLOYER = "${workspace.current_user.userName}"

#: The fields of a schedule in Quartz's syntax, with the numbers that each takes.
_QUARTZ = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2199))
_QUARTZ_FIELD = re.compile(r"[0-9A-Z*?/,#-]+", re.IGNORECASE)


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
    max_hours: str = "24"
    max_stall_hours: str = "1.0"
    archive_schedule: str = "0 0/15 * * * ?"
    retention_schedule: str = "0 7 * * * ?"
    cleanup_schedule: str = "0 30 2 * * ?"
    alert_schedule: str = "0 0/30 * * * ?"

    def __post_init__(self) -> None:
        # `databricks bundle validate` takes any text for these: each is a text to it.
        for name, least in (("max_hours", 0.0), ("max_stall_hours", -1.0)):
            _check_hours(name, getattr(self, name), least)
        for name in self.__struct_fields__:
            if name.endswith("_schedule"):
                _check_schedule(name, getattr(self, name))

    @staticmethod
    def of(assignments: list[str], environment: Mapping[str, str]) -> Deployment:
        """As the Databricks CLI reads ``--var``, and before that BUNDLE_VAR_….

        Raises:
            InvalidArgumentError: not NAME=VALUE, no variable that is looked at, or no hours or no
                schedule where such are wanted.
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


def _check_hours(name: str, text: str, least: float) -> None:
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not (math.isfinite(hours) and hours > least and hours >= 0):
        raise InvalidArgumentError(
            f"{name}={text} is no number of hours, such as 12 or 0.5", name=name, value=text
        )


def _check_schedule(name: str, text: str) -> None:
    parts = text.split()
    sound = (
        len(parts) in (6, 7)
        and all(_QUARTZ_FIELD.fullmatch(part) for part in parts)
        and [part == "?" for part in parts].count(True) == 1
        and "?" in (parts[3], parts[5])
        and all(
            low <= int(number) <= high
            for part, (low, high) in zip(parts, _QUARTZ, strict=False)
            for number in re.findall(r"(?<![/#\w])\d+", part)
        )
    )
    if not sound:
        raise InvalidArgumentError(
            f"{name}={text} is no schedule in Quartz's syntax: seconds, minutes, hours, day of the "
            "month, month, day of the week, with ? for one of the two days, such as 0 7 * * * ?",
            name=name,
            value=text,
        )
