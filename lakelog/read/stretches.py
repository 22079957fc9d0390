"""Where in a log its records are, for all that can be told without reading any."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from ..cold.segment import SegmentIndex
from ..offsets import LogOffsets
from ..record import OffsetRange
from .tiers import Look


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets of one partition over which records are spread evenly, for all that is known."""

    partition: int
    start: int
    end: int  # exclusive
    records: int  # at most; fewer than offsets where compaction thinned them out

    def offset(self, rank: int) -> int:
        """About where the record of that rank is; exactly, if there is one at each offset."""
        return self.start + (self.end - self.start) * rank // self.records


def stretches(look: Look) -> list[Stretch]:
    """What the log holds, by partition and offset: cold files below the local log start, then what
    is hot, without the gaps.
    """
    found = []
    for partition, log in sorted(look.offsets.items()):
        found += _cold(look.cold.files, partition, log)
        start = log.local_log_start
        for gap in [*log.gaps, OffsetRange(log.log_end, log.log_end)]:
            if start < gap.start:
                found.append(Stretch(partition, start, gap.start, gap.start - start))
            start = max(start, gap.end)
    return found


def _cold(files: SegmentIndex, partition: int, log: LogOffsets) -> list[Stretch]:
    columns = files.rows_of_partition(partition).select(["first", "last", "records"])
    columns = columns.filter(pc.not_equal(columns["records"], 0))
    found: list[Stretch] = []
    for row in columns.to_pylist():
        start, end = max(log.log_start, row["first"]), min(row["last"] + 1, log.local_log_start)
        if start >= end:
            continue
        records = row["records"] if row["records"] > 0 else end - start  # -1: nobody counted them
        if found and start < found[-1].end:  # somebody's OPTIMIZE leaves files that overlap
            before = found.pop()
            start, end = before.start, max(before.end, end)
            records += before.records
        found.append(Stretch(partition, start, end, min(records, end - start)))
    return found
