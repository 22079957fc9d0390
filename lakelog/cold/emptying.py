"""Empties the table of a topic that is archived no more (``remote.storage.enable=false``).

The table stays, with its registers, so that a topic that is archived again goes on in it. In one
commit all files go, each partition's archived end moves to where its log starts by now, and its
reserved end grows, so that no archiver that planned before can commit any more. (That the archived
end only grows is what else keeps them out.) The table's settings say before that commit that
nothing is archived, so that none plans anew.

Source: Kafka ``remote.log.delete.on.disable``, KIP-950.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.failpoints import failpoint
from ..errors import CommitConflictError
from ..values.topic import Topic
from .change import Change
from .registers import ArchivedEnd, LogStart, Register, ReservedEnd
from .table import NO_TABLE, ColdSnapshot, ColdTable

_ATTEMPTS = 10  # archivers that planned before may come first


def empty(table: ColdTable, topic: Topic, starts: Mapping[int, int]) -> int:
    """Has a table say that its topic is archived no more, and takes all its files out of it.

    Readers of older versions find the files until they are vacuumed. Doing it again does nothing.

    Args:
        topic: untiered.
        starts: where the log of each partition starts in the hot tier, which says that it is
            untiered.

    Returns:
        How many files went.

    Raises:
        CommitConflictError: others kept committing.
        ColdTierError: see `ColdTable.apply`.
    """
    if table.snapshot().version == NO_TABLE:
        return 0
    table.mirror(topic)
    failpoint("untier.after_settings")
    for _ in range(_ATTEMPTS):
        snapshot = table.snapshot()
        change = emptying(snapshot, starts, topic.config_version)
        if not change.partitions or snapshot.config_version > topic.config_version:
            return 0
        if not table.apply(change, snapshot).superseded:
            return len(change.removes)
    raise CommitConflictError(
        f"the table of topic {topic.name!r} could not be emptied: others changed its registers "
        "each time. Nothing is lost; the next cleanup tries again",
        topic=topic.name,
    )


def table_starts(table: ColdTable, topic: Topic) -> dict[int, int]:
    """Where the partitions of a topic that is archived no more start, as its table has it.

    They start no later any more: retention's commits are refused under the settings before.
    """
    if table.snapshot().version == NO_TABLE:
        return {}
    table.mirror(topic)
    cold = table.snapshot()
    return {tp.partition: cold.log_start(tp.partition) for tp in topic.topic_partitions()}


def emptying(cold: ColdSnapshot, starts: Mapping[int, int], config_version: int) -> Change:
    """The change that empties the partitions that hold something. Pure.

    Args:
        config_version: of the settings by which the topic is archived no more: it may be again.
    """
    registers: dict[Register, int] = {}
    removes = []
    for partition, start in starts.items():
        files = cold.files.of_partition(partition)
        log_start = max(start, cold.log_start(partition))
        if not files and cold.archived_end(partition) <= cold.log_start(partition):
            continue
        removes += files
        registers[LogStart(partition)] = registers[ArchivedEnd(partition)] = log_start
        registers[ReservedEnd(partition)] = cold.reserved_end(partition) + 1
    return Change(
        removes=tuple(removes),
        registers=registers,
        empties=True,
        config_version=config_version,
    )
