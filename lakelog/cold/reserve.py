"""Reserves offsets in the cold table; `lakelog.reservation` says what for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import compute as pc
from .. import reservation
from ..errors import CommitConflictError
from ..record import MAX_OFFSET, OffsetRange, TopicPartition
from ..reservation import Reserved
from ..topic import Topic
from .change import Change
from .registers import Register, ReservedEnd
from .table import ColdSnapshot, ColdTable

_ATTEMPTS = 10  # others may reserve for the same partitions first


def reserve(table: ColdTable, at_least: Mapping[int, int]) -> dict[int, OffsetRange]:
    """Reserves fresh offsets for partitions, in one commit unless others interfere.

    Args:
        at_least: by partition, an offset that its reservation starts at or above.

    Returns:
        A range for each partition, above all earlier ones, that nobody else has or will get.

    Raises:
        CommitConflictError: others kept reserving.
        ColdTierError: see `ColdTable.apply`; offsets that may have been reserved stay unused.
    """
    reserved: dict[int, OffsetRange] = {}
    for _ in range(_ATTEMPTS):
        snapshot = table.snapshot()
        wanted = {
            partition: _next(snapshot, partition, offset)
            for partition, offset in at_least.items()
            if partition not in reserved
        }
        registers: dict[Register, int] = {ReservedEnd(p): found.end for p, found in wanted.items()}
        applied = table.apply(Change(registers=registers), snapshot)
        reserved |= {p: found for p, found in wanted.items() if p not in applied.superseded}
        if len(reserved) == len(at_least):
            return reserved
    raise CommitConflictError(
        f"offsets of partitions {sorted(at_least.keys() - reserved.keys())} could not be reserved: "
        "others changed their registers each time. Nothing is lost; try again",
    )


def reserving(
    topic: Topic, table: ColdTable, settle: Callable[[Topic, ColdTable], object]
) -> Callable[[Mapping[TopicPartition, int]], dict[TopicPartition, Reserved]]:
    """`reserve` in a topic's table, in the form that the hot tier calls.

    Args:
        settle: refuses if another table is the topic's: what is reserved in one, the other gives.
    """

    def reserved(at_least: Mapping[TopicPartition, int]) -> dict[TopicPartition, Reserved]:
        settle(topic, table)
        found = reserve(table, {tp.partition: offset for tp, offset in at_least.items()})
        calls = table.last_calls(found)  # only now: until the commit, more could be archived
        return {
            topic.partition(partition): Reserved(offsets, calls.get(partition, ()))
            for partition, offsets in found.items()
        }

    return reserved


def _next(snapshot: ColdSnapshot, partition: int, at_least: int) -> OffsetRange:
    start = max(
        snapshot.reserved_end(partition),
        snapshot.archived_end(partition),  # above it only if an older lakelog archived
        snapshot.log_start(partition),
        at_least,
    )
    rows = snapshot.files.rows_of_partition(partition)
    records = pc.sum(rows["records"]).as_py() or 0
    return OffsetRange(start, min(start + reservation.reserved_offsets(records), MAX_OFFSET))
