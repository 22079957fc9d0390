"""Where the command `lakelog` begins: an interrupt while it starts ends it without a traceback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_start() -> Iterator[None]:
    """An interrupt within ends the process at once: nothing is under way yet.

    As an exception it would come up in the middle of an import, where libraries make something
    else of it, and print it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # who hears of it in another way goes on to
        return
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # only the main thread may, and only it is interrupted
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> int:
    """Runs the command and returns its exit code."""
    try:
        with quiet_start():
            from .main import main as run
        return run()
    except KeyboardInterrupt:  # before it knew what was asked, or after it was done
        print("stopped", file=sys.stderr)
        return 130
