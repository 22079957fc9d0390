"""Where in a log its records are, as far as can be told without reading any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..cold.segment import UNKNOWN_TIMESTAMP_MS, SegmentIndex
from ..values.offsets import HotOffsets, HotSegments, LogOffsets
from ..values.topic_partition import OffsetRange
from .tiers import Look, SegmentedLook


class Stretch(Struct, frozen=True):
    """Offsets of one partition over which records are spread evenly, as far as is known."""

    partition: int
    start: int
    end: int  # exclusive
    records: int  # at most; fewer than offsets where compaction thinned them out

    def offset(self, rank: int) -> int:
        """About where the record of that rank is; exactly, if there is one at each offset."""
        return self.start + (self.end - self.start) * rank // self.records

    def records_between(self, start: int, end: int) -> int:
        """At most how many of its records lie in [start, end)."""
        return min(self.records, max(0, min(end, self.end) - max(start, self.start)))


def stretches(look: Look) -> list[Stretch]:
    """What the log holds, by partition and offset: hot records, and cold files where hot has none.

    Offsets that were skipped after an unclean stop are in no stretch.
    """
    return [
        stretch
        for partition, log in sorted(look.offsets.items())
        for stretch in stretches_between(look, partition, log.log_start, log.log_end)
    ]


def stretches_between(look: Look, partition: int, start: int, end: int) -> list[Stretch]:
    """What the log holds of [start, end), by offset."""
    found: list[Stretch] = []
    for tier in tiers_between(look.offsets[partition], look.hot[partition], start, end):
        if tier.hot:
            found.append(Stretch(partition, tier.start, tier.end, tier.end - tier.start))
        else:
            cold = _cold_pieces(look.cold.files, partition, tier.start, tier.end)
            found += [Stretch(partition, one.start, one.end, one.records) for one in cold]
    return found


class TierRange(Struct, frozen=True):
    """Offsets that a reader gets from one tier: in hot all are records, in cold some may be."""

    hot: bool
    start: int
    end: int  # exclusive


def tiers_between(log: LogOffsets, hot: HotOffsets, start: int, end: int) -> Iterator[TierRange]:
    """[start, end), as far as it lies in the log, by the tier that a reader asks; none is empty.

    Hot has the range from the local log start to its own end. Its gaps belong to cold, which may
    have got the first records of a tail before hot lost it; so do the offsets above hot's end.
    """
    start, end = max(start, log.log_start), min(end, log.log_end)
    hot_end = OffsetRange(hot.log_end, max(hot.log_end, log.log_end))
    at = log.log_start
    for gap in [OffsetRange(at, max(at, log.local_log_start)), *hot.gaps, hot_end]:
        for is_hot, first, last in ((True, at, gap.start), (False, max(at, gap.start), gap.end)):
            first, last = max(start, first), min(end, last)
            if first < last:
                yield TierRange(is_hot, first, last)
        at = max(at, gap.end)


# -- with their times ----------------------------------------------------------------------------

_NO_BOUND_MS = -1  # as of records without a timestamp: nothing is later than it


class Piece(Struct, frozen=True):
    """Offsets of one partition, and the least and the largest timestamp that a record there has."""

    start: int
    end: int  # exclusive
    records: int  # at most
    min_ms: int  # -1: some may have none, or it is not known
    max_ms: int  # -1: none has one; `UNKNOWN_TIMESTAMP_MS`: it is not known
    is_cold: bool = False  # whether a reader gets them from cold
    is_full: bool = True  # whether each offset surely has a record


def pieces(look: SegmentedLook, partition: int, start: int, end: int) -> list[Piece]:
    """What the log holds of [start, end), by offset; none where it holds nothing."""
    found: list[Piece] = []
    hot, log = look.hot[partition], look.offsets[partition]
    if log.log_start == log.local_log_start and not hot.gaps and log.log_end == hot.log_end:
        # Redis has all of it, as it has of most partitions where there are thousands.
        return [*_hot_pieces(hot, max(start, log.log_start), min(end, log.log_end))]
    for tier in tiers_between(look.offsets[partition], hot, start, end):
        if tier.hot:
            found += _hot_pieces(hot, tier.start, tier.end)
        else:
            found += _cold_pieces(look.cold.files, partition, tier.start, tier.end)
    return found


def piece_at(look: Look, partition: int, offset: int, *, backward: bool = False) -> Piece | None:
    """The file that a reader in a partition's log meets first, without looking at any other.

    Args:
        offset: where it begins to read; backward, the last it reads plus one.

    Returns:
        None if that is no file alone: it is hot, in a gap, or in files that overlap.
    """
    log = look.offsets[partition]
    low, high = log.log_start, log.local_log_start
    inside = low < offset <= high if backward else low <= offset < high
    if not inside or log.gaps:
        return None
    files = look.cold.files
    rows = files.row_range(partition, low if backward else offset, offset if backward else high)
    if rows.start >= rows.stop:
        return None
    row = rows.stop - 1 if backward else rows.start
    first, last, records, min_ms, max_ms = (
        int(files.numbers(name)[row])
        for name in ("first", "last", "records", "min_timestamp_ms", "max_timestamp_ms")
    )
    beside = row - 1 if backward else row + 1
    if rows.start <= beside < rows.stop:
        if backward and int(files.numbers("last")[beside]) >= first:
            return None
        if not backward and int(files.numbers("start_offset")[beside]) <= last:
            return None
    is_here = first < offset if backward else last >= offset
    if records <= 0 or not is_here or max_ms == UNKNOWN_TIMESTAMP_MS:
        return None
    is_full = records == last + 1 - first
    return Piece(first, last + 1, records, min_ms, max_ms, is_cold=True, is_full=is_full)


def record_count(found: Iterable[Piece]) -> int:
    """How many records they hold at most."""
    return sum(piece.records for piece in found)


def _hot_pieces(hot: HotSegments, low: int, high: int) -> Iterator[Piece]:
    at = low
    for segment in hot.segments:
        start, end = max(at, segment.base_offset), min(high, segment.end_offset)
        if start < end:
            if at < start:  # no segment says when it was
                yield Piece(at, start, start - at, _NO_BOUND_MS, UNKNOWN_TIMESTAMP_MS)
            yield Piece(start, end, end - start, _NO_BOUND_MS, segment.max_timestamp_ms)
            at = end
    if at < high:
        yield Piece(at, high, high - at, _NO_BOUND_MS, UNKNOWN_TIMESTAMP_MS)


def _cold_pieces(files: SegmentIndex, partition: int, low: int, high: int) -> list[Piece]:
    rows = files.row_range(partition, low, high)
    names = ("first", "last", "records", "min_timestamp_ms", "max_timestamp_ms")
    found: list[Piece] = []
    for first, last, records, min_ms, max_ms in zip(
        *(files.numbers(name)[rows].tolist() for name in names), strict=True
    ):
        start, end = max(low, first), min(last + 1, high)
        if start >= end or not records:
            continue
        is_full = records == last + 1 - first
        if records < 0:  # not counted
            records = end - start
        if max_ms == UNKNOWN_TIMESTAMP_MS:
            min_ms = _NO_BOUND_MS
        if found and start < found[-1].end:  # a foreign OPTIMIZE leaves files that overlap
            before = found.pop()
            start, end = before.start, max(before.end, end)
            records += before.records
            min_ms, max_ms = min(min_ms, before.min_ms), max(max_ms, before.max_ms)
            is_full = False
        records = min(records, end - start)
        found.append(Piece(start, end, records, min_ms, max_ms, is_cold=True, is_full=is_full))
    return found
