"""When a log's records are, by their timestamps: from the indexes of both tiers, or counted.

The indexes say how many records lie between two timestamps. Where these lie in different steps of
the time that is drawn, files' footers say when the records of each row group are, and then records
are counted one by one, as far as a `Budget` allows. What is left is spread evenly over its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..cold.answers import RowGroupTimes
from ..cold.schema import ROW_GROUP_ROWS
from ..cold.segment import UNKNOWN_TIMESTAMP_MS
from ..errors import LakelogError, MissingFileError, OffsetOutOfRangeError
from ..read.stretches import TierRange, tiers_between
from ..read.tiers import Look, SegmentedLook
from ..read.topic_log import TopicLog
from ..values.config import KIB, MIB
from ..values.topic_partition import OffsetRange
from .histogram import BOTH, COLD, HOT, Groups, Numbers

#: So many footers are read to know row groups, and about so many bytes of them.
MOST_FOOTERS, MOST_FOOTER_BYTES = 200, 8 * MIB
_ROW_GROUP_BYTES = 2 * KIB  # of a footer, about


class Budget(Struct, frozen=True):
    """How much may be read to know times better than the indexes do."""

    cold_records: int
    hot_records: int
    groups: int  # each takes a read
    shortest_steps: float  # shorter groups are not counted, though they may reach over an edge
    hot_bytes: float = 64 * MIB  # about: Redis gives whole records, not their timestamps alone
    files_first: bool = False  # what both tiers have is read from files


#: Of a picture that is drawn at once, and of a chart that is asked for.
PICTURE = Budget(200_000, 200_000, 500, 1)
CHART = Budget(10_000_000, 500_000, 5_000, 0, files_first=True)


# -- what the indexes know ------------------------------------------------------------------------


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


#: Of so many partitions the first record is read.
_MOST_BEGUN = 64


def begun(log: TopicLog, groups: Groups) -> Groups:
    """The groups, with the time of each partition's first record where that lies in Redis: it tells
    of a segment's first entry only the largest timestamp, and an entry may have days of records.
    """
    min_ms = groups.min_ms.copy()
    order = np.lexsort((groups.start, groups.partition))
    _, firsts = np.unique(groups.partition[order], return_index=True)
    for row in order[firsts][:_MOST_BEGUN]:
        if groups.tier[row] == COLD:
            continue
        start = int(groups.start[row])
        with suppress(LakelogError):  # the picture shows what is known without it
            for batch in log.read(int(groups.partition[row]), start, start + 1):
                first_ms = batch.column("timestamp")[0].value // 1000
                if first_ms >= 0 and not 0 <= min_ms[row] <= first_ms:
                    min_ms[row] = first_ms
    return replace(groups, min_ms=min_ms)


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
        before_ms, local = int(latest[partition]), int(local_log_start[partition])
        for segment in look.hot[partition].segments:
            start = max(segment.base_offset, min(local, segment.end_offset))
            firsts = [one for one in (segment.first_timestamp_ms, before_ms) if one >= 0]
            if start > segment.base_offset and before_ms >= 0:
                firsts = [before_ms]  # its first entry was trimmed
            first = min([*firsts, segment.max_timestamp_ms])
            before_ms = max(before_ms, segment.max_timestamp_ms)
            end, last = segment.end_offset, segment.max_timestamp_ms
            rows.append((partition, start, end, end - start, first, last, HOT, 0))
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


def covered(files: pa.Table, gaps: Sequence[OffsetRange], log_start: int = 0) -> Numbers:
    """How many offsets each file was made of: its records, and those that compaction removed.

    Offsets that were skipped after an unclean stop are in no file, though they may lie in a file's
    range: before its segment's base, or within it if compaction merged the segments on both sides.

    Args:
        files: rows of a segment index.
        gaps: as the hot tier declares them.
        log_start: records below it were deleted, and are not counted.
    """
    first = np.maximum(np.asarray(files["segment"]), np.asarray(files["start_offset"]))
    end = np.asarray(files["end_offset"])
    kept = np.maximum(first, log_start)
    found: Numbers = np.maximum(0, end - kept)
    for gap in gaps:
        within = (first < gap.start) & (gap.end <= end)
        found = np.where(
            within, found - np.maximum(0, gap.end - np.maximum(gap.start, kept)), found
        )
    return found


def removed_groups(look: SegmentedLook) -> Groups:
    """What compaction took out of cold files, over the time of what it left of each.

    The records of a file that it emptied came between those of its neighbours.
    """
    parts = []
    for partition, log in look.offsets.items():
        files, gaps = look.cold.files.rows_of_partition(partition), look.hot[partition].gaps
        if not files.num_rows:
            continue
        low, high = log.log_start, max(log.log_start, log.local_log_start)
        whole = covered(files, gaps, low) - covered(files, gaps, high)
        start, end = np.asarray(files["first"]), np.asarray(files["last"]) + 1
        records = np.asarray(files["records"])
        share = (np.minimum(end, high) - np.maximum(start, low)) / np.maximum(1, end - start)
        there = np.where(records < 0, whole, records * np.clip(share, 0, 1))
        min_ms, max_ms = (
            np.asarray(files[f"{name}_timestamp_ms"]).astype(np.int64) for name in ("min", "max")
        )
        timed = (max_ms >= 0) & (max_ms < UNKNOWN_TIMESTAMP_MS) & (records != 0)
        min_ms = np.where(max_ms == UNKNOWN_TIMESTAMP_MS, -1, min_ms)
        if timed.any():
            known = np.flatnonzero(timed)
            emptied = np.flatnonzero(records == 0)
            after = np.searchsorted(known, emptied)
            last_before = max_ms[known[np.maximum(0, after - 1)]]
            first_after = min_ms[known[np.minimum(len(known) - 1, after)]]
            min_ms[emptied] = np.minimum(last_before, first_after)
            max_ms[emptied] = np.maximum(last_before, first_after)
        same = np.ones(len(start), np.int64)
        gone = np.maximum(0.0, whole - there)
        parts.append(
            Groups(same * partition, start, end, gone, min_ms, max_ms, same * COLD, same * 0)
        )
    found = Groups.joined(parts)
    return found.where(found.records > 0)


# -- what is read to know more --------------------------------------------------------------------


def refined(
    log: TopicLog,
    look: SegmentedLook,
    groups: Groups,
    edges_ms: Numbers,
    budget: Budget,
    stopped: Callable[[], bool] = lambda: False,
) -> Groups:
    """The groups, with those that reach over an edge, or may, as row groups or counted.

    A file that is gone stays as the index had it.

    Raises:
        LakelogError: a tier cannot be read.
    """
    long = to_be_counted(groups, edges_ms, budget)
    if float(groups.records[long].sum()) > budget.cold_records:
        groups = _by_row_groups(log, look, groups, long, stopped)
        long = to_be_counted(groups, edges_ms, budget)
    chosen = _affordable(look, groups, long, edges_ms, budget)
    return counted(log, look, groups, chosen, budget, edges_ms, stopped)


def counted(
    log: TopicLog,
    look: SegmentedLook,
    groups: Groups,
    chosen: Numbers,
    budget: Budget,
    edges_ms: Numbers | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Groups:
    """The groups, with the records of some counted one by one.

    Args:
        chosen: their row numbers.
        edges_ms: those between two edges become a group; None: those of a timestamp.
    """
    rest = np.ones(len(groups), bool)
    from_files = in_files(look, groups, budget)
    parts = []
    for row in chosen.tolist():
        if stopped():
            break
        try:
            times = _times(log, look, groups, row, bool(from_files[row]))
        except (MissingFileError, OffsetOutOfRangeError):  # rewritten or deleted since the look
            continue
        rest[row] = False
        steps = times if edges_ms is None else np.searchsorted(edges_ms, times, "right")
        steps = np.where(times < 0, -1, steps)
        _, firsts, counts = np.unique(steps, return_index=True, return_counts=True)
        full = np.ones(len(firsts), np.int64)
        partition, start, end, tier = (
            full * int(column[row])
            for column in (groups.partition, groups.start, groups.end, groups.tier)
        )
        last_ms = times[firsts + counts - 1]
        parts.append(
            Groups(partition, start, end, counts * 1.0, times[firsts], last_ms, tier, full)
        )
    return Groups.joined([groups.where(rest), *parts])


def to_be_counted(groups: Groups, edges_ms: Numbers, budget: Budget) -> Numbers:
    """Whether each group reaches over an edge, or may: the times of uncertain ones are a guess."""
    first, last = (
        np.searchsorted(edges_ms, one, "right") for one in (groups.min_ms, groups.max_ms)
    )
    shortest_ms = budget.shortest_steps * (edges_ms[1] - edges_ms[0])
    long = (first != last) & groups.is_timed & (groups.max_ms - groups.min_ms >= shortest_ms)
    return np.asarray((long | (groups.certain == 0)) & (groups.records > 0))


def _affordable(
    look: SegmentedLook, groups: Groups, long: Numbers, edges_ms: Numbers, budget: Budget
) -> Numbers:
    """Of those to be counted, what the budget allows: first those that seem to be in the time."""
    rows = np.flatnonzero(long)
    within = (groups.min_ms < edges_ms[-1]) & (groups.max_ms >= edges_ms[0])
    wide = groups.max_ms - groups.min_ms
    rows = rows[np.lexsort((-wide[rows], ~within[rows]))][: budget.groups]
    return affordable(look, groups, rows, budget)


def affordable(look: SegmentedLook, groups: Groups, rows: Numbers, budget: Budget) -> Numbers:
    """Of these rows, in their order, what the budget allows to be read of either tier."""
    is_cold = in_files(look, groups, budget)[rows]
    cold, hot = rows[is_cold], rows[~is_cold]
    cold = cold[np.cumsum(groups.records[cold]) <= budget.cold_records]
    few = np.cumsum(groups.records[hot]) <= budget.hot_records
    hot = hot[few & (np.cumsum(hot_bytes(look, groups.where(hot), budget)) <= budget.hot_bytes)]
    return np.concatenate([cold, hot])


def in_files(look: SegmentedLook, groups: Groups, budget: Budget) -> Numbers:
    """Whether each group is read from files: what Redis has too, unless compaction took from it."""
    thinned = np.zeros(1 + max(look.offsets, default=-1), np.int64)
    for partition in look.offsets:
        thinned[partition] = look.cold.thinned_end(partition)
    is_kept = groups.start >= thinned[groups.partition]
    return np.asarray(
        (groups.tier == COLD) | ((groups.tier == BOTH) & is_kept & budget.files_first)
    )


def hot_bytes(look: SegmentedLook, groups: Groups, budget: Budget) -> Numbers:
    """About how many bytes Redis gives for each group: its records are as large as all are. None
    for what is read from files.
    """
    of_one = np.zeros(1 + max(look.offsets, default=-1))
    for partition in look.offsets:
        segments = look.hot[partition].segments
        many = sum(segment.end_offset - segment.base_offset for segment in segments)
        of_one[partition] = sum(segment.size_bytes for segment in segments) / max(1, many)
    return np.where(in_files(look, groups, budget), 0, groups.records * of_one[groups.partition])


def _times(log: TopicLog, look: Look, groups: Groups, row: int, from_files: bool) -> Numbers:
    """The timestamps of the records of a group, ascending; -1: without one."""
    partition, start, end = (
        int(column[row]) for column in (groups.partition, groups.start, groups.end)
    )
    found = [np.empty(0, np.int64)]
    ranges: Iterable[TierRange]
    ranges = tiers_between(look.offsets[partition], look.hot[partition], start, end)
    if from_files and log.table is not None:
        ranges = [TierRange(hot=False, start=start, end=end)]
    for one in ranges:
        for column in _timestamps(log, look, partition, one):
            micros = np.asarray(column.cast(pa.int64()))
            found.append(np.where(micros < 0, -1, micros // 1000))
    return np.sort(np.concatenate(found))


def _timestamps(log: TopicLog, look: Look, partition: int, one: TierRange) -> Iterable[pa.Array]:
    if one.hot or log.table is None:
        for batch in log.read(partition, one.start, one.end):
            yield batch.column("timestamp")
        return
    files = look.cold.files.files_between(partition, one.start, one.end)
    for batch in log.table.read(files, one.start, one.end, ["timestamp"]):
        yield batch.column(batch.schema.get_field_index("timestamp"))


def _by_row_groups(
    log: TopicLog,
    look: SegmentedLook,
    groups: Groups,
    long: Numbers,
    stopped: Callable[[], bool],
) -> Groups:
    """The groups, with those of the long ones that files have as their files' row groups.

    The ones with most records first, until `MOST_FOOTERS` are read, or about `MOST_FOOTER_BYTES`.
    What hot has, too, is told by the files where compaction took nothing from them.
    """
    if log.table is None:
        return groups
    rows = np.flatnonzero(long & (groups.tier != HOT))
    rows = rows[np.argsort(-groups.records[rows], kind="stable")]
    parts: list[Groups] = []
    looked = np.zeros(len(groups), bool)
    footers = size_bytes = 0
    for row in rows.tolist():
        partition, tier = int(groups.partition[row]), int(groups.tier[row])
        start, end = int(groups.start[row]), int(groups.end[row])
        if tier == BOTH and start < look.cold.thinned_end(partition):
            continue
        files = look.cold.files.files_between(partition, start, end)
        if sum(max(1, file.records) for file in files) <= ROW_GROUP_ROWS * len(files):
            continue  # one row group each, about: the index says as much
        footers += len(files)
        size_bytes += sum(_ROW_GROUP_BYTES * (1 + file.records // ROW_GROUP_ROWS) for file in files)
        if footers > MOST_FOOTERS or size_bytes > MOST_FOOTER_BYTES or stopped():
            break
        try:
            found = log.table.row_groups(files, start, end)
        except MissingFileError:
            continue
        within = _cut(found, partition, start, end, tier)
        # Together they are all of it, unless some file does not tell.
        expected = float(groups.records[row])
        off = 1 if groups.certain[row] else 1 + expected / 20  # what is cut out is estimated
        told = float(within.records.sum())
        if abs(told - expected) < off and told:
            # A row group that the group cuts, such as before its first row that was not deleted, is
            # told by a share; how many there are in all is known.
            parts.append(replace(within, records=within.records * (expected / told)))
            looked[row] = True
    return Groups.joined([groups.where(~looked), *parts])


def _cut(found: Sequence[RowGroupTimes], partition: int, start: int, end: int, tier: int) -> Groups:
    """Row groups as far as they lie in [start, end), their rows spread evenly over them."""
    columns = (
        np.array([getattr(one, name) for one in found], np.int64)
        for name in RowGroupTimes.__struct_fields__
    )
    first, last, records, min_ms, max_ms = columns
    low, high = np.maximum(first, start), np.minimum(last, end)
    share = np.maximum(0, high - low) / np.maximum(1, last - first)
    one = np.ones(len(first), np.int64)
    certain = ((low == first) & (high == last)).astype(np.int64)
    return Groups(one * partition, low, high, records * share, min_ms, max_ms, one * tier, certain)
