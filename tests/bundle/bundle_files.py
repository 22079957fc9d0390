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
TARGETS = ("dev", "prod")

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
    return sorted({file for pattern in bundle()["include"] for file in ROOT.glob(pattern)})


def files() -> list[Path]:
    return [ROOT / "databricks.yml", *included()]


def resources(target: str) -> dict[str, dict[str, Any]]:
    """By kind and key, as the target changes them."""
    merged: dict[str, Any] = {}
    for file in included():
        merged = _merged(merged, read(file)["resources"])
    merged = _merged(merged, bundle()["targets"][target].get("resources", {}))
    found: dict[str, dict[str, Any]] = resolved(merged, target)
    return found


def jobs(target: str = "prod") -> dict[str, dict[str, Any]]:
    return resources(target)["jobs"]


def tasks(target: str = "prod") -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Job key, job and task."""
    for key, job in jobs(target).items():
        for task in job["tasks"]:
            yield key, job, task


def variables(target: str) -> dict[str, Any]:
    """Each variable's value, before references in it are resolved."""
    content = bundle()
    defaults = {name: of["default"] for name, of in content["variables"].items()}
    return {**defaults, **content["targets"][target].get("variables", {})}


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
        return resolved(variables(target)[whole[1].removeprefix("var.")], target)
    return _REFERENCE.sub(lambda found: _text(found, target), value)


def references(value: Any) -> set[str]:
    """What stands in ``${…}`` anywhere in it."""
    if isinstance(value, dict):
        return set().union(*(references(one) for one in value.values()), set())
    if isinstance(value, list):
        return set().union(*(references(one) for one in value), set())
    return set(_REFERENCE.findall(value)) if isinstance(value, str) else set()


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
