"""Notebooks as jobs as the bundle runs them: tables by name in a catalog, on a real Spark.

With ``--unity`` on a Unity Catalog server too. Every parameter is text, as jobs give it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from notebook_run import run_job

from lakelog import Lakelog
from lakelog.jobs import status_history

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
