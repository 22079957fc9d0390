"""Reserves offsets in the cold table; `lakelog.reservation` says what for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import CommitConflictError
from ..values import reservation
from ..values.record import MAX_OFFSET
from ..values.reservation import Reserved, Wanted
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .change import Change
from .registers import Register, ReservedEnd
from .table import ColdSnapshot, ColdTable

_ATTEMPTS = 10  # others may reserve for the same partitions first


def reserve(table: ColdTable, wanted: Mapping[int, Wanted]) -> dict[int, OffsetRange]:
    """Reserves fresh offsets for partitions, in one commit unless others interfere.

    Args:
        wanted: by partition.

    Returns:
        A range for each partition, above all earlier ones, that nobody else has or will get.

    Raises:
        CommitConflictError: others kept reserving.
        ColdTierError: see `ColdTable.apply`; offsets that may have been reserved stay unused.
    """
    reserved: dict[int, OffsetRange] = {}
    for _ in range(_ATTEMPTS):
        snapshot = table.snapshot()
        ranges = {
            partition: _next(snapshot, partition, one)
            for partition, one in wanted.items()
            if partition not in reserved
        }
        registers: dict[Register, int] = {ReservedEnd(p): found.end for p, found in ranges.items()}
        applied = table.apply(Change(registers=registers), snapshot)
        reserved |= {p: found for p, found in ranges.items() if p not in applied.superseded}
        if len(reserved) == len(wanted):
            return reserved
    raise CommitConflictError(
        f"offsets of partitions {sorted(wanted.keys() - reserved.keys())} could not be reserved: "
        "others changed their registers each time. Nothing is lost; try again",
    )


def reserving(
    topic: Topic, table: ColdTable, settle: Callable[[Topic, ColdTable], object]
) -> Callable[[Mapping[TopicPartition, Wanted]], dict[TopicPartition, Reserved]]:
    """`reserve` in a topic's table, in the form that the hot tier calls.

    Args:
        settle: refuses if another table is the topic's: what is reserved in one, the other gives.
    """

    def reserved(wanted: Mapping[TopicPartition, Wanted]) -> dict[TopicPartition, Reserved]:
        settle(topic, table)
        found = reserve(table, {tp.partition: one for tp, one in wanted.items()})
        calls = table.last_calls(found)  # only now: until the commit, more could be archived
        return {
            topic.partition(partition): Reserved(offsets, calls.get(partition, ()))
            for partition, offsets in found.items()
        }

    return reserved


def _next(snapshot: ColdSnapshot, partition: int, wanted: Wanted) -> OffsetRange:
    made_with = reservation.FIRST_OFFSETS if wanted.offsets is None else wanted.least
    start = max(
        snapshot.registers.get(ReservedEnd(partition), 0) or made_with,
        snapshot.archived_end(partition),  # above it only if an older lakelog archived
        snapshot.log_start(partition),
        wanted.least,
    )
    records, _ = snapshot.files.totals(partition)
    count = reservation.reserved_offsets(records, wanted.offsets)
    return OffsetRange(start, min(start + count, MAX_OFFSET))
