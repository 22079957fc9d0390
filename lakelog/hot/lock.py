"""A lock between processes that ends by itself: whoever holds it may die."""

from __future__ import annotations

import logging
import threading
import uuid

from ..back_off import BackOff, wait_until
from ..errors import ConcurrentChangeError, LakelogError
from .connection import Servers, call_script

logger = logging.getLogger(__name__)

#: After the death of its holder nobody has it for so long. What the dead one has asked of another
#: server may still be done there.
LOCK_MS = 60_000
BACK_OFF = BackOff(0.02, 0.1, within_s=2 * LOCK_MS / 1000)


class Lock:
    """Held by one at a time, for as long as that one lives. For one ``with``, by one thread.

    A holder that stood still for `LOCK_MS` is not alone any more, nor is one whose Redis failed
    over meanwhile: the lock spares trouble, it proves nothing.

    Args:
        what: somebody else is doing who holds it: "resuming the server".

    Raises:
        ConcurrentChangeError: on entry: others held it for twice `LOCK_MS`.
    """

    def __init__(self, servers: Servers, key: str, what: str) -> None:
        self._servers = servers
        self._key = key
        self._what = what
        self._token = uuid.uuid4().hex
        self._over = threading.Event()

    def __enter__(self) -> None:
        if not wait_until(
            f"somebody else to be done with {self._what}", lambda: self._call("take"), BACK_OFF
        ):
            raise ConcurrentChangeError(
                f"others have been {self._what} for {BACK_OFF.within_s:.0f} s; try again"
            )
        threading.Thread(target=self._renew, name="lakelog-lock", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        try:
            self._call("give")
        except LakelogError as error:  # what it was held for is done; it ends by itself
            logger.info("the lock for %s could not be given back: %s", self._what, error)

    def _renew(self) -> None:
        while not self._over.wait(LOCK_MS / 3000):
            try:
                self._call("keep")
            except LakelogError as error:  # the next time, or never
                logger.info("the lock for %s could not be renewed: %s", self._what, error)

    def _call(self, verb: str) -> bool:
        return bool(call_script(self._servers, "lock", [self._key], [verb, self._token, LOCK_MS]))
