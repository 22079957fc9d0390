"""Who may import whom: the stages stay apart, and `import lakelog` stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import lakelog

ROOT = Path(lakelog.__file__).parent

#: What stands on nothing but itself: rooms and modules that every room may import.
GROUND = {"base", "values", "errors", "version"}

#: folder → folders it may import besides the ground and itself
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "values": set(),
    "tracing": set(),
    "codec": set(),
    "engines": set(),
    "hot": {"codec"},
    "cold": {"codec", "engines", "tracing"},
    "groups": {"hot"},
    "ingest": {"codec", "engines", "hot", "tracing"},
    "cleanup": {"cold", "engines"},
    "archive": {"hot", "cold", "engines", "tracing"},
    "read": {"codec", "hot", "cold", "groups", "tracing"},
    "place": {"hot", "cold", "engines", "archive", "read", "spark"},
    "spark": {"codec", "engines", "hot", "cold", "groups", "ingest", "archive", "read", "place"},
    "operate": {
        "codec",
        "engines",
        "groups",
        "hot",
        "cold",
        "ingest",
        "cleanup",
        "archive",
        "read",
        "place",
        "spark",
    },
    "explore": {"codec", "cold", "ingest", "cleanup", "read", "operate"},
    "jobs": {
        "codec",
        "engines",
        "hot",
        "cold",
        "ingest",
        "archive",
        "cleanup",
        "read",
        "place",
        "spark",
        "operate",
        "cold_log",
        "lakelog",
    },
    "gateway": {"codec", "hot", "groups", "read", "tracing"},
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
    "_run_exitfuncs",  # of atexit, which has no other names for them
    "_ncallbacks",
    "_replace",  # of named tuples
    "_sock",  # of redis-py's connections, which tell their file descriptor in no other way
    "_writer",  # of its asynchronous ones, whose transport a pipeline goes on with
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
        beyond = imported(file) - GROUND - ALLOWED[folder] - {folder}
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


def test_the_ground_stands_on_nothing() -> None:
    ground = {"errors.py": {"values", "errors"}, "version.py": set()}
    for name, known in ground.items():
        assert imported(ROOT / name) <= known, name
    for file in (ROOT / "base").rglob("*.py"):  # values have texts and times; tools know no values
        assert imported(file) <= {"base", "errors"}, file.name


def test_no_module_is_imported_by_what_it_imports() -> None:
    """Neither within functions nor for types: who reads a module reads on in what lies below it."""
    files = {".".join(_parts(file)): file for file in ROOT.rglob("*.py")}
    needs = {name: _named(file, files) - {name} for name, file in files.items()}
    # A name of a package is in the module that is named, too.
    packages = {name for name, file in files.items() if file.name == "__init__.py"}
    left = {name: needed - packages for name, needed in needs.items() if name not in packages}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left, f"in circles, or above one: {sorted(left)}"


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
    assert json.loads(_said_by(program)) == []


#: What reading hot records has no use for, and what takes long to import.
NOT_TO_READ_HOT = (
    "deltalake",
    "difflib",
    "numpy.ma",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.fs",
    "pyarrow.parquet",
    "pyspark",
    "urllib.request",
    "lakelog.archive.archiver",
    "lakelog.cleanup.cleanup",
    "lakelog.cold.by_name.named_table",
    "lakelog.explore.explorer",
    "lakelog.ingest.producer",
    "lakelog.operate.check.check",
    "lakelog.operate.status",
    "lakelog.read.consumer",
    "lakelog.spark.dataframe",
    "lakelog.place.tenants.tenants",
)


def test_the_class_and_a_read_of_hot_records_import_what_they_use(tmp_path: Path) -> None:
    with lakelog.Lakelog.embedded(tmp_path, engine="inline") as log:
        log.topics.create("orders", 1)
        with log.producer() as producer:
            producer.send("orders", b"hello").result()
        consume = ["--dir", str(tmp_path), "consume", "orders", "--format", "%s\\n"]
        program = f"""
import json, sys
from lakelog import Lakelog
of_class = [module for module in {NOT_TO_READ_HOT} if module in sys.modules]
from lakelog.cli.main import main
main({consume})
print(json.dumps([of_class, [module for module in {NOT_TO_READ_HOT} if module in sys.modules]]))
"""
        assert _said_by(program).splitlines() == ["hello", "[[], []]"]


def test_threads_that_ask_for_the_same_lazy_names_at_once_get_the_same() -> None:
    program = """
