"""Waits for a Redis that is away when an archiver starts, as one that runs does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..back_off import pause_s
from ..errors import HotTierUnavailableError
from .keeper import TELL_INTERVAL_S
from .trouble import Trouble, why
from .waiter import FIRST_PAUSE_S, LONGEST_PAUSE_S

logger = logging.getLogger(__name__)

T = TypeVar("T")


def first_answer(
    connect: Callable[[], T],
    stop: threading.Event,
    deadline_s: float | None = None,
    tell: Callable[[Sequence[Trouble]], None] | None = None,
) -> T | None:
    """What ``connect`` returns, once Redis answers; None if there is to be no run.

    Args:
        connect: called once in any case, since what is stopped while it starts still archives what
            is there; and again while it raises `HotTierUnavailableError`. Anything else it raises
            will not be over by itself (a URL that is none, a wrong password) and ends the wait.
        stop: set it to wait no longer.
        deadline_s: wait no longer than until then, by `time.monotonic`.
        tell: told of it when it begins and now and then, in a thread that may hang.
    """
    failures, since_ms, told_s = 0, time.time_ns() // 1_000_000, 0.0
    teller: threading.Thread | None = None
    while True:
        try:
            connected = connect()
        except HotTierUnavailableError as error:
            failures += 1
            wait_s = pause_s(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            if failures == 1:
                logger.warning("nothing is archived from Redis until it answers: %s", error)
            now_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
            trouble = Trouble("", since_ms, why(error), failures, now_ms + int(wait_s * 1000))
            is_due = failures == 1 or now_s - told_s >= TELL_INTERVAL_S
            if tell is not None and is_due and not (teller and teller.is_alive()):
                teller, told_s = _telling(tell, trouble), now_s
            stop.wait(wait_s if deadline_s is None else min(wait_s, max(0.0, deadline_s - now_s)))
            if stop.is_set() or (deadline_s is not None and time.monotonic() >= deadline_s):
                return None
        else:
            if failures:
                logger.warning("Redis answers, after %d failures", failures)
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
