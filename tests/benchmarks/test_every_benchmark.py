"""Each benchmark runs to its end with little to do; its figures say nothing then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .names import BENCHMARKS
from .report import Report, table

FOLDER = Path(__file__).parent

#: Modules that are no benchmarks.
AROUND = {
    *("bench", "measures", "meters", "processes", "local_spark", "machine"),
    *("kafka_peer", "kafka_cleaner", "cleaned_topics", "made_records", "made_segments"),
    *("names", "report", "readme", "chart", "line_chart"),
    *("in_turn", "workloads"),  # a command of its own
}


def test_none_is_left_out() -> None:
    found = {path.stem for path in FOLDER.glob("[!_]*.py") if not path.stem.startswith("test_")}
    assert found - AROUND == set(BENCHMARKS)


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
    report = Report.of_json(figures.read_text("utf-8"))
    assert report.failed == (), done.stderr[-3000:]
    (rows,) = report.rows.values()
    assert done.stdout.endswith(table(rows).split("\n", 2)[2] + "\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nothing"], "there is no benchmark 'nothing'"),
        (["--peers"], "--peers needs a broker"),
        (["--rounds", "0"], "--rounds is at least 1"),
        (["--compare", "absent.json"], "there is no file absent.json"),
        (["--kafka-jars", "absent.jar"], "there is no file absent.jar"),
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
