"""Notebooks as jobs: with Redis and the cold tier elsewhere, repaired, killed, without Redis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from notebook_run import run_job

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.jobs import add_readings, status_history

READINGS = 400


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working directory and a home that must stay empty."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    return home


@pytest.fixture
def place(redis_url: str, tmp_path: Path) -> dict[str, str]:
    """The job parameters that say where the log is."""
    return {"redis_url": redis_url, "cold": str(tmp_path / "cold")}


def open_log(place: dict[str, str]) -> Lakelog:
    return Lakelog.connect(place["redis_url"], place["cold"], engine="inline")


def records(log: Lakelog) -> list[int]:
    found = log.log("readings")
    return sorted(
        json.loads(record.value)["n"]
        for partition in found.offsets()
        for record in found.read(partition, 0).records()
    )


#: The jobs that do something: what they are given, and what they leave of the readings cold.
JOBS: dict[str, dict[str, str]] = {
    "10": {"records": str(READINGS)},
    "20": {},
    "30": {"steps": "retain, optimize"},
}


def test_all_run_where_redis_and_the_cold_root_are_given_and_touch_nothing_else(
    place: dict[str, str], inline: Path
) -> None:
    results = {
        name: json.loads(run_job(name, **place, **JOBS.get(name, {}), run_id=f"run {name}"))
        for name in ("10", "20", "30", "40", "50", "60")
    }
    ends = {
        name: [part["archived_end"] for part in result["partitions"]]
        for name, result in results.items()
    }
    assert ends.pop("10") == [0, 0]
    assert set(map(tuple, ends.values())) == {(150, 250)}
    assert list(inline.iterdir()) == []


@pytest.mark.slow
def test_a_repaired_run_answers_as_before_whatever_happened_since(place: dict[str, str]) -> None:
    def run(name: str) -> str:
        return run_job(name, **place, **JOBS[name], run_id="4711")

    first = {name: run(name) for name in JOBS}
    with open_log(place) as log:
        add_readings(log, "readings", 2 * READINGS)
        log.archive()
        rows = status_history(log)
        assert {name: run(name) for name in JOBS} == first
        assert status_history(log) == rows
        assert records(log) == list(range(2 * READINGS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [pytest.param("jobs.before_rows", marks=pytest.mark.slow), "jobs.after_rows"]
)
def test_a_run_killed_beside_its_rows_is_repaired_and_nothing_is_doubled(
    place: dict[str, str], step: str
) -> None:
    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    for name, given in JOBS.items():
        with failpoints.armed(step, kill), pytest.raises(Killed):
            run_job(name, **place, **given, run_id="4711")
        repaired = run_job(name, **place, **given, run_id="4711")
        assert run_job(name, **place, **given, run_id="4711") == repaired
    with open_log(place) as log:
        assert records(log) == list(range(READINGS))
        rows = [row for row in status_history(log).to_pylist() if row["done"]]
    assert sorted((row["job"], row["partition"]) for row in rows) == [
        (job, partition) for job in ("archive", "cleanup", "ingest") for partition in (0, 1)
    ]


@pytest.mark.slow
def test_archiving_continuously_ends_with_all_archived(place: dict[str, str]) -> None:
    with open_log(place) as log:
        add_readings(log, "readings", READINGS)
    given: dict[str, Any] = {**place, "max_hours": "0.0001", "run_id": "4711"}
    result = run_job("20", **given)
    assert [part["archived_end"] for part in json.loads(result)["partitions"]] == [150, 250]
    assert run_job("20", **given) == result


@pytest.mark.slow
def test_cleanup_of_the_tables_alone_opens_no_redis(place: dict[str, str]) -> None:
    with open_log(place) as log:
        add_readings(log, "readings", READINGS)
        log.archive()
    given = {**place, "redis_url": "redis://127.0.0.1:1", "cold_only": "true", "run_id": "4711"}
    result = run_job("30", **given)
    assert [(part["state"], part["archived_end"]) for part in json.loads(result)["partitions"]] == [
        ("cold only", 150),
        ("cold only", 250),
    ]
    assert run_job("30", **given) == result


def test_a_wrong_parameter_ends_the_job_with_a_sentence(place: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="parameter records is 'many'"):
        run_job("10", **place, records="many")
