"""A command does without pandas, which Arrow imports by itself."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from lakelog import Lakelog

COMMAND = """
import sys
from lakelog.cli.main import main
try:
    assert main(sys.argv[1:]) == 0
except SystemExit as shown:
    assert not shown.code
print([name for name in ("pandas", "pyarrow", "redis") if name in sys.modules])
"""


def run(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(
    int(version("pyarrow").split(".")[0]) < 20, reason="an older Arrow looks for it at each array"
)
@pytest.mark.parametrize(
    "command", [["consume", "orders"], ["grep", "one", "orders"], ["offsets", "orders"]]
)
def test_what_reads_imports_none(tmp_path, command: list[str]) -> None:
    with Lakelog.embedded(tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1)
        with lake.producer() as producer:
            producer.send_batch("orders", [b"one", b"two"])
        lake.archive("orders")
        said = run(COMMAND, "--dir", tmp_path, *command)
        assert said.splitlines()[-1] == "['pyarrow', 'redis']"


def test_the_help_imports_neither_arrow_nor_redis() -> None:
    assert run(COMMAND, "--help").splitlines()[-1] == "[]"


def test_frames_are_there_for_who_asks() -> None:
    run(
        """
from lakelog.cli.entry import leave_out_pandas
leave_out_pandas()
import pyarrow as pa
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
import pandas
assert pa.array(pandas.Series([1.0, float("nan")])).null_count == 1
"""
    )
