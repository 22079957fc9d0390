"""How a command begins, without pandas, and ends: at once, but after all that is to be done."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog

_PROGRAM = """
import atexit, os, sys, threading, types
from lakelog.cli.entry import main

class Kept:
    def __del__(self):
        os.write(1, b"taken apart ")

kept = Kept()

def last_words():
    threading.main_thread().join()
    sys.stdout.write("thread ")

def command():
    threading.Thread(target=last_words).start()
    atexit.register(sys.stdout.write, "handler ")
    sys.stdout.write("said ")
    {how}

sys.modules["lakelog.cli.main"] = types.SimpleNamespace(main=command)
sys.exit(main())
"""


def ended(program: str, **how: Any) -> tuple[int, str]:
    """The exit code of a program, and what it wrote."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        text=True,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        **{"stdout": subprocess.PIPE, **how},
    )
    return done.returncode, done.stdout


def test_the_end_waits_for_threads_and_handlers_and_for_nothing_else() -> None:
    assert ended(_PROGRAM.format(how="return 3")) == (3, "said thread handler ")


def test_an_interrupted_command_ends_in_the_same_way() -> None:
    code, wrote = ended(_PROGRAM.format(how="raise KeyboardInterrupt"), stderr=subprocess.DEVNULL)
    assert (code, wrote) == (130, "said thread handler ")


def test_what_fails_ends_as_any_program() -> None:
    code, wrote = ended(_PROGRAM.format(how="1 / 0"), stderr=subprocess.DEVNULL)
    assert (code, wrote) == (1, "said thread handler taken apart ")


def test_exit_handlers_from_before_the_command_run() -> None:
    before = "import atexit; atexit.register(print, 'first')\n"
    code, wrote = ended(before + _PROGRAM.format(how="return 0"))
    assert code == 0
    assert "first\n" in wrote


def test_output_that_finds_no_room_is_no_success() -> None:
    program = _PROGRAM.format(how="return 0")
    with Path("/dev/full").open("w") as full:
        code, _ = ended(program, stdout=full, stderr=subprocess.DEVNULL)
    assert code != 0


@pytest.mark.parametrize("fails", [False, True])
def test_garbage_is_collected_again_once_the_imports_are_done(fails: bool) -> None:
    program = f"""
import gc
from lakelog.cli.quiet_start import quiet_start
try:
    with quiet_start():
        print(gc.isenabled())
        if {fails}:
            raise ImportError
except ImportError:
    pass
print(gc.isenabled())
"""
    assert ended(program) == (0, "False\nTrue\n")


# -- Arrow without pandas --------------------------------------------------------------------------

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
from lakelog.cli.quiet_start import leave_out_pandas
leave_out_pandas()
import pyarrow as pa
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
import pandas
assert pa.array(pandas.Series([1.0, float("nan")])).null_count == 1
"""
    )


@pytest.mark.parametrize(("closed", "command", "code"), [(1, "--version", 0), (2, "nope", 2)])
def test_a_closed_stream_is_written_nothing_and_the_code_is_the_commands(
    closed: int, command: str, code: int
) -> None:
    program = f"exec {sys.executable} -m lakelog {command} {closed}>&-"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
