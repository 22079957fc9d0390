"""When to ask again what failed: later each time, never all at the same moment, and for how long.

The one policy of whoever asks a tier again. Only the producer's differs in its numbers, since Kafka
has settings for them (``retry.backoff.ms``).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from .errors import LakelogError

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: How long a reader asks again before it gives up. A store that says "slow down", a server that
#: restarts and a failover are over by then; a longer outage is told to who asked.
PATIENCE_S = 10.0

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0


def pause_s(failures: int, first_s: float, longest_s: float) -> float:
    """How long to wait after so many failures in a row.

    Doubles up to `longest_s`; by chance between half of that and all of it, so that who failed
    together does not come back together.
    """
    whole_s = min(longest_s, first_s * 2 ** min(max(failures, 1) - 1, 30))
    return random.uniform(whole_s / 2, whole_s)


class Patience:
    """Waits longer and longer for a tier that does not answer, and gives up in the end."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._deadline_s = time.monotonic() + patience_s
        self._failures = 0

    def wait(self, error: LakelogError) -> None:
        """Wait before the next try.

        Raises:
            LakelogError: the error, if it is not retriable or the time is over.
        """
        if not error.retriable:
            raise error
        self.pause(error)

    def pause(self, error: LakelogError) -> None:
        """As `wait`, whatever the error says of itself.

        Raises:
            LakelogError: the error, if the time is over.
        """
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise error
        logger.warning("%s; trying again", error)
        self._failures += 1
        time.sleep(min(pause_s(self._failures, FIRST_PAUSE_S, LONGEST_PAUSE_S), left_s))


def patiently(function: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """What a function returns, tried again while it raises retriable errors, for so long."""
    patience = Patience(patience_s)
    while True:
        try:
            return function()
        except LakelogError as error:
            patience.wait(error)