import sys, threading
sys.setswitchinterval(1e-6)
import lakelog, lakelog.read, lakelog.place
from lakelog.base import compute
asked = [
    lambda: lakelog.Lakelog, lambda: lakelog.Lakelog, lambda: lakelog.Producer,
    lambda: lakelog.read.Consumer, lambda: compute.equal,
    lambda: lakelog.read.TopicLog, lambda: lakelog.spark.read, lambda: lakelog.spark.session,
    lambda: lakelog.spark.SparkEngine, lambda: lakelog.spark.register_topics,
    lambda: lakelog.place.NamedRoot,
]
begin, found = threading.Barrier(16), [None] * 16
def ask(number):
    begin.wait()
    turned = [*range(number % len(asked), len(asked)), *range(number % len(asked))]
    found[number] = dict(sorted((place, asked[place]()) for place in turned))
threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
print(all(one == found[0] and len(one) == len(asked) for one in found))
"""
    assert _said_by(program).strip() == "True"


#: Packages that import their own modules and are imported as a whole, by a program or a command's
#: only thread.
BY_THEMSELVES = {"lakelog.explore.charts", "lakelog.jobs", "lakelog.operate.workspace"}


def test_methods_of_a_log_may_import_what_they_use_in_threads_at_once() -> None:
    """Modules that import each other may be found half made by the second of two threads."""
    program = (
        "import json, sys; from lakelog import Lakelog;"
        "print(json.dumps([m for m in sys.modules if m.startswith('lakelog')]))"
    )
    loaded = set(json.loads(_said_by(program)))
    files = {".".join(_parts(file)): file for file in ROOT.rglob("*.py")}
    needs = {
        name: {*_at_import(file, files), name.rpartition(".")[0]} - loaded - {name, ""}
        for name, file in files.items()
        if name not in loaded
    }
    in_circles = needs.keys()
    while True:  # take away what needs none of the others, and what none of them needs
        needed = {module for name in in_circles for module in needs[name]}
        left = {name for name in in_circles & needed if needs[name] & in_circles}
        if left == in_circles:
            break
        in_circles = left
    packages = {name for name in in_circles if files[name].name == "__init__.py"}
    entered = {
        f"{name} -> {module}"
        for name, file in files.items()
        for package in packages - BY_THEMSELVES
        for module in _named(file, files)
        if not name.startswith(package) and module.startswith(f"{package}.")
    }
    assert not entered, "import the package there, or nothing in its __init__"
    assert in_circles <= {
        *packages,
        *(name for name in files if name.rpartition(".")[0] in packages),
    }


def _parts(file: Path) -> list[str]:
    parts = ["lakelog", *file.relative_to(ROOT).with_suffix("").parts]
    return parts[:-1] if parts[-1] == "__init__" else parts


def _named(file: Path, files: Mapping[str, Path], tree: ast.AST | None = None) -> set[str]:
    """The modules of lakelog that a file imports, also within functions."""
    found = set()
    package = _parts(file) if file.name == "__init__.py" else _parts(file)[:-1]
    for node in ast.walk(ast.parse(file.read_text("utf-8")) if tree is None else tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found & files.keys()


def _at_import(file: Path, files: Mapping[str, Path]) -> set[str]:
    """Those that it imports as it is imported itself."""
    found = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not is_for_types and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            found |= _named(file, files, node)
    return found


def test_no_module_takes_a_lazy_name_as_it_is_imported() -> None:
    """Else two threads could wait for each other: see `lazy_names`."""
    files = {".".join(_parts(file)): file for file in ROOT.rglob("*.py")}
    lazy = {
        f"{name}.{key.value}"
        for name, file in files.items()
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names"
        for homes in [node.args[1]]
        if isinstance(homes, ast.Dict)
        for key in homes.keys
        if isinstance(key, ast.Constant)
    }
    assert "lakelog.place.NamedRoot" in lazy
    taken = {
        f"{name}: {module}.{alias.name}"
        for name, file in files.items()
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for package in [_parts(file) if file.name == "__init__.py" else _parts(file)[:-1]]
        for base in [package[: len(package) - node.level + 1] if node.level else []]
        for module in [".".join([*base, *filter(None, [node.module])])]
        for alias in node.names
        if f"{module}.{alias.name}" in lazy
    }
    assert not taken


def test_a_zip_of_the_package_has_the_same_names(tmp_path: Path) -> None:
    path = tmp_path / "lakelog.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        for file in ROOT.rglob("*"):
            if file.suffix in (".py", ".lua"):
                zipped.write(file, file.relative_to(ROOT.parent))
    program = (
        f"import sys; sys.path.insert(0, {str(path)!r}); import lakelog;"
        "from lakelog.base import compute; from lakelog.archive.archiver import Archiver;"
        "[getattr(lakelog, name) for name in lakelog.__all__];"
        "print(lakelog.__file__, bool(compute.equal(1, 1)), Archiver.__name__)"
    )
    assert _said_by(program).split() == [str(path / "lakelog" / "__init__.py"), "True", "Archiver"]


def _said_by(program: str) -> str:
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
