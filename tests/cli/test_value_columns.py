"""Typed columns on the command line: proposed from a sample, set, archived and counted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakelog.archive.report import ArchiveReport, PartitionArchived
from lakelog.values.topic_partition import TopicPartition

FLIGHTS = [{"flight": n, "origin": "JFK", "at": "2013-01-01T05:00:00Z"} for n in range(50)]


@pytest.fixture
def run(where: list[str], command: Callable[..., tuple[str, str]]) -> Callable[..., str]:
    def run(*arguments: str, code: int = 0, **more: str) -> str:
        return command(*where, *arguments, code=code, **more)[bool(code)]

    return run


def produce(run: Callable[..., str]) -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in FLIGHTS)
    run("produce", "flights", stdin=f"{lines}no JSON\n")


def test_what_is_proposed_can_be_set_and_archive_counts_what_does_not_parse(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("topics", "create", "flights")
    produce(run)
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
