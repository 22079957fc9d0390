"""Where the command `lakelog` begins and ends, without waiting until Python is taken apart."""

from __future__ import annotations

import atexit
import os
import sys

from .quiet_start import quiet_start


def main() -> int:
    """Runs the command of this process and returns its exit code, with which it is to end."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed (`>&-`): nobody is to be told
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - until the end
    ending = _Ending()
    try:
        with quiet_start():
            from .main import main as run
        ending.code = run()
    except KeyboardInterrupt:  # before it knew what was asked, or after it was done
        print("stopped", file=sys.stderr)
        ending.code = 130
    return ending.code


class _Ending:
    """Ends the process with the code of its command after all else that is done at its end.

    It is the first exit handler and so the last to run: threads have been waited for, and what was
    registered later has run. What is left is taking modules and objects apart one by one, which
    takes as long as half of their imports and has no effect outside the process.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        if not atexit._ncallbacks():  # who came before would run later: never
            atexit.register(self._end)

    def _end(self) -> None:
        if self.code is None:  # it ends with an error, or is a fork
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # the interpreter tells of it
            return
        os._exit(self.code)
