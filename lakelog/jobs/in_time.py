"""Limits the wait for a call, such as one to a store that hangs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

from ..engines.threads import watch
from ..errors import ColdTierUnavailableError

T = TypeVar("T")


class _Left:
    """Calls that may be left running, which the end of the process waits for."""

    def __init__(self) -> None:
        self._threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    def add(self, thread: threading.Thread) -> None:
        self._threads.add(thread)
        watch(self)

    def end(self) -> None:
        """See `threads.Crew`."""

    def is_in_call(self) -> bool:
        """See `threads.Crew`."""
        return any(thread.is_alive() for thread in list(self._threads))


_left = _Left()


def in_time(function: Callable[[], T], timeout_s: float, what: str) -> T:
    """What a function returns or raises. If it takes too long, it is left running.

    Args:
        what: begins the sentence, such as "looking at the topics".

    Raises:
        ColdTierUnavailableError: it did not return in time. It may still be running.
    """
    answers: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="lakelog-in-time", daemon=True)
    _left.add(thread)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not answers:
        raise ColdTierUnavailableError(
            f"{what} did not end within {timeout_s:g} s: a call to Redis or the store "
            "hangs. It is tried again; look at the store"
        )
    return answers[0]
