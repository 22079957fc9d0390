"""A lock between processes that ends by itself: whoever holds it may die."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from datetime import datetime, timezone
from typing import Any

from ..base.back_off import BackOff, wait_until
from ..errors import ConcurrentChangeError, LakelogError
from .connection import Servers, call_script

logger = logging.getLogger(__name__)

#: After the death of its holder nobody has it for so long. What the dead one has asked of another
#: server may still be done there.
LOCK_MS = 60_000
BACK_OFF = BackOff(0.02, 0.1, within_s=2 * LOCK_MS / 1000)

_ONCE = BackOff(0.02, 0.1, tries=1)


class Lock:
    """Held by one at a time, for as long as that one lives. For one ``with``, by one thread.

    A holder that stood still for `LOCK_MS` is not alone any more, nor is one whose Redis failed
    over meanwhile: the lock spares trouble, it proves nothing.

    Args:
        what: somebody else is doing who holds it: "resuming the server".
        waits: whether entry waits for others to be done, for twice `LOCK_MS` at most.

    Raises:
        ConcurrentChangeError: on entry: others hold it. It says who, and until when.
    """

    def __init__(self, servers: Servers, key: str, what: str, *, waits: bool = True) -> None:
        self._servers = servers
        self._key = key
        self._what = what
        self._back_off = BACK_OFF if waits else _ONCE
        self._token = f"{uuid.uuid4().hex} process {os.getpid()} on {socket.gethostname()}"
        self._others: tuple[str, int] = ("", 0)  # the token of who held it at last, and how long
        self._over = threading.Event()

    def __enter__(self) -> None:
        if not wait_until(
            f"somebody else to be done with {self._what}", self._take, self._back_off
        ):
            raise self._held()
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

    def _take(self) -> bool:
        answer = self._call("take")
        if isinstance(answer, list):
            self._others = answer[0].decode("utf-8", "replace"), answer[1]
        return bool(answer == 1)

    def _held(self) -> ConcurrentChangeError:
        token, left_ms = self._others
        _, _, holder = token.partition(" ")
        until_ms = int(time.time() * 1000) + left_ms
        until = datetime.fromtimestamp(until_ms / 1000, timezone.utc).strftime(
            "%Y-%m-%d %H:%M:%S UTC"
        )
        return ConcurrentChangeError(
            f"{holder or 'another process'} is {self._what}, and nobody else may until it is done, "
            f"or until {until} if it has died; try again",
            holder=holder or None,
            until_ms=until_ms,
        )

    def _call(self, verb: str) -> Any:
        return call_script(self._servers, "lock", [self._key], [verb, self._token, LOCK_MS])
