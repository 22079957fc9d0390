"""Who may import whom: the stages stay apart, and `import lakelog` stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import lakelog

ROOT = Path(lakelog.__file__).parent
VALUES = {
    "back_off",
    "record",
    "reservation",
    "topic",
    "offsets",
    "config",
    "value_ddl",
    "json_text",
    "keyspace_defaults",
    "once_a_process",
    "clock",
    "errors",
    "failpoints",
    "engine",
    "secret_reference",
    "text_table",
}

#: folder → folders it may import besides the values and itself
ALLOWED = {
    "codec": set(),
    "hot": {"codec"},
    "cold": {"codec"},
    "ingest": {"codec", "hot"},
    "cleanup": {"cold"},
    "archive": {"hot", "cold"},
    "read": {"hot", "cold"},
    "spark": {"codec", "embedded", "hot", "cold", "ingest", "archive", "read"},
    "operate": {"hot", "cold"},
    "explore": {
        "codec",
        "hot",
        "cold",
        "cleanup",
        "read",
        "archive",
        "spark",
        "embedded",
        "lakelog",
    },
    "jobs": {
        "hot",
        "cold",
        "ingest",
        "archive",
        "cleanup",
        "spark",
        "explore",
        "cold_log",
        "lakelog",
    },
}


def imported(file: Path) -> set[str]:
    """The top-level names inside lakelog that a module imports, also within functions."""
    found = set()
    package = ("lakelog", *file.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = package[: len(package) - node.level + 1]
            names = (*base, *(node.module or "").split("."))
        else:
            names = tuple((node.module or "").split("."))
        names = tuple(name for name in names if name)
        if names[:1] == ("lakelog",):
            found |= {names[1]} if len(names) > 1 else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_a_stage_imports_only_what_lies_before_it(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        beyond = imported(file) - VALUES - ALLOWED[folder] - {folder}
        assert not beyond, f"{file.relative_to(ROOT)} imports {beyond}"


@pytest.mark.parametrize("module", sorted(VALUES - {"errors"}))
def test_values_import_only_values(module: str) -> None:
    assert imported(ROOT / f"{module}.py") <= VALUES


def test_errors_import_nothing_but_names_the_stages_values_in_their_types() -> None:
    tree = ast.parse((ROOT / "errors.py").read_text("utf-8"))
    run = [node for node in tree.body if not isinstance(node, ast.If)]
    assert not [node for part in run for node in ast.walk(part) if getattr(node, "level", 0)]


def test_public_names_are_sorted_and_there() -> None:
    constants = [name for name in lakelog.__all__ if name.isupper()]
    others = [name for name in lakelog.__all__ if not name.isupper()]
    assert lakelog.__all__ == sorted(constants) + sorted(others)
    assert set(lakelog.__all__) == set(lakelog._HOMES)
    for name in lakelog.__all__:
        assert getattr(lakelog, name) is not None


def test_importing_lakelog_or_its_help_loads_nothing_heavy() -> None:
    program = (
        "import sys, json, lakelog, lakelog.cli.main; lakelog.cli.main.parser();"
        "print(json.dumps([m for m in ('pyarrow','redis','deltalake','pyspark','plotly','rich')"
        " if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
