"""A call that takes too long is left running, and the end of the process waits for it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakelog.errors import ColdTierUnavailableError
from lakelog.jobs.run_record import in_time

LEFT_RUNNING = """
import sys, time
from pathlib import Path
from lakelog.errors import ColdTierUnavailableError
from lakelog.jobs.run_record import in_time

def call():
    time.sleep(0.5)
    Path(sys.argv[1]).touch()

try:
    in_time(call, 0.01, "the call")
except ColdTierUnavailableError:
    sys.exit(7)
"""


def test_what_a_call_returns_or_raises_comes_through() -> None:
    assert in_time(lambda: 3, 60, "the call") == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0, 60, "the call")


def test_the_end_of_a_process_waits_for_a_call_that_was_left_running(tmp_path: Path) -> None:
    """Unloading a store's library below a thread that is in it would crash the process."""
    returned = tmp_path / "returned"
    ended = subprocess.run([sys.executable, "-c", LEFT_RUNNING, str(returned)], check=False)
    assert (ended.returncode, returned.exists()) == (7, True)


def test_a_call_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(ColdTierUnavailableError, match="the call did not end within"):
        in_time(lambda: time.sleep(0.2), 0.01, "the call")
