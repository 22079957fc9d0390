"""Each benchmark runs to its end with little to do; its figures say nothing then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .__main__ import BENCHMARKS
from .report import Report, table

FOLDER = Path(__file__).parent

#: Scripts of their own, and how each has little to do.
LITTLE = {
    "archive": ["--scale", "0.002", "--rounds", "2"],
    "check": ["--scale", "0.002", "--rounds", "2"],
    "cleanup": ["--scale", "0.002", "--rounds", "2"],
    "cold": ["--segments", "3", "6", "--rounds", "2"],
    "commits": ["--commits", "3", "6", "--rounds", "2"],
    "continuous": ["--idle-topics", "3", "--idle-seconds", "1"],
    "encryption": ["--scale", "0.001", "--rounds", "1"],
    "engines": ["--scale", "0.002", "--rounds", "1"],
    "erase": ["--scale", "0.002", "--rounds", "2"],
    "explore": ["--partitions", "80"],
    "freshness": ["--rate", "100", "--seconds", "3"],
    "limits": ["--mib", "8", "--many", "5"],
    "many_files": ["--files", "40"],
    "many_topics": ["--topics", "3", "--rounds", "1"],
    "named": ["--commits", "2", "--records", "100", "--rounds", "2"],
    "search": ["--records", "2000", "--rounds", "1"],
    "sink": ["--scale", "0.002", "--rounds", "2"],
    "spark": ["--scale", "0.002", "--rounds", "2"],
    "transfer": ["--scale", "0.002", "--rounds", "2"],
}


#: Modules that are no benchmarks.
AROUND = {"bench", "chart", "kafka_peer", "machine", "made_records", "measures", "readme", "report"}


def test_none_is_left_out() -> None:
    found = {path.stem for path in FOLDER.glob("[!_]*.py") if not path.stem.startswith("test_")}
    assert found - AROUND == {*LITTLE, *BENCHMARKS}


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_prints_a_table_and_keeps_its_figures(name: str, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.benchmarks", name, "--json", figures),
            *("--scale", "0.002", "--rounds", "1"),
        ],
        capture_output=True,
        text=True,
        cwd=FOLDER.parents[1],
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr[-3000:]  # 1: short of a goal, as it must be here
    (rows,) = Report.of_json(figures.read_text("utf-8")).rows.values()
    assert done.stdout.endswith(table(rows).split("\n", 2)[2] + "\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nothing"], "there is no benchmark 'nothing'"),
        (["--peers"], "--peers needs a broker"),
        (["--rounds", "0"], "--rounds is at least 1"),
        (["--compare", "absent.json"], "there is no file absent.json"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_measured(arguments: list[str], why: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *arguments],
        capture_output=True,
        text=True,
        cwd=FOLDER.parents[1],
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LITTLE))
def test_it_runs_to_its_end(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", *LITTLE[name]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parents[1])},
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.returncode in (0, 1), done.stderr[-3000:]  # 1: short of a goal, as it must be here
    assert "|" in done.stdout or "│" in done.stdout  # a table of what was measured
