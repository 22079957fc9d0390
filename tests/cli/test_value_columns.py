"""Typed columns on the command line: proposed from a sample, set, archived and counted."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakelog.archive.report import ArchiveReport, PartitionArchived
from lakelog.cli import main as cli
from lakelog.values.topic_partition import TopicPartition

FLIGHTS = [{"flight": n, "origin": "JFK", "at": "2013-01-01T05:00:00Z"} for n in range(50)]


@pytest.fixture
def run(redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    where = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]

    def run(*arguments: str, code: int = 0) -> str:
        assert cli.main([*where, *arguments]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return run


def produce(run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{json.dumps(one)}\n" for one in FLIGHTS) + "no JSON\n")
    with lines.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        run("produce", "flights")


def test_what_is_proposed_can_be_set_and_archive_counts_what_does_not_parse(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topics", "create", "flights")
    produce(run, tmp_path, monkeypatch)
    shown = run("topics", "infer", "flights")
    assert "51 values looked at: 50 parse, 1 do not, 0 are null" in shown
    proposal = json.loads(run("topics", "infer", "flights", "--output", "json"))["proposal"]
    assert proposal["ddl"] == "flight bigint, origin string, at timestamp"
    assert proposal["command"] in shown
    run(*shlex.split(proposal["command"])[1:])
    assert json.loads(run("topics", "infer", "flights", "--output", "json"))["proposal"] == {
        **proposal,
        "command": None,
    }
    (row,) = json.loads(run("archive", "--output", "json"))
    assert (row["records"], row["unparsed"]) == (51, 1)
    (path,) = (tmp_path / "cold" / "flights").iterdir()
    found = DeltaTable(path).to_pyarrow_table().sort_by("offset")
    assert found["flight"].to_pylist() == [*range(50), None]
    assert found["value_error"].to_pylist() == [None] * 50 + ["not a JSON object"]
    refused = "lakelog.value.columns=flight int"
    assert "columns can only be added" in run(
        "topics", "alter", "flights", "--config", refused, code=1
    )


def test_without_json_there_is_nothing_to_propose(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topics", "create", "flights")
    shown = run("topics", "infer", "flights")
    assert "no value is a JSON object" in shown
    assert "topics alter" not in shown


def test_a_report_says_how_many_values_have_no_columns() -> None:
    def report(*unparsed: int) -> ArchiveReport:
        done = [
            PartitionArchived(TopicPartition("t", n), 0, 5, 5, 100, 1, 0.5, count)
            for n, count in enumerate(unparsed)
        ]
        return ArchiveReport("t", tuple(done))

    assert report(0, 0).unparsed == 0
    assert "did not become" not in str(report(0, 0))
    assert "t: 7 values did not become columns" in str(report(3, 4))
