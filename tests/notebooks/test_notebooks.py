"""Every notebook runs from top to bottom without a click, says its parameters, and is thin."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from notebook_run import NOTEBOOKS, cells, code_cells, notebook, run_job, run_plain

ROOT = Path(__file__).parents[2]


def run_nbval(notebooks: list[Path], directory: Path, engine: str = "inline") -> None:
    """In kernels of their own, as CI would; outputs of tagged cells are compared."""
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env"]
    command += ["--nbval-cell-timeout=300", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *map(str, notebooks)],
        env={**os.environ, "LAKELOG_DIRECTORY": str(directory), "LAKELOG_ENGINE": engine},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_the_notebooks_run_one_after_the_other_in_one_directory(tmp_path: Path) -> None:
    run_nbval(NOTEBOOKS, tmp_path / "log")


@pytest.mark.slow
def test_the_quickstart_runs_on_spark_as_its_readers_run_it(tmp_path: Path) -> None:
    run_nbval([notebook("00")], tmp_path / "log", engine="")


def test_a_notebook_runs_in_a_kernel_of_its_own(tmp_path: Path) -> None:
    run_nbval([notebook("20")], tmp_path / "log")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.stem == "45_spark" else [])
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_alone_and_again_with_the_same_result(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_DIRECTORY", str(tmp_path / "log"))
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    first = run_plain(path.name)
    assert json.loads(first)["job"]
    assert '"partitions":[{' in first
    assert run_plain(path.name) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        # `test_jobs` runs all of them, one after the other.
        pytest.param(path, marks=[] if path.stem[:2] in ("20", "60") else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_a_notebook_is_a_job_that_answers_in_json(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    monkeypatch.setenv("LAKELOG_DIRECTORY", "/nowhere")  # on Databricks the widget counts
    given = {"directory": str(tmp_path / "log")}
    if "run_id" in defaults_of(path):
        given["run_id"] = "4711"
    first = run_job(path.name, **given)
    assert run_job(path.name, **given) == first
    assert (tmp_path / "log" / "redis").is_dir()


# -- what a notebook says ------------------------------------------------------------------------


def defaults_of(path: Path) -> dict[str, Any]:
    """The parameters by the cell that asks for them."""
    calls = [
        node
        for node in ast.walk(ast.parse(code_cells(path)[0]))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "parameters"
    ]
    assert len(calls) == 1
    return {one.arg: ast.literal_eval(one.value) for one in calls[0].keywords if one.arg}


def shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_says_purpose_job_and_parameters(path: Path) -> None:
    first, second = cells(path)[:2]
    assert (first["cell_type"], second["cell_type"]) == ("markdown", "code")
    text = "".join(first["source"])
    number = path.name[:2]
    title, _, rest = text.partition("\n\n")
    assert title.startswith(f"# {number} ")
    assert rest.partition("**Job**: ")[0].strip()
    job = re.search(r"\*\*Job\*\*: (.+)", text)
    assert job is not None
    names = re.findall(r"`(\w+)`", job[1])
    known = "\n".join(file.read_text("utf-8") for file in (ROOT / "conf").glob("*.yml"))
    assert all(re.search(rf"^ +{name}:$", known, re.MULTILINE) for name in names)
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| (.+) \|$", text, re.MULTILINE)
    table = {name: default.strip("`") for name, default, _ in rows}
    assert table == {name: shown(value) for name, value in defaults_of(path).items()}
    assert all(meaning.strip() for _, _, meaning in rows)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_checked_outputs_are_committed(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            checked = "nbval-check-output" in cell["metadata"].get("tags", [])
            assert bool(cell["outputs"]) == checked
            assert (cell["execution_count"] is not None) == checked


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_thin_and_has_nothing_of_one_machine(path: Path) -> None:
    for text in code_cells(path)[1:]:  # the first one is a list of parameters
        assert len(text.splitlines()) <= 12
        assert not re.search(r"^\s*(%|!|def |class )", text, re.MULTILINE)
        assert "dbutils" not in text


def test_notebooks_are_numbered_in_the_data_s_order() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "00_quickstart",
        "10_ingest",
        "15_from_your_data",
        "20_archive",
        "30_cleanup",
        "40_read_and_seek",
        "45_spark",
        "50_explore",
        "60_operate",
    ]
