"""Bringing back topics that Redis has lost, from their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..cold.reserve import reserving
from ..cold.table import ColdSnapshot, ColdTable
from ..hot.hot_log import HotLog
from ..hot.registry import Ends, TopicRegistry
from ..values.topic import Topic
from .recorded_groups.recorder import RestoredGroup

#: What no table tells.
NOT_RESTORED = (
    "records that were not archived yet, topics of which nothing was archived, untiered topics, "
    "what groups have committed since they were recorded last, "
    "what producers had sent last (but for what is archived of Spark's sink), and notes of skipped "
    "entries"
)


class RestoredPartition(Struct, frozen=True):
    """Where a partition goes on."""

    partition: int
    log_start: int
    archived_end: int  # what lies below is there again
    log_end: int  # the next record's offset, above all that was ever given out


class RestoredTopic(Struct, frozen=True):
    """A topic that is back."""

    topic: Topic
    partitions: Sequence[RestoredPartition]
    kept_hot: bool = False  # whether the records came back that were not archived


class RestoredTopics(list[RestoredTopic]):
    """The topics that are back, and what came back of groups."""

    groups: Sequence[RestoredGroup] = ()


def restore(lost: Topic, hot: HotLog, topics: TopicRegistry, table: ColdTable) -> RestoredTopic:
    """Brings back one topic: id, settings, and offsets above all that were ever given out.

    Doing it again, also by several at once, or after a call that was cut short, does the rest.

    Raises:
        TopicExistsError, KeyspaceInUseError: see `TopicRegistry.restore`.
        ColdTierError: the table cannot be read, or not be committed to; nothing is lost by it.
    """
    return brought_back(topics.restore(lost, table_ends(lost, table.snapshot())), hot, table)


def table_ends(topic: Topic, cold: ColdSnapshot) -> dict[int, Ends]:
    """Where the partitions of a topic go on, as its table tells."""
    return {number: _ends(cold, number) for number in _numbers(topic, cold)}


def brought_back(topic: Topic, hot: HotLog, table: ColdTable | None) -> RestoredTopic:
    """A topic that Redis has again, once its partitions take appends.

    Args:
        table: None for an untiered topic.

    Raises:
        ArchivedElsewhereError: another table is the topic's, and may be away.
    """
    into = hot.archived_into()
    if table is not None:
        into.settle(topic, table)
    cold = ColdSnapshot() if table is None else table.snapshot()
    partitions = topic.topic_partitions()
    at_least = {tp: cold.archived_end(tp.partition) for tp in partitions}
    reserve = None if table is None else reserving(topic, table, into.settle)
    hot.recover_all(at_least, reserve, topic_id=topic.topic_id)
    seen = hot.offsets(partitions, topic_id=topic.topic_id)
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
