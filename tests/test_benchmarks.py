"""Each benchmark runs to its end with little to do; its figures say nothing then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("benchmarks")

LITTLE = {
    "append": ["--scale", "0.002", "--rounds", "2"],
    "archive": ["--scale", "0.002", "--rounds", "2"],
    "check": ["--scale", "0.002", "--rounds", "2"],
    "cleanup": ["--scale", "0.002", "--rounds", "2"],
    "cold": ["--segments", "3", "6", "--rounds", "2"],
    "commits": ["--commits", "3", "6", "--rounds", "2"],
    "consume": ["--scale", "0.002", "--rounds", "1"],
    "continuous": ["--idle-topics", "3", "--idle-seconds", "1"],
    "engines": ["--scale", "0.002", "--rounds", "1"],
    "erase": ["--scale", "0.002", "--rounds", "2"],
    "explore": ["--partitions", "80"],
    "freshness": ["--rate", "100", "--seconds", "3"],
    "hot": [],
    "limits": ["--mib", "8", "--many", "5"],
    "many_files": ["--files", "40"],
    "many_topics": ["--topics", "3", "--rounds", "1"],
    "named": ["--commits", "2", "--records", "100", "--rounds", "2"],
    "search": ["--records", "2000", "--rounds", "1"],
    "sink": ["--scale", "0.002", "--rounds", "2"],
    "spark": ["--scale", "0.002", "--rounds", "2"],
    "startup": ["--rounds", "2"],
    "transfer": ["--scale", "0.002", "--rounds", "2"],
}


def test_none_is_left_out() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(LITTLE)


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
