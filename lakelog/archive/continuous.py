"""Archives many topics until it is told to stop, whatever fails meanwhile.

| thread | how many | does |
|---|---|---|
| waiter | one a server | looks at all partitions at once, see `ServerWatcher` |
| keeper | one | follows the definitions, says how the archiver is doing: see `TopicsWatcher` |
| worker | `supervisor.WORKERS`, more while calls hang | archives one topic at a time |
| teller | one, while something fails | records troubles where the caller wants them      |

The caller's thread hands on reports and ends the run in time. None of the others is waited for
without a limit.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from ..engines.threads import Workers, watch
from ..errors import ArchiveUnfinishedError, LakelogError
from ..hot.hot_log import HotLog
from ..values.topic import Topic
from .archiver import Archiver, Flushed
from .report import ArchiveReport, Trouble
from .supervisor import LONG_CALL_S, Supervisor, is_of_deleted_topic
from .watchers import ServerWatcher, TopicsWatcher

logger = logging.getLogger(__name__)

#: How long a stop waits for what can still be archived; then it leaves hanging calls. A process
#: that is told to stop ends within three seconds.
STOP_TIMEOUT_S = 2.2

#: How long the keeper has to say in Redis that the archiver ended.
GOODBYE_TIMEOUT_S = 0.3

#: How long a run that ends by itself waits for a call that does not return.
END_TIMEOUT_S = 600.0

#: How soon a report is handed on, and a stop noticed. This polls instead of waiting: waiting takes
#: locks, which a signal handler may interrupt and ask for; and CPython 3.11's
#: `queue.SimpleQueue` never comes back if a handler takes longer than the rest of its time-out.
HAND_ON_INTERVAL_S = 0.02

#: After this many runs a topic is tidied. Each run leaves a file for each partition, so an open
#: segment has about this many files more than tidying leaves.
TIDY_RUNS = 16

#: How soon a cleanup that failed as a whole is tried again.
CLEAN_AGAIN_S = 30.0

#: One topic is tidied at a time; others follow while that hangs, but no more than this.
MOST_TIDYING = 4


class ContinuousArchive:
    """A run: an iterator of reports that ends when it is told to, or by itself.

    A topic or tier that fails ends nothing: it is tried again with growing pauses, for as long as
    it takes, while the others go on; `troubles` says what fails. At the end what is unarchived is
    archived whatever the flush policy says, as far as that can be done in `STOP_TIMEOUT_S` after a
    stop, or without a call hanging for `END_TIMEOUT_S`. Closing or dropping the iterator stops it.
    A process that ends meanwhile waits 3 s for calls to return, see `threads`.

    Args:
        hot: where records come from.
        topics: those to archive, as they are defined now.
        archiver_of: makes a topic's archiver; called in a worker.
        stop: set it to end.
        max_duration: ends by itself after so long.
        archived: called with each report, in the worker.
        troubles_beside: what else fails now, which keeps nothing from being archived.
        tidy: merges a topic's small files; called now and then, one topic at a time.
        clean: cleans up all topics, and says in how many seconds to do so again.
        keep: other work that is due now and then, called about once a second.
        tell: called with troubles as they come, and once a minute while they last.

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
        troubles_beside: Callable[[], Sequence[Trouble]] = lambda: (),
        tidy: Callable[[Topic], object] | None = None,
        clean: Callable[[], float] | None = None,
        keep: Callable[[], None] = lambda: None,
        tell: Callable[[Sequence[Trouble]], None] | None = None,
    ) -> None:
        self._crew = _Crew(
            hot, topics, archiver_of, archived, troubles_beside, tidy, clean, keep, tell
        )
        self._stop = stop or threading.Event()
        self._closed = threading.Event()
        # The threads know only the crew: dropping this object drops the generator, which ends them.
        self._reports = _reports(self._crew, self._stop, self._closed, max_duration)

    def __iter__(self) -> Iterator[ArchiveReport]:
        return self

    def __next__(self) -> ArchiveReport:
        return next(self._reports)

    def close(self) -> None:
        """Stops it, and archives what is left, as a set `stop` does.

        Raises:
            ArchiveUnfinishedError: see above.
        """
        self._closed.set()
        for _ in self._reports:
            pass

    def troubles(self) -> tuple[Trouble, ...]:
        """What fails now: servers first (their topic is ""), then topics by name, then what keeps
        nothing from being archived.
        """
        return self._crew.troubles()

    @property
    def abandoned(self) -> bool:
        """Whether it ended and left a call behind that may hang until the process ends."""
        return self._crew.is_ended and self._crew.is_busy()


