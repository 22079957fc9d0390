"""The bundle's files fit together: what they name is declared and is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
BUNDLE = yaml.safe_load((ROOT / "databricks.yml").read_text("utf-8"))


def resources() -> list[tuple[Path, dict[str, Any]]]:
    files = [file for pattern in BUNDLE["include"] for file in sorted(ROOT.glob(pattern))]
    assert files
    return [(file, yaml.safe_load(file.read_text("utf-8"))) for file in files]


def jobs() -> list[tuple[Path, dict[str, Any]]]:
    return [
        (file, job)
        for file, content in resources()
        for job in content["resources"]["jobs"].values()
    ]


def test_every_variable_used_is_declared_and_described() -> None:
    text = "".join(
        file.read_text("utf-8") for file in (ROOT / "databricks.yml", *(f for f, _ in resources()))
    )
    used = set(re.findall(r"\$\{var\.(\w+)\}", text))
    assert used == set(BUNDLE["variables"])
    assert all(variable["description"] for variable in BUNDLE["variables"].values())


def test_every_task_runs_a_notebook_that_is_there_on_a_cluster_that_is_declared() -> None:
    for file, job in jobs():
        clusters = {cluster["job_cluster_key"] for cluster in job["job_clusters"]}
        for task in job["tasks"]:
            assert (file.parent / task["notebook_task"]["notebook_path"]).resolve().is_file()
            assert task["job_cluster_key"] in clusters


def test_parameters_of_a_task_are_read_by_its_notebook() -> None:
    for file, job in jobs():
        for task in job["tasks"]:
            notebook = (file.parent / task["notebook_task"]["notebook_path"]).resolve()
            cells = json.loads(notebook.read_text("utf-8"))["cells"]
            code = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
            read = set(re.findall(r"dbutils\.widgets\.get\(\"(\w+)\"\)", code))
            assert set(task["notebook_task"]["base_parameters"]) == read


def test_the_bundle_lets_the_engine_be_chosen_by_the_cli() -> None:
    assert "engine" not in BUNDLE["bundle"]
    assert set(BUNDLE["targets"]) == {"dev", "prod"}
