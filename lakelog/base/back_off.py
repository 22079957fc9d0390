"""When to retry a failure: later each time, never all at the same moment, not for ever.

| who waits                                   | takes                                              |
|---------------------------------------------|----------------------------------------------------|
| for a call that raises                      | `patiently`                                        |
| in a loop of its own (a generator, a race)  | `Tries`, whose `wait` sleeps or raises             |
| for an event that may come first            | `Tries`, whose `failed` says how long to wait      |
| for something to become so                  | `wait_until`                                       |
| beside other work (one thread, many queues) | `BackOff.pause_s` for the time, `Telling` to log   |

Own classes rather than tenacity, which was tried on `patiently` and on the commits of a table: it
runs the loop itself (a generator that goes on, or a queue that asks for its next pause, does not
fit), sleeps past the deadline (1.4 s for 1.0), logs every try or none, costs 24 µs a call that
succeeds against 0.5, and takes 60 ms to import, with asyncio.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..errors import LakelogError

logger = logging.getLogger("lakelog.back_off")  # the name that users are told

T = TypeVar("T")

#: How long a reader asks again before it gives up. A store that says "slow down", a server that
#: restarts and a failover are over by then; a longer outage is told to who asked.
PATIENCE_S = 10.0

#: A trouble that lasts is logged when it begins, then after so long, then twice that, and so on.
QUIET_S = 10.0
LONGEST_QUIET_S = 300.0

_MOST_DOUBLINGS = 1000  # beyond, the factor is no float any more


class BackOff(Struct, frozen=True):
    """How long to wait before each new try, and when to give up.

    Raises:
        ValueError: pauses that are not 0 < first ≤ longest, a negative time, or less than one try.
    """

    first_s: float  # the longest pause after one failure; > 0
    longest_s: float  # the longest pause after any; ≥ first_s
    within_s: float = inf  # no try begins later after the first failure; 0: there is one try
    tries: float = inf  # at most so many, the first included; a whole number ≥ 1, or inf

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.longest_s < inf:
            raise ValueError(f"pauses from {self.first_s} s to {self.longest_s} s are none")
        if not self.within_s >= 0 or not self.tries >= 1:
            raise ValueError(f"{self.tries} tries within {self.within_s} s are none")

    def within(self, seconds: float) -> BackOff:
        """The same with another deadline."""
        return replace(self, within_s=seconds)

    def pause_s(
        self, failures: int, draw: Callable[[float, float], float] = random.uniform
    ) -> float:
        """How long to wait after so many failures in a row.

        Doubles up to `longest_s`; by chance between half of that and all of it, so that who failed
        together does not come back together.

        Args:
            draw: a number between two; for tests.
        """
        doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
        whole_s = min(self.longest_s, self.first_s * 2.0**doublings)
        return draw(whole_s / 2, whole_s)


#: How a tier that does not answer is asked again.
ASK_AGAIN = BackOff(0.1, 2.0, within_s=PATIENCE_S)

#: How something that usually takes milliseconds is looked for: a process's start, or its end.
POLL = BackOff(0.005, 0.02)


class Telling:
    """What the log says of a trouble: when it begins, now and then while it lasts, and its end."""

    def __init__(self, level: int = logging.WARNING) -> None:
        self._level = level
        self._kinds: set[type] = set()  # of errors that this trouble was told with
        self._told_s = 0.0
        self._quiet_s = QUIET_S

    def failed(
        self,
        what: str,
        reason: BaseException | str,
        now_s: float,
        *,
        failures: int,
        pause_s: float,
        left_s: float = inf,
    ) -> None:
        """Say what is tried again, why, in how long and until when, unless that was just said.

        Args:
            what: as the subject of a sentence: "reading orders-0".
            reason: the error; one of another class is told at once, and one that is a defect with
                where it happened.
            now_s: on any clock that only goes forward.
            failures: in a row, with this one.
            pause_s: until the next try.
            left_s: until no more is tried; infinite: it is tried until it succeeds.
        """
        if type(reason) in self._kinds:
            if now_s - self._told_s < self._quiet_s:
                return
            self._quiet_s = min(2 * self._quiet_s, LONGEST_QUIET_S)
        self._kinds.add(type(reason))
        self._told_s = now_s
        trace = None if isinstance(reason, (LakelogError, OSError, str)) else reason
        logger.log(
            self._level,
            "%s failed%s and is tried again in %.2g s, %s: %s",
            what,
            "" if failures == 1 else f" {failures} times in a row",
            pause_s,
            "until it succeeds" if left_s == inf else f"for {left_s:.3g} s more at most",
            reason if trace is None else f"{type(trace).__name__}: {trace}",
            exc_info=trace,
        )

    def succeeded(self, what: str, failures: int) -> None:
        """Say that it is over, if it was said to be."""
        if self._kinds:
            times = "1 failure" if failures == 1 else f"{failures} failures"
            logger.log(self._level, "%s succeeded after %s", what, times)
        self._kinds.clear()
        self._quiet_s = QUIET_S


class Tries:
    """The tries of one thing, whoever makes them. Not thread-safe.

    The deadline counts from the first failure in a row: what takes long before it fails is tried
    again, too.

    Args:
        what: see `Telling.failed`.
        back_off: default `ASK_AGAIN`.
        until_s: no try begins after that time of the clock, whenever the first failure was.
        level: of the lines in the log.
        clock_s: default `time.monotonic`.
        draw: see `BackOff.pause_s`.
    """

    def __init__(
        self,
        what: str,
        back_off: BackOff | None = None,
        *,
        until_s: float = inf,
        level: int = logging.WARNING,
        clock_s: Callable[[], float] | None = None,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.what = what
        self.failures = 0  # in a row
        self.next_s = 0.0  # when the next try is due, on the clock
        self._back_off = back_off or ASK_AGAIN
        self._until_s = until_s
        self._began_s = 0.0  # of the first failure in a row
        self._clock_s = clock_s or time.monotonic
        self._draw = draw
        self._telling = Telling(level)

    def failed(self, reason: BaseException | str) -> float | None:
        """Note a failure, and say in the log what follows.

        Returns:
            How long to wait before the next try; None if there is none: the time is over, or it
            was the last one. The caller tells its own caller then, so the log says nothing.
        """
        now_s = self._clock_s()
        if not self.failures:
            self._began_s = now_s
        self.failures += 1
        left_s = min(self._until_s, self._began_s + self._back_off.within_s) - now_s
        if left_s <= 0 or self.failures >= self._back_off.tries:
            return None
        pause_s = min(self._back_off.pause_s(self.failures, self._draw), left_s)
        self.next_s = now_s + pause_s
        self._telling.failed(
            self.what, reason, now_s, failures=self.failures, pause_s=pause_s, left_s=left_s
        )
        return pause_s

    def succeeded(self) -> None:
        """What fails from now on is a new trouble."""
        if self.failures:
            self._telling.succeeded(self.what, self.failures)
            self.renew()

    def renew(self) -> None:
        """It has not succeeded yet, but came on: pauses and deadline begin anew."""
        self.failures = 0
        self.next_s = 0.0

    def wait(self, error: LakelogError) -> None:
        """Sleep until the next try.

        Raises:
            LakelogError: the error, if it is not retriable or there is no more try.
        """
        if not error.retriable:
            raise error
        self.pause(error)

    def pause(self, error: Exception) -> None:
        """As `wait`, whatever the error says of itself.

        Raises:
            Exception: the error, if there is no more try.
        """
        pause_s = self.failed(error)
        if pause_s is None:
            raise error
        time.sleep(pause_s)


def patiently(what: str, function: Callable[[], T], back_off: BackOff | None = None) -> T:
    """What a function returns, tried again while it raises retriable errors.

    Args:
        what: it does, for the log; see `Telling.failed`.
        back_off: default `ASK_AGAIN`.
    """
    tries: Tries | None = None  # nothing failed yet
    while True:
        try:
            answer = function()
        except LakelogError as error:
            tries = tries or Tries(what, back_off)
            tries.wait(error)
        else:
            if tries is not None:
                tries.succeeded()
            return answer


def wait_until(what: str, condition: Callable[[], bool], back_off: BackOff) -> bool:
    """Look until something is so; False if it is not so in time.

    Args:
        what: is waited for, for the log: "the end of the server".
        back_off: its deadline counts from the first look.
    """
    began_s = said_s = time.monotonic()
    looks = 0
    while not condition():
        now_s, looks = time.monotonic(), looks + 1
        left_s = began_s + back_off.within_s - now_s
        if left_s <= 0 or looks >= back_off.tries:
            return False
        if now_s - said_s >= QUIET_S:
            said_s = now_s
            logger.warning("still waiting for %s, after %.0f s", what, now_s - began_s)
        time.sleep(min(back_off.pause_s(looks), left_s))
    return True
