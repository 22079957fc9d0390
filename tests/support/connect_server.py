"""A Spark Connect server of a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers import free_port


@contextmanager
def connect_server(
    script: Path, cwd: Path | None = None, conf: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Runs the server while the context lasts, and gives its URL.

    Args:
        script: takes a port and `conf` as JSON, prints ``ready`` when it serves, and ends with its
            standard input.
        cwd: where its tables lie.
        conf: settings of its session, over its own.
    """
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, str(script), str(port), json.dumps(dict(conf or {}))],
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
