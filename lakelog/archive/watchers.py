"""Threads of a continuous run that watch: its servers, and the definitions of its topics."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TypeVar
from uuid import UUID, uuid4

from ..base.back_off import BackOff, Tries
from ..errors import HotTierUnavailableError
from ..hot.hot_log import HotLog
from ..hot.looks import ServerLook, ServerLooks
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .report import Trouble, why

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: How soon an append is noticed when there is little to look at. With more, the pause is a multiple
#: of the time that a look took this thread: watching idle topics never costs more than a fortieth
#: of a core, and 2,000 of them are still looked at every second.
SHORTEST_INTERVAL_S = 0.1
INTERVALS = 40
LONGEST_INTERVAL_S = 2.0

#: How soon a cluster's watcher takes up partitions that came to its server.
PLACE_INTERVAL_S = 5.0

#: How soon it is noticed that a server is back.
SERVER_BACK_OFF = BackOff(0.1, 2.0)

#: How often to look for changed definitions, and how soon a trouble is told.
KEEP_INTERVAL_S = 1.0

#: All definitions are read this often even if nothing changed.
LIST_INTERVAL_S = 60.0

#: How often an archiver says in Redis that it is alive, and how long that counts.
BEAT_INTERVAL_S = 10.0
BEAT_LASTING_MS = 30_000

#: How often a lasting trouble is told.
TELL_INTERVAL_S = 60.0

Tell = Callable[[Sequence[Trouble]], None]


class Watcher:
    """Looks at one thing again and again, in a thread of its own, until it is ended.

    A look that fails, also by a defect, is tried again: nobody else would look.

    Args:
        name: of the thread.
        what: it looks at, for the log.
    """

    def __init__(self, name: str, what: str, back_off: BackOff) -> None:
        self._wake = threading.Event()
        self._ended = False
        self._looks = 0  # finished ones
        self._asked: int | None = None  # the look that was asked for
        self._tries = Tries(what, back_off)
        self._trouble: Trouble | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self, timeout_s: float = 0.0) -> None:
        """End it, and wait so long for the thread."""
        self._ended = True
        self._wake.set()
        if timeout_s and self._thread.ident is not None:
            self._thread.join(timeout_s)

    def look_now(self) -> None:
        """Ask for a look that begins from now on; `has_looked` says when it is over."""
        self._asked = self._looks + 2  # the next to end may have begun before this
        self._wake.set()

    def has_looked(self) -> bool:
        """Whether the look that `look_now` asked for is over, successful or not."""
        return self._asked is None or self._looks >= self._asked

    def trouble(self) -> Trouble | None:
        """Why looks fail, if they do; it belongs to no topic."""
        return self._trouble

    # -- what each kind does -----------------------------------------------------------------------

    def _look(self) -> None:
        raise NotImplementedError

    def _looked(self) -> None:
        """Called after each look, even one that failed."""

    def _failed(self, error: Exception) -> None:
        """Called before a failed look counts as one."""

    def _interval_s(self, cost_s: float) -> float:
        """The pause after a look that took this thread so long."""
        raise NotImplementedError

    # -- how -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended:
            self._wake.clear()
            began_s, pause_s = time.thread_time(), 0.0
            try:
                self._look()
                self._tries.succeeded()
                self._trouble = None
            except Exception as error:
                if not self._ended:
                    pause_s = self._pause_s(error)
            self._looks += 1
            self._looked()
            if self.has_looked() and not self._ended:
                self._wake.wait(pause_s or self._interval_s(time.thread_time() - began_s))

    def _pause_s(self, error: Exception) -> float:
        self._failed(error)
        if getattr(error, "moved", False):  # another server has it now: that is no failure
            return SHORTEST_INTERVAL_S
        since_ms = time.time_ns() // 1_000_000 if self._trouble is None else self._trouble.since_ms
        self._trouble, pause_s = _after_failure(self._tries, error, since_ms)
        return pause_s


class ServerWatcher(Watcher):
    """Looks at all partitions of one server.

    Args:
        partitions: those of all servers; another object whenever they change.
        saw: called with each look.
        after: called after each look, even one that failed.
    """

    def __init__(
        self,
        server: ServerLooks,
        partitions: Callable[[], Mapping[TopicPartition, UUID]],
        saw: Callable[[ServerLook], None],
        after: Callable[[], None],
    ) -> None:
        super().__init__(
            f"lakelog-waiter-{server.name}", f"archiving from {server.name}", SERVER_BACK_OFF
        )
        self._server = server
        self._partitions = partitions
        self._saw = saw
        self._after = after
        self._all: Mapping[TopicPartition, UUID] | None = None  # as of which `_own` is
        self._own: list[TopicPartition] = []
        self._placed_s = 0.0

    def _look(self) -> None:
        partitions, now_s = self._partitions(), time.monotonic()
        if partitions is not self._all or now_s - self._placed_s >= PLACE_INTERVAL_S:
            self._own = [tp for tp in partitions if self._server.holds(tp)]
            self._all, self._placed_s = partitions, now_s
        self._saw(self._server.look(self._own))

    def _looked(self) -> None:
        self._after()

    def _failed(self, error: Exception) -> None:
        self._all = None  # a cluster's slots may have moved

    def _interval_s(self, cost_s: float) -> float:
        return min(LONGEST_INTERVAL_S, max(SHORTEST_INTERVAL_S, INTERVALS * cost_s))


class TopicsWatcher(Watcher):
    """Follows the topics' definitions, and says in Redis and elsewhere how the archiver is doing.

    Args:
        list_topics: those to archive, as they are defined now.
        listed: called with them when they may have changed.
        keep: called about every `KEEP_INTERVAL_S`.
        troubles: what fails now.
        tell: called with the troubles, in a thread that may hang.
    """

    def __init__(
        self,
        hot: HotLog,
        list_topics: Callable[[], Sequence[Topic]],
        listed: Callable[[Sequence[Topic]], None],
        keep: Callable[[], None],
        troubles: Callable[[], Sequence[Trouble]],
        tell: Tell | None,
    ) -> None:
        back_off = BackOff(KEEP_INTERVAL_S, KEEP_INTERVAL_S)
        super().__init__("lakelog-keeper", "reading the definitions of topics", back_off)
        self._registry = hot.topics()
        self._beats = hot.beats()
        self._list_topics = list_topics
        self._listed = listed
        self._keep = keep
        self._troubles = troubles
        self._teller = Teller(tell)
        self._id = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._version: tuple[int, int] | None = None  # of the definitions; None: not known
        self._listed_s = self._beaten_s = self._told_s = 0.0
        self._failing: list[str] | None = None  # topics, as last said

    def is_telling(self) -> bool:
        """Whether troubles are being recorded just now."""
        return self._teller.is_telling()

    def _run(self) -> None:
        super()._run()
        self._quietly(lambda: self._beats.end(self._id))

    def _look(self) -> None:
        now_s = time.monotonic()
        version = self._registry.version()
        if version != self._version or now_s - self._listed_s >= LIST_INTERVAL_S:
            self._listed(self._list_topics())
            self._version, self._listed_s = version, now_s
        self._keep()

    def _failed(self, error: Exception) -> None:
        self._version = None

    def _interval_s(self, cost_s: float) -> float:
        return KEEP_INTERVAL_S

    def _looked(self) -> None:
        now_s, troubles = time.monotonic(), self._troubles()
        failing = [one.topic for one in troubles]
        is_news = failing != self._failing
        if is_news or now_s - self._beaten_s >= BEAT_INTERVAL_S:
            said = {"troubles": [one.to_json() for one in troubles]}
            self._quietly(lambda: self._beats.leave(self._id, said, BEAT_LASTING_MS))
            self._beaten_s = now_s
        if troubles and (is_news or now_s - self._told_s >= TELL_INTERVAL_S):
            self._teller.tell(troubles)
            self._told_s = now_s
        self._failing = failing

    def _quietly(self, say: Callable[[], None]) -> None:
        try:
            say()
        except Exception as error:  # nothing depends on it, and Redis's absence is told elsewhere
            logger.debug("how the archiver is doing could not be said in Redis: %s", error)


class Teller:
    """Tells troubles where the caller wants them, in a thread that may hang; one at a time."""

    def __init__(self, tell: Tell | None) -> None:
        self._tell = tell
        self._thread: threading.Thread | None = None

    def is_telling(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def tell(self, troubles: Sequence[Trouble]) -> None:
        tell = self._tell
        if tell is None or self.is_telling():
            return  # one that hangs is enough

        def telling() -> None:
            try:
                tell(troubles)
            except Exception as error:
                logger.warning("what fails could not be written down: %s", error)

        self._thread = threading.Thread(target=telling, name="lakelog-teller", daemon=True)
        self._thread.start()


def wait_for_redis(
    connect: Callable[[], T],
    stop: threading.Event,
    deadline_s: float | None = None,
    tell: Tell | None = None,
    *,
    what: str = "archiving from Redis",
) -> T | None:
    """What ``connect`` returns, once Redis answers; None if the run was stopped first.

    For a Redis that is away when an archiver or a cleanup starts: it is waited for, as by one that
    runs.

    Args:
        connect: called at least once, since a run that is stopped while it starts still archives
            what is there; and again while it raises `HotTierUnavailableError`. Any other error does
            not pass by itself (an invalid URL, a wrong password) and ends the wait.
        stop: set it to wait no longer.
        deadline_s: wait no longer than until then, by `time.monotonic`.
        what: waits, for the log.
        tell: called with the trouble when it begins and now and then, in a thread that may hang.
    """
    since_ms, told_s = time.time_ns() // 1_000_000, -inf
    until_s = inf if deadline_s is None else deadline_s
    tries, teller = Tries(what, SERVER_BACK_OFF, until_s=until_s), Teller(tell)
    while True:
        try:
            connected = connect()
        except HotTierUnavailableError as error:
            trouble, pause_s = _after_failure(tries, error, since_ms)
            if time.monotonic() - told_s >= TELL_INTERVAL_S and not teller.is_telling():
                teller.tell([trouble])
                told_s = time.monotonic()
            if not pause_s or stop.wait(pause_s) or time.monotonic() >= until_s:
                return None
        else:
            tries.succeeded()
            return connected


def _after_failure(tries: Tries, error: Exception, since_ms: int) -> tuple[Trouble, float]:
    """The trouble of what failed once more, and for how long to pause; 0: it is given up."""
    pause_s = tries.failed(error) or 0.0
    next_ms = time.time_ns() // 1_000_000 + int(pause_s * 1000)
    return Trouble("", since_ms, why(error), tries.failures, next_ms), pause_s
