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

from tests.support.connect_server import connect_server

HERE = Path(__file__).parent

pytestmark = pytest.mark.slow  # a server, a client and Spark's Java for both


@pytest.fixture(scope="module")
def connect_url() -> Iterator[str]:
    with connect_server(HERE / "connect_server.py") as url:
        yield url


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
