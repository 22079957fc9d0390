"""Waits for a Redis that is away when an archiver or a cleanup starts, as a running one would."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import TypeVar

from ..base.back_off import Tries
from ..errors import HotTierUnavailableError
from .keeper import TELL_INTERVAL_S
from .trouble import Trouble, why
from .waiter import SERVER_BACK_OFF

logger = logging.getLogger(__name__)

T = TypeVar("T")


def first_answer(
    connect: Callable[[], T],
    stop: threading.Event,
    deadline_s: float | None = None,
    tell: Callable[[Sequence[Trouble]], None] | None = None,
    *,
    what: str = "archiving from Redis",
) -> T | None:
    """What ``connect`` returns, once Redis answers; None if the run was stopped first.

    Args:
        connect: called at least once, since a run that is stopped while it starts still archives
            what is there; and again while it raises `HotTierUnavailableError`. Any other error does
            not pass by itself (an invalid URL, a wrong password) and ends the wait.
        stop: set it to wait no longer.
        deadline_s: wait no longer than until then, by `time.monotonic`.
        what: waits, for the log.
        tell: called with the trouble when it begins and now and then, in a thread that may hang.
    """
    since_ms, told_s = time.time_ns() // 1_000_000, 0.0
    until_s = inf if deadline_s is None else deadline_s
    tries = Tries(what, SERVER_BACK_OFF, until_s=until_s)
    teller: threading.Thread | None = None
    while True:
        try:
            connected = connect()
        except HotTierUnavailableError as error:
            pause_s = tries.failed(error)
            now_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
            next_ms = now_ms + int((pause_s or 0.0) * 1000)
            trouble = Trouble("", since_ms, why(error), tries.failures, next_ms)
            is_due = tries.failures == 1 or now_s - told_s >= TELL_INTERVAL_S
            if tell is not None and is_due and not (teller and teller.is_alive()):
                teller, told_s = _telling(tell, trouble), now_s
            if pause_s is None or stop.wait(pause_s) or time.monotonic() >= until_s:
                return None
        else:
            tries.succeeded()
            return connected


def _telling(tell: Callable[[Sequence[Trouble]], None], trouble: Trouble) -> threading.Thread:
    def run() -> None:
        try:
            tell([trouble])
        except Exception as error:
            logger.warning("what fails could not be written down: %s", error)

    thread = threading.Thread(target=run, name="lakelog-teller", daemon=True)
    thread.start()
    return thread
