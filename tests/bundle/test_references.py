"""The bundle's files fit together: what they name is declared and is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from bundle_files import (
    ROOT,
    TARGETS,
    WORKSPACE,
    bundle,
    files,
    included,
    jobs,
    read,
    references,
    resources,
    tasks,
    variables,
)

#: What a resource has once it is deployed, beside what its file says of it.
OUTPUTS = {"id"}


def used() -> set[str]:
    return set().union(*(references(read(file)) for file in files()))


def test_every_variable_is_declared_described_and_used() -> None:
    named = {name.removeprefix("var.") for name in used() if name.startswith("var.")}
    declared = bundle()["variables"]
    assert named == set(declared)
    assert all(variable["description"].strip() for variable in declared.values())
    for target in TARGETS:
        assert set(variables(target)) == set(declared)


def test_every_variable_has_a_value_so_that_both_targets_validate_as_they_are() -> None:
    assert all("default" in variable for variable in bundle()["variables"].values())


@pytest.mark.parametrize("target", TARGETS)
def test_every_resource_that_is_referred_to_is_there(target: str) -> None:
    there = resources(target)
    named = [name.split(".") for name in used() if name.startswith("resources.")]
    assert named
    for _, kind, key, field in named:
        assert field in OUTPUTS or there[kind][key][field], (kind, key, field)


def test_nothing_else_is_referred_to() -> None:
    known = {*WORKSPACE, "bundle.name", "bundle.target"}
    rest = {name for name in used() if not name.startswith(("var.", "resources."))}
    assert rest <= known


def test_keys_of_resources_are_unique_over_all_kinds() -> None:
    keys = [key for kind in resources("dev").values() for key in kind]
    assert len(keys) == len(set(keys))


def test_a_job_file_has_one_job_by_its_name() -> None:
    job_files = [file for file in included() if file.name.endswith(".job.yml")]
    assert {file.name.removesuffix(".job.yml") for file in job_files} == set(jobs())
    assert all(len(read(file)["resources"]["jobs"]) == 1 for file in job_files)


def test_every_path_is_there_and_synchronised() -> None:
    synchronised = [ROOT / path for path in bundle()["sync"]["paths"]]

    def there(path: Path) -> bool:
        return path.is_file() and any(folder in path.parents for folder in synchronised)

    for _, _, task in tasks():
        notebook = task["notebook_task"]["notebook_path"]
        assert there((ROOT / "conf" / notebook).resolve()), notebook
    for dashboard in resources("dev")["dashboards"].values():
        assert there(ROOT / "conf" / dashboard["file_path"])
    scripts = {
        script["workspace"]["destination"]
        for job in jobs().values()
        for cluster in job.get("job_clusters", ())
        for script in cluster["new_cluster"]["init_scripts"]
    }
    (script,) = scripts
    assert there(ROOT / script.removeprefix(WORKSPACE["workspace.file_path"] + "/"))


def test_the_wheel_is_built_to_where_tasks_take_it_from_without_extras() -> None:
    (artifact,) = bundle()["artifacts"].values()
    assert artifact["type"] == "whl"
    command = shlex.split(artifact["build"])
    assert command[command.index("--wheel-dir") + 1] == "dist"
    assert command[-1] == "."  # an extra would be .[spark]
    wheels = {
        library["whl"]
        for _, _, task in tasks()
        for library in task.get("libraries", ())
        if "whl" in library
    }
    assert wheels == {"../dist/*.whl"}
    assert bundle()["variables"]["serverless_dependencies"]["default"] == ["dist/*.whl"]


def test_targets_are_what_their_modes_ask_for() -> None:
    content = bundle()
    assert "engine" not in content["bundle"]  # the CLI chooses it
    dev, prod = (content["targets"][target] for target in TARGETS)
    assert (dev["mode"], dev["default"]) == ("development", True)
    assert prod["mode"] == "production"
    assert "current_user.userName" in prod["workspace"]["root_path"]
    assert {"user_name": "${workspace.current_user.userName}", "level": "CAN_MANAGE"} in prod[
        "permissions"
    ]


def test_a_dev_copy_shares_no_keys_with_another() -> None:
    assert variables("dev")["keyspace"] != variables("prod")["keyspace"]
    assert "current_user" in variables("dev")["keyspace"]


def test_secrets_are_references_only() -> None:
    text = "".join(file.read_text("utf-8") for file in files())
    for url in re.findall(r"rediss?://[^\s,;]*", text):
        assert "@" not in url
    passwords = {
        cluster["new_cluster"]["spark_env_vars"].get("LAKELOG_REDIS_PASSWORD")
        for job in jobs().values()
        for cluster in job.get("job_clusters", ())
    } - {None}
    assert passwords == {"{{secrets/lakelog/redis-password}}"}
    given = {
        one["default"]
        for job in jobs().values()
        for one in job["parameters"]
        if one["name"] == "redis_password_ref"
    }
    assert given == {"env:LAKELOG_REDIS_PASSWORD"}