def _reports(
    crew: _Crew,
    stop: threading.Event,
    closed: threading.Event,
    max_duration: timedelta | None,
) -> Iterator[ArchiveReport]:
    """The caller's thread."""

    def is_stopped() -> bool:
        return stop.is_set() or closed.is_set()

    duration_s = None if max_duration is None else max_duration.total_seconds()
    deadline_s = None if duration_s is None else time.monotonic() + duration_s
    try:
        crew.begin()
        while not is_stopped():
            left_s = 1.0 if deadline_s is None else deadline_s - time.monotonic()
            if left_s <= 0:
                break
            if crew.reports.empty():
                time.sleep(min(HAND_ON_INTERVAL_S, left_s))
            else:
                yield crew.reports.get()
        yield from crew.drain(is_stopped)
        crew.check_finished()
    except GeneratorExit:
        for _ in crew.drain(lambda: True):
            pass
        raise
    finally:
        crew.end()


class _Crew:
    """The threads of a run, and what they share. See `ContinuousArchive` for the arguments."""

    def __init__(
        self,
        hot: HotLog,
        topics: Callable[[], Sequence[Topic]],
        archiver_of: Callable[[Topic], Archiver],
        archived: Callable[[ArchiveReport], None],
        troubles_beside: Callable[[], Sequence[Trouble]],
        tidy: Callable[[Topic], object] | None,
        clean: Callable[[], float] | None,
        keep: Callable[[], None],
        tell: Callable[[Sequence[Trouble]], None] | None,
    ) -> None:
        self._hot = hot
        self._topics = topics
        self._archiver_of = archiver_of
        self._archived = archived
        self._troubles_beside = troubles_beside
        self._tidy = tidy
        self._clean = clean
        self._clean_s = 0.0  # when a cleanup is due
        self._keep_too = keep
        self._supervisor = Supervisor()
        self._workers = Workers("lakelog-archive")
        self._keeper = TopicsWatcher(hot, topics, self._take_up, self._keep, self.troubles, tell)
        self._waiters: dict[str, ServerWatcher] = {}
        self._archivers: dict[UUID, Archiver] = {}
        self._runs: dict[UUID, int] = {}  # since the topic was tidied
        self._beside: dict[
            UUID | None, float
        ] = {}  # since when files are merged; None: all cleaned
        self._beside_lock = threading.Lock()
        self._is_listed = False
        self._is_draining = False
        self._looked_again = False  # at all servers, since the drain began
        self.is_ended = False
        self.reports: queue.SimpleQueue[ArchiveReport] = queue.SimpleQueue()

    # -- beginning and end, in the caller's thread -----------------------------------------------

    def begin(self) -> None:
        """Start the threads.

        Raises:
            LakelogError: the topics cannot be listed, and will not be later.
        """
        try:
            self._take_up(self._topics())
            self._follow_servers()
        except LakelogError as error:
            if not error.retriable:
                raise
            logger.warning("the topics cannot be listed yet: %s", error)
        self._keeper.start()
        watch(self)

    def drain(self, is_stopped: Callable[[], bool]) -> Iterator[ArchiveReport]:
        """Archive what is left, as far as time allows; reports come as they are made."""
        began_s, stopped_s = time.monotonic(), None
        self._is_draining = True
        watchers = [self._keeper, *self._waiters.values()]
        for watcher in watchers:
            watcher.look_now()  # what failed a moment ago may be over
        while True:
            now_s = time.monotonic()
            if stopped_s is None and is_stopped():
                stopped_s = now_s
            if not self._looked_again and self._is_listed:
                self._looked_again = all(watcher.has_looked() for watcher in watchers)
                if self._looked_again:
                    self._supervisor.drain()
            self._tick()
            is_late = now_s - began_s >= STOP_TIMEOUT_S  # too late for what failed
            if (
                (self._looked_again and self._supervisor.is_drained() and not self.is_busy())
                or (is_late and not self.is_busy())
                or (stopped_s is not None and now_s - stopped_s >= STOP_TIMEOUT_S)
                or now_s - began_s >= END_TIMEOUT_S
            ):
                break
            if self.reports.empty():
                time.sleep(HAND_ON_INTERVAL_S)
            else:
                yield self.reports.get()
        while not self.reports.empty():
            yield self.reports.get()

    def check_finished(self) -> None:
        """Raises ArchiveUnfinishedError if a drain left something, or if that is not known."""
        left = [one for one in self.troubles() if not one.topic]
        if not left and not self._looked_again:
            now_ms = time.time_ns() // 1_000_000
            left = [Trouble("", now_ms, "Redis did not answer in time", 0, None)]
        left += self._supervisor.unfinished()
        if not left:
            return
        shown = "; ".join(f"{one.topic or 'Redis'}: {one}" for one in left[:3])
        more = f" (and {len(left) - 3} more)" if len(left) > 3 else ""
        raise ArchiveUnfinishedError(
            f"the run ended before all was archived: {shown}{more}. What is left is in Redis, "
            "where the next run finds it",
            troubles=tuple(left),
            abandoned=self.is_busy(),
        )

    def end(self) -> None:
        """End the threads that can be ended, and leave behind those that hang."""
        self.is_ended = True
        self._workers.end()
        for waiter in list(self._waiters.values()):
            waiter.end()
        self._keeper.end(GOODBYE_TIMEOUT_S)

    def is_busy(self) -> bool:
        """Whether a worker is in a call."""
        return self._supervisor.is_running() or bool(self._beside)

    def is_in_call(self) -> bool:
        """Whether any of the threads may be in a library of a store."""
        return self.is_busy() or self._keeper.is_telling()

    def troubles(self) -> tuple[Trouble, ...]:
        """See `ContinuousArchive.troubles`."""
        found = [waiter.trouble() for waiter in list(self._waiters.values())]
        if not any(found):
            found = [self._keeper.trouble()]
        servers = [one for one in found if one is not None]
        return (*servers, *self._supervisor.troubles(), *self._troubles_beside())

    # -- for the keeper --------------------------------------------------------------------------

    def _take_up(self, topics: Sequence[Topic]) -> None:
        self._supervisor.topics_are(topics)
        self._is_listed = True

    def _keep(self) -> None:
        self._clean_if_due()
        self._follow_servers()
        self._keep_too()

    def _follow_servers(self) -> None:
        """One waiter for each server, including those that a cluster gains or loses."""
        server_looks = {server.name: server for server in self._hot.server_looks()}
        for name in self._waiters.keys() - server_looks.keys():
            self._waiters.pop(name).end()
        for name in server_looks.keys() - self._waiters.keys():
            supervisor = self._supervisor
            waiter = self._waiters[name] = ServerWatcher(
                server_looks[name], supervisor.partitions, supervisor.saw, self._tick
            )
            waiter.start()

    # -- in workers ------------------------------------------------------------------------------

    def _tick(self, *, scan: bool = True) -> None:
        """Begin with what is due. Called from any thread."""
        if self.is_ended:
            return
        for topic in self._supervisor.start(scan=scan):
            self._workers.run(partial(self._work, topic))

    def _work(self, topic: Topic) -> None:
        topic_id = topic.topic_id
        try:
            outcome: Flushed | BaseException = self._archive(topic)
        except BaseException as error:  # whatever it is, it is this topic's alone
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
            self.reports.put(flushed.report)
            self._archived(flushed.report)
            self._tidy_if_due(archiver.topic)
        return flushed

    def _is_gone(self, topic: Topic, error: BaseException) -> bool:
        """Whether the topic was deleted; an error alone may as well mean that its keys are lost."""
        if not is_of_deleted_topic(error):
            return False
        try:
            return self._hot.topics().get(topic.name).topic_id != topic.topic_id
        except Exception as failure:
            return is_of_deleted_topic(failure)

    # -- beside archiving ------------------------------------------------------------------------

    def _tidy_if_due(self, topic: Topic) -> None:
        runs = self._runs[topic.topic_id] = self._runs.get(topic.topic_id, 0) + 1
        tidy = self._tidy
        if tidy is None or self._is_draining or runs < TIDY_RUNS:
            return
        now_s = time.monotonic()
        with self._beside_lock:
            hang = [now_s - since_s >= LONG_CALL_S for since_s in self._beside.values()]
            if topic.topic_id in self._beside or not all(hang) or len(hang) >= MOST_TIDYING:
                return
            self._beside[topic.topic_id] = now_s
        self._runs[topic.topic_id] = 0
        failed = f"the files of {topic.name} were not merged"
        self._workers.run(partial(self._do_beside, topic.topic_id, partial(tidy, topic), failed))

    def _clean_if_due(self) -> None:
        if self._clean is None or self._is_draining or time.monotonic() < self._clean_s:
            return
        with self._beside_lock:
            if None in self._beside:
                return
            self._beside[None] = time.monotonic()
        self._workers.run(partial(self._do_beside, None, self._clean_all, "nothing was cleaned up"))

    def _clean_all(self) -> None:
        assert self._clean is not None
        again_s = CLEAN_AGAIN_S
        try:
            again_s = self._clean()
        finally:
            self._clean_s = time.monotonic() + again_s

    def _do_beside(self, key: UUID | None, work: Callable[[], object], failed: str) -> None:
        """Do what keeps nothing from being archived, and log what it fails at."""
        try:
            work()
        except LakelogError as error:
            logger.warning("%s, which is tried again: %s", failed, error)
        except Exception:
            logger.exception("%s, which is tried again", failed)
        finally:
            with self._beside_lock:
                del self._beside[key]
