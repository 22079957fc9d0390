"""The bundle validated, planned and deployed by a real CLI, which ``--databricks-cli`` names.

Against a stand-in of the workspace on loopback, which refuses what a workspace refuses. The wheel
is an empty one: how it is built is tested in `test_wheel`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from bundle_files import GIVEN, ROOT, TARGETS, WATCHING, bundle
from workspace_stand_in import Workspace

pytestmark = pytest.mark.slow

#: What each target asks for.
REQUIRED: dict[str, tuple[str, ...]] = {
    "try": (),
    "dev": ("redis_url", "catalog"),
    "prod": ("redis_url", "catalog", "owner"),
}

#: Each variable given by hand; what else goes with it.
CHOICES: dict[str, dict[str, str]] = {
    "nothing more": {},
    "no password": {"redis_password": "", "redis_password_ref": ""},
    "external tables": {"external_location": "s3://bucket/lakelog"},
    "a cluster policy": {"cluster_policy_id": "9876"},
    "an instance pool": {"instance_pool_id": "1234", "node_type_id": ""},
    "a budget policy": {"budget_policy_id": "b-1"},
    "cheap serverless": {"performance_target": "STANDARD"},
    "fast serverless": {"performance_target": "PERFORMANCE_OPTIMIZED"},
    "no serverless": {"table_tasks": "${var.on_cluster}"},
    "archived now and then": {
        "archive_pause_status": "PAUSED",
        "archive_scheduled_pause_status": "UNPAUSED",
    },
    "another runtime and node": {"spark_version": "18.0.x-scala2.13", "node_type_id": "i3.xlarge"},
    "other times": {
        "archive_schedule": "0 0 * * * ?",
        "retention_schedule": "0 1 * * * ?",
        "cleanup_schedule": "0 2 2 * * ?",
        "max_hours": "12",
        "max_stall_hours": "2",
        "archive_warning_seconds": "45000",
    },
    "other people": {
        "notification_email": "ops@example.com",
        "viewers": "analysts",
        "managers": "platform",
        "runner": "0f1e2d3c",
        "reader": "analysts",
    },
    "other names": {"schema": "events", "keyspace": "events"},
    "wheels of one's own": {
        "wheel_folder": "/Volumes/main/shared/wheels",
        "table_tasks": "${var.on_serverless_without_pypi}",
    },
}


_METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: lakelog\nVersion: 0.1.0\n",
    "RECORD": "",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


class Bundle:
    """A copy of the project, and the CLI in it."""

    def __init__(self, cli: Path, folder: Path, workspace: Workspace) -> None:
        self.cli, self.folder, self.workspace = cli, folder, workspace
        text = (ROOT / "databricks.yml").read_text("utf-8")
        (artifact,) = bundle()["artifacts"].values()
        assert artifact["build"] in text
        build = "mkdir -p dist && cp lakelog-0.1.0-py3-none-any.whl dist"
        (folder / "databricks.yml").write_text(text.replace(artifact["build"], build), "utf-8")
        with ZipFile(folder / "lakelog-0.1.0-py3-none-any.whl", "w") as wheel:
            for name in ("METADATA", "RECORD", "WHEEL"):
                wheel.writestr(f"lakelog-0.1.0.dist-info/{name}", _METADATA[name])
        for name in ("conf", "notebooks"):
            shutil.copytree(ROOT / name, folder / name)

    def run(
        self, command: str, *more: str, user: str = "ada", given: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        assignments = [
            part for name, value in (given or {}).items() for part in ("--var", f"{name}={value}")
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "DATABRICKS_HOST": self.workspace.url,
            "DATABRICKS_TOKEN": user,
        }
        return subprocess.run(
            [str(self.cli), "bundle", command, *more, *assignments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def well(self, command: str, *more: str, **how: Any) -> str:
        """What it says; the command must go well, and without a warning."""
        done = self.run(command, *more, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Warning" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    def watch(self) -> None:
        """As its comment in databricks.yml says."""
        file = self.folder / "databricks.yml"
        text = file.read_text("utf-8")
        assert f"# - {WATCHING}" in text
        file.write_text(text.replace(f"# - {WATCHING}", f"- {WATCHING}"), "utf-8")


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as running:
        yield running


@pytest.fixture
def deployed(databricks_cli: Path, tmp_path: Path, workspace: Workspace) -> Bundle:
    return Bundle(databricks_cli, tmp_path, workspace)


def required(target: str, **more: str) -> dict[str, str]:
    return {name: GIVEN[name] for name in REQUIRED[target]} | more


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("target", TARGETS)
def test_each_target_is_validated_planned_and_deployed_with_and_without_each_choice(
    target: str, choice: str, deployed: Bundle, workspace: Workspace
) -> None:
    given = required(target, **CHOICES[choice])
    for command in (("validate", "--strict"), ("plan",), ("deploy",)):
        deployed.well(*command, "-t", target, given=given)
    names = [job["settings"]["name"] for job in workspace.jobs.values()]
    assert len(names) == len(set(names)) == (1 if target == "try" else 6)
    assert bool(workspace.schemas) is (target != "try")
    assert {path for path in workspace.unknown if "well-known" not in path} == set()


@pytest.mark.parametrize("target", ["dev", "prod"])
def test_what_a_target_needs_is_asked_for_by_name(target: str, deployed: Bundle) -> None:
    for name in REQUIRED[target]:
        given = required(target)
        del given[name]
        done = deployed.run("validate", "-t", target, given=given)
        assert done.returncode != 0
        assert f"no value assigned to required variable {name}" in done.stdout + done.stderr


def test_choices_are_what_jobs_get(deployed: Bundle, workspace: Workspace) -> None:
    choice = {
        "archive_pause_status": "PAUSED",
        "archive_scheduled_pause_status": "UNPAUSED",
        "cluster_policy_id": "9876",
        "instance_pool_id": "1234",
        "node_type_id": "",
        "budget_policy_id": "b-1",
        "performance_target": "STANDARD",
        "redis_password": "",
        "redis_password_ref": "",
    }
    deployed.well("deploy", "-t", "prod", given=required("prod", **choice))
    archive, scheduled = (
        workspace.job(name) for name in ("lakelog archive", "lakelog archive every 15 minutes")
    )
    assert archive["continuous"]["pause_status"] == "PAUSED"
    assert scheduled["schedule"]["pause_status"] == "UNPAUSED"
    for name in ("archive", "quickstart"):
        (cluster,) = workspace.job(f"lakelog {name}")["job_clusters"]
        assert cluster["new_cluster"]["policy_id"] == "9876"
        assert cluster["new_cluster"]["instance_pool_id"] == "1234"
    for name in ("cleanup", "retention"):
        job = workspace.job(f"lakelog {name}")
        assert (job["budget_policy_id"], job["performance_target"]) == ("b-1", "STANDARD")
    environment = archive["job_clusters"][0]["new_cluster"]["spark_env_vars"]
    assert environment.get("LAKELOG_REDIS_PASSWORD", "") == ""
    given = {one["name"]: one["default"] for one in archive["parameters"]}
    assert given["redis_password_ref"] == ""


def test_without_serverless_every_task_is_on_a_cluster_with_the_wheel(
    deployed: Bundle, workspace: Workspace
) -> None:
    workspace.serverless_notebooks = False
    refused = deployed.run("deploy", "-t", "prod", given=required("prod"))
    assert "environment_key is not supported" in refused.stdout + refused.stderr
    given = required("prod", table_tasks="${var.on_cluster}")
    deployed.well("deploy", "-t", "prod", given=given)
    for job in workspace.jobs.values():
        settings = job["settings"]
        assert not settings.get("environments")
        for task in settings["tasks"]:
            wheels = [library["whl"] for library in task["libraries"] if "whl" in library]
            assert len(wheels) == 1
            assert wheels[0].startswith("/Workspace/Users/ada@example.com/"), wheels
            assert wheels[0].endswith(".whl")


def test_serverless_tasks_install_the_wheel_that_was_uploaded(
    deployed: Bundle, workspace: Workspace
) -> None:
    deployed.well("deploy", "-t", "prod", given=required("prod"))
    (environment,) = workspace.job("lakelog retention")["environments"]
    (wheel,) = environment["spec"]["dependencies"]
    assert wheel.startswith("/Workspace/Users/ada@example.com/"), wheel
    assert wheel in workspace.files or wheel.removeprefix("/Workspace") in workspace.files


def test_a_dashboard_and_alerts_come_where_a_warehouse_is_given(
    deployed: Bundle, workspace: Workspace
) -> None:
    deployed.watch()
    given = required("prod")
    done = deployed.run("validate", "-t", "prod", given=given)
    assert "required variable warehouse_id" in done.stdout + done.stderr
    given["warehouse_id"] = GIVEN["warehouse_id"]
    deployed.well("validate", "--strict", given={})  # the target try needs none
    deployed.well("validate", "--strict", "-t", "prod", given=given)
    deployed.well("deploy", "-t", "prod", given=given)
    assert len(workspace.alerts) == 2
    assert len(workspace.dashboards) == 1
    watched = [*workspace.alerts.values(), *workspace.dashboards.values()]
    assert {one["warehouse_id"] for one in watched} == {GIVEN["warehouse_id"]}


def test_choices_in_the_file_of_overrides_hold_complex_ones_too(deployed: Bundle) -> None:
    cluster = {"spark_version": "18.0.x-scala2.13", "node_type_id": "i3.xlarge", "num_workers": 3}
    overrides = {
        **required("prod"),
        "table_tasks": "${var.on_cluster}",
        "hot_cluster": cluster,
    }
    file = deployed.folder / ".databricks" / "bundle" / "prod" / "variable-overrides.json"
    file.parent.mkdir(parents=True)

    def jobs() -> dict[str, Any]:
        file.write_text(json.dumps(overrides), "utf-8")
        found = json.loads(deployed.run("validate", "-t", "prod", "-o", "json").stdout)
        deployed.well("validate", "--strict", "-t", "prod")
        jobs: dict[str, Any] = found["resources"]["jobs"]
        return jobs

    found = jobs()
    for name in ("archive", "retention"):
        (one,) = found[name]["job_clusters"]
        assert one["new_cluster"] == cluster
    overrides |= {
        "table_tasks": "${var.on_serverless_without_pypi}",
        "wheel_folder": "/Volumes/main/shared/wheels",
    }
    (environment,) = jobs()["retention"]["environments"]
    assert environment["spec"]["dependencies"] == [
        "--no-index",
        "--find-links /Volumes/main/shared/wheels",
        "./dist/*.whl",
    ]

    # A path in this file would begin at its folder, so what names the wheel is not given here.
    for name, value in (("hot_cluster", "small"), ("on_serverless", {"environments": []})):
        file.write_text(json.dumps(overrides | {name: value}), "utf-8")
        refused = deployed.run("validate", "-t", "prod")
        assert refused.returncode != 0
        assert f"variable {name} is" in refused.stdout + refused.stderr


# -- one prod --------------------------------------------------------------------------------------


def archives(workspace: Workspace) -> list[str]:
    names = [job["settings"]["name"] for job in workspace.jobs.values()]
    return [name for name in names if name.startswith("lakelog archive")]


def test_a_second_deployer_changes_the_one_copy(deployed: Bundle, workspace: Workspace) -> None:
    workspace.groups = {"ben@example.com": ["platform"]}
    given = required("prod", managers="platform")
    deployed.well("deploy", "-t", "prod", given=given)
    before = dict(workspace.jobs)
    shutil.rmtree(deployed.folder / ".databricks")  # another machine
    deployed.well("deploy", "-t", "prod", user="ben", given={**given, "max_hours": "12"})
    assert list(workspace.jobs) == list(before)
    assert len(archives(workspace)) == 2  # continuous and scheduled
    changed = {
        one["name"]: one["default"] for one in workspace.job("lakelog archive")["parameters"]
    }
    assert changed["max_hours"] == "12"


@pytest.mark.parametrize("owner", ["ada@example.com", "ben@example.com"])
def test_a_deployer_without_rights_is_refused_and_leaves_no_second_archiver(
    owner: str, deployed: Bundle, workspace: Workspace
) -> None:
    deployed.well("deploy", "-t", "prod", given=required("prod"))
    before = archives(workspace)
    shutil.rmtree(deployed.folder / ".databricks")
    given = required("prod") | {"owner": owner}
    refused = deployed.run("deploy", "-t", "prod", user="ben", given=given)
    assert refused.returncode != 0
    said = (refused.stdout + refused.stderr).lower()
    assert "permission" in said or "already exists" in said
    assert archives(workspace) == before


def test_a_deployment_while_another_goes_on_is_refused(
    deployed: Bundle, workspace: Workspace
) -> None:
    given = required("prod")
    deployed.well("deploy", "-t", "prod", given=given)
    lock = "/Workspace/Users/ada@example.com/.bundle/lakelog/prod/state/deploy.lock"
    held = {
        "ID": "2f1a6f3e-0000-4000-8000-000000000000",
        "AcquisitionTime": "2026-01-01T00:00:00Z",
        "IsForced": False,
        "User": "ben@example.com",
    }
    workspace.files[lock] = json.dumps(held).encode()
    refused = deployed.run("deploy", "-t", "prod", given={**given, "max_hours": "12"})
    assert "deploy lock acquired by ben@example.com" in refused.stdout + refused.stderr
