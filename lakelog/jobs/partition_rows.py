"""Which partitions the rows of a run that goes on tell of: those of which there is news."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import msgspec

from ..operate.status import PartitionStatus, Status
from ..values.topic_partition import TopicPartition

#: How often a run tells all partitions. What shows where things stand looks two hours back.
TOLD_AGAIN_S = 3600.0


class PartitionRows:
    """What the rows of a run have told of partitions.

    Ten thousand partitions that stand still leave 10,000 rows an hour, not 600,000.
    """

    def __init__(self) -> None:
        self._told: dict[TopicPartition, PartitionStatus] = {}
        self._told_all_s = float("-inf")
        self._odd: frozenset[str] = frozenset()  # topics whose last rows are about what failed
        self._chosen: tuple[Status, frozenset[str], float | None] | None = None

    def choose(
        self, status: Status, changed: Collection[TopicPartition], odd: Collection[str]
    ) -> Status:
        """What the next rows tell of a look.

        Args:
            changed: what the run changed since its last rows.
            odd: topics of which the rows tell what failed.
        """
        now_s = time.monotonic()
        is_all = now_s - self._told_all_s >= TOLD_AGAIN_S
        told: Mapping[TopicPartition, PartitionStatus] = {} if is_all else self._told
        again = frozenset(odd) | {one.topic for one in status.failures}
        chosen = with_news(status.partitions, told, changed, self._odd | again)
        status = msgspec.structs.replace(status, partitions=chosen)
        self._chosen = status, again, now_s if is_all else None
        return status

    def confirm(self) -> None:
        """That the rows are written."""
        if self._chosen is None:
            return
        status, self._odd, all_s = self._chosen
        self._told_all_s = self._told_all_s if all_s is None else all_s
        self._told.update((one.topic_partition, one) for one in status.partitions)
        self._chosen = None


def with_news(
    seen: Collection[PartitionStatus],
    told: Mapping[TopicPartition, PartitionStatus],
    changed: Collection[TopicPartition],
    odd: Collection[str],
) -> tuple[PartitionStatus, ...]:
    """Those that get a row: what waits, or stands elsewhere than was told; one, if none does.

    Args:
        told: how each was told last.
        changed: these get one.
        odd: so do those of these topics, of which it is told what fails, or was.
    """
    news = tuple(
        one
        for one in seen
        if one.unarchived
        or told.get(one.topic_partition) != one
        or one.topic_partition in changed
        or one.topic_partition.topic in odd
    )
    return news or tuple(seen)[:1]
