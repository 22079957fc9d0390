"""How the process of a command ends: at once, but after all that is to be done at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
from lakelog.cli.entry import quiet_start
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
