"""Archiving many topics for as long as it is told, whatever fails meanwhile.

| thread | how many | does |
|---|---|---|
| waiter | one a server | looks at all partitions at once, see `waiter` |
| keeper | one | follows the topics' definitions, says in Redis how the archiver is doing |
| worker | `supervisor.WORKERS`, more while calls hang | archives one topic at a time |
| teller | one, when something fails | writes down what fails, where the caller wants it |

The caller's thread hands on reports and sees to the end in time. None of the others is waited for
without a limit.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from ..errors import ArchiveUnfinishedError, LakelogError
from ..hot.beats import Beats
from ..hot.hot_log import HotLog
from ..topic import Topic
from .archiver import Archiver, Flushed
from .report import ArchiveReport
from .supervisor import Supervisor, is_of_deleted_topic
from .trouble import Trouble
from .waiter import Waiter
from .workers import Workers

logger = logging.getLogger(__name__)

#: How long a stop waits for what can still be archived; then it leaves what hangs alone. A process
#: that is told to stop ends within three seconds.
STOP_TIMEOUT_S = 2.5

#: How long the keeper has to say in Redis that the archiver ended.
GOODBYE_TIMEOUT_S = 0.3

#: How long a run that ends by itself waits for a call that does not return.
END_TIMEOUT_S = 600.0

#: How often changed definitions are looked for, and how soon a trouble is told.
KEEP_INTERVAL_S = 1.0

#: How often an archiver says in Redis that it is alive, and how long that counts.
BEAT_INTERVAL_S = 10.0
BEAT_LASTING_MS = 30_000

#: How often a lasting trouble is told.
TELL_INTERVAL_S = 60.0

#: All definitions are read so often even if nothing changed.
LIST_INTERVAL_S = 60.0

#: After so many runs of a topic it is tidied. Each run leaves a file a partition, so that is about
#: how many more an open segment ever has than tidying leaves.
TIDY_RUNS = 16


class ContinuousArchive:
    """A run: an iterator of reports that ends when it is told to, or by itself.

    A topic or tier that fails ends nothing: it is tried again with growing pauses, for as long as
    it takes, while the others go on; `troubles` says what fails. At the end what is unarchived is
    archived whatever the flush policy says, as far as that can be done in `STOP_TIMEOUT_S` (after
    a stop) or without a call hanging for `END_TIMEOUT_S`. Closing the iterator stops it.

    Args:
        hot: where records come from.
        topics: those to archive, as they are defined now.
        archiver_of: makes a topic's archiver; called in a worker.
        stop: set it to end.
        max_duration: ends by itself after so long.
        archived: told of each report, in the worker.
        tidy: merges a topic's small files; called now and then, one topic at a time.
        keep: other work that is due now and then, called about once a `KEEP_INTERVAL_S`.
        tell: told of troubles as they come, and while they last once a `TELL_INTERVAL_S`.

    Raises (while iterating):
        ArchiveUnfinishedError: something is left at the end, because it failed or hung.
    """

    def __init__(
        self,
        hot: HotLog,
        topics: Callable[[], Sequence[Topic]],
        archiver_of: Callable[[Topic], Archiver],
        *,
        stop: threading.Event | None = None,
        max_duration: timedelta | None = None,
        archived: Callable[[ArchiveReport], None] = lambda report: None,
        tidy: Callable[[Topic], object] | None = None,
        keep: Callable[[], None] = lambda: None,
        tell: Callable[[Sequence[Trouble]], None] | None = None,
    ) -> None:
        self._hot = hot
        self._list = topics
        self._archiver_of = archiver_of
        self._stop = stop or threading.Event()
        self._max_duration = max_duration
        self._archived = archived
        self._tidy = tidy
        self._keep = keep
        self._tell = tell
        self._supervisor = Supervisor()
        self._workers = Workers("lakelog-archive")
        self._archivers: dict[UUID, Archiver] = {}
        self._runs: dict[UUID, int] = {}
        self._tidying: UUID | None = None
        self._waiters: dict[str, Waiter] = {}
        self._reports: queue.SimpleQueue[ArchiveReport] = queue.SimpleQueue()
        self._is_draining = False
        self._ended = threading.Event()
        self._listed = False
        self._keeper_trouble: Trouble | None = None
        self._id = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._iterator = self._run()
        #: Whether a call was left behind that may hang yet, so that only the process's end ends it.
        self.abandoned = False

    def __iter__(self) -> Iterator[ArchiveReport]:
        return self

    def __next__(self) -> ArchiveReport:
        return next(self._iterator)

    def close(self) -> None:
        """Stops it, and archives what is left, as a set `stop` does."""
        self._stop.set()
        for _ in self._iterator:
            pass

    def troubles(self) -> tuple[Trouble, ...]:
        """What fails now: servers first (their topic is ""), then topics by name."""
        servers = [waiter.trouble() for waiter in list(self._waiters.values())]
        found = [*servers, None if any(servers) else self._keeper_trouble]
        return (*(one for one in found if one is not None), *self._supervisor.troubles())

    # -- the caller's thread ---------------------------------------------------------------------

    def _run(self) -> Iterator[ArchiveReport]:
        started_s = time.monotonic()
        deadline_s = (
            None if self._max_duration is None else started_s + self._max_duration.total_seconds()
        )
        self._list_first()
        self._keeper = threading.Thread(target=self._keeping, name="lakelog-keeper", daemon=True)
        self._keeper.start()
        try:
            while not self._stop.is_set() and (deadline_s is None or time.monotonic() < deadline_s):
                yield from self._reports_for(self._pause_s(deadline_s))
            yield from self._drain()
            self._raise_unfinished()
        finally:
            self._end()

    def _pause_s(self, deadline_s: float | None) -> float:
        left_s = 0.2 if deadline_s is None else deadline_s - time.monotonic()
        return min(0.2, max(0.0, left_s))

    def _reports_for(self, seconds: float) -> Iterator[ArchiveReport]:
        """Those that come until then, or until the stop."""
        until_s = time.monotonic() + seconds
        while True:
            try:
                yield self._reports.get(timeout=max(0.0, min(0.05, until_s - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= until_s or self._stop.is_set():
                    return

    def _drain(self) -> Iterator[ArchiveReport]:
        began_s = time.monotonic()
        stopped_s = None
        self._is_draining = True
        for waiter in list(self._waiters.values()):
            waiter.look_now()
        drains = False
        while True:
            now_s = time.monotonic()
            if stopped_s is None and self._stop.is_set():
                stopped_s = now_s
            if not drains and (
                self._listed and all(waiter.has_looked() for waiter in list(self._waiters.values()))
            ):
                self._supervisor.drain()
                drains = True
                self._tick()
            is_late = now_s - began_s >= STOP_TIMEOUT_S
            if (drains and self._supervisor.is_drained() and self._tidying is None) or (
                stopped_s is not None and now_s - stopped_s >= STOP_TIMEOUT_S
            ):
                break
            if is_late and not (self._supervisor.is_running() or self._tidying):
                break
            if now_s - began_s >= END_TIMEOUT_S:
                break
            yield from self._waiting()
            time.sleep(0.01)
            self._tick()
        yield from self._waiting()

    def _waiting(self) -> Iterator[ArchiveReport]:
        while not self._reports.empty():
            yield self._reports.get()

    def _raise_unfinished(self) -> None:
        servers = [one for one in self.troubles() if not one.topic]
        left = (*servers, *self._supervisor.unfinished())
        self.abandoned = self._supervisor.is_running() or self._tidying is not None
        if not left:
            return
        shown = "; ".join(f"{one.topic or 'Redis'}: {one}" for one in left[:3])
        more = f" (and {len(left) - 3} more)" if len(left) > 3 else ""
        raise ArchiveUnfinishedError(
            f"the run ended before all was archived, of {len(left)} "
            f"topic{'' if len(left) == 1 else 's'}: {shown}{more}. What is left is in Redis, where "
            "the next run finds it",
            troubles=left,
            abandoned=self.abandoned,
        )

    def _end(self) -> None:
        self._ended.set()
        for waiter in list(self._waiters.values()):
            waiter.end()
        self._keeper.join(GOODBYE_TIMEOUT_S)

    # -- the keeper's thread ---------------------------------------------------------------------

    def _list_first(self) -> None:
        """So that a name that is none is told to who gave it; Redis may come later.

        Raises:
            LakelogError: no such topic, an untiered one.
        """
        try:
            self._take_up(self._list())
        except LakelogError as error:
            if not error.retriable:
                raise
            logger.warning("the topics cannot be listed yet: %s", error)

    def _take_up(self, topics: Sequence[Topic]) -> None:
        self._supervisor.topics_are(topics)
        self._listed = True
        glancers = {glancer.name: glancer for glancer in self._hot.glancers()}
        for name in self._waiters.keys() - glancers.keys():
            self._waiters.pop(name).end()
        for name in glancers.keys() - self._waiters.keys():
            waiter = Waiter(
                glancers[name], self._supervisor.partitions, self._supervisor.saw, self._tick
            )
            self._waiters[name] = waiter
            waiter.start()

    def _keeping(self) -> None:
        beats = self._hot.beats()
        version: tuple[int, int] | None = None
        listed_s = beaten_s = told_s = 0.0
        said: object = None
        registry = self._hot.topics()
        telling: threading.Thread | None = None
        while not self._ended.wait(KEEP_INTERVAL_S if self._listed and version else 0.0):
            now_s = time.monotonic()
            try:
                current = registry.version()
                if current != version or now_s - listed_s >= LIST_INTERVAL_S:
                    self._take_up(self._list())
                    version, listed_s = current, now_s
                self._keep()
                self._keeper_trouble = None
            except Exception as error:  # also a defect: topics go on as they are known
                version = None
                self._keeper_failed(error)
                self._ended.wait(KEEP_INTERVAL_S)
            troubles = self.troubles()
            key = [(one.topic, one.why) for one in troubles]
            if key != said or now_s - beaten_s >= BEAT_INTERVAL_S:
                self._beat(beats, troubles)
                beaten_s = now_s
            is_news = key != said or now_s - told_s >= TELL_INTERVAL_S
            if troubles and is_news and self._tell is not None:
                telling = self._told(troubles, telling)
                told_s = now_s
            said = key
        self._beat(beats, None)

    def _keeper_failed(self, error: Exception) -> None:
        now_ms = time.time_ns() // 1_000_000
        before = self._keeper_trouble
        self._keeper_trouble = Trouble(
            "",
            before.since_ms if before else now_ms,
            f"{type(error).__name__}: {error}",
            before.tries + 1 if before else 1,
            now_ms + int(KEEP_INTERVAL_S * 1000),
        )
        if before is None:
            logger.warning("definitions of topics cannot be read now: %s", error)

    def _beat(self, beats: Beats, troubles: Sequence[Trouble] | None) -> None:
        try:
            if troubles is None:
                beats.end(self._id)
            else:
                said = {"troubles": [one.to_json() for one in troubles]}
                beats.leave(self._id, said, BEAT_LASTING_MS)
        except Exception as error:  # nothing hangs on it
            logger.debug("how the archiver is doing could not be said in Redis: %s", error)

    def _told(
        self, troubles: Sequence[Trouble], before: threading.Thread | None
    ) -> threading.Thread:
        """The thread that tells them; the one before where that hangs in telling others."""
        if before is not None and before.is_alive():
            return before
        thread = threading.Thread(
            target=self._telling, args=(troubles,), name="lakelog-teller", daemon=True
        )
        thread.start()
        return thread

    def _telling(self, troubles: Sequence[Trouble]) -> None:
        assert self._tell is not None
        try:
            self._tell(troubles)
        except Exception as error:
            logger.warning("what fails could not be written down: %s", error)

    # -- workers ---------------------------------------------------------------------------------

    def _tick(self, *, scan: bool = True) -> None:
        """Begin with what is due. Called from any thread."""
        if self._ended.is_set():
            return
        for topic in self._supervisor.start(scan=scan):
            self._workers.run(partial(self._work, topic))

    def _work(self, topic: Topic) -> None:
        topic_id = topic.topic_id
        try:
            outcome: Flushed | BaseException = self._archive(topic)
        except BaseException as error:
            outcome = error
        if isinstance(outcome, BaseException) and self._is_gone(topic, outcome):
            self._archivers.pop(topic_id, None)
            self._supervisor.gone(topic_id)
        else:
            self._supervisor.ended(topic_id, outcome)
        self._tick(scan=False)

    def _archive(self, topic: Topic) -> Flushed:
        archiver = self._archivers.get(topic.topic_id)
        if archiver is None:
            archiver = self._archivers[topic.topic_id] = self._archiver_of(topic)
        flushed = archiver.drain() if self._is_draining else archiver.flush()
        if flushed.report is not None:
            self._reports.put(flushed.report)
            self._archived(flushed.report)
            self._tidy_if_due(archiver.topic)
        return flushed

    def _is_gone(self, topic: Topic, error: BaseException) -> bool:
        """Whether the topic was deleted; an error alone may as well mean that its keys are lost."""
        if not is_of_deleted_topic(error):
            return False
        try:
            return self._hot.topics().get(topic.name).topic_id != topic.topic_id
        except LakelogError as failure:
            return is_of_deleted_topic(failure)

    def _tidy_if_due(self, topic: Topic) -> None:
        runs = self._runs[topic.topic_id] = self._runs.get(topic.topic_id, 0) + 1
        if self._tidy is None or runs < TIDY_RUNS or self._tidying is not None or self._is_draining:
            return
        self._tidying = topic.topic_id
        self._runs[topic.topic_id] = 0
        self._workers.run(lambda: self._tidy_one(topic))

    def _tidy_one(self, topic: Topic) -> None:
        assert self._tidy is not None
        try:
            self._tidy(topic)
        except LakelogError as error:
            logger.warning(
                "the files of %s were not merged, which is tried again: %s", topic.name, error
            )
        except Exception:
            logger.exception("the files of %s were not merged, which is tried again", topic.name)
        finally:
            self._tidying = None
