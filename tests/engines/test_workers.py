"""Workers where the process is ending."""

from __future__ import annotations

import subprocess
import sys

_ENDING = """
import atexit, threading
from lakelog.engines.threads import Workers

def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")

def ask():
    threading.Thread.start = refuse  # as Python does since 3.12
    print(Workers("test").ask(lambda: 7).result())

atexit.register(ask)
"""


def test_while_the_process_ends_a_task_is_done_by_whoever_asks_for_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ENDING], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "7\n", done.stderr
