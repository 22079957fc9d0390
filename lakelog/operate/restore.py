"""Bringing back topics that Redis has lost, from their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..cold.reserve import reserving
from ..cold.table import ColdSnapshot, ColdTable
from ..hot.hot_log import HotLog
from ..hot.registry import Ends, TopicRegistry
from ..topic import Topic

#: What no table tells.
NOT_RESTORED = (
    "records that were not archived yet, topics of which nothing was archived, untiered topics, "
    "what producers had sent last, and quarantined entries"
)


@dataclass(frozen=True, slots=True)
class RestoredPartition:
    """Where a partition goes on."""

    partition: int
    log_start: int
    archived_end: int  # what lies below is there again
    log_end: int  # the next record's offset, above all that was ever given out


@dataclass(frozen=True, slots=True)
class RestoredTopic:
    """A topic that is back."""

    topic: Topic
    partitions: Sequence[RestoredPartition]


def restore(lost: Topic, hot: HotLog, topics: TopicRegistry, table: ColdTable) -> RestoredTopic:
    """Brings back one topic: id, settings, and offsets above all that were ever given out.

    Doing it again, also by several at once, or after a call that was cut short, does the rest.

    Raises:
        TopicExistsError, KeyspaceInUseError: see `TopicRegistry.restore`.
        ColdTierError: the table cannot be read, or not be committed to; nothing is lost by it.
    """
    cold = table.snapshot()
    ends = {number: _ends(cold, number) for number in _numbers(lost, cold)}
    topic = topics.restore(lost, ends)
    known = [tp for tp in topic.topic_partitions() if tp.partition in ends]
    at_least = {tp: ends[tp.partition].archived_end for tp in known}
    hot.recover_all(at_least, reserving(topic, table), topic_id=topic.topic_id)
    seen = hot.offsets(topic.topic_partitions(), topic_id=topic.topic_id)
    return RestoredTopic(
        topic,
        tuple(
            RestoredPartition(
                tp.partition,
                cold.log_start(tp.partition),
                cold.archived_end(tp.partition),
                offsets.log_end,
            )
            for tp, offsets in sorted(seen.items())
        ),
    )


def _ends(cold: ColdSnapshot, partition: int) -> Ends:
    return Ends(
        cold.log_start(partition), cold.archived_end(partition), cold.reserved_end(partition)
    )


def _numbers(topic: Topic, cold: ColdSnapshot) -> Iterable[int]:
    """The topic's partitions; the table may have files of some that it was not told of yet."""
    return range(max([topic.partitions, *(number + 1 for number in cold.files.partitions)]))
