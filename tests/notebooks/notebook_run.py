"""Runs a notebook in this process, with a `dbutils` where a Databricks job is played."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


class NotebookExit(BaseException):
    """What `dbutils.notebook.exit` raises: the cell ends, and nothing after it is run."""


class Widgets:
    """As `dbutils.widgets`: a widget has the job's value, or its default; all values are text."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = dict(given)
        self.made: dict[str, str] = {}

    def text(self, name: str, default: str, label: str | None = None) -> None:
        assert isinstance(default, str)
        self.made.setdefault(name, self.given.get(name, default))

    def get(self, name: str) -> str:
        return self.made[name]  # a KeyError, as Databricks has an error for it


class Utilities:
    """As `dbutils`, with what notebooks use of it."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.widgets = Widgets(given)
        self.exit: str | None = None
        self.notebook = SimpleNamespace(exit=self._exit)

    def _exit(self, value: str) -> None:
        self.exit = value
        raise NotebookExit(value)


def notebook(name: str) -> Path:
    """The notebook whose name begins so."""
    (found,) = [path for path in NOTEBOOKS if path.name.startswith(name)]
    return found


def cells(path: Path) -> list[dict[str, Any]]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return list(content["cells"])


def code_cells(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]


@contextmanager
def shell(utilities: Utilities | None = None) -> Iterator[InteractiveShell]:
    """The IPython of this process, empty but for a `dbutils`."""
    one = InteractiveShell.instance()
    try:
        one.reset(new_session=True, aggressive=False)
        if utilities is not None:
            one.user_ns["dbutils"] = utilities
        yield one
    finally:
        for value in list(one.user_ns.values()):
            if type(value).__name__ == "Lakelog":
                value.close()  # of a run that was cut off
        one.reset(new_session=True, aggressive=False)
        InteractiveShell.clear_instance()


def run_job(name: str, **widgets: str) -> str:
    """Runs a notebook as a Databricks job with these parameters; gives what it ended with."""
    utilities = Utilities(widgets)
    with shell(utilities) as one:
        _run(name, one)
    assert utilities.exit is not None, f"{name} ended without dbutils.notebook.exit"
    return utilities.exit


def run_plain(name: str) -> str:
    """Runs a notebook as Jupyter does; gives its last result."""
    with shell() as one:
        return repr(_run(name, one))


def _run(name: str, one: InteractiveShell) -> Any:
    result = None
    for text in code_cells(notebook(name)):
        with capture_output():
            done = one.run_cell(text, store_history=False, silent=False)
        error = done.error_before_exec or done.error_in_exec
        if isinstance(error, NotebookExit):
            break
        if error is not None:
            raise error
        result = done.result
    return result
