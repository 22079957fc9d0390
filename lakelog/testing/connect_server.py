"""A Spark Connect server of a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .servers import free_port


@contextmanager
def connect_server(script: Path, cwd: Path | None = None) -> Iterator[str]:
    """Runs the server while the context lasts, and gives its URL.

    Args:
        script: takes a port, prints ``ready`` when it serves, and ends with its standard input.
        cwd: where its tables lie.
    """
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, str(script), str(port)],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        assert server.stdout.readline() == "ready\n"
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.stdin.close()
        server.wait(60)
        server.stdout.close()
