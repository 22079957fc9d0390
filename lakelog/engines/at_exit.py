"""The interpreter does not end while a thread of lakelog's is in a call of Arrow or of a store.

An orderly end unloads those libraries while daemon threads are still in them: a crash instead of an
exit code. What was not committed by then is left to the next run.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import weakref
from typing import Protocol

from ..base.back_off import POLL, wait_until

#: How long the end of a process waits for calls to return.
EXIT_TIMEOUT_S = 3.0


class Crew(Protocol):
    """The threads of a run."""

    def end(self) -> None:
        """Begin nothing more."""

    def is_in_call(self) -> bool:
        """Whether one of them has not returned from its call."""


_crews: weakref.WeakSet[Crew] = weakref.WeakSet()
_watching: set[int] = set()  # this process's id, once it does


def watch(crew: Crew) -> None:
    """Until the crew is gone, make the process end after its calls, or without them."""
    _crews.add(crew)
    if os.getpid() not in _watching:
        _watching.add(os.getpid())
        atexit.register(_end_all, os.getpid())


def _end_all(process_id: int) -> None:
    if process_id != os.getpid() or process_id not in _watching:
        return  # forked: the threads are the parent's; or all is over, see below
    crews = [crew for crew in _crews if crew.is_in_call()]
    for crew in crews:
        crew.end()
    if not wait_until(
        "calls to return",
        lambda: not any(crew.is_in_call() for crew in crews),
        POLL.within(EXIT_TIMEOUT_S),
    ):
        _exit_hard()


def _exit_hard() -> None:
    _watching.clear()
    atexit._run_exitfuncs()  # other exit handlers: producers send what they hold
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os.write(
        2,
        b"lakelog: a call did not return in time, so the process was ended without it; what was "
        b"not committed is left to the next run\n",
    )
    os._exit(1)
