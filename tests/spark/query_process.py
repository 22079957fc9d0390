"""Queries in processes of their own, each with a Spark of its own, and how far they came."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def start(program: str, wanted: dict[str, Any], **environment: str) -> subprocess.Popen[str]:
    """Runs a file beside this one, which takes what is wanted as JSON."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(program)), json.dumps(wanted)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that the JVM that it starts is killed with it
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What it said, once it ended well."""
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output[-4000:]
    return output


def planned(checkpoint: Path) -> int:
    """How many micro-batches were ever begun."""
    return _numbered(checkpoint / "offsets")


def committed(checkpoint: Path) -> int:
    """How many micro-batches were ended."""
    return _numbered(checkpoint / "commits")


def _numbered(folder: Path) -> int:
    return sum(path.name.isdigit() for path in folder.iterdir()) if folder.exists() else 0
