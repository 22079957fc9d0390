"""Every notebook runs from top to bottom without a click, and gives the same when run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_twice_in_the_same_directory(notebook: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "--nbval-lax",
                "--nbval-current-env",
                "--nbval-cell-timeout=300",
                "-q",
                "-p",
                "no:cacheprovider",
                str(notebook),
            ],
            env={**os.environ, "LAKELOG_NOTEBOOK_DIR": str(tmp_path / "log")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code" and "nbval-check-output" not in cell["metadata"].get(
            "tags", []
        ):
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
