"""The moments of a log that its picture shows: where it starts, up to where it is archived."""

from __future__ import annotations

from collections.abc import Mapping

from ...offsets import LogOffsets
from .drawing import Mark
from .histogram import BOTH, COLD, HOT, Groups

#: Positions of consumer groups, by group and partition, become marks of the kind "group".
GroupPositions = Mapping[str, Mapping[int, int]]


def marks_of(groups: Groups, offsets: Mapping[int, LogOffsets]) -> list[Mark]:
    """Where records were deleted before, and from where on some are in Redis alone.

    Of several partitions, the least archived counts: before its mark, all is archived.
    """
    found = []
    timed = groups.where(groups.is_timed)
    if len(timed) and any(log.log_start > 0 for log in offsets.values()):
        first = int(timed.min_ms.min())
        found.append(Mark("start", first, text="the log starts here: before, it is deleted"))
    archived = [*timed.max_ms[(timed.tier == COLD) | (timed.tier == BOTH)].tolist()]
    waiting = timed.where(timed.tier == HOT)
    if archived and len(waiting):
        at = int(waiting.min_ms.min())
        found.append(Mark("archived", at, text="archived up to here"))
    return found
