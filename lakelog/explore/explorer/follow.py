"""The tail of a partition as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ...offsets import Latest
from .answer import answer
from .opened_topic import OpenedTopic
from .view import Ask, Shown

#: How long one blocking read of Redis lasts. A stop may go unnoticed for as long.
WAIT_MS = 500

#: Between two pages, at least: eyes see no more of them, and hands have time to hit a row.
PAUSE_S = 0.25


def follow(
    opened: OpenedTopic,
    ask: Ask,
    *,
    on_shown: Callable[[Shown], None],
    on_new: Callable[[int], None],
    holds: Callable[[], bool],
    stopped: Callable[[], bool],
    wait_ms: int = WAIT_MS,
) -> Shown:
    """Shows the last records, and again when more are appended, until stopped.

    Args:
        on_new: told how many offsets the log has grown by since the page that is shown.
        holds: whether the page is to stay as it is for now.

    Raises:
        UnknownTopicIdError, UnknownTopicOrPartitionError: the topic was dropped.
        HotTierUnavailableError: Redis does not answer.
    """
    ask = replace(ask, where=Latest(), history=False)
    topic_partition = opened.log.topic.partition(ask.partition)
    while True:
        shown = answer(opened, ask, on_progress=lambda _: None, stopped=stopped)
        on_shown(shown)
        end = seen = shown.offsets.log_end
        while seen == end or holds():
            _pause(stopped)
            grew = opened.log.hot.wait({topic_partition: seen}, wait_ms)
            if stopped():
                return shown
            # A dropped topic gets no more records: a blocking read would wait for ever.
            found = opened.log.hot.offsets([topic_partition], topic_id=opened.log.topic.topic_id)
            if grew:
                seen = max(seen, found[topic_partition].log_end)
                on_new(seen - end)
        if stopped():
            return shown


def _pause(stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + PAUSE_S
    while time.monotonic() < until and not stopped():
        time.sleep(PAUSE_S / 10)
