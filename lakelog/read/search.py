"""Records of a topic's partitions that match, merged by time, forward or backward, page by page.

Within a partition records keep the order of their offsets. So what is merged by is a record's
*rank*: the largest timestamp up to it, or, backward, the smallest from it on, both from where the
search began.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa

from ..base.watched import watched
from ..values.config import MIB, TopicConfig
from ..values.record import Record
from .found import (
    EDGE,
    FOUND,
    FULL,
    STOPPED,
    TOO_MANY_BYTES,
    TOO_MANY_RECORDS,
    Page,
    Place,
    Progress,
    SearchLimit,
    check_records,
    records_of,
    rows_within,
)
from .frames import Frames
from .search_scan import Backward, Forward, Scan, nothing
from .tiers import SegmentedLook, Tiers
from .where import Bounds, Where
from .where.grammar import write

#: What the steps of all partitions hold together, about, and the least and the most of one step.
_HELD_BYTES, _LEAST_STEP_BYTES, _MOST_STEP_BYTES = 32 * MIB, 16 * 1024, MIB

#: A page is begun again so often, if compaction thins out files between the look and the read.
_THINNED_PAGES = 3


class Search(Frames):
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
        yield from self._merged()

    def _merged(self, on_progress: Callable[[Progress], None] = lambda _: None) -> Merge:
        return Merge(self._scans({}, backward=False), on_progress=on_progress)

    def records(self) -> Iterator[Record]:
        """The matches one by one."""
        for table in self:
            yield from records_of(self._tiers.topic.name, table)

    def to_arrow(self) -> pa.Table:
        """All matches as one `FOUND` table, in memory."""
        with watched(f"searching {self._tiers.topic.name}", 1.0) as at:

            def told(seen: Progress) -> None:
                at(seen.share, f"{seen.matches:,} found")

            return pa.concat_tables([FOUND.empty_table(), *self._merged(told)])

    def _config(self) -> TopicConfig:
        return self._tiers.topic.config

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
            topic_partition = self._tiers.topic.partition(partition)
            seen = look if partition in may else None
            scan = kind(self._tiers, topic_partition, self.where, bounds, seen, step_bytes)
            scan.begin((start, max(start, end)), place.rank)
            scans.append(scan)
        return scans


#: A search of more partitions says how far it is about as often in a round through them all: to say
#: it takes a look at each.
_TOLD_EACH = 16

#: Matches of at most so many partitions are given at once.
MOST_AT_ONCE = 1_024

#: After all ranks of all scans.
_END = (math.inf, 2**63)


class Merge:
    """The matches of several scans by rank, then partition, in tables.

    The scan whose frontier is the least reads on. What lies below all frontiers is given. A step
    costs the same however many scans there are, but for the logarithm.
    """

    def __init__(
        self,
        scans: list[Scan],
        limit: SearchLimit | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        given_at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._scans = scans
        self._limit = limit or SearchLimit()
        self._on_progress = on_progress
        self._stopped = stopped
        self._steps = 0
        self._tell_at = 1
        self._given_at_once = given_at_once
        self._by_partition = {scan.partition: scan for scan in scans}
        self._read = self._bytes = self._given = self._waiting = 0
        self._frontiers = [(scan.frontier, number) for number, scan in enumerate(scans)]
        self._first_ranks: list[tuple[float, int]] = []  # of those scans in which matches wait
        heapq.heapify(self._frontiers)
        self._last, self._last_ranks = nothing(), np.empty(0)
        self._put_back = 0
        self.ended = EDGE

    def __iter__(self) -> Iterator[pa.Table]:
        while True:
            bound, first = self._frontiers[0] if self._frontiers else _END
            yield from self._below(bound, first)
            if bound == math.inf:
                return
            self._step(first)
            if reached := self._reached():
                self.ended = reached
                yield from self._below(*_END)
                return

    def put_back(self, count: int) -> None:
        """So many of the matches that were given last were not wanted."""
        self._put_back = count
        self._given -= count

    def next(self) -> dict[int, Place]:
        """See `Page.next`."""
        first = self._last.num_rows - self._put_back
        partitions, rows = np.unique(np.asarray(self._last["partition"])[first:], return_index=True)
        offsets, ranks = np.asarray(self._last["offset"])[first:], self._last_ranks[first:]
        at = {scan.partition: scan.place() for scan in self._scans}
        not_wanted = zip(
            partitions.tolist(), offsets[rows].tolist(), ranks[rows].tolist(), strict=True
        )
        for partition, offset, rank in not_wanted:
            at[partition] = self._by_partition[partition].place_before(offset, rank)
        return at

    def progress(self) -> Progress:
        scans = self._scans
        return Progress(
            read=self._read,
            skipped=sum(scan.skipped for scan in scans),
            total=sum(scan.total for scan in scans),
            bytes=self._bytes,
            matches=self._given + self._waiting,
            offsets={scan.partition: scan.at for scan in scans},
        )

    def _step(self, number: int) -> None:
        """The scan that comes first reads on."""
        scan = self._scans[number]
        stood, _ = self._frontiers[0]
        scan.open()
        if scan.frontier > stood:  # others may come before it
            heapq.heapreplace(self._frontiers, (scan.frontier, number))
            return
        read, nbytes, waited = scan.read, scan.bytes, len(scan.ranks)
        scan.step()
        self._read += scan.read - read
        self._bytes += scan.bytes - nbytes
        self._waiting += len(scan.ranks) - waited
        if len(scan.ranks) and not waited:
            heapq.heappush(self._first_ranks, (float(scan.ranks[0]), number))
        heapq.heapreplace(self._frontiers, (scan.frontier, number))
        self._steps += 1
        if self._steps >= self._tell_at:
            self._tell_at = self._steps + max(1, len(self._scans) // _TOLD_EACH)
            self._on_progress(self.progress())

    def _below(self, bound: float, first: int) -> Iterator[pa.Table]:
        """What comes before all that is still to be read, which begins in the scan `first`."""
        while True:
            edge = (bound, first)  # of the same rank, that of the smaller partition comes first
            numbers: list[int] = []
            while self._first_ranks and self._first_ranks[0] <= edge:
                if len(numbers) == self._given_at_once:
                    edge = self._first_ranks[0]
                    break
                numbers.append(heapq.heappop(self._first_ranks)[1])
            if not numbers:
                return
            yield self._taken(sorted(numbers), edge)

    def _taken(self, numbers: list[int], edge: tuple[float, int]) -> pa.Table:
        """What comes before an edge in some scans."""
        rank, first = edge
        tables, ranks = [], []
        for number in numbers:
            scan = self._scans[number]
            side: Literal["left", "right"] = "right" if number <= first else "left"
            count = int(np.searchsorted(scan.ranks, rank, side=side))
            tables.append(scan.waiting.slice(0, count))
            ranks.append(scan.ranks[:count])
            scan.take(count)
            if len(scan.ranks):
                heapq.heappush(self._first_ranks, (float(scan.ranks[0]), number))
        together = pa.concat_tables(tables)
        self._given += together.num_rows
        self._waiting -= together.num_rows
        self._last_ranks = np.concatenate(ranks)
        if len(tables) > 1:
            # The tables are by partition, each in its order, which a stable sort keeps.
            order = np.argsort(self._last_ranks, kind="stable")
            together, self._last_ranks = together.take(pa.array(order)), self._last_ranks[order]
        self._last = together
        return together

    def _reached(self) -> str | None:
        if self._stopped():
            return STOPPED
        if self._read >= self._limit.records:
            return TOO_MANY_RECORDS
        if self._bytes >= self._limit.bytes:
            return TOO_MANY_BYTES
        return None
