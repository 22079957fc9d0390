"""Records of a topic's partitions that match, merged by time, forward or backward, page by page.

Within a partition records keep the order of their offsets. So what is merged by is a record's
*rank*: the largest timestamp up to it, or, backward, the smallest from it on, both from where the
search began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from ..values.config import MIB
from ..values.record import Record
from .found import (
    FOUND,
    FULL,
    Page,
    Place,
    Progress,
    SearchLimit,
    check_records,
    records_of,
    rows_within,
)
from .search_merge import MOST_AT_ONCE, Merge
from .search_scan import Backward, Forward, Narrowed, Scan
from .tiers import SegmentedLook, Tiers
from .where import Bounds, Where
from .where.grammar import write

#: What the steps of all partitions hold together, about, and the least and the most of one step.
_HELD_BYTES, _LEAST_STEP_BYTES, _MOST_STEP_BYTES = 32 * MIB, 16 * 1024, MIB

#: A page is begun again so often, if compaction thins out files between the look and the read.
_THINNED_PAGES = 3


class Search:
    """Ranges of partitions, of which those records are wanted that match.

    Iterating gives `FOUND` tables in bounded memory, in the order of time, and reads again each
    time. A record that the log held when the iteration began is there, once, or it raises; see
    `fetches` for the errors. What is appended later, at whatever time, lies beyond the ranges.

    Not promised: that order, where compaction removes records while the iteration is under way. It
    has gone by the least time of a file then, and cannot take back what it gave: records behind
    those that were removed may come later than their times say, in the order of their offsets. A
    page is begun again then.

    Args:
        ranges: [start, end) of each partition.
        look: the one that fixed them, if one did.
        first_times_ms: of the first record of those ranges where it is known.

    Attributes:
        begins: where it begins in each range, going forward. Where that record's time is known,
            nothing is read before the record's turn comes.
    """

    def __init__(
        self,
        tiers: Tiers,
        ranges: Mapping[int, tuple[int, int]],
        where: Where,
        look: SegmentedLook | None = None,
        first_times_ms: Mapping[int, int] | None = None,
    ) -> None:
        self._tiers = tiers
        self.where = where
        self.look = look
        self.ranges = dict(sorted(ranges.items()))
        times_ms = first_times_ms or {}
        self.begins = {
            number: Place(start, float(times_ms.get(number, -math.inf)))
            for number, (start, _) in self.ranges.items()
        }

    def page(
        self,
        records: int,
        after: Mapping[int, Place] | None = None,
        *,
        backward: bool = False,
        limit: SearchLimit | None = None,
        page_bytes: float = math.inf,
        on_progress: Callable[[Progress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        look: SegmentedLook | None = None,
    ) -> Page:
        """The first matches, or backward the last.

        Args:
            records: how many, at most.
            after: `Page.next` of the page before this one, in the same direction.
            limit: how much may be read for it.
            page_bytes: it is full, too, with the match that makes it so large.
            on_progress: called after each step; of very many partitions, after some.
            stopped: asked after each step: whether to end with what is there.
            look: one that covers the ranges, if there is one already.
        """
        records = check_records(records)
        for _ in range(_THINNED_PAGES):
            page = self._page(
                records, after or {}, backward, limit, page_bytes, on_progress, stopped, look
            )
            if page is not None:
                return page
            look = None  # what was seen is not there any more
        page = self._page(
            records, after or {}, backward, limit, page_bytes, on_progress, stopped, None, last=True
        )
        assert page is not None
        return page

    def _page(
        self,
        records: int,
        after: Mapping[int, Place],
        backward: bool,
        limit: SearchLimit | None,
        page_bytes: float,
        on_progress: Callable[[Progress], None],
        stopped: Callable[[], bool],
        look: SegmentedLook | None,
        *,
        last: bool = False,
    ) -> Page | None:
        """See `page`; None: files were thinned out as it read them, so its order may be wrong."""
        scans = self._scans(after, backward, look)
        # More scans than it takes records are not looked into for its first ones.
        at_once = max(1, min(records, MOST_AT_ONCE))
        merge = Merge(scans, limit, on_progress, stopped, at_once)
        tables: list[pa.Table] = []
        rows = nbytes = 0
        try:
            for table in merge:
                room = min(records - rows, rows_within(table, page_bytes - nbytes))
                tables.append(table.slice(0, room))
                rows += tables[-1].num_rows
                nbytes += tables[-1].nbytes
                if rows >= records or nbytes >= page_bytes or room < table.num_rows:
                    merge.put_back(table.num_rows - tables[-1].num_rows)
                    merge.ended = FULL
                    break
            if not last and any(scan.is_thinned for scan in scans):
                return None
            found = pa.concat_tables([FOUND.empty_table(), *tables])
            if backward:
                found = found.take(pa.array(np.arange(found.num_rows)[::-1]))
            return Page(found, merge.next(), merge.ended, merge.progress())
        finally:
            for scan in scans:
                scan.close()

    def __iter__(self) -> Iterator[pa.Table]:
        yield from Merge(self._scans({}, backward=False))

    def records(self) -> Iterator[Record]:
        """The matches one by one."""
        for table in self:
            yield from records_of(self._tiers.topic.name, table)

    def to_arrow(self) -> pa.Table:
        """All matches as one `FOUND` table, in memory."""
        return pa.concat_tables([FOUND.empty_table(), *self])

    def __repr__(self) -> str:
        whole = ", ".join(f"{p}: [{start}, {end})" for p, (start, end) in self.ranges.items())
        return f"Search({self._tiers.topic.name} {whole} where {write(self.where) or 'all'})"

    def _step_bytes(self) -> int:
        return min(
            _MOST_STEP_BYTES, max(_LEAST_STEP_BYTES, _HELD_BYTES // max(1, len(self.ranges)))
        )

    def _scans(
        self, after: Mapping[int, Place], backward: bool, look: SegmentedLook | None = None
    ) -> list[Scan]:
        bounds = Bounds.of(self.where)
        may = {p for p in self.ranges if bounds.partitions is None or p in bounds.partitions}
        if look is None and may:
            look = self._tiers.look_at_segments(sorted(may))
        step_bytes = self._step_bytes()
        kind = Backward if backward else Forward
        scans: list[Scan] = []
        for partition, (start, end) in self.ranges.items():
            place = after.get(partition) or (Place(end) if backward else self.begins[partition])
            if backward:
                end = min(end, place.offset)
            else:
                start = max(start, place.offset)
            narrowed = Narrowed(
                self._tiers, look if partition in may else None, partition, bounds.keys
            )
            topic_partition = self._tiers.topic.partition(partition)
            scan = kind(self._tiers, topic_partition, self.where, bounds, narrowed, step_bytes)
            scan.begin((start, max(start, end)), place.rank)
            scans.append(scan)
        return scans
