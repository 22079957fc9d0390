"""How many entries to ask for, as Redis counts entries where Kafka counts bytes."""

from __future__ import annotations

from ..hot.fetch import EntriesStep
from ..values.config import KIB, MIB
from ..values.topic_partition import TopicPartition

_MAX_COUNT = 4_096
_MAX_PARTITIONS = 100_000  # remembered


class EntrySizes:
    """About how large the entries of partitions are, by which it is known how many to ask for."""

    def __init__(self) -> None:
        self._found: dict[TopicPartition, tuple[int, int]] = {}  # on average, the largest

    def count(self, topic_partition: TopicPartition, max_bytes: int) -> int:
        """How many entries bring about so much, and at worst not much more."""
        average, largest = self._found.get(topic_partition, (64 * KIB, MIB))
        at_worst = max(1, 2 * max(max_bytes, MIB) // largest)
        return max(1, min(_MAX_COUNT, at_worst, -(-max_bytes // average)))

    def learn(self, topic_partition: TopicPartition, step: EntriesStep) -> None:
        """Takes note of entries."""
        if step.entries:
            if len(self._found) > _MAX_PARTITIONS:
                self._found.clear()
            size = sum(sum(map(len, fields)) for _, fields in step.entries)
            largest = max(1, step.largest_entry_bytes)
            self._found[topic_partition] = max(1, size // len(step.entries)), largest
