"""Databricks' own typed classes take every resource, and refuse broken ones."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bundle_files import OWN, jobs, resources, tasks
from databricks.bundles.alerts import Alert
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.jobs import Job
from databricks.bundles.pipelines import Pipeline
from databricks.bundles.schemas import Schema
from databricks.bundles.volumes import Volume

from lakelog.spark.open_session import local_settings

ROOT = Path(__file__).parents[2]

CLASSES: dict[str, Any] = {
    "alerts": Alert,
    "dashboards": Dashboard,
    "jobs": Job,
    "pipelines": Pipeline,
    "schemas": Schema,
    "volumes": Volume,
}


def each(target: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for kind, by_key in resources(target).items():
        for key, resource in by_key.items():
            yield kind, key, resource


@pytest.mark.parametrize("target", OWN)
def test_every_resource_loads(target: str) -> None:
    loaded = {(kind, key): CLASSES[kind].from_dict(of) for kind, key, of in each(target)}
    assert {kind for kind, _ in loaded} == set(CLASSES)
    assert {key for kind, key in loaded if kind == "jobs"} == {
        "archive",
        "archive_scheduled",
        "cleanup",
        "ingest_demo",
        "quickstart",
        "retention",
    }


def _rename(of: dict[str, Any], old: str, new: str) -> None:
    of[new] = of.pop(old)


Break = Callable[[dict[str, Any]], Any]
BROKEN: list[tuple[str, str, str, Break]] = [
    ("a job's unknown field", "jobs", "cleanup", lambda of: _rename(of, "queue", "queues")),
    (
        "a task's unknown field",
        "jobs",
        "cleanup",
        lambda of: _rename(of["tasks"][0], "retry_on_timeout", "retry_on_time_out"),
    ),
    ("a task without a key", "jobs", "cleanup", lambda of: of["tasks"][0].pop("task_key")),
    (
        "a cluster's bad enum",
        "jobs",
        "archive",
        lambda of: of["job_clusters"][0]["new_cluster"].update(runtime_engine="FAST"),
    ),
    (
        "a cluster's unknown field",
        "jobs",
        "archive",
        lambda of: _rename(of["job_clusters"][0]["new_cluster"], "num_workers", "workers"),
    ),
    (
        "a schedule's bad enum",
        "jobs",
        "archive_scheduled",
        lambda of: of["schedule"].update(pause_status="ASLEEP"),
    ),
    (
        "a health rule's bad enum",
        "jobs",
        "archive",
        lambda of: of["health"]["rules"][0].update(metric="RUN_DURATION"),
    ),
    (
        "a number that is text",
        "jobs",
        "retention",
        lambda of: of.update(timeout_seconds="an hour"),
    ),
    (
        "a permission's bad enum",
        "jobs",
        "archive",
        lambda of: of.update(permissions=[{"group_name": "analysts", "level": "CAN_LOOK"}]),
    ),
    (
        "a grant's bad enum",
        "schemas",
        "lakelog",
        lambda of: of["grants"][0]["privileges"].append("USE"),
    ),
    ("a volume's bad enum", "volumes", "files", lambda of: of.update(volume_type="LOCAL")),
    ("a volume without a schema", "volumes", "files", lambda of: of.pop("schema_name")),
    (
        "an alert's bad enum",
        "alerts",
        "archive_lag",
        lambda of: of["evaluation"].update(comparison_operator="ABOVE"),
    ),
    ("an alert without a query", "alerts", "archive_lag", lambda of: of.pop("query_text")),
    (
        "a dashboard's unknown field",
        "dashboards",
        "status",
        lambda of: _rename(of, "dataset_schema", "schema"),
    ),
]


@pytest.mark.parametrize(
    ("kind", "key", "break_it"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_a_broken_copy_does_not(kind: str, key: str, break_it: Break) -> None:
    whole = resources("prod")[kind][key]
    broken = copy.deepcopy(whole)
    break_it(broken)
    CLASSES[kind].from_dict(whole)
    with pytest.raises((ValueError, TypeError)):
        CLASSES[kind].from_dict(broken)


# -- what the classes do not see ------------------------------------------------------------------


def test_task_graphs_resolve() -> None:
    for key, job in jobs().items():
        waits = {
            task["task_key"]: {one["task_key"] for one in task.get("depends_on", ())}
            for task in job["tasks"]
        }
        assert len(waits) == len(job["tasks"])
        while waits:
            ready = {name for name, for_ in waits.items() if not for_ & set(waits)}
            unknown = set().union(*waits.values()) - {task["task_key"] for task in job["tasks"]}
            assert ready, f"{key}: a circle"
            assert not unknown, f"{key}: {unknown}"
            for name in ready:
                del waits[name]


def test_daily_cleanup_is_a_chain_of_its_steps() -> None:
    chain = {
        task["notebook_task"]["base_parameters"]["steps"]: [
            one["task_key"] for one in task.get("depends_on", ())
        ]
        for task in jobs()["cleanup"]["tasks"]
    }
    assert chain == {
        "retain": [],
        "compact": ["retain"],
        "optimize": ["compact"],
        "vacuum": ["optimize"],
    }
    (retain,) = jobs()["retention"]["tasks"]
    assert retain["notebook_task"]["base_parameters"]["steps"] == "retain"


def test_a_task_runs_on_a_cluster_or_serverless_and_there_only_on_cold_alone() -> None:
    for key, job, task in tasks():
        clusters = {
            one["job_cluster_key"]: one["new_cluster"] for one in job.get("job_clusters", ())
        }
        environments = {one["environment_key"] for one in job.get("environments", ())}
        given = task["notebook_task"].get("base_parameters", {})
        if "environment_key" in task:
            assert task["environment_key"] in environments
            assert given["cold_only"] == "true", (key, task["task_key"])
            assert "libraries" not in task
        else:
            cluster = clusters[task["job_cluster_key"]]
            assert cluster["num_workers"] == 0
            assert cluster["spark_conf"]["spark.databricks.cluster.profile"] == "singleNode"
            assert given.get("cold_only", "false") == "false"
            assert {"whl": "../dist/*.whl"} in task["libraries"]


def test_what_makes_archiving_faster_is_set_as_the_readme_says() -> None:
    readme = ROOT / "lakelog" / "spark" / "catalog" / "README.md"
    section = readme.read_text("utf-8").split(
        "Three settings make archiving faster, and one seeks"
    )[1]
    said = dict(re.findall(r"^\| `(spark\.[\w.]+)=(\w+)` \|", section, re.MULTILINE))
    assert len(said) == 4
    local = local_settings(2, [], ROOT / "log4j2.properties")
    (cluster,) = jobs()["archive"]["job_clusters"]
    for settings in (local, cluster["new_cluster"]["spark_conf"]):
        assert {name: settings[name] for name in said} == said


def test_every_job_is_limited_watched_and_reported() -> None:
    for key, job in jobs().items():
        assert job["max_concurrent_runs"] == 1, key
        assert job["health"]["rules"][0]["metric"] == "RUN_DURATION_SECONDS"
        for event in ("on_failure", "on_duration_warning_threshold_exceeded"):
            assert job["email_notifications"][event] == ["ada@example.com"], (key, event)
        assert job["permissions"] == []  # parameters and URLs are nobody else's by default
        if "continuous" in job:  # Databricks starts it again by itself, and one at a time
            assert not {"schedule", "queue", "timeout_seconds"} & set(job)
            continue
        assert "enabled" in job["queue"]
        limit = job["timeout_seconds"]
        assert all(task.get("timeout_seconds", limit) <= limit for task in job["tasks"]), key


def test_the_continuous_run_is_reported_when_it_should_long_have_ended() -> None:
    job = jobs()["archive"]
    (hours,) = [float(one["default"]) for one in job["parameters"] if one["name"] == "max_hours"]
    (rule,) = job["health"]["rules"]
    assert hours * 3600 < rule["value"] <= (hours + 2) * 3600


def test_of_the_two_archive_jobs_one_is_paused() -> None:
    assert jobs()["archive_scheduled"]["schedule"]["pause_status"] == "PAUSED"
    assert jobs()["archive_scheduled"]["schedule"]["quartz_cron_expression"] == "0 0/15 * * * ?"
    assert jobs()["archive"]["continuous"]["pause_status"] == "UNPAUSED"
    for job, when in (("archive", "continuous"), ("archive_scheduled", "schedule")):
        assert jobs("dev")[job][when]["pause_status"] == "PAUSED"


def test_a_volume_is_never_a_cold_root() -> None:
    for _, job, task in tasks():
        given = {one["name"]: one["default"] for one in job["parameters"]}
        given |= task["notebook_task"].get("base_parameters", {})
        for name in ("cold", "location"):
            assert "/Volumes" not in given.get(name, "")
            assert "resources.volumes" not in given.get(name, "")


def test_destroying_the_production_copy_is_refused_while_it_has_tables() -> None:
    assert resources("prod")["schemas"]["lakelog"]["lifecycle"]["prevent_destroy"] is True
    assert "lifecycle" not in resources("dev")["schemas"]["lakelog"]
