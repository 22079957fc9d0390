"""Bringing back topics: those that Redis has lost, from their tables, and deleted ones while they
are kept. Deleted ones that are not any more are removed for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..base.failpoints import failpoint
from ..cold.answers import PurgedTopic
from ..cold.reserve import reserving
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import (
    ArchivedElsewhereError,
    LakelogError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from ..hot.archived_into import check_own
from ..hot.hot_log import HotLog
from ..hot.registry import Ends, TopicRegistry
from ..hot.topic_definition import purged
from ..place import ColdRoot
from ..values.topic import Topic
from .group_recorder import RestoredGroup

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
        TopicExistsError: see `TopicRegistry.restore`.
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


def undelete(
    deleted: Topic,
    hot: HotLog,
    topics: TopicRegistry,
    table: ColdTable | None,
    *,
    gone: bool = False,
) -> RestoredTopic:
    """Brings back a deleted topic with all that is kept of it.

    Doing it again, also by several at once, or after a call that was cut short, does the rest.

    Args:
        deleted: one of `TopicRegistry.deleted`.
        table: None for an untiered topic that never had one.
        gone: what was archived is gone for good, and what Redis kept comes back alone.

    Raises:
        ArchivedElsewhereError: see `check_not_away`; nothing was changed.
        TopicExistsError, PolicyViolationError: see `TopicRegistry.undelete`; or nothing is left.
        ColdTierError: the table cannot be read, or not be committed to; nothing was changed.
    """
    if not topics.may_return(deleted):
        raise purged(deleted)
    if table is not None and not gone:
        check_not_away(deleted, topics, table, "undelete")
    kept = topics.has_kept(deleted)
    held = None if table is None else table.mirrored()
    tiered = deleted.config.tiered
    if not kept and (held is None or not tiered):
        raise PolicyViolationError(
            f"nothing is left of topic {deleted.name!r} with id {deleted.topic_id}: Redis kept its "
            "records for file.delete.delay.ms, and no table holds any",
            topic=deleted.name,
            topic_id=deleted.topic_id,
        )
    version = deleted.config_version + (deleted.deleted_ms is not None)
    if held is not None:
        is_told = held.deleted_ms is None  # by another call, or one that was cut short
        version = max(version, held.config_version + (not is_told))
    returned = replace(deleted, deleted_ms=None, purged_ms=None, config_version=version)
    if table is not None:
        table.mirror(returned)  # first, since a cleanup without Redis goes by what it says
    failpoint("undelete.after_table")
    if not tiered:
        table = None  # it says what Redis says, but holds nothing
    ends = {} if table is None else table_ends(deleted, table.snapshot())
    topic = topics.undelete(returned, ends)
    if table is not None and gone:
        hot.archived_into().adopt(topic, table)
    return replace(brought_back(topic, hot, table), kept_hot=kept)


def check_not_away(deleted: Topic, topics: TopicRegistry, table: ColdTable, verb: str) -> None:
    """Refuses to go by a table that is not there while Redis knows that the topic had one: it would
    miss what is done now, and tell of the topic as it was once it is back.

    Args:
        verb: what to do with the topic, as ``lakelog topics`` has it.

    Raises:
        ArchivedElsewhereError: so it is.
    """
    gone = f"lakelog topics {verb} {deleted.name} --gone"
    into = topics.deleted_into(deleted)
    try:
        check_own(deleted, table, into, gone)
    except ArchivedElsewhereError:
        raise
    except LakelogError:
        return  # it is damaged, being removed, or does not answer: what follows says so


def purge(
    deleted: Topic,
    topics: TopicRegistry | None,
    table: ColdTable | None,
    root: ColdRoot | None = None,
) -> PurgedTopic:
    """Removes a deleted topic for good: hot records, table, names in a catalog.

    Doing it again after a call that was cut short does the rest.

    Args:
        topics: None where only the table is there to tell that it was deleted.
        table: None for an untiered topic.
        root: where the table lies.

    Raises:
        PolicyViolationError: the topic came back meanwhile; nothing was removed.
        ColdTierError: something of the table could not be removed; doing it again goes on.
    """
    if topics is not None:
        deleted = topics.begin_purge(deleted)
    failpoint("purge.after_begin")
    cold = None
    if table is not None:
        if root is not None:
            root.forget(deleted)
        cold = table.purge(decided=topics is not None)
    failpoint("purge.before_end")
    if topics is not None:
        topics.end_purge(deleted)
    return PurgedTopic(deleted, cold)


def is_expired(deleted: Topic, now_ms: int) -> bool:
    """Whether a deleted topic is kept no longer."""
    until_ms = deleted.kept_until_ms
    return deleted.purged_ms is not None or (until_ms is not None and now_ms >= until_ms)


def chosen(name: str, topic_id: str | None, found: list[Topic]) -> Topic:
    """Which of the deleted topics of a name is meant.

    Args:
        topic_id: None for the one that was deleted last.
        found: in the order of their deletions.

    Raises:
        UnknownTopicOrPartitionError: none is.
    """
    fitting = [one for one in found if topic_id in (None, str(one.topic_id))]
    if fitting:
        return fitting[-1]
    which = "" if topic_id is None else f" with id {topic_id}"
    others = ", ".join(str(one.topic_id) for one in found)
    raise UnknownTopicOrPartitionError(
        f"no deleted topic {name!r}{which} is kept: "
        + (
            f"those of that name have the ids {others}"
            if others
            else "none was deleted, or cleanup (after file.delete.delay.ms) or a purge has removed "
            "it. `lakelog topics list --deleted` shows what is kept"
        ),
        topic=name,
    )
