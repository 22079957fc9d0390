"""Who may import whom: the stages stay apart, and `import lakelog` stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakelog

ROOT = Path(lakelog.__file__).parent
VALUES = {
    "arrow_columns",
    "back_off",
    "producer_calls",
    "record",
    "record_lines",
    "reservation",
    "topic",
    "offsets",
    "config",
    "data_keys",
    "value_ddl",
    "json_text",
    "local_path",
    "lots",
    "keyspace_defaults",
    "notebook",
    "once_a_process",
    "clock",
    "errors",
    "failpoints",
    "format_version",
    "secret_reference",
    "tenant_name",
    "text_table",
    "typed_time",
    "unit_text",
}

#: folder → folders it may import besides the values and itself
ALLOWED = {
    "metrics": set(),
    "tracing": {"__version__"},
    "codec": set(),
    "encryption": set(),
    "engines": set(),
    "embedded": set(),
    "hot": {"codec", "encryption"},
    "cold": {"codec", "engines", "tracing"},
    "groups": {"hot"},
    "ingest": {"metrics", "codec", "encryption", "hot", "tracing"},
    "cleanup": {"metrics", "cold", "engines"},
    "archive": {"metrics", "hot", "cold", "engines", "tracing"},
    "read": {"metrics", "encryption", "hot", "cold", "groups", "tracing"},
    "spark": {
        "codec",
        "encryption",
        "engines",
        "embedded",
        "hot",
        "cold",
        "groups",
        "ingest",
        "archive",
        "read",
    },
    "operate": {
        "encryption",
        "engines",
        "metrics",
        "groups",
        "hot",
        "cold",
        "cleanup",
        "archive",
        "read",
        "spark",
        "embedded",
    },
    "limits": {"codec", "hot", "ingest"},
    "tenants": {"hot", "cold", "spark", "lakelog"},
    "explore": {"codec", "cold", "ingest", "cleanup", "read", "operate"},
    "jobs": {
        "codec",
        "encryption",
        "engines",
        "hot",
        "cold",
        "ingest",
        "archive",
        "cleanup",
        "read",
        "spark",
        "operate",
        "cold_log",
        "lakelog",
    },
}

#: room of cold → rooms of cold that it may import besides cold's own modules. Those lie above all
#: rooms: what they hold is true of both kinds of table.
COLD_ROOMS: dict[str, set[str]] = {
    "store": set(),
    "parquet": {"store"},
    "by_path": {"store", "parquet"},
    "by_name": {"store", "parquet"},
}

#: folder → libraries that nothing in it may import, not even within a function.
STRANGE: dict[str, set[str]] = {
    "cold/by_path": {"pyspark"},
    "cold/store": {"pyspark"},
    "cold/parquet": {"pyspark", "deltalake"},
    "cold/by_name": {"deltalake"},
    "groups": {"pyspark", "deltalake"},
    "hot": {"pyspark", "deltalake"},
    "ingest": {"pyspark", "deltalake"},
    "read": {"deltalake"},
    "operate": {"ipywidgets", "plotly"},
}

#: Names with an underscore that belong to others' public interface.
UNDERSCORED = {
    "_exit",  # of os
    "_run_exitfuncs",  # of atexit, which has no other name for it
    "_replace",  # of named tuples
    "_sock",  # of redis-py's connections, which tell their file descriptor in no other way
    "_jvm",  # of PySpark, which has no other way to Delta's transactions
    "_jsparkSession",
    "_gateway_client",
    "_repr_html_",  # of IPython
    "_repr_mimebundle_",
}


def modules(file: Path) -> Iterator[str]:
    """The modules, with their dots, that a module imports, also within functions and for types."""
    package = ("lakelog", *file.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported(file: Path) -> set[str]:
    """The top-level names inside lakelog that a module imports."""
    inside = [name.split(".") for name in modules(file)]
    return {parts[1] for parts in inside if parts[0] == "lakelog" and len(parts) > 1}


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_a_stage_imports_only_what_lies_before_it(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        beyond = imported(file) - VALUES - ALLOWED[folder] - {folder}
        assert not beyond, f"{file.relative_to(ROOT)} imports {beyond}"


@pytest.mark.parametrize("room", sorted(COLD_ROOMS))
def test_a_kind_of_table_knows_nothing_of_the_other(room: str) -> None:
    for file in sorted((ROOT / "cold" / room).rglob("*.py")):
        beyond = rooms_of_cold(file) - COLD_ROOMS[room] - {room}
        assert not beyond, f"{file.relative_to(ROOT)} imports {beyond}"


def test_what_is_true_of_every_table_knows_no_kind_of_table() -> None:
    for file in sorted((ROOT / "cold").glob("*.py")):
        assert not rooms_of_cold(file), file.name


def rooms_of_cold(file: Path) -> set[str]:
    parts = [name.split(".") for name in modules(file) if name.startswith("lakelog.cold.")]
    return {part[2] for part in parts} & COLD_ROOMS.keys()


@pytest.mark.parametrize("folder", sorted(STRANGE))
def test_a_room_keeps_out_the_libraries_of_others(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        strange = {name.partition(".")[0] for name in modules(file)} & STRANGE[folder]
        assert not strange, f"{file.relative_to(ROOT)} imports {strange}"


def test_nobody_reaches_into_a_class_that_is_not_their_own() -> None:
    reached = []
    for file in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        reached += [f"{file.relative_to(ROOT)}: {found}" for found in foreign_fields(tree, set())]
    assert not reached


def foreign_fields(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """Fields with an underscore of what is neither `self` nor another of a class around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            of = ast.unparse(node.value)
            if of not in ("self", "cls", "super()") and not (
                of.isidentifier() and node.attr in own
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"
        yield from foreign_fields(node, own | fields_of(node))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in UNDERSCORED


def fields_of(node: ast.AST) -> set[str]:
    """The names of the methods and fields that a class defines."""
    if not isinstance(node, ast.ClassDef):
        return set()
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef):
            found.add(inner.name)
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            found.add(inner.target.id)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            found.add(inner.attr)
    return found


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
