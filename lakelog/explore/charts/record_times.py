"""When the records of a log were, by their timestamps: from the indexes, or counted.

The indexes say how many records lie between two timestamps. Where these lie in different parts of
the time that is drawn, the records are read and counted, up to these limits:

| where | what is read             | the most                                                      |
|-------|--------------------------|---------------------------------------------------------------|
| cold  | files longer than a part | `MOST_COLD_RECORDS`: offsets and timestamps, no other columns |
| hot   | what is not archived     | `MOST_HOT_BYTES`, since Redis gives whole records             |

Hot segments are read whatever their times, and first of all: Redis knows the first entry's
timestamp of each, which is that of the last of its records and need not be the smallest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...cold.segment import UNKNOWN_TIMESTAMP_MS, SegmentIndex
from ...errors import MissingFileError, OffsetOutOfRangeError
from ...operate.segments import inspection_of
from ...read.tiers import Look, SegmentedLook
from ...read.topic_log import TopicLog
from ...values.config import MIB
from ...values.offsets import HotSegments, LogOffsets
from ...values.topic_partition import OffsetRange, TopicPartition
from .facts import int64
from .segment_map import covered

Numbers = np.ndarray[Any, Any]

MOST_COLD_RECORDS = 10_000_000  # about a second, and 160 MB of numbers
MOST_HOT_BYTES = 64 * MIB


class Stretches(Struct, frozen=True, eq=False):
    """Groups of records, each with its number, first timestamp and largest timestamp."""

    records: Numbers
    start_ms: Numbers
    end_ms: Numbers  # exclusive
    bounded: Numbers  # whether all of them surely lie in that time
    unplaced: float = 0  # records of which no time is known

    @classmethod
    def of(cls, records: Any, first_ms: Any, max_ms: Any, bounded: Any = True) -> Stretches:
        """The groups that have timestamps; -1 is none."""
        records, last = np.asarray(records, float), np.asarray(max_ms, np.int64)
        first = np.asarray(first_ms, np.int64)
        first = np.where(first < 0, last, np.minimum(first, last))
        held = records > 0
        blind = held & (last >= UNKNOWN_TIMESTAMP_MS)
        known = held & (last >= 0) & ~blind
        bounded = np.broadcast_to(bounded, records.shape)
        return cls(
            records[known],
            first[known],
            last[known] + 1,
            bounded[known],
            float(records[blind].sum()),
        )

    @classmethod
    def together(cls, several: Iterable[Stretches]) -> Stretches:
        parts = [cls.of([], [], []), *several]
        return cls(
            np.concatenate([one.records for one in parts]),
            np.concatenate([one.start_ms for one in parts]),
            np.concatenate([one.end_ms for one in parts]),
            np.concatenate([one.bounded for one in parts]),
            sum(one.unplaced for one in parts),
        )

    def spread(self, edges_ms: Sequence[float]) -> tuple[Numbers, Numbers]:
        """The records between neighbouring edges, with each stretch spread evenly over its time;
        and the time they are spread over, on average, in ms.
        """
        wide = self.end_ms - self.start_ms
        up_to, weighted = [], []
        for edge in edges_ms:
            before = self.records * np.clip((edge - self.start_ms) / wide, 0, 1)
            up_to.append(before.sum())
            weighted.append((before * wide).sum())
        records = np.diff(up_to)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(records > 0, np.diff(weighted) / records, np.nan)
        return records, over

    def bounds(self, edges_ms: Numbers) -> tuple[Numbers, Numbers]:
        """How many records there are between neighbouring edges: at least, and at most."""
        parts = len(edges_ms) - 1
        first = np.searchsorted(edges_ms, self.start_ms, "right") - 1
        last = np.searchsorted(edges_ms, self.end_ms - 1, "right") - 1
        least = np.zeros(parts)
        inside = self.bounded & (first == last) & (first >= 0) & (first < parts)
        np.add.at(least, first[inside], self.records[inside])
        change = np.zeros(parts + 1)
        near = self.bounded & (last >= 0) & (first < parts)
        np.add.at(change, np.maximum(first[near], 0), self.records[near])
        np.add.at(change, np.minimum(last[near], parts - 1) + 1, -self.records[near])
        anywhere = self.records[~self.bounded].sum() + self.unplaced
        return least, np.cumsum(change[:-1]) + anywhere


#: start offset, end offset, first and largest timestamp in ms, bytes
_Hot = tuple[int, int, int, int, float]


class Known(Struct, frozen=True, eq=False):
    """What the indexes know of one partition's records."""

    files: pa.Table  # as in a segment index
    there: Numbers  # how many records of each file there are; 0 if that is not known
    gone: Numbers  # how many more compaction removed, or may have
    first_ms: Numbers
    max_ms: Numbers
    hot: list[_Hot]
    #: The timestamps of each row of `hot` that were read, in ms and in order; None: they were not.
    hot_times_ms: Sequence[Numbers | None]

    @property
    def every(self) -> Stretches:
        """All of them."""
        hot = [
            Stretches.of([b - a], [since], [until])
            if times_ms is None
            # So fine that the few which lie far from the others can be told from them.
            else _grouped(times_ms, times_ms[:: 1 + len(times_ms) // 2_000])
            for (a, b, since, until, _), times_ms in zip(self.hot, self.hot_times_ms, strict=True)
        ]
        return Stretches.together([self.cold(), *hot])

    def cold(self, rows: Any = ...) -> Stretches:
        """The records of files, as far as the index knows."""
        first, last = self.first_ms[rows], self.max_ms[rows]
        return Stretches.together(
            [
                Stretches.of(self.there[rows], first, last),
                Stretches.of(self.gone[rows], first, last, bounded=False),
            ]
        )


def known_stretches(
    look: SegmentedLook, partitions: Iterable[int], log: TopicLog
) -> dict[int, Known]:
    """The records at and above the log start by partition, with those that compaction removed.

    Reads the hot ones, within the limit.

    Raises:
        LakelogError: a tier cannot be read.
    """
    left_bytes: float = MOST_HOT_BYTES
    found = {}
    for partition in partitions:
        known, times_ms = _known(look, partition), []
        for row in known.hot:
            left_bytes -= row[4]
            times_ms.append(_hot_times(log, partition, row) if left_bytes >= 0 else None)
        found[partition] = replace(known, hot_times_ms=times_ms)
    return found


def _known(look: SegmentedLook, partition: int) -> Known:
    """What the indexes know, before anything is read.

    A file that compaction emptied has no times: its records came between its neighbours'.
    """
    hot, log_start = look.hot[partition], look.offsets[partition].log_start
    files = look.cold.files.rows_of_partition(partition)
    first_ms = int64(files, "min_timestamp_ms").copy()
    max_ms = int64(files, "max_timestamp_ms").copy()
    known = (max_ms >= 0) & (max_ms < UNKNOWN_TIMESTAMP_MS)
    timed = np.flatnonzero(known)
    end, records = int64(files, "end_offset"), int64(files, "records")
    for row in np.flatnonzero(records == 0).tolist():
        at = int(np.searchsorted(timed, row))
        times = [int(max_ms[timed[at - 1]])] if at else []
        if at < len(timed):
            times.append(int(first_ms[timed[at]]))
        else:
            later = (one for one in hot.segments if one.end_offset > end[row])
            times += [one.first_timestamp_ms for one in later if one.first_timestamp_ms >= 0][:1]
        if times:
            first_ms[row], max_ms[row] = max(0, min(times)), max(times)
    appended = covered(files, hot.gaps, log_start)
    # Of a file that is cut, it is known only whether there is a record at each of its offsets.
    whole = covered(files, hot.gaps)
    there = np.where((appended == whole) | (records == whole), np.minimum(records, appended), 0)
    there = np.maximum(0, there)
    rows = _hot_rows(look.offsets[partition], hot, files)
    return Known(files, there, appended - there, first_ms, max_ms, rows, [None] * len(rows))


def _hot_rows(offsets: LogOffsets, hot: HotSegments, files: pa.Table) -> list[_Hot]:
    """The parts of the hot segments that are not archived."""
    first = max(offsets.archived_end, offsets.local_log_start)
    newest = files["max_timestamp_ms"][-1].as_py() if files.num_rows else -1
    found = []
    for one in hot.segments:
        start = max(first, one.base_offset)
        if start >= one.end_offset:
            continue
        since = one.first_timestamp_ms
        if start > one.base_offset and since <= newest <= one.max_timestamp_ms:
            since = newest  # the part before is archived, and this is where it ended
        share = (one.end_offset - start) / (one.end_offset - one.base_offset)
        size = one.size_bytes * share
        found.append((start, one.end_offset, since, one.max_timestamp_ms, size))
    return found


def counted(
    known: Mapping[int, Known], edges_ms: Numbers, look: Look, log: TopicLog
) -> dict[int, Stretches]:
    """The records of each partition, none of those that are read in a stretch across an edge.

    Raises:
        LakelogError: a tier cannot be read.
    """
    to_read = _longest(known, edges_ms)
    found = {}
    for partition, one in known.items():
        rows = to_read[partition]
        gaps = look.hot[partition].gaps
        log_start = look.offsets[partition].log_start
        read = _counted_files(log, one, rows, gaps, log_start, edges_ms)
        if read is None:
            parts = [one.cold()]
        else:
            parts = [read, one.cold(np.setdiff1d(np.arange(one.files.num_rows), rows))]
        for row, times_ms in zip(one.hot, one.hot_times_ms, strict=True):
            if times_ms is None:
                parts.append(_refined(row, edges_ms, log, log.topic.partition(partition)))
            else:
                parts.append(_grouped(times_ms, edges_ms))
        found[partition] = Stretches.together(parts)
    return found


def _longest(known: Mapping[int, Known], edges_ms: Numbers) -> dict[int, Numbers]:
    """The rows of the files to read, by partition: those that reach over most edges first."""
    reach, records, whose, rows = [], [], [], []
    for partition, one in known.items():
        first = np.searchsorted(edges_ms, one.first_ms, "right")
        last = np.searchsorted(edges_ms, one.max_ms, "right")
        held = (one.there + one.gone > 0) & (int64(one.files, "records") != 0)
        at = np.flatnonzero(held & (first != last) & (one.max_ms >= 0))
        reach.append((last - first)[at])
        records.append((one.there + one.gone)[at])
        whose.append(np.full(len(at), partition))
        rows.append(at)
    if not rows:
        return {}
    order = np.argsort(-np.concatenate(reach), kind="stable")
    taken = order[np.cumsum(np.concatenate(records)[order]) <= MOST_COLD_RECORDS]
    all_rows, owner = np.concatenate(rows)[taken], np.concatenate(whose)[taken]
    return {partition: np.sort(all_rows[owner == partition]) for partition in known}


def _counted_files(
    log: TopicLog,
    known: Known,
    rows: Numbers,
    gaps: Sequence[OffsetRange],
    log_start: int,
    edges_ms: Numbers,
) -> Stretches | None:
    """The records of these files; None if a file is gone."""
    tier = log.tiers().rows
    if not len(rows) or tier is None:
        return Stretches.of([], [], [])
    files = [SegmentIndex.file(known.files, row) for row in rows.tolist()]
    segment = int64(known.files, "segment")[rows]
    start = np.maximum(np.maximum(segment, int64(known.files, "start_offset")[rows]), log_start)
    end = int64(known.files, "end_offset")[rows]
    try:
        batches = tier.read(files, int(start.min()), int(end.max()), ["offset", "timestamp"])
        offsets, times_ms = _columns(batches)
    except MissingFileError:
        return None  # rewritten since the look, whose index still tells what the file held
    found = []
    at = 0
    for low, high in zip(start.tolist(), end.tolist(), strict=True):
        # Files of other writers may overlap: a record counts once.
        first = max(at, int(np.searchsorted(offsets, low)))
        at = max(first, int(np.searchsorted(offsets, high)))
        found.append(_grouped(times_ms[first:at], edges_ms))
        found.append(_removed(offsets[first:at], times_ms[first:at], low, high, gaps, edges_ms))
    return Stretches.together(found)


def _hot_times(log: TopicLog, partition: int, row: _Hot) -> Numbers | None:
    """The timestamps of part of a hot segment, in order; None if it is deleted by now."""
    start, end, *_ = row
    try:
        _, times_ms = _columns(log.read(partition, start, end))
    except OffsetOutOfRangeError:
        return None
    return np.sort(times_ms[times_ms >= 0])


def _columns(batches: Iterable[pa.RecordBatch]) -> tuple[Numbers, Numbers]:
    """Offsets and timestamps (ms; -1: none) of batches."""
    offsets, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for batch in batches:
        table = pa.Table.from_batches([batch.select(["offset", "timestamp"])])
        offsets.append(int64(table, "offset"))
        times.append(int64(table, "timestamp") // 1000)
    return np.concatenate(offsets), np.concatenate(times)


def _grouped(times_ms: Numbers, edges_ms: Numbers) -> Stretches:
    """Records as one stretch for each part of the time that has some.

    Args:
        times_ms: when they were, in any order; -1 is none.
    """
    times_ms = np.sort(times_ms[times_ms >= 0])
    cuts = np.searchsorted(times_ms, edges_ms)
    firsts = np.unique([0, *cuts.tolist()])
    firsts = firsts[firsts < len(times_ms)]
    if not len(firsts):
        return Stretches.of([], [], [])
    lasts = np.append(firsts[1:], len(times_ms)) - 1
    return Stretches.of(lasts - firsts + 1, times_ms[firsts], times_ms[lasts])


def _removed(
    offsets: Numbers,
    times_ms: Numbers,
    start: int,
    end: int,
    gaps: Sequence[OffsetRange],
    edges_ms: Numbers,
) -> Stretches:
    """What compaction took between the records of a file, at the times of those beside it."""
    if not len(offsets):
        return Stretches.of([], [], [])
    low = np.append(start, offsets + 1)
    high = np.append(offsets, end)
    missing = np.maximum(0, high - low)
    for gap in gaps:
        lost = np.minimum(high, gap.end) - np.maximum(low, gap.start)
        missing = np.maximum(0, missing - np.maximum(0, lost))
    at = np.flatnonzero(missing)
    before = np.append(times_ms[:1], times_ms)[at]
    after = np.append(times_ms, times_ms[-1:])[at]
    first, last, missing = np.minimum(before, after), np.maximum(before, after), missing[at]
    part = np.searchsorted(edges_ms, first, "right")
    across = part != np.searchsorted(edges_ms, last, "right")
    # Those within a part are one stretch: there may be a hole beside every record.
    parts, which = np.unique(part[~across], return_inverse=True)
    many = np.zeros(len(parts))
    np.add.at(many, which, missing[~across])
    since, until = np.full(len(parts), UNKNOWN_TIMESTAMP_MS), np.full(len(parts), -1)
    np.minimum.at(since, which, first[~across])
    np.maximum.at(until, which, last[~across])
    return Stretches.together(
        [
            Stretches.of(many, since, until, bounded=False),
            Stretches.of(missing[across], first[across], last[across], bounded=False),
        ]
    )


def _refined(
    row: _Hot, edges_ms: Numbers, log: TopicLog, topic_partition: TopicPartition
) -> Stretches:
    """A hot stretch, cut where the time index knows the time, near the edges that lie in it."""
    start, end, first_ms, max_ms, _ = row
    inside = edges_ms[(edges_ms > max(0, first_ms)) & (edges_ms <= max_ms)].tolist()
    found: list[tuple[int, int, int]] = []
    at, since = start, first_ms
    indexed = inspection_of(log).indexed_around(topic_partition, inside) if inside else ()
    for last, time_ms in indexed:
        # The index has the last offset of an entry: all up to it came by then.
        upper, until = min(end, last + 1), min(max(since, time_ms), max_ms)
        if upper > at:
            found.append((upper - at, since, until))
            at = upper
        since = until
    if at < end:
        found.append((end - at, since, max_ms))
    many, firsts, lasts = zip(*found, strict=True)
    return Stretches.of(many, firsts, lasts, bounded=False)
