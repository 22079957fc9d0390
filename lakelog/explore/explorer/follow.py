"""The tail of a partition as it grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...offsets import Latest
from .answer import answer
from .opened_topic import OpenedTopic
from .view import Ask, Shown

#: How long one blocking read of Redis lasts. A stop may go unnoticed for as long.
WAIT_MS = 500


def follow(
    opened: OpenedTopic,
    ask: Ask,
    *,
    on_shown: Callable[[Shown], None],
    stopped: Callable[[], bool],
    wait_ms: int = WAIT_MS,
) -> Shown:
    """Shows the last records, and again whenever more are appended, until stopped.

    Raises:
        UnknownTopicIdError, UnknownTopicOrPartitionError: the topic was dropped.
        HotTierUnavailableError: Redis does not answer.
    """
    ask = replace(ask, where=Latest(), history=False)
    topic_partition = opened.log.topic.partition(ask.partition)
    while True:
        shown = answer(opened, ask, on_progress=lambda _: None, stopped=stopped)
        on_shown(shown)
        end = shown.offsets.log_end
        while not opened.log.hot.wait({topic_partition: end}, wait_ms):
            if stopped():
                return shown
            # A dropped topic gets no more records: a blocking read would wait for ever.
            opened.log.hot.offsets([topic_partition], topic_id=opened.log.topic.topic_id)
        if stopped():
            return shown
