"""lakelog over Spark Connect: `over_connect.py`, run by a client that has no JVM.

In a process of its own, since pyspark is either classic or Connect for all of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog.testing.servers import free_port

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def connect_url() -> Iterator[str]:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "connect_server.py"), str(port)],
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


def test_everything_works_over_connect(connect_url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", str(HERE / "over_connect.py")),
            *("-p", "no:cacheprovider", f"--basetemp={tmp_path / 'client'}"),
        ],
        env={**os.environ, "SPARK_REMOTE": connect_url},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
