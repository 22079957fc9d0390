"""A job gives its notebook the parameters that its first cell asks for: all, and no others."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from bundle_files import GIVEN as VARIABLES
from bundle_files import ROOT, tasks

#: By job and task: what is not the notebook's default, beside what says where the log is.
GIVEN: dict[tuple[str, str], dict[str, str]] = {
    ("archive", "archive"): {"max_hours": "24"},
    ("archive_scheduled", "archive"): {},
    ("cleanup", "retain"): {"steps": "retain"},
    ("cleanup", "compact"): {"steps": "compact"},
    ("cleanup", "optimize"): {"steps": "optimize", "cold_only": "true"},
    ("cleanup", "vacuum"): {"steps": "vacuum", "cold_only": "true"},
    ("ingest_demo", "ingest"): {},
    ("quickstart", "quickstart"): {"directory": "/local_disk0/lakelog-quickstart"},
    ("retention", "retain"): {"steps": "retain", "cold_only": "true"},
}
PLACE = {
    "redis_url": VARIABLES["redis_url"],
    "redis_password_ref": "env:LAKELOG_REDIS_PASSWORD",
    "cold": "${resources.schemas.lakelog.catalog_name}.${resources.schemas.lakelog.name}",
    "location": "",
    "keyspace": "lakelog",
    "tenant": "",
    "directory": "",
}
#: A repair of a run has the id of the run; tasks of one job do not share theirs.
RUN_IDS = {
    "archive": "{{job.run_id}}",
    "archive_scheduled": "{{job.run_id}}",
    "cleanup": "{{job.run_id}}-{{task.name}}",
    "ingest_demo": "{{job.run_id}}",
    "retention": "{{job.run_id}}-{{task.name}}",
}
TASKS = [(key, job, task) for key, job, task in tasks()]
IDS = [f"{key}-{task['task_key']}" for key, _, task in TASKS]


def asked(task: dict[str, Any]) -> dict[str, Any]:
    """The defaults in the notebook's call of `parameters`."""
    path = (ROOT / "conf" / task["notebook_task"]["notebook_path"]).resolve()
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (call,) = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "parameters"
    ]
    return {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}


def given(job: dict[str, Any], task: dict[str, Any]) -> dict[str, str]:
    of_job = {one["name"]: one["default"] for one in job["parameters"]}
    of_task = task["notebook_task"].get("base_parameters", {})
    assert not set(of_job) & set(of_task), "a job's parameter goes over its task's"
    return {**of_job, **of_task}


@pytest.mark.parametrize(("key", "job", "task"), TASKS, ids=IDS)
def test_parameters_of_a_task_are_those_of_its_notebook(
    key: str, job: dict[str, Any], task: dict[str, Any]
) -> None:
    assert set(given(job, task)) == set(asked(task))


@pytest.mark.parametrize(("key", "job", "task"), TASKS, ids=IDS)
def test_what_a_task_does_not_say_on_purpose_is_the_notebooks_default(
    key: str, job: dict[str, Any], task: dict[str, Any]
) -> None:
    defaults = asked(task)
    expected: dict[str, Any] = dict(defaults)
    expected |= {name: value for name, value in PLACE.items() if name in defaults}
    expected |= {"run_id": RUN_IDS[key]} if "run_id" in defaults else {}
    expected |= GIVEN[key, task["task_key"]]
    for name, value in given(job, task).items():
        assert isinstance(value, str), f"{name}: parameters are text on Databricks"
        assert same(value, expected[name], type(defaults[name])), name


def same(text: str, value: Any, kind: type) -> bool:
    if kind is bool:
        return text == str(value).lower()
    return kind(text) == kind(value)
