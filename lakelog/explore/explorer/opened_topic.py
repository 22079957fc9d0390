"""A topic as the explorer holds it: the log, and where its records are."""

from __future__ import annotations

from collections.abc import Iterable

from ...read.tiers import SegmentedLook
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
