"""The command line as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lakelog.testing.eventually import LIVENESS_S


@contextmanager
def running(
    *arguments: str, stdin: IO[str] | int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """``lakelog`` with these arguments; killed in the end, so that whoever reads it goes on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lakelog", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = threading.Timer(LIVENESS_S, process.kill)
    limit.daemon = True
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        process.wait(LIVENESS_S)
