"""The bundle as a target deploys it: files merged, variables resolved, references kept.

What stays as it stands, since only a workspace knows it: ``${resources.…}``, and Databricks' own
``{{…}}``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TARGETS = ("try", "dev", "prod")
#: The targets that have the jobs of a log of one's own.
OWN = ("dev", "prod")

#: What is included when its line in databricks.yml is no comment any more.
WATCHING = "conf/watching/*.yml"
PIPELINE = "conf/pipeline/*.yml"

#: Values for the variables that have none.
GIVEN = {
    "redis_url": "rediss://redis.example.com:6379",
    "catalog": "main",
    "owner": "ada@example.com",
    "warehouse_id": "a1b2c3",
}

#: What the CLI knows of a workspace and its user.
WORKSPACE = {
    "workspace.current_user.userName": "ada@example.com",
    "workspace.current_user.short_name": "ada",
    "workspace.file_path": "/Workspace/Users/ada@example.com/.bundle/lakelog/files",
}
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")


@cache
def read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return content


def bundle() -> dict[str, Any]:
    return copy.deepcopy(read(ROOT / "databricks.yml"))


def included() -> list[Path]:
    """What is included, and what may be."""
    patterns = [*bundle()["include"], WATCHING, PIPELINE]
    return sorted({file for pattern in patterns for file in ROOT.glob(pattern)})


def files() -> list[Path]:
    return [ROOT / "databricks.yml", *included()]


def resources(target: str) -> dict[str, dict[str, Any]]:
    """By kind and key, as the target changes them."""
    merged: dict[str, Any] = {}
    for part in (lambda file: file, lambda file: file.get("targets", {}).get(target, {})):
        for file in files():
            merged = _merged(merged, part(read(file)).get("resources", {}))
    found: dict[str, dict[str, Any]] = _sent(resolved(merged, target))
    return found


def jobs(target: str = "prod") -> dict[str, dict[str, Any]]:
    return resources(target).get("jobs", {})


def tasks(target: str = "prod") -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Job key, job and task."""
    for key, job in jobs(target).items():
        for task in job["tasks"]:
            yield key, job, task


def declared() -> dict[str, dict[str, Any]]:
    """The variables of all files."""
    found: dict[str, dict[str, Any]] = {}
    for file in files():
        found |= read(file).get("variables", {})
    return found


def variables(target: str) -> dict[str, Any]:
    """Each variable's value, before references in it are resolved."""
    found = {name: of.get("default", GIVEN.get(name)) for name, of in declared().items()}
    for file in files():
        found |= read(file).get("targets", {}).get(target, {}).get("variables", {})
    return found


def resolved(value: Any, target: str) -> Any:
    """With the target's variables in their places, of whatever type they are."""
    if isinstance(value, dict):
        return {key: resolved(one, target) for key, one in value.items()}
    if isinstance(value, list):
        return [resolved(one, target) for one in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value)
    if whole and whole[1].startswith("var."):
        name, *path = whole[1].split(".")[1:]
        found = resolved(variables(target)[name], target)
        for key in path:
            found = found[key]
        return found
    return _REFERENCE.sub(lambda found: _text(found, target), value)


def references(value: Any) -> set[str]:
    """What stands in ``${…}`` anywhere in it."""
    if isinstance(value, dict):
        return set().union(*(references(one) for one in value.values()), set())
    if isinstance(value, list):
        return set().union(*(references(one) for one in value), set())
    return set(_REFERENCE.findall(value)) if isinstance(value, str) else set()


#: What the CLI leaves out where it is empty.
_LEFT_OUT = {
    "budget_policy_id",
    "environment_key",
    "environments",
    "instance_pool_id",
    "job_cluster_key",
    "job_clusters",
    "libraries",
    "performance_target",
    "policy_id",
}


def _sent(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sent(one) for key, one in value.items() if one or key not in _LEFT_OUT}
    if isinstance(value, list):
        return [_sent(one) for one in value]
    return value


def _text(found: re.Match[str], target: str) -> str:
    name = found[1]
    if name.startswith("var."):
        return str(resolved(found[0], target))
    if name == "bundle.target":
        return target
    if name == "bundle.name":
        return str(bundle()["bundle"]["name"])
    return WORKSPACE.get(name, found[0])


def _merged(one: Any, other: Any) -> Any:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return other
    keys = [*one, *(key for key in other if key not in one)]
    return {
        key: _merged(one[key], other[key]) if key in one and key in other else {**other, **one}[key]
        for key in keys
    }
