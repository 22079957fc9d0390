"""The bundle's files fit together: what they name is declared and is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from bundle_files import (
    OWN,
    ROOT,
    TARGETS,
    WATCHING,
    WORKSPACE,
    bundle,
    declared,
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
    named = {name.split(".")[1] for name in used() if name.startswith("var.")}
    known = declared()
    others = {"on_cluster", "on_serverless_without_pypi"}  # in place of a default
    assert named | others == set(known)
    assert all(variable["description"].strip() for variable in known.values())
    for target in TARGETS:
        assert set(variables(target)) == set(known)


def test_what_nobody_can_guess_has_no_default_and_the_first_target_asks_for_nothing() -> None:
    required = {name for name, variable in declared().items() if "default" not in variable}
    assert required == {"redis_url", "catalog", "owner", "warehouse_id"}

    def given(target: str) -> set[str]:
        found: set[str] = set()
        for file in files():
            found |= set(read(file).get("targets", {}).get(target, {}).get("variables", {}))
        return found & required

    assert given("try") == required
    assert given("dev") == {"owner"}
    assert given("prod") == set()


def test_the_first_target_has_the_quickstart_alone() -> None:
    assert {kind: set(by_key) for kind, by_key in resources("try").items()} == {
        "jobs": {"quickstart"}
    }
    assert references(resources("try")) == set()


def test_a_dashboard_and_alerts_come_with_a_line_that_is_a_comment() -> None:
    text = (ROOT / "databricks.yml").read_text("utf-8")
    assert f"\n  # - {WATCHING}\n" in text
    assert WATCHING not in bundle()["include"]
    assert "sql_warehouses" not in resources("prod")


@pytest.mark.parametrize("target", OWN)
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
    for file in job_files:
        content = read(file)
        places = [content, *content.get("targets", {}).values()]
        found = [place["resources"]["jobs"] for place in places if "resources" in place]
        assert all(set(one) == {file.name.removesuffix(".job.yml")} for one in found)
        assert found[1:] in ([], found[:1])  # dev and prod have the same


def test_every_path_is_there_and_synchronised() -> None:
    synchronised = [ROOT / path for path in bundle()["sync"]["paths"]]

    def there(path: Path) -> bool:
        return path.is_file() and any(folder in path.parents for folder in synchronised)

    for _, _, task in tasks():
        notebook = task["notebook_task"]["notebook_path"]
        assert there((ROOT / "conf" / notebook).resolve()), notebook
    for dashboard in resources("dev")["dashboards"].values():
        assert there(ROOT / "conf" / "watching" / dashboard["file_path"])
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
    assert bundle()["variables"]["on_cluster"]["default"]["libraries"] == [{"whl": "dist/*.whl"}]
    for name in ("on_serverless", "on_serverless_without_pypi"):
        (environment,) = bundle()["variables"][name]["default"]["environments"]
        assert environment["spec"]["dependencies"][-1] == "dist/*.whl"


def test_targets_are_what_their_modes_ask_for() -> None:
    content = bundle()
    assert "engine" not in content["bundle"]  # the CLI chooses it
    first, dev, prod = (content["targets"][target] for target in TARGETS)
    assert (first["mode"], first["default"]) == ("development", True)
    assert (dev["mode"], dev.get("default", False)) == ("development", False)
    assert prod["mode"] == "production"
    assert "/${var.owner}/" in prod["workspace"]["root_path"]  # the same, whoever deploys
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
