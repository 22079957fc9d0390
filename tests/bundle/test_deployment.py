"""The bundle validated, planned and deployed by a real CLI, which ``--databricks-cli`` names.

Against a stand-in of the workspace on loopback, which refuses what a workspace refuses. The wheel
is an empty one: how it is built is tested in `test_wheel`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from bundle_files import GIVEN, OWN, PIPELINE, ROOT, TARGETS, WATCHING, bundle, read
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
        "managers": "platform",
        "runner": "0f1e2d3c",
        "reader": "analysts",
    },
    "readers without Spark": {"external_use": "EXTERNAL_USE_SCHEMA"},
    "other names": {"schema": "events", "keyspace": "events"},
    "wheels of one's own": {
        "wheel_folder": "/Volumes/main/shared/wheels",
        "table_tasks": "${var.on_serverless_without_pypi}",
    },
}

#: The same of what watches.
WATCHED: dict[str, dict[str, str]] = {
    "nothing more": {},
    "other thresholds": {
        "alert_user": "ops@example.com",
        "alert_schedule": "0 0 * * * ?",
        "archive_lag_alert_minutes": "30",
        "redis_headroom_alert_percent": "10",
        "redis_headroom_alert_hours": "4",
        "group_lag_alert_minutes": "5",
        "group_lag_alert_records": "1000000",
        "group_lag_alert_groups": "^live-",
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
        return self.call("bundle", command, *more, *assignments, user=user)

    def call(self, *arguments: str, user: str = "ada") -> subprocess.CompletedProcess[str]:
        """The CLI as it is typed, without its name."""
        return self._call([str(self.cli), *arguments], user)

    def type(self, commands: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        """What is typed into a shell, and what is answered to what it asks."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        program = programs / "databricks"
        if not program.exists():
            program.symlink_to(self.cli)
        return self._call(["bash", "-euc", commands], "ada", answer, [str(programs)])

    def _call(
        self, command: list[str], user: str, answer: str = "", programs: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
            "HOME": str(self.folder),
            "DATABRICKS_HOST": self.workspace.url,
            "DATABRICKS_TOKEN": user,
        }
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            input=answer,
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
        self.edit(f"# - {WATCHING}", f"- {WATCHING}")

    def edit(self, old: str, new: str) -> None:
        """Of databricks.yml."""
        file = self.folder / "databricks.yml"
        text = file.read_text("utf-8")
        assert text.count(old) == 1, old
        file.write_text(text.replace(old, new), "utf-8")

    def take_in(self, *lines: str) -> None:
        """Makes comments of databricks.yml part of it."""
        for line in lines:
            self.edit(f"# {line}\n", f"{line}\n")


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as running:
        yield running


@pytest.fixture
def deployed(databricks_cli: Path, tmp_path: Path, workspace: Workspace) -> Bundle:
    return Bundle(databricks_cli, tmp_path, workspace)


def required(target: str, **more: str) -> dict[str, str]:
    return {name: GIVEN[name] for name in REQUIRED[target]} | more


VOLUME = "volume/main.lakelog.files"

#: Given in a file alone.
OF_FILES = {
    "grants",
    "hot_cluster",
    "on_cluster",
    "on_serverless",
    "on_serverless_without_pypi",
    "viewers",
    "volume_grants",
}


def test_each_variable_is_a_choice_that_is_deployed() -> None:
    chosen = {name for choice in CHOICES.values() for name in choice}
    assert chosen | set(REQUIRED["prod"]) == set(bundle()["variables"]) - OF_FILES
    watching = set(read(ROOT / "conf" / "watching" / "watching.yml")["variables"])
    assert {name for choice in WATCHED.values() for name in choice} | {
        "warehouse_id",
        "watchers",
    } == watching
    piped = set(read(ROOT / "conf" / "pipeline" / "pipeline.yml")["variables"])
    assert {name for choice in PIPED.values() for name in choice} == piped


def test_the_first_page_asks_for_the_cli_that_the_bundle_asks_for() -> None:
    wanted = bundle()["bundle"]["databricks_cli_version"]
    text = (ROOT / "conf" / "README.md").read_text("utf-8")
    assert wanted.removeprefix(">= ").removesuffix(".0") in re.findall(r"CLI \(([\d.]+) or", text)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("target", TARGETS)
def test_each_target_is_validated_planned_and_deployed_with_and_without_each_choice(
    target: str, choice: str, deployed: Bundle, workspace: Workspace
) -> None:
    given = required(target, **CHOICES[choice])
    for command in (("validate", "--strict"), ("plan",), ("deploy",)):
        deployed.well(*command, "-t", target, given=given)
    again = deployed.well("plan", "-t", target, given=given)
    assert re.search(r"^Plan: 0 to add, \d+ to change, 0 to delete", again, re.MULTILINE), again
    if target == "prod":  # elsewhere each deployment has a wheel of its own
        assert " 0 to change" in again
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


