"""The list of runs: made of the rows that they left, of jobs and of the command line alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.cli.recorded import said
from lakelog.errors import MissingFileError
from lakelog.jobs import JobRun, add_readings, run_history, status_history
from lakelog.jobs.history import SILENT, Run, runs_of
from lakelog.jobs.status_rows import (
    DONE,
    FAILED,
    RUNNING,
    STATUS,
    STOPPED,
    RunKey,
    RunOf,
    status_rows,
)
from lakelog.jobs.status_table import open_status_table
from lakelog.operate.status import Status
from lakelog.testing.eventually import eventually

TOPIC = "readings"
NOW = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


def rows(minute: float, result: str | None, run_id: str = "1", **more: Any) -> pa.Table:
    """What a run that began at noon says of itself after so many minutes."""
    status = Status((), (), int((NOW + timedelta(minutes=minute)).timestamp() * 1000))
    of = RunOf("ada@host", "archive orders")
    return status_rows(
        RunKey("archive", run_id), status, {}, 60 * minute, run=of, result=result, **more
    )


def only(*tables: pa.Table, now: datetime = NOW) -> Run:
    (run,) = runs_of(pa.concat_tables(tables), now)
    return run


@pytest.mark.parametrize(
    ("last", "result"),
    [
        (rows(5, DONE, done=True), "done"),
        (rows(5, FAILED, error="no room"), "failed"),
        (rows(5, STOPPED), "stopped"),
        (rows(5, RUNNING), "running"),
    ],
)
def test_the_last_rows_say_how_a_run_ended(last: pa.Table, result: str) -> None:
    run = only(rows(0.02, RUNNING), last, now=NOW + timedelta(minutes=6))
    assert (run.result, run.began_at, run.duration) == (result, NOW, timedelta(minutes=5))
    assert (run.who, run.what) == ("ada@host", "archive orders")
    assert run.error == ("no room" if result == "failed" else None)


def test_a_run_that_is_silent_for_too_long_has_died() -> None:
    left = rows(0.02, RUNNING), rows(5, RUNNING)
    silent = NOW + timedelta(minutes=5) + SILENT
    assert only(*left, now=silent).result == "running"
    assert only(*left, now=silent + timedelta(seconds=1)).result == "died"


def test_a_run_that_was_repaired_is_done() -> None:
    repaired = rows(1, FAILED, error="no room"), rows(9, RUNNING), rows(10, DONE, done=True)
    run = only(*repaired)
    assert (run.result, run.error) == ("done", None)


def looked(minute: float, result: str, records: int | None) -> pa.Table:
    """As `rows`, of a run that also says what it did to a partition."""
    said = rows(minute, result, done=result == DONE)
    for name, value in (("topic", "orders"), ("partition", 0), ("records", records)):
        column = pa.array([value], STATUS.field(name).type)
        said = said.set_column(said.schema.get_field_index(name), STATUS.field(name), column)
    return said


@pytest.mark.parametrize(
    ("left", "records"),
    [
        ([rows(1, RUNNING)], None),  # it may have committed anything by then
        ([rows(0.02, RUNNING), rows(1, STOPPED)], None),
        ([rows(1, RUNNING), rows(2, DONE, done=True)], 0),
        ([rows(1, RUNNING), looked(2, DONE, 30)], 30),
        ([rows(1, RUNNING), looked(2, DONE, None)], 0),
        ([rows(1, RUNNING), looked(2, FAILED, 30)], 30),
        ([rows(5, RUNNING), looked(9, RUNNING, 7), looked(10, RUNNING, 8)], 15),  # continuous
    ],
)
def test_a_run_that_could_not_say_what_it_did_has_no_number_of_records(
    left: list[pa.Table], records: int | None
) -> None:
    assert only(*left, now=NOW + timedelta(hours=1)).records == records


def test_neither_has_one_that_was_cut_off_and_done_again() -> None:
    def later(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("recorded_at")
        moved = pc.add(table["recorded_at"], pa.scalar(timedelta(minutes=10)))
        return table.set_column(at, STATUS.field("recorded_at"), moved)

    assert only(rows(5, RUNNING), later(looked(1, DONE, 0))).records is None
    assert only(looked(5, FAILED, 30), later(looked(1, DONE, 20))).records == 50
    skewed = rows(7, RUNNING)  # by another clock than the last rows
    assert only(looked(6, DONE, 30), skewed).records == 30


def test_runs_are_told_apart_and_come_in_the_order_in_which_they_began() -> None:
    tables = [rows(3, DONE, "2"), rows(1, DONE, "1"), rows(2, RUNNING, "2")]
    assert [run.run_id for run in runs_of(pa.concat_tables(tables), NOW)] == ["1", "2"]
    assert runs_of(STATUS.empty_table(), NOW) == []


def test_rows_of_an_older_lakelog_say_what_they_can() -> None:
    def older(*given: Any, **more: Any) -> pa.Table:
        said = rows(*given, **more)
        for name in ("who", "what", "result"):
            at = said.schema.get_field_index(name)
            said = said.set_column(at, STATUS.field(name), pa.nulls(said.num_rows, pa.string()))
        return said

    assert only(older(1, DONE, done=True)).result == "done"
    assert only(older(1, FAILED, error="no room")).result == "failed"
    running = only(older(1, RUNNING), now=NOW + timedelta(minutes=2))
    assert (running.result, running.who, running.what) == ("running", None, None)


# -- of runs -------------------------------------------------------------------------------------


def test_jobs_say_who_ran_what_and_how_it_ended(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)
    JobRun(log, "archive", "4711", topics=[TOPIC]).once(lambda: log.archive(TOPIC))

    def fails() -> None:
        raise MissingFileError("a file is missing", path="a file")

    with pytest.raises(MissingFileError):
        JobRun(log, "cleanup", "4711", steps=["retain"]).once(fails)
    done, failed = run_history(log)
    assert (done.job, done.what, done.result, done.records) == (
        "archive",
        f"archive {TOPIC}",
        "done",
        80,
    )
    assert done.topics == (TOPIC,)
    assert done.who
    assert "@" in done.who
    assert (failed.what, failed.result) == ("cleanup --step retain", "failed")
    assert failed.error == "MissingFileError: a file is missing"


def test_an_interrupted_job_was_stopped(log: Lakelog) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        JobRun(log, "archive", "4711").once(interrupted)
    (run,) = run_history(log)
    assert run.result == "stopped"
    assert status_history(log).num_rows == 0  # which is of partitions


def test_a_job_that_takes_a_while_is_seen_meanwhile(log: Lakelog) -> None:
    finish = threading.Event()
    job = threading.Thread(
        target=lambda: JobRun(log, "archive", "4711").once(lambda: finish.wait(60) and None)
    )
    job.start()
    try:
        eventually(lambda: [run.result for run in run_history(log)] == ["running"])
    finally:
        finish.set()
        job.join()
    assert [run.result for run in run_history(log)] == ["done"]


def test_a_run_whose_row_cannot_be_written_goes_on(log: Lakelog, tmp_path: Path) -> None:
    (tmp_path / "cold").mkdir()
    (tmp_path / "cold" / "_lakelog_status").write_text("no table")
    asked = ["--redis", log.place.source.url, "--cold", str(tmp_path / "cold")]
    assert cli.main([*asked, "topics", "create", "orders"]) == 0
    assert [topic.name for topic in log.topics.list()] == ["orders"]


# -- of the command line -------------------------------------------------------------------------


@pytest.fixture
def where(redis_url: str, tmp_path: Path) -> list[str]:
    return ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]


@pytest.fixture
def history(where: list[str], capsys: pytest.CaptureFixture[str]) -> Callable[[], list[Any]]:
    def history() -> list[Any]:
        capsys.readouterr()
        assert cli.main([*where, "history", "--output", "json"]) == 0
        found: list[Any] = json.loads(capsys.readouterr().out)
        return found

    return history


def test_commands_are_listed_with_what_they_did(
    log: Lakelog, where: list[str], history: Callable[[], list[Any]]
) -> None:
    add_readings(log, TOPIC, 80)
    for command, code in (
        (["archive", TOPIC], 0),
        (["cleanup", "run"], 0),
        (["topics", "delete", "no"], 1),
    ):
        assert cli.main([*where, *command]) == code
    archived, cleaned, failed = history()
    assert (archived["job"], archived["what"], archived["result"], archived["records"]) == (
        "archive",
        f"lakelog archive {TOPIC}",
        "done",
        80,
    )
    assert (cleaned["what"], cleaned["result"]) == ("lakelog cleanup run", "done")
    assert (failed["job"], failed["result"]) == ("topics delete", "failed")
    assert "there is no topic 'no'" in failed["error"]
    at = status_history(log)
    assert set(at["job"].to_pylist()) == {"archive", "cleanup", "topics delete"}  # it failed


def test_what_only_looks_is_not_listed(
    log: Lakelog, where: list[str], history: Callable[[], list[Any]]
) -> None:
    add_readings(log, TOPIC, 8)
    for command in ["status"], ["topics", "list"], ["cleanup", "plan"], ["restore", "--dry-run"]:
        assert cli.main([*where, *command]) == 0
    assert history() == []


def test_what_takes_topics_out_brings_them_in_and_looks_at_all_is_listed(
    log: Lakelog,
    where: list[str],
    history: Callable[[], list[Any]],
    tmp_path: Path,
) -> None:
    add_readings(log, TOPIC, 8)
    log.archive()
    out = str(tmp_path / "out")
    assert cli.main([*where, "export", "--to", out]) == 0
    assert cli.main([*where, "import", out, "--as", "copy"]) == 0
    assert cli.main([*where, "check"]) == 0
    (file, *_) = (tmp_path / "cold" / TOPIC).rglob("archive-*.parquet")
    file.unlink()
    assert cli.main([*where, "check", TOPIC]) == 1
    assert [(run["job"], run["what"], run["result"], run["error"]) for run in history()] == [
        ("export", f"lakelog export --to {out}", "done", None),
        ("import", f"lakelog import {out} --as copy", "done", None),
        ("check", "lakelog check", "done", None),
        ("check", f"lakelog check {TOPIC}", "failed", "faults found: 1 × missing-file"),
    ]


def test_a_command_that_was_killed_has_died(
    log: Lakelog, where: list[str], redis_url: str, tmp_path: Path
) -> None:
    add_readings(log, TOPIC, 8)
    command = [sys.executable, "-m", "lakelog", *where, "archive", "--continuous"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: [run.result for run in run_history(log)] == ["running"])
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = open_status_table(log.place.cold).read()
    later = datetime.now(timezone.utc) + SILENT + timedelta(minutes=1)
    (run,) = runs_of(left, later)
    assert (run.result, run.job, run.what) == (
        "died",
        "archive --continuous",
        "lakelog archive --continuous",
    )


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (["--redis", "redis://:secret@host", "archive", "orders"], "lakelog archive orders"),
        (["archive", "--red=redis://:secret@host", "--verbose", "o"], "lakelog archive o"),
        (["erase", "orders", "--key", "ada@example.org"], "lakelog erase orders --key=HIDDEN"),
        (["erase", "orders", "--wh=key = 'ada'"], "lakelog erase orders --wh=HIDDEN"),
        (["--storage-option", "AWS_SECRET_ACCESS_KEY=x", "cleanup", "run"], "lakelog cleanup run"),
        (["topics", "create", "a b"], "lakelog topics create 'a b'"),
    ],
)
def test_neither_secrets_nor_keys_of_records_are_kept(argv: list[str], kept: str) -> None:
    assert said(argv) == kept


def test_a_long_command_is_cut() -> None:
    assert len(said(["archive", *(f"topic-{number}" for number in range(1000))])) == 500
