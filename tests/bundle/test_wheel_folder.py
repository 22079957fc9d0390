"""The clusters' init script: given a folder of wheels, pip asks no index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bundle_files import ROOT, jobs

SCRIPT = ROOT / "conf" / "wheel_folder.sh"


def run(conf: Path, **environment: str) -> None:
    inherited = {"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": str(conf)}
    subprocess.run(["bash", SCRIPT], env={**inherited, **environment}, check=True)


def test_a_folder_becomes_the_only_place_that_pip_asks(tmp_path: Path) -> None:
    conf = tmp_path / "pip.conf"
    run(conf, LAKELOG_WHEEL_FOLDER="/Volumes/main/shared/wheels")
    said = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env={"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": str(conf)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "global.find-links='/Volumes/main/shared/wheels'" in said
    assert "global.no-index='true'" in said


def test_without_one_nothing_is_written(tmp_path: Path) -> None:
    run(tmp_path / "pip.conf")
    run(tmp_path / "pip.conf", LAKELOG_WHEEL_FOLDER="")
    assert not (tmp_path / "pip.conf").exists()


def test_every_cluster_gives_it_the_variable() -> None:
    for job in jobs().values():
        for cluster in job.get("job_clusters", ()):
            assert cluster["new_cluster"]["spark_env_vars"]["LAKELOG_WHEEL_FOLDER"] == ""
            assert cluster["new_cluster"]["init_scripts"]
