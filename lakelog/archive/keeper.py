"""Follows the topics' definitions, and says in Redis and elsewhere how an archiver is doing."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from uuid import uuid4

from ..hot.hot_log import HotLog
from ..values.topic import Topic
from .trouble import Trouble, why

logger = logging.getLogger(__name__)

#: How often to look for changed definitions, and how soon a trouble is told.
KEEP_INTERVAL_S = 1.0

#: All definitions are read this often even if nothing changed.
LIST_INTERVAL_S = 60.0

#: How often an archiver says in Redis that it is alive, and how long that counts.
BEAT_INTERVAL_S = 10.0
BEAT_LASTING_MS = 30_000

#: How often a lasting trouble is told.
TELL_INTERVAL_S = 60.0


class Keeper:
    """One thread, until it is ended.

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
        tell: Callable[[Sequence[Trouble]], None] | None,
    ) -> None:
        self._registry = hot.topics()
        self._beats = hot.beats()
        self._list_topics = list_topics
        self._listed = listed
        self._keep = keep
        self._troubles = troubles
        self._tell = tell
        self._id = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._wake = threading.Event()
        self._ended = False
        self._follows = 0  # finished ones
        self._asked: int | None = None  # the one that was asked for
        self._thread = threading.Thread(target=self._run, name="lakelog-keeper", daemon=True)
        self._teller: threading.Thread | None = None
        self._trouble: Trouble | None = None
        self._version: tuple[int, int] | None = None  # of the definitions; None: not known
        self._listed_s = self._beaten_s = self._told_s = 0.0
        self._failing: list[str] | None = None  # topics, as last said

    def start(self) -> None:
        self._thread.start()

    def is_started(self) -> bool:
        return self._thread.ident is not None

    def end(self, timeout_s: float) -> None:
        """End it, and wait this long for it to say so."""
        self._ended = True
        self._wake.set()
        self._thread.join(timeout_s)

    def follow_now(self) -> None:
        """Start reading the definitions again; `has_followed` says when that is done."""
        self._asked = self._follows + 2  # the next to end may have begun before this
        self._wake.set()

    def has_followed(self) -> bool:
        """Whether the reading that `follow_now` asked for is over, successful or not."""
        return self._asked is None or self._follows >= self._asked

    def is_telling(self) -> bool:
        """Whether troubles are being recorded just now."""
        return self._teller is not None and self._teller.is_alive()

    def trouble(self) -> Trouble | None:
        """The trouble of reading the definitions, if there is any; it belongs to no topic."""
        return self._trouble

    def _run(self) -> None:
        while not self._ended:
            self._wake.clear()
            try:
                self._follow()
                self._trouble = None
            except Exception as error:  # also a defect: topics go on as they are known
                self._failed(error)
            self._follows += 1
            self._say()
            if self.has_followed() and not self._ended:
                self._wake.wait(KEEP_INTERVAL_S)
        self._quietly(lambda: self._beats.end(self._id))

    def _follow(self) -> None:
        now_s = time.monotonic()
        version = self._registry.version()
        if version != self._version or now_s - self._listed_s >= LIST_INTERVAL_S:
            self._listed(self._list_topics())
            self._version, self._listed_s = version, now_s
        self._keep()

    def _failed(self, error: Exception) -> None:
        self._version = None
        before, now_ms = self._trouble, time.time_ns() // 1_000_000
        self._trouble = Trouble(
            "",
            before.since_ms if before else now_ms,
            why(error),
            before.tries + 1 if before else 1,
            now_ms + int(KEEP_INTERVAL_S * 1000),
        )
        if before is None and not self._ended:
            logger.warning("the definitions of topics cannot be read now: %s", error)

    def _say(self) -> None:
        now_s, troubles = time.monotonic(), self._troubles()
        failing = [one.topic for one in troubles]
        is_news = failing != self._failing
        if is_news or now_s - self._beaten_s >= BEAT_INTERVAL_S:
            said = {"troubles": [one.to_json() for one in troubles]}
            self._quietly(lambda: self._beats.leave(self._id, said, BEAT_LASTING_MS))
            self._beaten_s = now_s
        if troubles and (is_news or now_s - self._told_s >= TELL_INTERVAL_S):
            self._begin_to_tell(troubles)
            self._told_s = now_s
        self._failing = failing

    def _quietly(self, say: Callable[[], None]) -> None:
        try:
            say()
        except Exception as error:  # nothing depends on it, and Redis's absence is told elsewhere
            logger.debug("how the archiver is doing could not be said in Redis: %s", error)

    def _begin_to_tell(self, troubles: Sequence[Trouble]) -> None:
        tell = self._tell
        if tell is None or (self._teller is not None and self._teller.is_alive()):
            return  # one that hangs is enough

        def telling() -> None:
            try:
                tell(troubles)
            except Exception as error:
                logger.warning("what fails could not be written down: %s", error)

        self._teller = threading.Thread(target=telling, name="lakelog-teller", daemon=True)
        self._teller.start()
