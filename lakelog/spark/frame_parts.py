"""Which rows of a range a frame takes from which tier, and how Delta is asked for the cold ones.

Pure: told by one look. The condition holds for the rows of that look's version of the table and of
no other: what somebody adds to a segment later is not in that version.

Runs on: driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import starmap

import pyarrow as pa

from ..base import compute as pc
from ..cold.segment import SegmentIndex
from ..read.tiers import Look
from ..values.offset_ranges import merged
from ..values.topic_partition import OffsetRange

NO_ROWS = "false"


Parts = list[dict[int, OffsetRange]]
"""Ranges by partition; as many as a partition has several."""


def divide(look: Look, ranges: Mapping[int, OffsetRange]) -> tuple[Parts, Parts]:
    """What of the ranges is read from cold, and what from hot; no part has an empty range.

    Cold as far as it goes: what both tiers hold are the same bytes, and Delta's reader filters,
    skips and prunes. But where compaction has cleaned records that are still hot, hot begins with
    its first record, so that a frame has the records that every other reader of the log gets. What
    hot lost of those is read as cold has it now: hot has a gap for it or, until the partition is
    recovered, ends below it.
    """
    cold: Parts = []
    hot: Parts = []
    for number, (start, end) in ranges.items():
        offsets = look.offsets[number]
        boundary = offsets.archived_end
        if look.cold.thinned_end(number) > offsets.local_log_start:
            boundary = min(boundary, offsets.local_log_start)
        boundary = min(max(boundary, start), end)
        both = OffsetRange(boundary, min(end, offsets.archived_end))
        tier = look.hot[number]
        known = (*tier.gaps, OffsetRange(tier.log_end, offsets.archived_end))
        lost = merged(
            OffsetRange(max(gap.start, both.start), min(gap.end, both.end)) for gap in known
        )
        _put(cold, number, [OffsetRange(start, boundary), *lost])
        edges = [boundary, *(edge for gap in lost for edge in gap), end]
        _put(hot, number, starmap(OffsetRange, zip(edges[::2], edges[1::2], strict=True)))
    return cold, hot


def _put(parts: Parts, number: int, ranges: Iterable[OffsetRange]) -> None:
    for at, one in enumerate(one for one in ranges if one.start < one.end):
        if at == len(parts):
            parts.append({})
        parts[at][number] = one


def hot_version(look: Look, hot: Mapping[int, OffsetRange]) -> int:
    """As of which table version a hot part's tasks read what is archived by then.

    Below the archived end, hot is read for what compaction removed: only the version that first
    held it still has that.
    """
    cleaned = any(
        one.start < min(one.end, look.offsets[number].archived_end) for number, one in hot.items()
    )
    return 0 if cleaned else look.cold.version


def condition(files: SegmentIndex, ranges: Mapping[int, OffsetRange]) -> str | None:
    """Which of the table's rows lie in the ranges, as SQL; None: all of them.

    A first part speaks of the partition columns alone, so that it decides on files by itself; a
    second one of offsets, for the files at the edges and their row groups. Neither is there where
    it would not leave anything out: a count of whole segments then reads no column, and one of
    everything opens no file.

    Partition columns take a segment as a whole: the offsets of a range may be left unsaid only
    where *every* file of its segments lies inside, those too that the range itself does not touch.
    Between two rolls a segment has many files, and below the log start some are still there.

    Args:
        files: of the version that is read.
    """
    filled = files.columns.filter(pc.not_equal(files.columns["records"], 0))
    by_segments, by_offsets = [], []
    left_out, edges = filled.num_rows, False
    for number, (start, end) in ranges.items():
        mine = filled.filter(pc.equal(filled["partition"], number))
        # By its records, not by its range: that may begin in a gap, and there is no row in it.
        found = mine.filter(
            pc.and_(pc.less(mine["first"], end), pc.greater_equal(mine["last"], start))
        )
        if not found.num_rows or start >= end:
            continue
        chosen = _of_their_segments(mine, found)
        left_out -= chosen.num_rows
        inside = pc.and_(pc.greater_equal(chosen["first"], start), pc.less(chosen["last"], end))
        whole = pc.all(inside).as_py()
        edges = edges or not whole
        segments = ""
        if chosen.num_rows < mine.num_rows:
            low, high = _extremes(found["segment"])
            segments = f" AND segment BETWEEN {low} AND {high}"
        by_segments.append(f"(partition = {number}{segments})")
        offsets = "" if whole else f" AND offset >= {start} AND offset < {end}"
        by_offsets.append(f"(partition = {number}{offsets})")
    if not by_segments:
        return NO_ROWS
    parts = [f"({' OR '.join(by_segments)})"] if left_out else []
    if edges:
        parts.append(f"({' OR '.join(by_offsets)})")
    return " AND ".join(parts) if parts else None


def _of_their_segments(files: pa.Table, found: pa.Table) -> pa.Table:
    """All files of the segments that some of them are of, and of the segments between."""
    low, high = _extremes(found["segment"])
    return files.filter(
        pc.and_(pc.greater_equal(files["segment"], low), pc.less_equal(files["segment"], high))
    )


def _extremes(column: pa.ChunkedArray) -> tuple[int, int]:
    return pc.min(column).as_py(), pc.max(column).as_py()
