"""The moments of a log that its picture shows: its start, its archived end, its readers."""

from __future__ import annotations

from collections.abc import Mapping

from ...values.offsets import LogOffsets
from .drawing import Mark
from .histogram import BOTH, COLD, HOT, Groups

#: So many readers have a mark.
MOST_READERS = 3


def marks_of(
    groups: Groups,
    offsets: Mapping[int, LogOffsets],
    positions: Mapping[str, Mapping[int, int]] | None = None,
) -> list[Mark]:
    """Where records were deleted before, and from where on some are in Redis alone.

    Of several partitions, the least archived counts: before its mark, all is archived.

    Args:
        positions: the next offset of each reader, by its name and partition: where it is furthest
            behind is marked, of the `MOST_READERS` that are that most. One that has read all has
            no mark.
    """
    found = []
    timed = groups.where(groups.is_timed)
    if len(timed) and any(log.log_start > 0 for log in offsets.values()):
        first = int(timed.min_ms.min())
        found.append(Mark("start", first, text="the log starts here: before, it is deleted"))
    archived = ((timed.tier == COLD) | (timed.tier == BOTH)).any()
    waiting = timed.where(timed.tier == HOT)
    if archived and len(waiting):
        at = int(waiting.min_ms.min())
        found.append(Mark("archived", at, text="archived up to here"))
    readers = []
    for name, by_partition in sorted((positions or {}).items()):
        times = [
            time
            for partition, offset in by_partition.items()
            if (time := _time_of(timed, partition, offset)) is not None
        ]
        if times:
            readers.append((min(times), name))
    for row, (at, name) in enumerate(sorted(readers)[:MOST_READERS]):
        text = f"{name} has read up to here"
        if len(readers) > MOST_READERS and row == MOST_READERS - 1:
            text += f"; {len(readers) - MOST_READERS:,} more are further"
        found.append(Mark("group", at, text=text, label=name, row=row))
    return found


def _time_of(timed: Groups, partition: int, offset: int) -> int | None:
    """About when the next record of a reader is; None: it has read all."""
    left = timed.where((timed.partition == partition) & (timed.end > offset))
    if not len(left):
        return None
    first = left.where(left.start == left.start.min())
    start, end = int(first.start[0]), int(first.end[0])
    low, high = int(first.min_ms.min()), int(first.max_ms.max())
    share = (max(start, offset) - start) / max(1, end - start)
    return low + round(share * (high - low))
