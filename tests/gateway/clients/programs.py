"""Programs that clients are, and what they print."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

TIMEOUT_S = 300


def needed(program: str, install: str) -> str:
    """The program's path; skips the test where there is none."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: {install}")
    return found


def run(command: Sequence[str | Path], **options: Any) -> str:
    """What a program prints, which has to end well."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_json(command: Sequence[str | Path], **options: Any) -> Any:
    """The same, of a program that prints JSON."""
    return json.loads(run(command, **options))
