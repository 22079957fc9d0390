"""Failpoints are known by name, and do nothing unless a test armed them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lakelog
from lakelog.base import failpoints


def test_the_list_names_each_failpoint_of_the_code_once_in_order():
    package = Path(lakelog.__file__).parent
    called = [
        name
        for file in package.rglob("*.py")
        for name in re.findall(r'\bfailpoint\(\s*"([^"]+)"', file.read_text("utf-8"))
    ]
    assert sorted(set(called)) == list(failpoints.NAMES)


def test_whoever_is_paused_goes_on_when_told_or_when_the_test_is_gone(tmp_path):
    script = (
        "from lakelog.base.failpoints import failpoint\n"
        "for _ in range(2): failpoint('archive.before_trim'); print('went on', flush=True)"
    )
    for end in (failpoints.Pause.release, lambda pause: shutil.rmtree(pause.folder)):
        pause = failpoints.Pause(tmp_path / "pause")
        pause.folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            env={
                **os.environ,
                failpoints.ENVIRONMENT_VARIABLE: f"archive.before_trim=pause:{pause.folder}",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        assert pause.wait_reached(lambda process=process: process.poll() is not None)
        assert process.poll() is None
        end(pause)
        assert process.communicate(timeout=60)[0] == "went on\nwent on\n"  # held up once
        assert process.returncode == 0
        shutil.rmtree(pause.folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("armed", "code"),
    [("", 0), ("archive.before_trim=exit", failpoints.KILLED), ("x=exit", 1), ("x=pause:", 1)],
)
def test_the_environment_arms_a_whole_process(armed, code):
    script = "from lakelog.base.failpoints import failpoint; failpoint('archive.before_trim')"
    finished = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, failpoints.ENVIRONMENT_VARIABLE: armed},
        capture_output=True,
        check=False,
    )
    assert finished.returncode == code
