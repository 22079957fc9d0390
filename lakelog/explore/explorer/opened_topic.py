"""A topic as the explorer holds it: the log, and where its records are."""

from __future__ import annotations

from collections.abc import Iterable

from ...read.stretches import Stretch, stretches
from ...read.tiers import Look, SegmentedLook
from ...read.topic_log import TopicLog


class OpenedTopic:
    """One log, and what was last seen of it, so that another look costs only the changes."""

    def __init__(self, log: TopicLog) -> None:
        self.log = log
        self._tiers = log.tiers()

    def look(self, partitions: Iterable[int]) -> SegmentedLook:
        """Both tiers of some partitions as of now."""
        asked = [*partitions]
        for partition in asked:
            self.log.topic.partition(partition)
        return self._tiers.look_at_segments(asked)


def stretches_of(look: Look) -> list[Stretch]:
    """Where the records of the look's one partition are, by offset."""
    return stretches(look)


def likely_start(found: list[Stretch], log_start: int, end: int, records: int) -> int:
    """An offset with about so many records between it and `end`.

    It always reaches into one more stretch, so that repeated calls arrive at the log start.

    Args:
        found: of one partition, by offset.
        records: ≥ 1.
    """
    wanted = records
    for stretch in reversed(found):
        below = min(end, stretch.end)
        if below <= max(stretch.start, log_start):
            continue
        offsets = stretch.end - stretch.start
        # Rounded up: where records are sparse, each stands for several offsets.
        span = -(-wanted * offsets // stretch.records)
        start = max(stretch.start, below - span, log_start)
        wanted -= (below - start) * stretch.records // offsets
        if wanted <= 0 or start > stretch.start:
            return start
    return log_start
