"""Archiving many topics for as long as it is told, each at its own pace."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Event, Thread
from uuid import UUID

from ..errors import LakelogError, UnknownTopicIdError, UnknownTopicOrPartitionError
from ..topic import Topic
from .archiver import Archiver
from .report import ArchiveReport

logger = logging.getLogger(__name__)

#: How often new topics are looked for; also how soon a stop is noticed.
LOOK_INTERVAL_S = 1.0

#: After so many runs of a topic it is tidied. Each run leaves a file a partition, so that is about
#: how many more an open segment ever has than tidying leaves.
TIDY_RUNS = 16


def archive_continuously(
    archivers: Callable[[], Mapping[UUID, Archiver]],
    stop: Event,
    max_duration: timedelta | None = None,
    *,
    tidy: Callable[[Topic], object] | None = None,
) -> Iterator[ArchiveReport]:
    """Runs an archiver a topic until told to stop, and yields their reports as they come.

    A topic that fails does not stop the others; its error is logged when it happens and raised
    when all have ended. When the iterator is closed, everything is stopped and drained.

    Args:
        archivers: by topic id; asked for again and again, so that a topic seen for the first time
            gets a thread of its own. One whose topic was deleted just ends.
        stop: set it to drain and end.
        max_duration: end by itself after so long.
        tidy: merges a topic's small files. Called now and then, one topic at a time, beside the
            archiving; when it fails, that is logged and it is tried again later.
    """
    deadline_s = None if max_duration is None else time.monotonic() + max_duration.total_seconds()
    reports: queue.SimpleQueue[ArchiveReport] = queue.SimpleQueue()
    threads: dict[UUID, Thread] = {}
    errors: dict[UUID, BaseException] = {}
    ending = Event()
    tidying = ThreadPoolExecutor(1, thread_name_prefix="lakelog-tidy")

    def run(topic_id: UUID, archiver: Archiver) -> None:
        tidied: Future[None] | None = None
        runs = 0
        try:
            for report in archiver.run(ending):
                reports.put(report)
                runs += 1
                idle = tidied is None or tidied.done()
                if tidy is not None and runs >= TIDY_RUNS and idle and not ending.is_set():
                    tidied = tidying.submit(_tidy, tidy, archiver.topic)
                    runs = 0
        except (UnknownTopicIdError, UnknownTopicOrPartitionError) as error:
            logger.warning("archiving ends: %s", error)
        except BaseException as error:
            errors[topic_id] = error
            logger.exception("archiving topic %s ended", topic_id)

    def waiting() -> Iterator[ArchiveReport]:
        while not reports.empty():
            yield reports.get()

    try:
        while True:  # at least once: a stop that comes at once still drains
            for topic_id, archiver in archivers().items():
                if topic_id not in threads:
                    threads[topic_id] = Thread(target=run, args=(topic_id, archiver), daemon=True)
                    threads[topic_id].start()
            left_s = LOOK_INTERVAL_S if deadline_s is None else deadline_s - time.monotonic()
            if stop.is_set() or left_s <= 0 or (errors and len(errors) == len(threads)):
                break
            stop.wait(min(LOOK_INTERVAL_S, left_s))
            yield from waiting()
    finally:
        ending.set()
        for thread in threads.values():
            thread.join()
        tidying.shutdown(cancel_futures=True)
    yield from waiting()
    if errors:
        raise next(iter(errors.values()))


def _tidy(tidy: Callable[[Topic], object], topic: Topic) -> None:
    try:
        tidy(topic)
    except LakelogError as error:
        logger.warning(
            "the files of %s were not merged, which is tried again: %s", topic.name, error
        )
    except Exception:
        logger.exception("the files of %s were not merged, which is tried again", topic.name)
