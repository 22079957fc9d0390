"""Notebooks as jobs as the bundle runs them: tables by name in a catalog, on a real Spark.

With ``--unity`` on a Unity Catalog server too. Every parameter is text, as jobs give it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from notebook_run import run_job

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.jobs import status_history
from tests.support.unity_catalog import SPARKS_OWN, UnityCatalogServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READINGS = 400
ARCHIVED = [150, 250]  # ends by partition

Run = Callable[..., str]

#: Each job, in its order, with what the bundle gives it beside the place.
JOBS: dict[str, dict[str, str]] = {
    "10": {"topic": "readings", "records": str(READINGS)},
    "20": {"topics": "", "max_hours": "0", "max_stall_hours": "1.0"},
    "30": {"topics": "", "steps": "retain,compact,optimize,vacuum", "cold_only": "false"},
    "40": {},
    "50": {},
    "60": {"topics": ""},
}


class Killed(BaseException):
    pass


@pytest.fixture
def place(
    redis_url: str, schema: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """What the bundle's jobs are told, with the password where a cluster has it."""
    monkeypatch.setenv("LAKELOG_REDIS_PASSWORD", "")
    monkeypatch.delenv("LAKELOG_ENGINE", raising=False)
    return {
        "redis_url": redis_url,
        "redis_password_ref": "",
        "cold": schema,
        "location": "",
        "keyspace": "lakelog",
        "directory": "",
    }


@pytest.fixture
def run(place: dict[str, str]) -> Run:
    def run(name: str, **how: Any) -> str:
        return run_job(name, **{"run_id": f"run {name}", **JOBS[name], **place, **how})

    return run


def ends(result: str) -> list[int]:
    return [part["archived_end"] for part in json.loads(result)["partitions"]]


def check_once(place: dict[str, str], spark: SparkSession) -> None:
    """Each reading is there once: for lakelog, and for whoever asks Spark."""
    with Lakelog.connect(place["redis_url"], place["cold"]) as log:
        found = log.log("readings")
        values = [
            json.loads(record.value)["n"]
            for partition in found.offsets()
            for record in found.read(partition, 0).records()
        ]
    assert sorted(values) == list(range(READINGS))
    rows = spark.table(f"{place['cold']}.readings_view").select("value").collect()
    assert sorted(json.loads(row.value)["n"] for row in rows) == list(range(READINGS))


@pytest.mark.slow
def test_all_run_one_after_the_other_and_repaired_they_answer_as_before(
    run: Run, place: dict[str, str], spark: SparkSession
) -> None:
    results = {name: run(name) for name in JOBS}
    assert ends(results.pop("10")) == [0, 0]
    assert {name: ends(result) for name, result in results.items()} == dict.fromkeys(
        results, ARCHIVED
    )
    check_once(place, spark)
    with Lakelog.connect(place["redis_url"], place["cold"]) as log:
        rows = status_history(log)
        jobs = [(row["job"], row["partition"]) for row in rows.to_pylist()]
        assert sorted(jobs) == [
            (job, n) for job in ("archive", "cleanup", "ingest") for n in (0, 1)
        ]
        assert {name: run(name) for name in results} == results
        assert status_history(log) == rows


def kill(*_: object) -> None:
    raise Killed


@pytest.mark.parametrize(
    "steps",
    [
        {"10": "jobs.before_rows", "20": "archive.after_commit", "30": "jobs.after_rows"},
        {"10": "jobs.after_rows", "20": "archive.before_trim", "30": "jobs.before_rows"},
        {"10": "jobs.before_rows", "20": "cold.before_commit", "30": "jobs.after_rows"},
    ],
    ids=lambda steps: steps["20"],
)
@pytest.mark.slow
def test_what_was_killed_is_repaired_and_nothing_is_doubled(
    steps: dict[str, str], run: Run, place: dict[str, str], spark: SparkSession
) -> None:
    for name, step in steps.items():
        with failpoints.armed(step, kill), pytest.raises(Killed):
            run(name)
        repaired = run(name)
        assert run(name) == repaired
        assert ends(repaired) == ([0, 0] if name == "10" else ARCHIVED)
    check_once(place, spark)


@pytest.mark.slow
def test_what_only_looks_is_killed_before_its_last_cell_and_repaired(
    run: Run, place: dict[str, str], spark: SparkSession
) -> None:
    def kill_before_the_last_cell(text: str, _: InteractiveShell) -> None:
        if "finish(" in text:
            kill()

    for name in ("10", "20"):
        run(name)
    for name in ("40", "50", "60"):
        with pytest.raises(Killed):
            run(name, before=kill_before_the_last_cell)
        assert ends(run(name)) == ARCHIVED
    check_once(place, spark)


@pytest.mark.slow
def test_cleanup_of_the_tables_alone_opens_no_redis(run: Run) -> None:
    for name in ("10", "20"):
        run(name)
    # As the bundle's job `retention` and the last tasks of `cleanup` do on serverless.
    for steps in ("retain", "optimize", "vacuum"):
        how = {"steps": steps, "cold_only": "true", "redis_url": "redis://127.0.0.1:1"}
        result = run("30", **how, run_id=f"4711-{steps}")
        assert [part["state"] for part in json.loads(result)["partitions"]] == ["cold only"] * 2
        assert ends(result) == ARCHIVED


@pytest.mark.parametrize("step", ["cold.before_commit", "archive.after_commit"])
@pytest.mark.slow
def test_an_archiver_that_dies_with_its_spark_is_repaired_by_another(
    step: str,
    catalog: str,
    run: Run,
    place: dict[str, str],
    spark: SparkSession,
    unity_server: UnityCatalogServer | None,
) -> None:
    if catalog == SPARKS_OWN:
        pytest.skip("Spark's own catalog dies with the process")
    assert unity_server is not None
    run("10")
    wanted = {
        "conf": unity_server.spark_conf(),
        "widgets": {**place, **JOBS["20"], "run_id": "run 20"},
    }
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed_job.py"), "20", json.dumps(wanted)],
        env={**os.environ, failpoints.ENVIRONMENT_VARIABLE: f"{step}=exit"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == failpoints.KILLED, done.stdout + done.stderr
    assert ends(run("20")) == ARCHIVED
    check_once(place, spark)
