"""Archiving many topics for as long as it is told, each at its own pace."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from threading import Event, Thread
from uuid import UUID

from ..errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from .archiver import Archiver
from .report import ArchiveReport

logger = logging.getLogger(__name__)

#: How often new topics are looked for; also how soon a stop is noticed.
LOOK_INTERVAL_S = 1.0


def archive_continuously(
    archivers: Callable[[], Mapping[UUID, Archiver]],
    stop: Event,
    max_duration: timedelta | None = None,
) -> Iterator[ArchiveReport]:
    """Runs an archiver a topic until told to stop, and yields their reports as they come.

    A topic that fails does not stop the others; its error is logged when it happens and raised
    when all have ended. When the iterator is closed, everything is stopped and drained.

    Args:
        archivers: by topic id; asked for again and again, so that a topic seen for the first time
            gets a thread of its own. One whose topic was deleted just ends.
        stop: set it to drain and end.
        max_duration: end by itself after so long.
    """
    deadline_s = None if max_duration is None else time.monotonic() + max_duration.total_seconds()
    reports: queue.SimpleQueue[ArchiveReport] = queue.SimpleQueue()
    threads: dict[UUID, Thread] = {}
    errors: dict[UUID, BaseException] = {}
    ending = Event()

    def run(topic_id: UUID, archiver: Archiver) -> None:
        try:
            for report in archiver.run(ending):
                reports.put(report)
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
    yield from waiting()
    if errors:
        raise next(iter(errors.values()))
