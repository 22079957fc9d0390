"""What ends a wait for records before there are any."""

from __future__ import annotations

import contextlib
import math
import os
import select
import weakref


class Waker:
    """Set from any thread, it ends the wait of the one who waits with it, now or next time."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        for end in (self._reads, self._writes):
            os.set_blocking(end, False)
        self.is_set = False
        # Not when the process ends: a heartbeat that still runs may set it until its last moment.
        weakref.finalize(self, _close, self._reads, self._writes).atexit = False

    def set(self) -> None:
        """End the wait."""
        self.is_set = True
        with contextlib.suppress(BlockingIOError):  # it is full of what was not taken note of
            os.write(self._writes, b"!")

    def clear(self) -> None:
        """To be called before acting on the news, so that none is missed."""
        self.is_set = False
        with contextlib.suppress(BlockingIOError):
            os.read(self._reads, 4096)

    def wait(self, timeout_s: float) -> None:
        """Return when it is set, or the time is over."""
        poll = select.poll()  # `select.select` takes none of a process's files beyond 1,024
        poll.register(self, select.POLLIN)
        poll.poll(math.ceil(1000 * max(0.0, timeout_s)))

    def fileno(self) -> int:
        """What becomes readable when it is set."""
        return self._reads


def _close(*ends: int) -> None:
    for end in ends:
        os.close(end)
