"""The groups of records that a log's indexes know of, and the records within them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from ...cold.segment import UNKNOWN_TIMESTAMP_MS
from ...errors import MissingFileError
from ...read.stretches import TierRange, tiers_between
from ...read.tiers import Look, SegmentedLook
from ...read.topic_log import TopicLog
from .histogram import BOTH, COLD, HOT, Groups, Numbers

#: So many records are counted one by one in a time that is looked at.
COUNTED_RECORDS = 200_000

#: In so many files and hot segments: each takes a read.
COUNTED_GROUPS = 500


def groups_of(look: SegmentedLook) -> Groups:
    """A group for each cold file and each hot segment, cut where a tier ends; no record is read."""
    cold = _cold(look)
    hot = _hot(look, cold)
    size = 1 + max(look.offsets, default=-1)
    parts = []
    for tier, turns in _ranges(look).items():
        groups = cold if tier == COLD else hot
        for ranges in turns:
            low, high = np.zeros(size, np.int64), np.zeros(size, np.int64)
            numbers, low_of, high_of = np.array(ranges, np.int64).T
            low[numbers], high[numbers] = low_of, high_of
            parts.append(_between(groups, low[groups.partition], high[groups.partition], tier))
    return Groups.joined(parts)


def _ranges(look: SegmentedLook) -> dict[int, list[list[tuple[int, int, int]]]]:
    """Partition, start and end of what is shown of each tier, one of a partition in each list."""
    found: dict[int, list[list[tuple[int, int, int]]]] = {COLD: [], BOTH: [], HOT: []}
    for partition, log in look.offsets.items():
        turns = dict.fromkeys(found, 0)
        for one in tiers_between(log, look.hot[partition], log.log_start, log.log_end):
            parts = [(COLD, one.start, one.end)]
            if one.hot:
                parts = [
                    (BOTH, one.start, min(one.end, log.archived_end)),
                    (HOT, max(one.start, log.archived_end), one.end),
                ]
            for tier, low, high in parts:
                if low < high:
                    if turns[tier] == len(found[tier]):
                        found[tier].append([])
                    found[tier][turns[tier]].append((partition, low, high))
                    turns[tier] += 1
    return found


def _cold(look: SegmentedLook) -> Groups:
    """The files of all partitions that were looked at."""
    files = look.cold.files
    partition = files.numbers("partition")
    asked = np.zeros(1 + max([*look.offsets, *files.partitions], default=-1), bool)
    asked[[*look.offsets]] = True
    rows = np.flatnonzero(asked[partition] & (files.numbers("records") != 0))

    def column(name: str) -> Numbers:
        return files.numbers(name)[rows]

    start, end = column("first"), column("last") + 1
    records = column("records").astype(float)
    records = np.where(records < 0, end - start, records)  # -1: not counted
    min_ms, max_ms = column("min_timestamp_ms"), column("max_timestamp_ms")
    min_ms = np.where(max_ms == UNKNOWN_TIMESTAMP_MS, -1, min_ms)
    same = np.ones(len(start), np.int64)
    number = partition[rows].astype(np.int64)
    return Groups(number, start, end, records, min_ms, max_ms, same * COLD, same)


def _hot(look: SegmentedLook, cold: Groups) -> Groups:
    """The segments in Redis, which tells the largest timestamp of each, and of its first entry.

    So their records are taken to begin where those before them end.
    """
    size = 1 + max(look.offsets, default=-1)
    local_log_start = np.zeros(size, np.int64)
    for partition, log in look.offsets.items():
        local_log_start[partition] = log.local_log_start
    latest = np.full(size, -1, np.int64)
    before = cold.where(cold.is_timed & (cold.end <= local_log_start[cold.partition]))
    np.maximum.at(latest, before.partition, before.max_ms)
    rows = []
    for partition in look.offsets:
        before_ms = int(latest[partition])
        for segment in look.hot[partition].segments:
            start = max(
                segment.base_offset, min(int(local_log_start[partition]), segment.end_offset)
            )
            firsts = [one for one in (segment.first_timestamp_ms, before_ms) if one >= 0]
            if start > segment.base_offset and before_ms >= 0:
                firsts = [before_ms]  # its first entry was trimmed
            first = min([*firsts, segment.max_timestamp_ms])
            before_ms = max(before_ms, segment.max_timestamp_ms)
            rows.append(
                (
                    *(partition, start, segment.end_offset, segment.end_offset - start),
                    *(first, segment.max_timestamp_ms, HOT, 0),
                )
            )
    return Groups.of(rows)


def _between(groups: Groups, low: Numbers, high: Numbers, tier: int) -> Groups:
    """What lies in [low, high), one range for each group, spread evenly in the group."""
    reached = (groups.start < high) & (groups.end > low) & (low < high)
    groups, low, high = groups.where(reached), low[reached], high[reached]
    start, end = np.maximum(groups.start, low), np.minimum(groups.end, high)
    span = np.maximum(1, groups.end - groups.start)
    time = groups.max_ms - groups.min_ms
    known = groups.min_ms >= 0
    first = groups.min_ms + time * ((start - groups.start) / span)
    last = groups.min_ms + time * ((end - groups.start) / span)
    return Groups(
        groups.partition,
        start,
        end,
        groups.records * ((end - start) / span),
        np.where(known, first.astype(np.int64), -1),
        np.where(known, last.astype(np.int64), groups.max_ms),
        np.full(len(groups), tier, np.int64),
        groups.certain * ((start == groups.start) & (end == groups.end)),
    )


def to_be_counted(groups: Groups, window: tuple[int, int], step_ms: float) -> Numbers:
    """Of each group, whether it is longer than a step in the window, or may be.

    The times of uncertain ones are a guess, so each of them may reach into the window. Where that
    makes too many, they are those that seem to.
    """
    uncertain = groups.certain == 0
    within = (groups.min_ms < window[1]) & (groups.max_ms >= window[0])
    long = (groups.max_ms - groups.min_ms >= step_ms) & groups.is_timed & within | uncertain
    found = np.asarray(long & (groups.records > 0))
    return found if may_be_counted(groups, found) else np.asarray(found & within)


def may_be_counted(groups: Groups, chosen: Numbers) -> bool:
    """Whether the records of those groups are few enough to be counted one by one."""
    return (
        int(chosen.sum()) <= COUNTED_GROUPS
        and float(groups.records[chosen].sum()) <= COUNTED_RECORDS
    )


def counted(
    log: TopicLog,
    look: SegmentedLook,
    groups: Groups,
    window: tuple[int, int],
    step_ms: float,
    stopped: Callable[[], bool] = lambda: False,
) -> Groups:
    """The groups, with those that are longer than a step, or uncertain, counted record by record.

    Only those that may reach into the window, and none if together they have more than
    `COUNTED_RECORDS`, they are more than `COUNTED_GROUPS`, or a file of theirs is gone.
    """
    long = to_be_counted(groups, window, step_ms)
    if not long.any() or not may_be_counted(groups, long):
        return groups
    parts = [groups.where(~long)]
    chosen = groups.where(long)
    for row in range(len(chosen)):
        if stopped():
            return groups
        partition = int(chosen.partition[row])
        start, end = int(chosen.start[row]), int(chosen.end[row])
        try:
            times = np.concatenate(
                [np.empty(0, np.int64), *_times(log, look, partition, start, end)]
            )
        except MissingFileError:
            return groups
        kept, counts = np.unique(times, return_counts=True)
        full = np.ones(len(kept), np.int64)
        tier = full * int(chosen.tier[row])
        parts.append(
            Groups(full * partition, full * start, full * end, counts * 1.0, kept, kept, tier, full)
        )
    return Groups.joined(parts)


def _times(log: TopicLog, look: Look, partition: int, start: int, end: int) -> Iterable[Numbers]:
    ranges = tiers_between(look.offsets[partition], look.hot[partition], start, end)
    for one in ranges:
        for column in _columns(log, look, partition, one):
            micros = np.asarray(column.cast(pa.int64()))
            yield np.where(micros < 0, -1, micros // 1000)


def _columns(log: TopicLog, look: Look, partition: int, one: TierRange) -> Iterable[pa.Array]:
    if one.hot or log.table is None:
        for batch in log.read(partition, one.start, one.end):
            yield batch.column("timestamp")
        return
    files = look.cold.files.files_between(partition, one.start, one.end)
    for batch in log.table.read(files, one.start, one.end, ["timestamp"]):
        yield batch.column(batch.schema.get_field_index("timestamp"))