@pytest.mark.parametrize("choice", WATCHED)
@pytest.mark.parametrize("target", OWN)
def test_a_dashboard_and_alerts_come_where_a_warehouse_is_given(
    target: str, choice: str, deployed: Bundle, workspace: Workspace
) -> None:
    deployed.watch()
    given = required(target) | WATCHED[choice]
    done = deployed.run("validate", "-t", target, given=given)
    assert "required variable warehouse_id" in done.stdout + done.stderr
    given["warehouse_id"] = GIVEN["warehouse_id"]
    deployed.well("validate", "--strict", given={})  # the target try needs none
    for command in (("validate", "--strict"), ("plan",), ("deploy",)):
        deployed.well(*command, "-t", target, given=given)
    assert len(workspace.alerts) == 4
    assert len(workspace.dashboards) == 1
    watched = [*workspace.alerts.values(), *workspace.dashboards.values()]
    assert {one["warehouse_id"] for one in watched} == {GIVEN["warehouse_id"]}


#: The same of the pipeline, beside a place of its own.
PIPED: dict[str, dict[str, str]] = {
    "nothing more": {},
    "a catalog that is asked": {
        "pipeline_host": "https://workspace.example",
        "pipeline_token": "{{secrets/lakelog/databricks_token}}",
    },
    "what is hot alone": {"pipeline_starting_offsets": "earliest-local"},
}


@pytest.mark.parametrize("choice", PIPED)
@pytest.mark.parametrize("target", OWN)
def test_the_pipeline_is_planned_and_deployed_with_and_without_each_choice(
    target: str, choice: str, deployed: Bundle, workspace: Workspace
) -> None:
    deployed.edit(f"# - {PIPELINE}", f"- {PIPELINE}")
    given = required(target) | PIPED[choice]
    for command in (("validate", "--strict"), ("plan",), ("deploy",)):
        deployed.well(*command, "-t", target, given=given)
    (pipeline,) = workspace.pipelines.values()
    (cluster,) = pipeline["clusters"]
    variables = cluster["spark_env_vars"]
    assert variables.get("DATABRICKS_HOST", "") == given.get("pipeline_host", "")
    assert variables.get("DATABRICKS_TOKEN", "") == given.get("pipeline_token", "")
    begins = given.get("pipeline_starting_offsets", "earliest")
    assert pipeline["configuration"]["lakelog.starting_offsets"] == begins


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

    for name, value in (("hot_cluster", "small"), ("on_serverless", {"environments": []})):
        file.write_text(json.dumps(overrides | {name: value}), "utf-8")
        refused = deployed.run("validate", "-t", "prod")
        assert refused.returncode != 0
        assert f"variable {name} is" in refused.stdout + refused.stderr


@pytest.mark.parametrize("tasks", sorted(OF_FILES - {"hot_cluster"}))
def test_what_runs_table_tasks_is_changed_in_the_bundle_alone(tasks: str, deployed: Bundle) -> None:
    """As the README says; a file of overrides that has it is refused before anything is done."""
    overrides = {**required("prod"), tasks: bundle()["variables"][tasks]["default"]}
    file = deployed.folder / ".databricks" / "bundle" / "prod" / "variable-overrides.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(overrides), "utf-8")
    refused = deployed.run("validate", "-t", "prod")
    assert refused.returncode != 0
    assert f"variable {tasks} is not of type complex" in refused.stdout + refused.stderr
    deployed.edit(
        'environment_version: "4"\n            dependencies:\n              - dist',
        ('environment_version: "5"\n            dependencies:\n              - dist'),
    )
    file.unlink()
    found = json.loads(
        deployed.run("validate", "-t", "prod", "-o", "json", given=required("prod")).stdout
    )
    (environment,) = found["resources"]["jobs"]["retention"]["environments"]
    assert environment["spec"]["environment_version"] == "5"


# -- as the README says -------------------------------------------------------------------------


def readme_commands(heading: str) -> str:
    """The first block of commands below a heading, with names in place of its placeholders."""
    text = (ROOT / "conf" / "README.md").read_text("utf-8")
    block = text.partition(f"{heading}\n")[2].split("```")[1].strip("\n")
    for name, value in (("YOU", "ada@example.com"), ("CATALOG", "main"), ("HOST", "redis")):
        block = block.replace(f"={name}", f"={value}").replace(f"//{name}", f"//{value}")
    return block


