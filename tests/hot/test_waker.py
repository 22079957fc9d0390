"""What ends a wait."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from lakelog.hot.waits import Waker

FILES = 1_100  # more than `select.select` takes


def test_it_is_waited_for_in_a_process_of_many_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * FILES)), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(FILES)]
    try:
        waker = Waker()
        assert waker.fileno() > 1_024
        waker.wait(0)
        assert not waker.is_set
        waker.set()
        waker.wait(60)
        waker.clear()
        waker.wait(0.001)
        assert not waker.is_set
    finally:
        for one in opened:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_it_can_be_set_until_the_process_is_gone():
    """As by the heartbeats of a group, whose thread nobody waits for at the end."""
    program = """
import atexit
made = []
atexit.register(lambda: made[0].set())  # called last
from lakelog.hot.waits import Waker
made.append(Waker())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
