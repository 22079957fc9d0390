"""Beside what a Databricks runtime has installed, lakelog moves nothing but deltalake.

On 17.3 LTS, which has none, deltalake brings a newer Deprecated along; nobody can help that.

pip is asked what it would do on the runtime: its packages are shown to pip as installed, by their
metadata alone, in an empty environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest
from pins import normal, pins

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow  # asks the package index, and what that says changes

#: By environment: what it lacks of the core, and of the extras ``explore`` and ``databricks``.
LACKS = {
    "databricks-17.3": ({"redis", "hiredis", "deltalake", "arro3-core"}, set()),
    "databricks-18": ({"redis", "hiredis"}, set()),
    "databricks-19": ({"redis", "hiredis"}, {"plotly", "narwhals"}),
}


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has pip, of today, and nothing else."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-qU", "pip"], check=True)
    return python


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a wheel is made of: building leaves files in its folder."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "lakelog", copy / "lakelog")
    return copy


def would_install(pip: Path, site: Path, requirement: str) -> dict[str, str]:
    """Name and version of all that pip would install."""
    done = subprocess.run(
        [
            *(pip, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-"),
            *("--python-version", "3.12", "--only-binary", ":all:", requirement),
        ],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    packages = [package["metadata"] for package in json.loads(done.stdout)["install"]]
    return {normal(package["name"]): package["version"] for package in packages}


@pytest.mark.parametrize("extras", ["", "[explore,databricks]"], ids=["core", "extras"])
@pytest.mark.parametrize("environment", sorted(LACKS))
def test_nothing_of_the_runtime_moves_but_deltalake(
    pip: Path, source: Path, tmp_path: Path, environment: str, extras: str
) -> None:
    installed = pins(environment)
    for pin in installed:
        info = tmp_path / f"{pin.name.replace('-', '_')}-{pin.version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {pin.name}\nVersion: {pin.version}\n"
        )

    found = would_install(pip, tmp_path, f"{source}{extras}")

    core, of_extras = LACKS[environment]
    moving = {pin.name for pin in installed if pin.moves}
    assert moving <= {"deltalake", "deprecated"}  # the second comes with deltalake
    assert set(found) == {"lakelog"} | moving | core | (of_extras if extras else set())
    assert all(found[pin.name] != pin.version for pin in installed if pin.moves)