def test_the_five_commands_of_the_first_page_do_it(deployed: Bundle, workspace: Workspace) -> None:
    login, *rest = readme_commands("# On Databricks: the bundle, its jobs, its costs").splitlines()
    assert login.startswith("databricks auth login")
    assert len(rest) == 4
    done = deployed.type("\n".join(rest), answer="a secret word")
    assert done.returncode == 0, done.stdout + done.stderr
    assert workspace.secrets == {"lakelog": {"redis-password": "a secret word"}}
    names = [run["run_name"] for run in workspace.runs.values()]
    assert names == ["[dev ada] lakelog quickstart", "lakelog ingest demo"]
    restart = "\n".join([rest[-2], readme_commands("## One prod")])  # in the same shell
    done = deployed.type(f"{restart} --no-wait")  # it goes on for hours
    assert done.returncode == 0, done.stdout + done.stderr
    assert [run["run_name"] for run in workspace.runs.values()][-1] == "lakelog archive"
    # Where somebody looks at the job, it says the same.
    said = str(workspace.job("lakelog archive")["description"])
    (command,) = re.findall(r"databricks bundle run [^.]*--restart", said)
    done = deployed.type(f"{rest[-2]}\n{command} --no-wait")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(workspace.runs) == 4


def test_settings_that_stay_are_taken_in(deployed: Bundle, workspace: Workspace) -> None:
    deployed.take_in(
        "variables:",
        "  owner: you@example.com",
        "  redis_url: rediss://host:6379",
        "  catalog: main",
        "  table_tasks: ${var.on_cluster} # without serverless",
    )
    deployed.edit("you@example.com", "ada@example.com")
    deployed.well("validate", "--strict", "-t", "prod")
    deployed.well("deploy", "-t", "prod")
    assert not workspace.job("lakelog retention").get("environments")


def test_jobs_run_as_a_service_principal_that_may_read_what_they_run(
    deployed: Bundle, workspace: Workspace
) -> None:
    deployed.take_in("run_as:", "  service_principal_name: ${var.runner}")
    deployed.take_in("- service_principal_name: ${var.runner}", "  level: CAN_VIEW")
    given = required("prod", runner="0f1e2d3c-0000-4000-8000-000000000000")
    deployed.well("validate", "--strict", "-t", "prod", given=given)
    deployed.well("deploy", "-t", "prod", given=given)
    as_runner = {"service_principal_name": given["runner"]}
    assert all(job["settings"]["run_as"] == as_runner for job in workspace.jobs.values())
    folder = workspace.folders["/Workspace/Users/ada@example.com/.bundle/lakelog/prod"]
    assert as_runner | {"permission_level": "CAN_READ"} in workspace.access[f"directories/{folder}"]
    granted = workspace.grants["schema/main.lakelog"]
    assert granted[given["runner"]] == {"USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY"}


def test_the_tables_of_prod_are_not_dropped_with_the_bundle(
    deployed: Bundle, workspace: Workspace
) -> None:
    deployed.well("deploy", "-t", "prod", given=required("prod"))
    refused = deployed.run("destroy", "-t", "prod", "--auto-approve", given=required("prod"))
    assert refused.returncode != 0
    assert "prevent_destroy" in refused.stdout + refused.stderr
    assert len(workspace.jobs) == 6
    deployed.well("deploy", "-t", "dev", given=required("dev"))
    deployed.well("destroy", "-t", "dev", "--auto-approve", given=required("dev"))
    assert len(workspace.jobs) == 6
    assert list(workspace.schemas) == ["main.lakelog"]


def test_a_deployment_takes_what_its_lists_of_grants_do_not_name(
    deployed: Bundle, workspace: Workspace
) -> None:
    given = required("prod", external_use="EXTERNAL_USE_SCHEMA")
    deployed.well("deploy", "-t", "prod", given=given)
    schema, volume = (workspace.grants[one] for one in ("schema/main.lakelog", VOLUME))
    everything = {"USE_SCHEMA", "CREATE_TABLE", "SELECT", "MODIFY", "EXTERNAL_USE_SCHEMA"}
    assert schema == {"ada@example.com": everything}
    for held, right in ((schema, "SELECT"), (volume, "READ_VOLUME")):
        held["by hand"], held["analysts"] = {right}, {right}
    overrides = deployed.folder / ".databricks" / "bundle" / "prod" / "variable-overrides.json"
    runner = {"principal": "ada@example.com", "privileges": sorted(everything)}
    analysts = {"principal": "analysts", "privileges": ["USE_SCHEMA", "SELECT"]}
    files = {"principal": "analysts", "privileges": ["READ_VOLUME"]}
    viewers = [{"group_name": "analysts", "level": "CAN_VIEW"}]
    lists = {"grants": [runner, analysts], "volume_grants": [files], "viewers": viewers}
    overrides.write_text(json.dumps(lists), "utf-8")
    deployed.well("deploy", "-t", "prod", given=given)
    assert {who: what for who, what in schema.items() if what} == {
        "ada@example.com": everything,
        "analysts": {"USE_SCHEMA", "SELECT"},
    }
    assert {who: what for who, what in volume.items() if what} == {"analysts": {"READ_VOLUME"}}
    seen = {"group_name": "analysts", "permission_level": "CAN_VIEW"}
    assert all(seen in workspace.access[f"jobs/{number}"] for number in workspace.jobs)
    assert " 0 to change" in deployed.well("plan", "-t", "prod", given=given)
