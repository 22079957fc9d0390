"""A lock between processes that ends by itself: whoever holds it may die."""

from __future__ import annotations

import uuid

from ..back_off import BackOff, wait_until
from ..errors import ConcurrentChangeError
from .connection import Servers, call_script

LOCK_MS = 30_000
BACK_OFF = BackOff(0.02, 0.1, within_s=2 * LOCK_MS / 1000)


class Lock:
    """Held by one at a time, for `LOCK_MS` at most. For one ``with``, by one thread.

    Work that takes longer than that may not be alone any more, nor may work that a failover of
    Redis interrupts: the lock spares trouble, it proves nothing.

    Args:
        what: somebody else is doing who holds it: "resuming the server".

    Raises:
        ConcurrentChangeError: on entry: others held it for twice as long.
    """

    def __init__(self, servers: Servers, key: str, what: str) -> None:
        self._servers = servers
        self._key = key
        self._what = what
        self._token = uuid.uuid4().hex

    def __enter__(self) -> None:
        if not wait_until(
            f"somebody else to be done with {self._what}", lambda: self._call(LOCK_MS), BACK_OFF
        ):
            raise ConcurrentChangeError(
                f"others have been {self._what} for {BACK_OFF.within_s:.0f} s; try again"
            )

    def __exit__(self, *_: object) -> None:
        self._call(0)

    def _call(self, milliseconds: int) -> bool:
        return bool(call_script(self._servers, "lock", [self._key], [self._token, milliseconds]))
